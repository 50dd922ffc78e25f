//! What a component may send: what reads, in every phase.

use heddle_core::fault::Fault;
use heddle_marketplace::manifest::ReadRule;
use heddle_marketplace::reading;
use http::Method;
use serde_json::Value;

use super::path;
use super::request::{Body, Request, denied};

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Probe,
    Read,
    Plan,
    Verify,
    Write,
    Poll,
}

/// Refuses a request of a component that may change the device: in every phase it only reads. The reviewed calls of a
/// plan are sent by the host.
pub(super) fn check(phase: Phase, reads: &[ReadRule], request: &Request) -> Result<(), Fault> {
    if is_read(reads, request) {
        return Ok(());
    }
    let shown = shown(request);
    Err(if phase == Phase::Write {
        denied(
            "not-approved",
            format!("{shown} may write, and the calls of a plan are sent by the host alone"),
        )
    } else {
        let why = "may write, and this call only reads; list it in 'reads' when it changes nothing";
        denied("read-only", format!("{shown} {why}"))
    })
}

/// The place of the read rule that a planned call fits: a component could send it without a review.
pub(super) fn read_rule(reads: &[ReadRule], request: &Request) -> Option<usize> {
    let body = match &request.body {
        Body::Json(body) => Some(body),
        _ => None,
    };
    reads.iter().position(|rule| fits(rule, request, body))
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
    let is_equal = |accepted: &str, found: &str| accepted == found;
    rule.method == request.method.as_str()
        && path::fits(&rule.path, &request.path)
        && reading::query_fits(rule, &request.path, is_equal)
        && has_form(rule, request)
        && rule.json.iter().all(|(pointer, values)| {
            body.and_then(|body| body.pointer(pointer)).is_some_and(|found| values.contains(found))
        })
}

/// Whether the body is what a rule takes that names no JSON: a form, or none where it has only a query.
fn has_form(rule: &ReadRule, request: &Request) -> bool {
    let form = match &request.body {
        Body::Form(fields) => Some(fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
        _ => None,
    };
    let has_body = !matches!(request.body, Body::None);
    reading::body_fits(rule, has_body, form, |accepted, found| accepted == found)
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
    use serde_json::json;

    use super::*;
    use crate::egress::tests::{manifest, request};

    const PHASES: [Phase; 6] =
        [Phase::Probe, Phase::Read, Phase::Plan, Phase::Verify, Phase::Write, Phase::Poll];

    fn checked(phase: Phase, method: Method, path: &str, body: Body) -> Result<(), String> {
        check(phase, &manifest().reads, &request(method, path, body)).map_err(|fault| fault.code.unwrap())
    }

    fn read_call(name: &str) -> Value {
        json!({"params": ["sid", "config", name]})
    }

    #[test]
    fn reads_pass_in_every_phase() {
        for phase in PHASES {
            assert_eq!(checked(phase, Method::GET, "/x", Body::None), Ok(()));
            assert_eq!(checked(phase, Method::POST, "/rpc", Body::Json(read_call("get"))), Ok(()));
        }
    }

    #[test]
    fn no_phase_sends_a_write() {
        for phase in PHASES {
            let code = if phase == Phase::Write { "not-approved" } else { "read-only" };
            let refused = |method, path, body| {
                assert_eq!(checked(phase, method, path, body), Err(code.to_owned()));
            };
            let body = || Body::Json(json!({"set": 1, "x": 2}));
            let read = || Body::Json(read_call("get"));
            refused(Method::POST, "/rpc", body());
            refused(Method::DELETE, "/x", Body::None);
            refused(Method::POST, "/rpc?set=1", read());
            refused(Method::GET, "/x", body());
            refused(Method::POST, "/rpc", Body::None);
            refused(Method::PUT, "/rpc", read());
        }
    }

    #[test]
    fn one_write_in_a_batch_makes_it_a_write() {
        let batch = |last: &str| Body::Json(json!([read_call("get"), read_call(last)]));
        let read = |body| checked(Phase::Read, Method::POST, "/rpc", body);
        assert_eq!(read(batch("list")), Ok(()));
        assert!(read(batch("set")).is_err());
        assert!(read(Body::Json(json!([]))).is_err());
        assert!(read(Body::Json(json!([[read_call("get")]]))).is_err());
        assert!(read(Body::Bytes("application/json".to_owned(), b"{}".to_vec())).is_err());
    }

    #[test]
    fn a_form_and_a_query_are_read_where_they_are_exactly_what_a_rule_names() {
        let rules: Vec<ReadRule> = serde_json::from_value(json!([
            {"method": "POST", "path": "/form", "form": {"op": ["get"], "id": ["*"]}},
            {"method": "POST", "path": "/query", "query": {"cmd": ["list"]}},
            {"method": "POST", "path": "/both", "query": {"cmd": ["list"]}, "json": {"/op": ["get"]}},
        ]))
        .unwrap();
        let form = |fields: &[(&str, &str)]| {
            Body::Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let reads = |path: &str, body| check(Phase::Read, &rules, &request(Method::POST, path, body)).is_ok();
        let get = || Body::Json(json!({"op": "get"}));
        assert!(reads("/form", form(&[("id", "7"), ("op", "get")])));
        assert!(!reads("/form", form(&[("id", "7"), ("op", "set")])));
        assert!(!reads("/form", form(&[("id", "7"), ("op", "get"), ("x", "1")])));
        assert!(!reads("/form?x=1", form(&[("id", "7"), ("op", "get")])));
        assert!(!reads("/form", Body::None) && !reads("/form", get()));
        assert!(reads("/query?cmd=list", Body::None));
        assert!(!reads("/query?cmd=drop", Body::None) && !reads("/query", Body::None));
        // Of the body the rule says nothing, so there is none.
        assert!(!reads("/query?cmd=list", form(&[])) && !reads("/query?cmd=list", get()));
        assert!(reads("/both?cmd=list", get()));
        assert!(!reads("/both", get()) && !reads("/both?cmd=list", Body::None));
    }

    #[test]
    fn a_planned_call_that_any_reading_could_send_is_found() {
        let rule =
            |name| read_rule(&manifest().reads, &request(Method::POST, "/rpc", Body::Json(read_call(name))));
        assert_eq!(rule("get"), Some(0));
        assert_eq!(rule("set"), None);
    }
}
