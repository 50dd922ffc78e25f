//! Serves one connection to its end.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::Shared;
use super::activity::{Activity, Held, LOOK_INTERVAL, Wire};
use crate::metrics::ConnectionEnd;
use crate::surface::Surface;

/// Serves until the peer closes, a limit is reached, or `abandon` fires. After `stop`, requests in flight are finished.
///
/// A connection that was upgraded leaves here and keeps its slot.
pub(super) async fn serve(
    shared: Arc<Shared>,
    wire: Wire,
    peer: SocketAddr,
    stop: CancellationToken,
    abandon: CancellationToken,
) {
    let activity = wire.activity().clone();
    let service = Requests { service: shared.service.clone(), peer, activity: activity.clone() };
    let serving = shared.builder.serve_connection_with_upgrades(TokioIo::new(wire), service);
    let mut serving = pin!(serving);
    let mut is_ending = false;
    loop {
        let limits = if shared.slots.are_scarce() { shared.limits.scarce() } else { shared.limits };
        let due = activity.due(&limits);
        tokio::select! {
            result = serving.as_mut() => {
                if let Err(error) = result {
                    tracing::trace!(client.ip = %peer.ip(), error = %error, "connection ended");
                }
                return;
            }
            () = abandon.cancelled() => return,
            () = stop.cancelled(), if !is_ending => {
                is_ending = true;
                activity.ends();
                serving.as_mut().graceful_shutdown();
            }
            // A head that began meanwhile has a shorter limit, and limits shrink when slots become scarce.
            () = tokio::time::sleep_until(due.at.min(Instant::now() + shared.limits.head.min(LOOK_INTERVAL))) => {
                let due = activity.due(&limits);
                let Some(end) = due.end.filter(|_| due.at <= Instant::now()) else { continue };
                if is_ending {
                    return;
                }
                shared.metrics.connection_ended(end);
                if end != ConnectionEnd::Idle {
                    return;
                }
                is_ending = true;
                activity.ends();
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Hands the requests of a connection on, with the peer's address.
struct Requests {
    service: Surface,
    peer: SocketAddr,
    activity: Arc<Activity>,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Held<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let under_way = self.activity.begin(request.version() == Version::HTTP_2);
        let is_tunnel = request.method() == Method::CONNECT;
        let mut request = if request.body().is_end_stream() {
            request.map(Body::new)
        } else {
            // The rest of a body is read after the answer, too.
            let held = under_way.clone();
            request.map(|body| Body::new(Held { body, _under_way: held }))
        };
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let (service, activity) = (self.service.clone(), self.activity.clone());
        Box::pin(async move {
            let response = service.oneshot(request).await?;
            if is_tunnel && response.status().is_success() {
                activity.became_tunnel();
            }
            Ok(response.map(|body| Held { body, _under_way: under_way }))
        })
    }
}
