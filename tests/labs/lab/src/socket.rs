//! An open WebSocket: what the controller sends over it, and when it closes.

use futures::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::Controller;
use crate::server::POLL;
use crate::shared::Shared;

/// Where a request leaves its connection when it becomes a WebSocket, with the controller's number of it.
pub(crate) type Upgrades = mpsc::UnboundedSender<(OnUpgrade, u64)>;

/// What the controller wants of a socket or stream now.
pub(crate) enum Wish {
    Send(Vec<String>),
    Close,
    /// The controller is off the network.
    Drop,
}

/// Serves the socket until either side closes it, or the connection is closed.
pub(crate) async fn run<C: Controller>(
    upgrade: OnUpgrade,
    number: u64,
    shared: Shared<C>,
    closing: watch::Receiver<()>,
) {
    let mut stream = match upgrade.await {
        Ok(stream) => Some(WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Server, None).await),
        Err(_) => None,
    };
    if let Some(stream) = &mut stream {
        serve(stream, number, &shared, closing).await;
    }
    // The controller knows it before the client does.
    let mut locked = shared.lock();
    let (controller, _) = locked.parts();
    controller.socket_closed(number);
}

async fn serve<C: Controller>(
    stream: &mut WebSocketStream<TokioIo<Upgraded>>,
    number: u64,
    shared: &Shared<C>,
    mut closing: watch::Receiver<()>,
) {
    loop {
        let received = tokio::select! {
            _closing = closing.changed() => return,
            received = stream.next() => Some(received),
            () = sleep(POLL) => None,
        };
        match received {
            Some(None | Some(Err(_) | Ok(Message::Close(_)))) => return,
            Some(Some(Ok(Message::Text(text)))) => {
                let mut locked = shared.lock();
                let (controller, context) = locked.parts();
                controller.socket_received(number, &text, context);
            }
            // Pings are answered by the library.
            Some(Some(Ok(_))) | None => {}
        }
        let texts = match wish(shared, number) {
            Wish::Send(texts) => texts,
            Wish::Close => {
                // It fails only when the connection is gone.
                let _gone = stream.close(None).await;
                return;
            }
            Wish::Drop => return,
        };
        for text in texts {
            if stream.send(Message::text(text)).await.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn wish<C: Controller>(shared: &Shared<C>, number: u64) -> Wish {
    let mut locked = shared.lock();
    if !locked.is_reachable() {
        return Wish::Drop;
    }
    let (controller, context) = locked.parts();
    match controller.socket_texts(number, context) {
        Some(texts) => Wish::Send(texts),
        None => Wish::Close,
    }
}
