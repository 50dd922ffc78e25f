//! What a call of this phase may send: reads, and in a write the reviewed calls.

use heddle_core::change::NativeCall;
use heddle_core::fault::Fault;
use heddle_marketplace::manifest::ReadRule;
use http::Method;
use serde_json::Value;

use super::path;
use super::request::{Approved, Body, Request, denied};

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Describe,
    Probe,
    Read,
    Plan,
    Verify,
    Write,
    Poll,
}

/// As what a request passes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Passage {
    Read,
    /// As this call of the plan.
    Write(Box<NativeCall>),
}

impl Passage {
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Passage::Write(_))
    }
}

/// Judges a request; `used` counts the approved calls that were sent.
pub(super) fn judge(
    phase: Phase,
    reads: &[ReadRule],
    approved: Option<&Approved>,
    used: usize,
    request: &Request,
) -> Result<Passage, Fault> {
    let next = approved.filter(|_| phase == Phase::Write).and_then(|approved| approved.calls.get(used));
    // A reviewed call counts as sent, also where it looks like a read.
    if let Some(call) = next
        && equals(call, request)
    {
        return Ok(Passage::Write(Box::new(call.clone())));
    }
    if is_read(reads, request) {
        return Ok(Passage::Read);
    }
    let shown = shown(request);
    if phase != Phase::Write {
        return Err(denied(
            "read-only",
            format!(
                "{shown} may write, and this call only reads; list it in 'reads' when it changes nothing"
            ),
        ));
    }
    match next {
        Some(_) => Err(denied("not-approved", format!("{shown} is not the next call of the approved plan"))),
        None => Err(denied(
            "not-approved",
            format!("{shown} is not in the approved plan, whose calls were all sent"),
        )),
    }
}

fn is_read(reads: &[ReadRule], request: &Request) -> bool {
    let harmless = [Method::GET, Method::HEAD].contains(&request.method);
    if harmless && matches!(request.body, Body::None) {
        return true;
    }
    let fits = |body: Option<&Value>| reads.iter().any(|rule| fits(rule, request, body));
    match &request.body {
        Body::Json(Value::Array(batch)) => {
            !batch.is_empty() && batch.iter().all(|element| fits(Some(element)))
        }
        Body::Json(body) => fits(Some(body)),
        _ => fits(None),
    }
}

fn fits(rule: &ReadRule, request: &Request, body: Option<&Value>) -> bool {
    // Many devices take parameters from the query too, and a rule says nothing of it.
    !request.path.contains('?')
        && rule.method == request.method.as_str()
        && path::fits(&rule.path, &request.path)
        && rule.json.iter().all(|(pointer, values)| {
            body.and_then(|body| body.pointer(pointer)).is_some_and(|found| values.contains(found))
        })
}

fn equals(call: &NativeCall, request: &Request) -> bool {
    let same_body = match (&call.body, &request.body) {
        (None, Body::None) => true,
        (Some(approved), Body::Json(body)) => approved == body,
        _ => false,
    };
    call.method.eq_ignore_ascii_case(request.method.as_str()) && call.path == request.path && same_body
}

fn shown(request: &Request) -> String {
    let path: String = request
        .path
        .split('?')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(80)
        .collect();
    format!("{} {path}", request.method)
}

#[cfg(test)]
mod tests {
    use heddle_core::change::Stage;
    use serde_json::json;

    use super::*;
    use crate::api::SecretBook;
    use crate::egress::tests::{manifest, request};

    fn approval() -> Approved {
        let call = |path: &str, body: Value| NativeCall {
            stage: Stage::Apply,
            method: "POST".to_owned(),
            path: path.to_owned(),
            body: Some(body),
        };
        let calls = vec![call("/rpc", json!({"set": 1, "x": 2})), call("/rpc", json!({"commit": true}))];
        Approved { calls, hold_secs: 60, secrets: SecretBook::default() }
    }

    fn judged(phase: Phase, used: usize, method: Method, path: &str, body: Body) -> Result<bool, String> {
        let approved = approval();
        judge(phase, &manifest().reads, Some(&approved), used, &request(method, path, body))
            .map(|passage| passage.is_write())
            .map_err(|fault| fault.code.unwrap())
    }

