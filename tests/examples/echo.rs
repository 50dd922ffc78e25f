//! Answers each message with itself, over the library that the event stream is spoken with, for a test suite of the
//! protocol: `cargo xtask autobahn`.
//!
//! Buffers, and what is said to a peer that breaks the protocol, are those of the event stream; only its limits of size
//! are larger, because the suite sends messages of 16 MiB.

use std::io::Write as _;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use tokio::net::TcpListener;

const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BUFFER_BYTES: usize = 2 * 1024;
/// How long a peer that was notified of the end may take to go.
const LINGER_LIMIT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    // The process that started it reads its address.
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    axum::serve(listener, Router::new().route("/", any(upgrade))).await
}

async fn upgrade(upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BUFFER_BYTES)
        .on_upgrade(serve)
}

async fn serve(mut socket: WebSocket) {
    let code = echo(&mut socket).await;
    let frame = CloseFrame { code, reason: Utf8Bytes::from_static("") };
    // A peer that is gone cannot be notified, and one that has closed is answered by reading on.
    drop(socket.send(Message::Close(Some(frame))).await);
    let rest = async { while let Some(Ok(_)) = socket.recv().await {} };
    tokio::time::timeout(LINGER_LIMIT, rest).await.ok();
}

/// Until the end; answers the code of the close.
async fn echo(socket: &mut WebSocket) -> u16 {
    while let Some(received) = socket.recv().await {
        match received {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                if socket.send(message).await.is_err() {
                    return 1000;
                }
            }
            // The protocol's answer to a ping is sent below us.
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(_)) => return 1000,
            Err(error) => return broken(error),
        }
    }
    1000
}

/// As the event stream says it.
fn broken(error: axum::Error) -> u16 {
    use tungstenite::error::CapacityError;
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. })) => 1009,
        Some(tungstenite::Error::Utf8(_)) => 1007,
        Some(tungstenite::Error::Protocol(_)) => 1002,
        _ => 1000,
    }
}
