//! Requests that the controller sends by itself, to those that it was told to tell.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Uri, header};
use futures::future::join;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Controller;
use crate::server::POLL;
use crate::shared::Shared;

/// How long one answer is waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Real time before a request that was not taken is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A `POST` of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// An address of `http`: those that a lab tells are on the same machine.
    pub url: String,
    /// Names the form of the body.
    pub content_type: String,
    /// The bytes of the body.
    pub body: Vec<u8>,
    /// How often it is sent again where no answer of 2xx comes.
    pub retries: u32,
}

/// Sends what the controller has to send until the task is aborted, which ends what is on its way.
pub(crate) async fn run<C: Controller>(shared: Shared<C>) -> Infallible {
    let mut sending = JoinSet::new();
    loop {
        while sending.try_join_next().is_some() {}
        for request in waiting(&shared) {
            sending.spawn(send(request, shared.clone()));
        }
        sleep(POLL).await;
    }
}

fn waiting<C: Controller>(shared: &Shared<C>) -> Vec<Outgoing> {
    let mut locked = shared.lock();
    if !locked.is_reachable() {
        return Vec::new();
    }
    let (controller, context) = locked.parts();
    controller.outgoing(context)
}

async fn send<C: Controller>(request: Outgoing, shared: Shared<C>) {
    for left in (0..=request.retries).rev() {
        let status = timeout(ANSWER_LIMIT, post(&request)).await.ok().flatten();
        {
            let mut locked = shared.lock();
            let (controller, context) = locked.parts();
            controller.sent(&request, status, context);
        }
        if left == 0 || status.is_some_and(|status| (200..300).contains(&status)) {
            return;
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// The status of the answer; `None` where there is none.
async fn post(request: &Outgoing) -> Option<u16> {
    let uri: Uri = request.url.parse().ok()?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"))?;
    let address = (authority.host().trim_matches(['[', ']']), authority.port_u16().unwrap_or(80));
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let sent = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(header::HOST, authority.as_str())
        .header(header::CONTENT_TYPE, &request.content_type)
        .body(Body::from(request.body.clone()))
        .ok()?;
    // The sender goes with the answer, and so does the connection.
    let answered = async move { sender.send_request(sent).await.ok().map(|answer| answer.status().as_u16()) };
    let (status, _ended) = join(answered, connection).await;
    status
}
