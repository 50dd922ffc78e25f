//! What an answer of the controller means: the code in its envelope decides, not the status.

use heddle_sdk::crud::{self, Modelled, Place, Purpose, Vendor, Written};
use heddle_sdk::fault::{self, Row, Table, Words};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response};
use serde_json::Value;

use crate::{model, parts, site};

/// The session of the manifest.
pub(crate) const SESSION: &str = "open-api";
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
    let mut envelope: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let fault = match envelope["errorCode"].as_i64() {
        Some(0) => return Ok(envelope["result"].take()),
        Some(code) => REFUSALS.of_code(code, envelope["msg"].as_str().unwrap_or_default()),
        None => STATUSES.of_status(response, ""),
    };
    Err(fault.with_upstream_status(response.status))
}

/// What comes before the controller's own logic, or from something that is no controller.
const STATUSES: Table = Table::new(&[
    Row::codes(
        &[400],
        Fault::Invalid,
        "the controller does not accept the request: a part of it is missing or wrong",
    ),
    Row::codes(&[401], Fault::Authentication, "the controller refuses the session"),
    Row::codes(&[403], Fault::Denied, "the application may not do this"),
    Row::codes(&[404], Fault::Unsupported, "this release of the controller does not have this"),
    Row::codes(&[413, 417], Fault::Invalid, "the request is larger than the controller accepts"),
    Row::codes(&[429], Fault::RateLimit, "the controller got too many calls")
        .with_retry_after_ms(RATE_RETRY_MS),
    Row::codes(
        &[200, 302, 502, 503, 504],
        Fault::NotReady,
        "the controller answered with a page instead of its API; it may be starting",
    )
    .with_retry_after_ms(STARTING_RETRY_MS)
    .with_effect(Effect::Possible),
    Row::rest(Fault::Generic, "the controller answered status {code}").with_effect(Effect::Possible),
]);

/// What the controller says where it does not have what the path names. Each kind of object has codes of its own for it,
/// and some answer that the parameters are invalid; their words are alike.
const ABSENT: Words = &["not exist", "not found"];

/// What the controller's codes mean.
const REFUSALS: Table = Table::new(&[
    Row::codes(&[-1004, -1600], Fault::Unsupported, "this release of the controller does not have this"),
    Row::codes(&[-1005, -1505], Fault::Denied, "the application may not do this, or not at this site"),
    Row::codes(&[-1200, -44112, -44113, -44114], Fault::Authentication, "the session is over"),
    Row::codes(
        &[-30109, -44106, -44111, -44116],
        Fault::Authentication,
        "the controller refuses the application's id or secret",
    ),
    Row::codes(&[-44118], Fault::Unsupported, "the controller wants a login by authorization code for this"),
    Row::codes(&[-44119], Fault::Unsupported, "only Omada Pro has this"),
    // Nothing below it may count as absent: the controller was created anew, or the site was deleted.
    Row::codes(
        &[-7131],
        Fault::Conflict,
        "the controller has another id than at the login; test the connection",
    ),
    Row::codes(&[-33000, -1300], Fault::Invalid, "the site does not exist"),
    Row::codes(&[-7132, -30028], Fault::RateLimit, "the controller got too many calls")
        .with_retry_after_ms(RATE_RETRY_MS),
    Row::codes(&[-30301, -30304], Fault::Busy, "a backup or a restore is running")
        .with_retry_after_ms(BUSY_RETRY_MS),
    Row::codes(&[-33004, -33011], Fault::Busy, "the site is being copied or restored")
        .with_retry_after_ms(BUSY_RETRY_MS),
    Row::codes(&[-33006, -33506, -34511], Fault::Conflict, "the name is taken: {}"),
    Row::codes(&[-33560, -33566], Fault::Conflict, "something else uses it: {}"),
    Row::codes(
        &[-39050, -39303, -39501, -39700, -39701, -40200, -41011],
        Fault::NotFound,
        "there is no such device, port or client: {}",
    ),
    Row::codes(&[-39051], Fault::Busy, "the device did not take the command: {}")
        .with_retry_after_ms(BUSY_RETRY_MS)
        .with_effect(Effect::Possible),
    Row::codes(
        &[-39742],
        Fault::Unsupported,
        "the device is an easy managed switch, which has kinds of its own",
    ),
    Row::codes(&[-39000], Fault::NotReady, "the device was not discovered yet")
        .with_retry_after_ms(BUSY_RETRY_MS),
    // A create that stored the object was seen to answer this.
    Row::codes(&[-1], Fault::Generic, "the controller failed: {}").with_effect(Effect::Possible),
    // The words count only where the code does not tell.
    Row::codes(&[-1001], Fault::NotFound, "the controller does not have it: {}").with_words(ABSENT),
    Row::words(ABSENT, Fault::NotFound, "the controller does not have it: {}").with_effect(Effect::Possible),
    Row::codes(&[-1001], Fault::Invalid, "the controller refuses the values: {}"),
    // The controller may have done a part of it before it gave up.
    Row::rest(Fault::Invalid, "the controller refuses ({code}): {}").with_effect(Effect::Possible),
]);

/// Calls that are passed on to an OLT have a second envelope in the result of the first.
fn inner(result: &Value) -> Result<(), Fault> {
    let Some(code) = result.get("errcode").and_then(Value::as_i64).filter(|code| *code != 0) else {
        return Ok(());
    };
    let message = fault::said(result["message"].as_str().unwrap_or_default());
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

/// One read.
pub(crate) fn read(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    let response = host.send(Request::get(path), Auth::session(SESSION))?;
    Omada.content(&response)
}