    fn read_call(name: &str) -> Value {
        json!({"params": ["sid", "config", name]})
    }

    #[test]
    fn reads_pass_in_every_phase() {
        for phase in [Phase::Probe, Phase::Read, Phase::Plan, Phase::Verify, Phase::Write, Phase::Poll] {
            assert_eq!(judged(phase, 0, Method::GET, "/x", Body::None), Ok(false));
            assert_eq!(judged(phase, 0, Method::POST, "/rpc", Body::Json(read_call("get"))), Ok(false));
        }
    }

    #[test]
    fn a_reviewed_call_that_looks_like_a_read_counts_as_sent() {
        let mut approved = approval();
        let savepoint = NativeCall {
            stage: Stage::Apply,
            method: "POST".to_owned(),
            path: "/rpc".to_owned(),
            body: Some(read_call("get")),
        };
        approved.calls.insert(0, savepoint);
        let reads = manifest().reads;
        let judge = |phase, used| {
            let asked = request(Method::POST, "/rpc", Body::Json(read_call("get")));
            super::judge(phase, &reads, Some(&approved), used, &asked).map(|passage| passage.is_write())
        };
        assert!(judge(Phase::Write, 0).unwrap());
        assert!(!judge(Phase::Write, 1).unwrap(), "it is not the next call any more");
        assert!(!judge(Phase::Verify, 0).unwrap());
    }

    #[test]
    fn no_other_phase_than_write_sends_a_write() {
        for phase in [Phase::Probe, Phase::Read, Phase::Plan, Phase::Verify, Phase::Poll] {
            let body = || Body::Json(json!({"set": 1, "x": 2}));
            assert_eq!(judged(phase, 0, Method::POST, "/rpc", body()), Err("read-only".to_owned()));
            assert_eq!(judged(phase, 0, Method::DELETE, "/x", Body::None), Err("read-only".to_owned()));
            let read = || Body::Json(read_call("get"));
            assert_eq!(judged(phase, 0, Method::POST, "/rpc?set=1", read()), Err("read-only".to_owned()));
            assert_eq!(judged(phase, 0, Method::GET, "/x", body()), Err("read-only".to_owned()));
        }
    }

    #[test]
    fn one_write_in_a_batch_makes_it_a_write() {
        let batch = |last: &str| Body::Json(json!([read_call("get"), read_call(last)]));
        assert_eq!(judged(Phase::Read, 0, Method::POST, "/rpc", batch("list")), Ok(false));
        assert!(judged(Phase::Read, 0, Method::POST, "/rpc", batch("set")).is_err());
        assert!(judged(Phase::Read, 0, Method::POST, "/rpc", Body::Json(json!([]))).is_err());
        assert!(
            judged(Phase::Read, 0, Method::POST, "/rpc", Body::Json(json!([[read_call("get")]]))).is_err()
        );
        assert!(
            judged(
                Phase::Read,
                0,
                Method::POST,
                "/rpc",
                Body::Bytes("application/json".to_owned(), b"{}".to_vec())
            )
            .is_err()
        );
    }

    #[test]
    fn a_write_is_the_next_call_of_the_plan_or_nothing() {
        let send = |used, body| judged(Phase::Write, used, Method::POST, "/rpc", Body::Json(body));
        assert_eq!(send(0, json!({"x": 2, "set": 1})), Ok(true));
        assert_eq!(send(1, json!({"commit": true})), Ok(true));
        let refused = Err("not-approved".to_owned());
        assert_eq!(send(0, json!({"commit": true})), refused);
        assert_eq!(send(1, json!({"set": 1, "x": 2})), refused);
        assert_eq!(send(2, json!({"commit": true})), refused);
        assert_eq!(send(0, json!({"set": 1, "x": 3})), refused);
        assert_eq!(
            judged(Phase::Write, 0, Method::PUT, "/rpc", Body::Json(json!({"set": 1, "x": 2}))),
            refused
        );
        assert_eq!(
            judged(Phase::Write, 0, Method::POST, "/rpc?x", Body::Json(json!({"set": 1, "x": 2}))),
            refused
        );
        assert_eq!(judged(Phase::Write, 0, Method::POST, "/rpc", Body::None), refused);
    }
}
