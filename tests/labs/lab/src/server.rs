//! The port of the controller: connections, and when they close.

use std::convert::Infallible;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::respond::respond;
use crate::shared::Shared;
use crate::{Controller, socket};

/// How often open connections and hung requests look at what the clock has brought.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Accepts until the task is aborted, which ends all of its connections.
pub(crate) async fn serve<C: Controller>(listener: TcpListener, shared: Shared<C>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sleep(POLL), if !connections.is_empty() => {
                // What has come due by time may take the controller off the network.
                drop(shared.lock());
                continue;
            }
        };
        let Ok((stream, _)) = accepted else {
            sleep(POLL).await;
            continue;
        };
        // Subscribed before the look: what closes connections in between closes this one too.
        let closing = shared.closing();
        let which = {
            let mut locked = shared.lock();
            if !locked.is_reachable() {
                continue;
            }
            locked.context().certificate()
        };
        let shared = shared.clone();
        connections.spawn(async move {
            let acceptor = shared.certificates().map(|made| made.get(which).acceptor.clone());
            match acceptor {
                None => connection(stream, shared, closing).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(stream, shared, closing).await;
                    }
                }
            }
        });
    }
}

async fn connection<C: Controller>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shared: Shared<C>,
    mut closing: watch::Receiver<()>,
) {
    let (upgrades, mut waiting) = mpsc::unbounded_channel();
    let own = shared.clone();
    let service = service_fn(move |request| respond(own.clone(), request, upgrades.clone()));
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::select! {
        // An answer that is ready leaves before the connection closes.
        biased;
        // An error is a peer that left, or an answer withheld on purpose: both end here.
        _ended = serving => {}
        _closing = closing.changed() => return,
    }
    if let Ok((upgrade, number)) = waiting.try_recv() {
        socket::run(upgrade, number, shared, closing).await;
    }
}
