//! Sockets of the web: what the controller sends, what it hears, and when they close.

use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::*;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn open(lab: &Lab<Toy>) -> Socket {
    let url = format!("ws://{}/socket", lab.address());
    connect_async(url).await.unwrap().0
}

/// The next text; `None` when the socket is closed.
async fn next(socket: &mut Socket) -> Option<String> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => return Some(text.to_string()),
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn a_socket_tells_what_happens_and_is_heard() {
    let lab = Lab::builder(Toy::default()).start().await;
    let mut socket = open(&lab).await;
    assert_eq!(next(&mut socket).await.as_deref(), Some("0"));
    lab.lock().parts().0.count = 5;
    assert_eq!(next(&mut socket).await.as_deref(), Some("5"));
    socket.send(Message::text("add")).await.unwrap();
    assert_eq!(next(&mut socket).await.as_deref(), Some("6"));
    assert_eq!(lab.record()[0].status, Some(101));
    socket.send(Message::text("end")).await.unwrap();
    assert_eq!(next(&mut socket).await, None);
}

#[tokio::test]
async fn a_cut_closes_sockets_too() {
    let lab = Lab::builder(Toy::default()).start().await;
    let mut socket = open(&lab).await;
    assert_eq!(next(&mut socket).await.as_deref(), Some("0"));
    lab.fault(Fault::cut());
    assert_eq!(next(&mut socket).await, None);
    assert!(lab.lock().socket.is_none());
}

#[tokio::test]
async fn a_plain_request_is_no_socket() {
    let peer = Peer::new().await;
    assert_eq!(peer.status("GET", "/socket").await, Some(400));
}
