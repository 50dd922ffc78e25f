//! What an answer of the controller means: the code in its envelope decides, not the status.

use heddle_sdk::crud::{self, Modelled, Place, Purpose, Vendor, Written};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response, fault};
use serde_json::Value;

use crate::{model, parts, site};

/// The session of the manifest.
pub(crate) const SESSION: &str = "open-api";
const MESSAGE_CHARS: usize = 300;
/// Calls are counted by the second.
const RATE_RETRY_MS: u64 = 1_000;
/// Backups, restores and copies of sites take about a minute.
const BUSY_RETRY_MS: u64 = 30_000;
const STARTING_RETRY_MS: u64 = 15_000;

/// The vendor's envelope.
#[derive(Debug, Clone, Copy)]
pub struct Omada;

impl Vendor for Omada {
    fn session(&self) -> &'static str {
        SESSION
    }

    fn places_of_page(&self) -> usize {
        // The manifest allows four times as many requests.
        128
    }

    fn scope(&self, host: &dyn Host, wanted: Option<&str>) -> Result<Place, Fault> {
        site::place(host, wanted)
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        let result = opened(response)?;
        inner(&result)?;
        Ok(result)
    }

    fn modelled(&self, kind: &str, row: &Value, object: &mut Modelled) -> bool {
        model::complete(kind, row, object)
    }

    fn expressed(
        &self,
        host: &dyn Host,
        asked: &crud::Asked<'_>,
        changes: &mut Vec<crud::Expressed>,
    ) -> Result<(), Fault> {
        model::expressed(self, host, asked, changes)
    }

    fn written(&self, purpose: Purpose, response: &Response) -> Result<Written, Fault> {
        let fault = match opened(response).and_then(|result| done(&result)) {
            Ok(written) => return Ok(written),
            Err(fault) => fault,
        };
        // What is gone already is where a delete leads to.
        if purpose == Purpose::Delete && matches!(fault, Fault::NotFound(_)) {
            return Ok(Written::Done);
        }
        Err(fault)
    }
}

/// The result of an answer that says that it worked; `null` where there is none.
///
/// The effect of the fault is that of a write: a code that is known as a refusal changed nothing. Any other code, and
/// what came instead of an envelope, says nothing.
fn opened(response: &Response) -> Result<Value, Fault> {
    let status = response.status;
    let envelope: Option<Value> = serde_json::from_slice(&response.body).ok();
    let code = envelope.as_ref().and_then(|envelope| envelope.get("errorCode")?.as_i64());
    let fault = match code {
        Some(0) => {
            let result = envelope.as_ref().and_then(|envelope| envelope.get("result"));
            return Ok(result.cloned().unwrap_or_default());
        }
        Some(code) => {
            let message = envelope.as_ref().and_then(|envelope| envelope.get("msg")?.as_str());
            refused(code, message.unwrap_or_default())
        }
        None => without_envelope(status),
    };
    Err(fault.with_upstream_status(status))
}

/// What comes before the controller's own logic, or from something that is no controller.
fn without_envelope(status: u16) -> Fault {
    match status {
        400 => fault::invalid("the controller does not accept the request: a part of it is missing or wrong"),
        401 => fault::authentication("the controller refuses the session"),
        403 => fault::denied("the application may not do this"),
        404 => fault::unsupported("this release of the controller does not have this"),
        413 | 417 => fault::invalid("the request is larger than the controller accepts"),
        429 => fault::rate_limit("the controller got too many calls").with_retry_after_ms(RATE_RETRY_MS),
        200 | 302 | 502..=504 => {
            fault::not_ready("the controller answered with a page instead of its API; it may be starting")
                .with_retry_after_ms(STARTING_RETRY_MS)
                .with_effect(Effect::Possible)
        }
        _ => fault::generic(format!("the controller answered status {status}")).with_effect(Effect::Possible),
    }
}

/// Whether the controller says that what the path names is not there. Each kind of object has codes of its own for
/// it, and some answer that the parameters are invalid; their words are alike.
fn is_absence(message: &str) -> bool {
    let lower = message.to_lowercase();
    ["does not exist", "not exist", "not found"].iter().any(|words| lower.contains(words))
}

