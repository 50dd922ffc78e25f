//! One request from its head to its answer, and what faults make of it.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Request as HttpRequest, Response, StatusCode, header};
use futures::stream;
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::answer::{Delivery, Open};
use crate::faults::{Instead, Plan, Spoiled};
use crate::form;
use crate::record::shown;
use crate::server::POLL;
use crate::shared::{Locked, Shared};
use crate::socket::Upgrades;
use crate::{Answer, Context, Controller, Fault, Request, Then, streaming};

/// Bytes over the limit that are still read, so that the refusal reaches the client.
const READ_ON_BYTES: usize = 16 * 1024 * 1024;

const LOGIN_PAGE: &str = "<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>";

/// The connection closes without an answer.
#[derive(Debug)]
pub(crate) struct Unanswered;

impl std::fmt::Display for Unanswered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the controller does not answer")
    }
}

impl std::error::Error for Unanswered {}

/// What the lock decided.
enum Outcome {
    Answered {
        answer: Answer,
        cuts_body: bool,
    },
    /// The id of the hang that holds the request.
    Hung(u64),
    Unanswered,
}

impl Outcome {
    fn answered(answer: Answer) -> Self {
        Self::Answered { answer, cuts_body: false }
    }
}

pub(crate) async fn respond<C: Controller>(
    shared: Shared<C>,
    mut request: HttpRequest<Incoming>,
    upgrades: Upgrades,
) -> Result<Response<Body>, Unanswered> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, body) = request.into_parts();
    let limit = shared.body_bytes_max();
    let request = read(&shared, parts, Body::new(body), limit).await.ok_or(Unanswered)?;
    let (number, outcome) = execute(&shared, &request, limit).ok_or(Unanswered)?;
    let (answer, cuts_body) = match outcome {
        Outcome::Answered { answer, cuts_body } => (answer, cuts_body),
        Outcome::Hung(id) => return Err(wait_out(&shared, id).await),
        Outcome::Unanswered => return Err(Unanswered),
    };
    if !answer.delay.is_zero() {
        sleep(answer.delay).await;
        pass(&shared).await?;
    }
    let answer = switched(answer, &request);
    shared.lock().context().record.amend(number, |exchange| exchange.status = Some(answer.status));
    if let Some(Open::Socket(socket)) = answer.open {
        // It fails only when the connection is gone.
        let _gone = upgrades.send((upgrade, socket));
    }
    let open = answer.open.filter(|_| !cuts_body);
    let mut response = response(answer, cuts_body);
    if let Some(Open::Stream(number)) = open {
        *response.body_mut() = streaming::body(shared, number);
    }
    Ok(response)
}

/// The answer with the headers of the switch to a WebSocket, where it is one.
fn switched(answer: Answer, request: &Request) -> Answer {
    if !matches!(answer.open, Some(Open::Socket(_))) {
        return answer;
    }
    match request.header("sec-websocket-key") {
        None => Answer::status(400),
        Some(key) => answer
            .with_header("connection", "Upgrade")
            .with_header("upgrade", "websocket")
            .with_header("sec-websocket-accept", &derive_accept_key(key.as_bytes())),
    }
}

/// Reads a request to its end; `None` where it breaks off, or a fault breaks it off.
async fn read<C: Controller>(shared: &Shared<C>, parts: Parts, body: Body, limit: usize) -> Option<Request> {
    let mut request = Request::of(parts, Bytes::new());
    let until = shared.lock().context().faults.cut_of_request(&request);
    let boundary = request.header("content-type").and_then(form::boundary_of).map(str::to_owned);
    match boundary {
        Some(boundary) => request.parts = form::read(body, &boundary, until).await?,
        None if until.is_some() => return None,
        None => request.body = to_bytes(body, limit.saturating_add(READ_ON_BYTES)).await.ok()?,
    }
    Some(request)
}

/// Carries out one request under the lock, and returns its number in the record. `None` when it never arrived.
fn execute<C: Controller>(shared: &Shared<C>, request: &Request, limit: usize) -> Option<(u64, Outcome)> {
    let mut locked = shared.lock();
    if !locked.is_reachable() {
        return None;
    }
    let context = locked.context();
    let at_ms = u64::try_from(context.clock.elapsed().as_millis()).unwrap_or(u64::MAX);
    let number = context.record.begin(request, at_ms);
    let outcome = if request.body.len() > limit {
        let (controller, _) = locked.parts();
        Outcome::answered(controller.refusal(413, request).closing())
    } else {
        let plan = context.faults.plan(request);
        context.fired.clone_from(&plan.names);
        carry_out(&mut locked, request, number, plan)
    };
    let context = locked.context();
    let fired = std::mem::take(&mut context.fired);
    context.record.amend(number, |exchange| exchange.faults = fired);
    Some((number, outcome))
}

