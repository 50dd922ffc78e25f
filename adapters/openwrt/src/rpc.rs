//! JSON-RPC to ubus: the envelope, and its two layers of errors.
//!
//! The HTTP status says nothing: it is 200 for success and failure alike. The
//! session id (position 0 of `params`) is filled in by the host.

use std::collections::BTreeMap;

use heddle_sdk::fault::{self, Row, Table};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Method, Request, Response};
use serde_json::{Value, json};

pub(crate) const PATH: &str = "/ubus";
pub(crate) const SESSION: &str = "ubus";

/// ubus statuses that mean something to the caller.
pub(crate) mod status {
    pub(crate) const NO_METHOD: i64 = 3;
    pub(crate) const NOT_FOUND: i64 = 4;
    pub(crate) const NO_DATA: i64 = 5;
    pub(crate) const DENIED: i64 = 6;
    pub(crate) const NOT_SUPPORTED: i64 = 8;
}

/// One call, as it is sent. The same arguments always give the same JSON.
pub(crate) fn body(object: &str, method: &str, args: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "call", "params": ["", object, method, args]})
}

fn request(body: &Value) -> Request {
    Request::new(Method::Post, PATH).with_json(body)
}

/// A call that the device answered with a failure.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    /// The envelope's error: -32000 object absent, -32002 access denied.
    Rpc(i64),
    /// The ubus status.
    Ubus(i64),
    /// The answer has neither form.
    Malformed,
}

/// Why a call gave no data.
#[derive(Debug, Clone)]
pub(crate) enum CallError {
    /// The host could not bring an answer, or refused to ask.
    Host(Fault),
    Refused(Refusal),
}

impl CallError {
    pub(crate) fn is_ubus(&self, status: i64) -> bool {
        matches!(self, CallError::Refused(Refusal::Ubus(found)) if *found == status)
    }

    /// The object or method is not on this device: an optional package.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, CallError::Refused(Refusal::Rpc(-32000) | Refusal::Ubus(status::NO_METHOD)))
    }

    /// A configuration file that cannot be parsed: libuci's parse error has no ubus status of its own.
    pub(crate) fn is_broken_file(&self) -> bool {
        matches!(self, CallError::Refused(Refusal::Ubus(9 | 12)))
    }

    /// The user's access groups do not include the call.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, CallError::Refused(Refusal::Rpc(-32002) | Refusal::Ubus(status::DENIED)))
    }

    /// The device neither answered nor said that there is nothing to answer: what the call would tell may be there.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            CallError::Host(_) | CallError::Refused(Refusal::Malformed) => true,
            CallError::Refused(Refusal::Rpc(code)) => ![-32000, -32002].contains(code),
            CallError::Refused(Refusal::Ubus(status)) => ![
                status::NO_METHOD,
                status::NOT_FOUND,
                status::NO_DATA,
                status::DENIED,
                status::NOT_SUPPORTED,
            ]
            .contains(status),
        }
    }

    /// The fault for the host; `what` names the call: "uci.get".
    pub(crate) fn into_fault(self, what: &str) -> Fault {
        let refusal = match self {
            CallError::Host(fault) => return fault,
            CallError::Refused(refusal) => refusal,
        };
        match refusal {
            Refusal::Rpc(code) => RPC.of_code(code, what),
            Refusal::Ubus(status) => UBUS.of_code(status, what),
            // What was done is not told.
            Refusal::Malformed => fault::generic(format!("the answer to '{what}' is not a ubus answer"))
                .with_effect(Effect::Possible),
        }
    }
}

/// What codes of the envelope mean; `{}` is the call.
const RPC: Table = Table::new(&[
    Row::codes(
        &[-32000],
        Fault::Unsupported,
        "'{}' is not on this device; install the package that provides it",
    ),
    Row::codes(&[-32002], Fault::Denied, "the user may not call '{}'; add it to an access group of the user"),
    Row::codes(&[-32003], Fault::Timeout, "'{}' took too long"),
    Row::codes(&[-32700, -32600, -32602], Fault::Invalid, "the device did not accept the form of '{}'"),
    Row::rest(Fault::Generic, "'{}' failed with code {code}"),
]);

