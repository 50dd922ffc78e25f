//! The control port: the orders of [`crate::Lab`], for tests and demos that run a simulator as a process.
//!
//! It is open to every client that reaches it; it binds to the loopback address unless told otherwise.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request as HttpRequest, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::respond::response;
use crate::shared::{Locked, Shared};
use crate::tls::Certificates;
use crate::{Answer, Certificate, Context, Controller, Exchange, Fault, Request};

/// Bytes of an order.
const ORDER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a restart takes when the order does not say.
const BOOT_MS: u64 = 1000;

#[derive(Deserialize)]
struct Boot {
    #[serde(default = "boot_ms")]
    for_ms: u64,
}

#[derive(Deserialize)]
struct Advance {
    #[serde(default)]
    secs: u64,
    #[serde(default)]
    ms: u64,
}

fn boot_ms() -> u64 {
    BOOT_MS
}

pub(crate) fn routes<C: Controller>(shared: Shared<C>) -> Router {
    Router::new().fallback(order::<C>).with_state(shared)
}

async fn order<C: Controller>(State(shared): State<Shared<C>>, request: HttpRequest<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, ORDER_BYTES_MAX).await else {
        return response(Answer::status(413).closing(), false);
    };
    let request = Request::of(parts, body);
    let mut locked = shared.lock();
    let (controller, context) = locked.parts();
    let answer = match controller.control(&request, context) {
        Some(answer) => answer,
        None => carry_out(&mut locked, shared.certificates(), &request).unwrap_or_else(|answer| answer),
    };
    drop(locked);
    response(answer, false)
}

/// The skeleton's part. The error is an answer, too.
fn carry_out<C: Controller>(
    locked: &mut Locked<'_, C>,
    certificates: Option<&Certificates>,
    request: &Request,
) -> Result<Answer, Answer> {
    let done = || Ok(Answer::status(204));
    match (request.method.as_str(), request.segments().as_slice()) {
        ("GET", ["health"]) => Ok(Answer::text(200, "ok\n")),
        ("GET", ["state"]) => {
            let (controller, context) = locked.parts();
            Ok(Answer::json(200, &controller.state(context)))
        }
        ("GET", ["lab"]) => Ok(Answer::json(200, &describe(locked))),
        ("GET", ["certificates"]) => Ok(Answer::json(200, &known(certificates))),
        ("GET", ["faults"]) => {
            let faults: Vec<&Fault> = locked.context().faults.in_force().collect();
            Ok(Answer::json(200, &json!(faults)))
        }
        ("POST", ["faults"]) => {
            locked.order(read::<Fault>(request)?).map_err(|why| Answer::text(422, &why))?;
            done()
        }
        ("DELETE", ["faults"]) => {
            locked.clear_faults();
            done()
        }
        ("GET", ["record"]) => {
            let after = request.query("after").and_then(|text| text.parse().ok()).unwrap_or(0);
            let exchanges = locked.context().record.exchanges();
            let kept: Vec<&Exchange> = exchanges.filter(|exchange| exchange.number > after).collect();
            Ok(Answer::json(200, &json!(kept)))
        }
        ("DELETE", ["record"]) => {
            locked.context().record.forget();
            done()
        }
        ("GET", ["clock"]) => Ok(Answer::json(200, &clock(locked.context()))),
        ("POST", ["clock", step]) => {
            move_clock(locked, step, request)?;
            Ok(Answer::json(200, &clock(locked.context())))
        }
        ("POST", ["boot"]) => {
            let for_ms = if request.body.is_empty() { BOOT_MS } else { read::<Boot>(request)?.for_ms };
            locked.boot(Duration::from_millis(for_ms));
            done()
        }
        ("POST", ["connections", "close"]) => {
            locked.context().close_connections();
            done()
        }
        ("POST", ["sessions", "expire"]) => {
            let (controller, context) = locked.parts();
            controller.end_sessions(context);
            done()
        }
        ("POST", ["edit"]) => {
            let (controller, context) = locked.parts();
            let made = controller.edit(&read(request)?, context);
            made.map(|made| Answer::json(200, &made)).map_err(|why| Answer::text(422, &why))
        }
        _ => Err(Answer::status(404)),
    }
}

fn read<T: for<'de> Deserialize<'de>>(request: &Request) -> Result<T, Answer> {
    serde_json::from_slice(&request.body).map_err(|error| Answer::text(422, &error.to_string()))
}

fn move_clock<C: Controller>(
    locked: &mut Locked<'_, C>,
    step: &str,
    request: &Request,
) -> Result<(), Answer> {
    match step {
        "pause" => locked.context().clock.pause(),
        "resume" => locked.context().clock.resume(),
        "advance" => {
            let Advance { secs, ms } = read(request)?;
            locked.advance(Duration::from_secs(secs) + Duration::from_millis(ms));
        }
        _ => return Err(Answer::status(404)),
    }
    Ok(())
}

fn clock(context: &Context) -> Value {
    json!({
        "elapsed_ms": u64::try_from(context.clock.elapsed().as_millis()).unwrap_or(u64::MAX),
        "unix_secs": context.clock.unix().as_secs(),
        "paused": context.clock.is_paused(),
    })
}

fn describe<C: Controller>(locked: &mut Locked<'_, C>) -> Value {
    let is_reachable = locked.is_reachable();
    let context = locked.context();
    json!({
        "reachable": is_reachable,
        "booting": context.is_booting(),
        "certificate": context.certificate(),
        "clock": clock(context),
        "faults": context.faults.in_force().collect::<Vec<_>>(),
        "requests": context.record.last(),
    })
}

fn known(certificates: Option<&Certificates>) -> Value {
    let Some(certificates) = certificates else { return json!({}) };
    let entry = |which: Certificate| {
        let made = certificates.get(which);
        (which.name().to_owned(), json!({ "sha256": made.sha256, "pem": made.pem }))
    };
    Value::Object(Certificate::ALL.map(entry).into_iter().collect::<Map<_, _>>())
}