fn carry_out<C: Controller>(
    locked: &mut Locked<'_, C>,
    request: &Request,
    number: u64,
    plan: Plan,
) -> Outcome {
    let (controller, context) = locked.parts();
    if plan.ends_sessions {
        controller.end_sessions(context);
    }
    let is_executed = plan.instead.is_none();
    let mut answer = match plan.instead {
        None => controller.handle(request, context),
        Some(Instead::Hang(id)) => return Outcome::Hung(id),
        Some(Instead::Lose(then)) => {
            end_badly(controller, context, then);
            return Outcome::Unanswered;
        }
        Some(Instead::Html(status)) => Answer::html(status, LOGIN_PAGE),
        Some(Instead::Status(status, None)) => controller.refusal(status, request),
        Some(Instead::Status(status, Some(secs))) => {
            controller.refusal(status, request).with_header("retry-after", &secs.to_string())
        }
    };
    context.record.amend(number, |exchange| {
        exchange.is_executed = is_executed;
        exchange.answer = shown(&answer.body);
    });
    // The plan had no hang: the controller ordered it, with this request.
    if let Some(id) = context.faults.late_hang() {
        return Outcome::Hung(id);
    }
    answer.delay += plan.delay;
    match plan.spoiled {
        Some(Spoiled::Lost(then)) => {
            end_badly(controller, context, then);
            Outcome::Unanswered
        }
        _ if answer.delivery == Delivery::Lost => Outcome::Unanswered,
        Some(Spoiled::Truncated) => {
            answer.body.truncate(half(&answer.body));
            Outcome::answered(answer)
        }
        Some(Spoiled::CutBody) => Outcome::Answered { answer, cuts_body: true },
        None => Outcome::answered(answer),
    }
}

/// What becomes of the controller after a lost request or answer.
fn end_badly<C: Controller>(controller: &mut C, context: &mut Context, then: Option<Then>) {
    match then {
        None => {}
        Some(Then::Cut { for_ms }) => {
            context.faults.add(Fault { for_ms, ..Fault::cut() }, context.now());
            context.close_connections();
        }
        Some(Then::Boot { for_ms }) => {
            controller.restart(context);
            context.boot(Duration::from_millis(for_ms));
        }
    }
}

/// Whether a late answer may still leave: not while all requests hang, nor when the controller is off the network.
async fn pass<C: Controller>(shared: &Shared<C>) -> Result<(), Unanswered> {
    let hang = {
        let mut locked = shared.lock();
        if !locked.is_reachable() {
            return Err(Unanswered);
        }
        locked.context().faults.late_hang()
    };
    match hang {
        Some(id) => Err(wait_out(shared, id).await),
        None => Ok(()),
    }
}

/// Returns when the hang is over, or the controller off the network.
async fn wait_out<C: Controller>(shared: &Shared<C>, id: u64) -> Unanswered {
    loop {
        {
            let mut locked = shared.lock();
            if !locked.is_reachable() || !locked.context().faults.is_holding(id) {
                return Unanswered;
            }
        }
        sleep(POLL).await;
    }
}

/// Half of a body; within text, a character is not split.
fn half(body: &[u8]) -> usize {
    let middle = body.len() / 2;
    let is_inside = |at: &usize| body.get(*at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (0..=middle).rev().take(4).find(|at| !is_inside(at)).unwrap_or(middle)
}

pub(crate) fn response(answer: Answer, cuts_body: bool) -> Response<Body> {
    let Answer { status, reason, headers, body, delivery, .. } = answer;
    let length = body.len();
    let mut response = Response::new(if cuts_body { cut(body) } else { Body::from(body) });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(reason) = reason {
        // Tabs, visible characters and what is not ASCII.
        let allowed = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7F);
        let bytes: Vec<u8> = reason.bytes().map(|byte| if allowed(byte) { byte } else { b' ' }).collect();
        if let Ok(reason) = ReasonPhrase::try_from(bytes) {
            response.extensions_mut().insert(reason);
        }
    }
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    if cuts_body {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if delivery == Delivery::Last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Half of the bytes, then an error, which closes the connection.
fn cut(mut body: Vec<u8>) -> Body {
    body.truncate(half(&body));
    let first = Bytes::from(body);
    Body::from_stream(stream::unfold(Some(first), |left| async {
        if let Some(first) = left {
            return Some((Ok(first), None));
        }
        // The first half leaves before the error takes the connection down.
        sleep(Duration::from_millis(20)).await;
        Some((Err(Unanswered), None))
    }))
}
