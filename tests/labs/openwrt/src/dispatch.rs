//! JSON-RPC: from the bytes of a request to the text of an answer.
//!
//! Calls run one after the other under the router's lock, as in the single-threaded rpcd.

use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::device::Device;
use crate::fault::Effect;
use crate::objects;
use crate::status::{Reply, RpcError, Status};

/// Bytes that a request may have.
pub(crate) const BODY_BYTES_MAX: usize = 65_536;

/// What the connection does with a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Json(Value),
    /// As `Json`, and the connection closes.
    LastJson(Value),
    /// Executed, but the answer never leaves, and the effect takes place.
    Lost(Effect),
}

/// Serves one request body: a call, or an array of calls in order.
pub(crate) fn answer(device: &mut Device, body: &[u8]) -> Answer {
    if body.len() > BODY_BYTES_MAX {
        return Answer::LastJson(failure(&Value::Null, RpcError::Parse));
    }
    let Ok(request) = serde_json::from_slice::<Value>(body) else {
        return Answer::Json(failure(&Value::Null, RpcError::Parse));
    };
    let Value::Array(calls) = &request else {
        return one(device, &request).map_or_else(Answer::Lost, Answer::Json);
    };
    let answers: Result<Vec<Value>, Effect> = calls.iter().map(|call| one(device, call)).collect();
    answers.map_or_else(Answer::Lost, |answers| Answer::Json(Value::Array(answers)))
}

/// One call; the error is an effect that was ordered for after it, with which the answer is lost.
fn one(device: &mut Device, request: &Value) -> Result<Value, Effect> {
    let id = request.get("id").unwrap_or(&Value::Null);
    let (params, method) = match envelope(request) {
        Ok(parts) => parts,
        Err(error) => return Ok(failure(id, error)),
    };
    if method == "list" {
        return Ok(json!({ "jsonrpc": "2.0", "id": id, "result": list(device, params) }));
    }
    let call = match Invocation::parse(params) {
        Ok(call) => call,
        Err(error) => return Ok(failure(id, error)),
    };
    device.sessions.renew(call.sid, device.now);
    if let Err(error) = call.check(device) {
        return Ok(failure(id, error));
    }
    let reply = invoke(device, &call);
    if let Some(effect) = device.triggers.after_call(&call.name(), is_write(&call), reply.is_ok()) {
        return Err(effect);
    }
    let result = match reply {
        Ok(Some(data)) => json!([0, data]),
        Ok(None) => json!([0]),
        Err(status) => json!([status.code()]),
    };
    Ok(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Version and method. `list` may come without `params`, `call` may not.
fn envelope(request: &Value) -> Result<(&Value, &str), RpcError> {
    let is_version_2 = request.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    let method =
        request.get("method").and_then(Value::as_str).filter(|_| is_version_2).ok_or(RpcError::Parse)?;
    match method {
        "call" | "list" => Ok((request.get("params").unwrap_or(&Value::Null), method)),
        _ => Err(RpcError::MethodNotFound),
    }
}

/// Needs no login: without `params` the names of all objects, with them the signatures of those named.
fn list(device: &Device, params: &Value) -> Value {
    let present = objects::present(&device.missing);
    let Some(wanted) = params.as_array() else { return json!(present) };
    let known = wanted.iter().filter_map(Value::as_str).filter(|name| present.contains(name));
    Value::Object(known.map(|name| (name.to_owned(), objects::signatures(name))).collect())
}

/// The four elements of `params`.
struct Invocation<'a> {
    sid: &'a str,
    object: &'a str,
    method: &'a str,
    args: &'a Map<String, Value>,
}

impl<'a> Invocation<'a> {
    fn parse(params: &'a Value) -> Result<Self, RpcError> {
        let Some([Value::String(sid), Value::String(object), Value::String(method), Value::Object(args)]) =
            params.as_array().map(Vec::as_slice)
        else {
            return Err(RpcError::Parse);
        };
        if args.contains_key("ubus_rpc_session") {
            return Err(RpcError::InvalidParams);
        }
        Ok(Self { sid, object, method, args })
    }

    /// The object is looked for before access is asked.
    fn check(&self, device: &Device) -> Result<(), RpcError> {
        if !objects::present(&device.missing).contains(&self.object) {
            return Err(RpcError::ObjectNotFound);
        }
        if !device.sessions.may(self.sid, "ubus", self.object, self.method) {
            return Err(RpcError::AccessDenied);
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("{}.{}", self.object, self.method)
    }
}

fn invoke(device: &mut Device, call: &Invocation<'_>) -> Reply {
    let Some(method) = objects::method(call.object, call.method) else { return Err(Status::MethodNotFound) };
    let args = Args(call.args);
    let reply = match call.object {
        "uci" => device.uci(call.sid, call.method, args),
        "session" => session(device, call, args),
        "file" => device.file(call.sid, call.method, args),
        "rpc-sys" | "system" => device.system(call.object, call.method, args),
        _ => device.inventory(call.object, call.method, args),
    };
    let status = reply.as_ref().err().map_or(0, |status| status.code());
    device.recorder.record(call.object, call.method, call.args, method.is_write, status);
    reply
}

fn session(device: &mut Device, call: &Invocation<'_>, args: Args<'_>) -> Reply {
    match call.method {
        "login" => login(device, args),
        "destroy" => {
            device.end_session(call.sid);
            Ok(None)
        }
        _ => {
            let (object, function) = (args.required("object")?, args.required("function")?);
            let is_allowed =
                device.sessions.may(call.sid, args.text("scope").unwrap_or("ubus"), object, function);
            Ok(Some(json!({ "access": is_allowed })))
        }
    }
}

/// While an apply of the same user is pending, a login gives the session of the apply, so that a client that lost
/// its token can still confirm.
fn login(device: &mut Device, args: Args<'_>) -> Reply {
    let (name, password) = (args.required("username")?, args.required("password")?);
    let known = device.users.iter().find(|user| user.name == name);
    let user = known.filter(|user| user.password.as_deref().is_none_or(|own| own == password)).cloned();
    let user = user.ok_or(Status::PermissionDenied)?;
    let of_apply =
        device.pending.as_ref().filter(|pending| pending.user == name).map(|pending| pending.sid.clone());
    let sid = match of_apply.filter(|sid| device.sessions.is_alive(sid)) {
        Some(sid) => sid,
        None => device.sessions.open(user, args.integer("timeout"), device.now),
    };
    device.sessions.renew(&sid, device.now);
    Ok(device.sessions.describe(&sid, device.now))
}

fn is_write(call: &Invocation<'_>) -> bool {
    objects::method(call.object, call.method).is_some_and(|method| method.is_write)
}

fn failure(id: &Value, error: RpcError) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": error.code(), "message": error.message() } })
}