/// What ubus statuses mean; `{}` is the call.
const UBUS: Table = Table::new(&[
    Row::codes(&[1, 2], Fault::Invalid, "the device refused the arguments of '{}'"),
    Row::codes(&[status::NO_METHOD, status::NOT_SUPPORTED], Fault::Unsupported, "this device cannot do '{}'"),
    Row::codes(&[status::NOT_FOUND], Fault::NotFound, "'{}' did not find what it names"),
    Row::codes(&[status::NO_DATA], Fault::Generic, "'{}' had nothing to do"),
    Row::codes(
        &[status::DENIED],
        Fault::Denied,
        "the user may not do '{}' with these arguments; check the 'uci' and 'file' scopes of the access \
         groups of the user",
    ),
    Row::codes(&[7], Fault::Timeout, "'{}' took too long"),
    Row::codes(&[10], Fault::NotReady, "the service behind '{}' does not answer"),
    Row::rest(Fault::Generic, "'{}' failed with status {code}"),
]);

/// Reads one answer: `[0, data]` is success, data may be absent.
fn parse(answer: &Value) -> Result<Value, CallError> {
    if let Some(error) = answer.get("error") {
        return Err(CallError::Refused(
            error.get("code").and_then(Value::as_i64).map_or(Refusal::Malformed, Refusal::Rpc),
        ));
    }
    match answer.pointer("/result/0").and_then(Value::as_i64).filter(|status| *status >= 0) {
        Some(0) => Ok(answer.pointer("/result/1").cloned().unwrap_or_else(|| json!({}))),
        Some(status) => Err(CallError::Refused(Refusal::Ubus(status))),
        None => Err(CallError::Refused(Refusal::Malformed)),
    }
}

fn exchange(host: &dyn Host, body: &Value, auth: Auth) -> Result<Value, Fault> {
    envelope(host.send(request(body), auth)?)
}

/// The envelope of an answer, or why it has none.
fn envelope(response: Response) -> Result<Value, Fault> {
    if response.status == 404 {
        return Err(fault::unsupported(
            "the device has no ubus endpoint at '/ubus'; install uhttpd-mod-ubus",
        )
        .with_upstream_status(404));
    }
    if !(200..300).contains(&response.status) {
        return Err(fault::of_status(&response));
    }
    response.json()
}

/// What a call that the host sent gave. An answer that is none of the device's may stand behind a call that was carried
/// out; only the web server's own refusals say that it was not.
pub(crate) fn answer(answer: Result<Response, Fault>) -> Result<Value, CallError> {
    let response = answer.map_err(CallError::Host)?;
    let is_refused = matches!(response.status, 400..=499) && response.status != 408;
    let effect = if is_refused { Effect::None } else { Effect::Possible };
    let envelope = envelope(response).map_err(|fault| CallError::Host(fault.with_effect(effect)))?;
    parse(&envelope)
}

/// Sends one call that only reads.
pub(crate) fn call(host: &dyn Host, object: &str, method: &str, args: &Value) -> Result<Value, CallError> {
    let body = body(object, method, args);
    parse(&exchange(host, &body, Auth::session(SESSION)).map_err(CallError::Host)?)
}

/// A read: object, method, arguments.
pub(crate) type Read<'a> = (&'a str, &'a str, Value);

/// Sends reads in one request. The outer fault says that nothing came back at all.
pub(crate) fn batch(host: &dyn Host, reads: &[Read<'_>]) -> Result<Vec<Result<Value, CallError>>, Fault> {
    if reads.is_empty() {
        return Ok(Vec::new());
    }
    let bodies: Vec<Value> = reads.iter().map(|(object, method, args)| body(object, method, args)).collect();
    let answer = exchange(host, &Value::Array(bodies), Auth::session(SESSION))?;
    let answers = answer.as_array().filter(|answers| answers.len() == reads.len());
    let answers = answers
        .ok_or_else(|| fault::generic("the device answered a batch with another number of answers"))?;
    Ok(answers.iter().map(parse).collect())
}

/// The ubus objects among `names` that are on the device, with their methods where it tells. Needs no login.
pub(crate) fn objects(host: &dyn Host, names: &[&str]) -> Result<BTreeMap<String, Vec<String>>, Fault> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "list", "params": names});
    let answer = exchange(host, &body, Auth::None)?;
    let found = match answer.get("result") {
        Some(Value::Object(map)) => {
            let methods = |value: &Value| {
                value.as_object().map(|methods| methods.keys().cloned().collect()).unwrap_or_default()
            };
            map.iter().map(|(name, value)| (name.clone(), methods(value))).collect()
        }
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), Vec::new())).collect()
        }
        _ => return Err(fault::unsupported("the device does not list its ubus objects")),
    };
    Ok(found)
}