/// A code of the controller.
fn refused(code: i64, message: &str) -> Fault {
    let said = plain(message);
    let fault = match code {
        -1004 | -1600 => fault::unsupported("this release of the controller does not have this"),
        -1005 | -1505 => fault::denied("the application may not do this, or not at this site"),
        -1200 | -44112 | -44113 | -44114 => fault::authentication("the session is over"),
        -30109 | -44106 | -44111 | -44116 => {
            fault::authentication("the controller refuses the application's id or secret")
        }
        -44118 => fault::unsupported("the controller wants a login by authorization code for this"),
        -44119 => fault::unsupported("only Omada Pro has this"),
        // Nothing below it may count as absent: the controller was created anew, or the site was deleted.
        -7131 => fault::conflict("the controller has another id than at the login; test the connection"),
        -33000 | -1300 => fault::invalid("the site does not exist"),
        -7132 | -30028 => {
            fault::rate_limit("the controller got too many calls").with_retry_after_ms(RATE_RETRY_MS)
        }
        -30301 | -30304 => fault::busy("a backup or a restore is running").with_retry_after_ms(BUSY_RETRY_MS),
        -33004 | -33011 => {
            fault::busy("the site is being copied or restored").with_retry_after_ms(BUSY_RETRY_MS)
        }
        -33006 | -33506 | -34511 => fault::conflict(format!("the name is taken: {said}")),
        -33560 | -33566 => fault::conflict(format!("something else uses it: {said}")),
        -39050 | -39303 | -39501 | -39700 | -39701 | -40200 | -41011 => {
            fault::not_found(format!("there is no such device, port or client: {said}"))
        }
        -39051 => fault::busy(format!("the device did not take the command: {said}"))
            .with_retry_after_ms(BUSY_RETRY_MS)
            .with_effect(Effect::Possible),
        -39742 => fault::unsupported("the device is an easy managed switch, which has kinds of its own"),
        -39000 => fault::not_ready("the device was not discovered yet").with_retry_after_ms(BUSY_RETRY_MS),
        // A create that stored the object was seen to answer this.
        -1 => fault::generic(format!("the controller failed: {said}")).with_effect(Effect::Possible),
        // The words count only where the code does not tell.
        code if is_absence(message) => {
            let effect = if code == -1001 { Effect::None } else { Effect::Possible };
            fault::not_found(format!("the controller does not have it: {said}")).with_effect(effect)
        }
        -1001 => fault::invalid(format!("the controller refuses the values: {said}")),
        // The controller may have done a part of it before it gave up.
        code => {
            fault::invalid(format!("the controller refuses ({code}): {said}")).with_effect(Effect::Possible)
        }
    };
    fault.with_code(format!("vendor:{code}"))
}

/// Calls that are passed on to an OLT have a second envelope in the result of the first.
fn inner(result: &Value) -> Result<(), Fault> {
    let Some(code) = result.get("errcode").and_then(Value::as_i64).filter(|code| *code != 0) else {
        return Ok(());
    };
    let message = result.get("message").and_then(Value::as_str).map(plain).unwrap_or_default();
    Err(fault::generic(format!("the OLT refuses ({code}): {message}"))
        .with_code(format!("vendor:olt{code}"))
        .with_effect(Effect::Possible))
}

/// Whether all of a write worked, and not only its envelope says so.
fn done(result: &Value) -> Result<Written, Fault> {
    inner(result)?;
    let failed = parts::failures(result);
    if !failed.is_empty() {
        let message = format!("not all of it worked: {}", failed.join("; "));
        return Err(fault::generic(message).with_code("vendor:partial").with_effect(Effect::Possible));
    }
    if parts::is_unfinished(result) {
        return Ok(Written::Warned(vec!["the controller still works on it and may fail yet".to_owned()]));
    }
    Ok(Written::Done)
}

/// One line of the vendor's words.
pub(crate) fn plain(text: &str) -> String {
    let line: String = text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS).collect();
    if line.is_empty() { "no reason given".to_owned() } else { line }
}

/// One read.
pub(crate) fn read(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    let response = host.send(Request::get(path), Auth::session(SESSION))?;
    Omada.content(&response)
}
