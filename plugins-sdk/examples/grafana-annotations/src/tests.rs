use heddle_sdk::plugin::run;
use heddle_sdk::plugin::testing::FakeHost;
use heddle_sdk::testing::{json_body, json_response};

use super::*;

/// Grafana that answers everything so.
fn grafana(status: u16, body: Value) -> FakeHost<'static> {
    FakeHost::new(move |_, _, _| Ok(json_response(status, &body)))
}

#[test]
fn an_annotation_has_the_tags_of_the_settings_and_its_own_once() {
    let mut host = grafana(200, json!({ "message": "Annotation added", "id": 7 }));
    host.settings = json!({ "tags": ["noc", "changes"] });
    let params = json!({ "text": "applied", "tags": ["changes", "site:berlin"], "time_end_ms": 1_700_000_000_500_u64 });
    let output = run::<Annotations>(&host, "annotate", params).unwrap();
    let tags = json!(["noc", "changes", "site:berlin"]);
    assert_eq!(output, json!({ "id": 7, "time_ms": 1_700_000_000_000_u64, "tags": tags }));
    let sent = host.sent.borrow();
    let body = json_body(&sent[0].1).unwrap();
    let expected = json!({
        "time": 1_700_000_000_000_u64, "timeEnd": 1_700_000_000_500_u64, "tags": tags, "text": "applied",
    });
    assert_eq!((sent[0].0.as_str(), body), ("grafana", expected));
}

#[test]
fn a_span_does_not_end_before_it_begins() {
    let host = grafana(200, json!({ "id": 7 }));
    let params = json!({ "text": "x", "time_ms": 2, "time_end_ms": 1 });
    let fault = run::<Annotations>(&host, "annotate", params).unwrap_err();
    assert_eq!((fault.word(), fault.info().fields[0].pointer.as_str()), ("invalid", "/time_end_ms"));
    assert!(host.sent.borrow().is_empty(), "nothing is sent");
}

#[test]
fn tags_are_asked_for_as_they_are() {
    let answer = json!([
        { "id": 1, "time": 5, "timeEnd": 9, "tags": ["a&b", "zürich"], "text": "t", "userId": 3 },
        { "id": 2, "time": 4 },
    ]);
    let host = grafana(200, answer);
    let output = run::<Annotations>(&host, "find", json!({ "tags": ["a&b", "zürich"], "limit": 5 })).unwrap();
    assert_eq!(
        output["annotations"],
        json!([
            { "id": 1, "time_ms": 5, "time_end_ms": 9, "tags": ["a&b", "zürich"], "text": "t" },
            { "id": 2, "time_ms": 4, "time_end_ms": null, "tags": [], "text": "" },
        ])
    );
    let path = host.sent.borrow()[0].1.path.clone();
    assert_eq!(path, "/api/annotations?type=annotation&limit=5&tags=a%26b&tags=z%C3%BCrich");
}

#[test]
fn a_refusal_says_whether_it_may_have_changed_something() {
    for (status, word, effect) in [
        (401, "authentication", Effect::None),
        (403, "denied", Effect::None),
        (400, "invalid", Effect::None),
        (503, "not_ready", Effect::Possible),
        (500, "generic", Effect::Possible),
    ] {
        let host = grafana(status, json!({ "message": "because" }));
        let fault = run::<Annotations>(&host, "annotate", json!({ "text": "x" })).unwrap_err();
        let info = fault.info();
        assert_eq!((fault.word(), info.effect, info.upstream_status), (word, effect, Some(status)));
        assert!(info.message.contains("because"), "{}", info.message);
        let read = run::<Annotations>(&host, "find", json!({})).unwrap_err();
        assert_eq!(read.info().effect, Effect::None, "a read changes nothing");
    }
}

#[test]
fn a_check_reads_and_says_what_it_found() {
    let host = grafana(200, json!([{ "id": 1, "time": 1 }]));
    assert_eq!(Annotations::check(&host).unwrap(), Some(json!({ "found": 1 })));
    assert_eq!(host.sent.borrow()[0].1.method, Method::Get);
    assert!(Annotations::check(&grafana(401, json!({}))).is_err());
}

#[test]
fn events_are_marked_at_their_time_and_those_that_the_settings_leave_out_are_not() {
    let mut host = grafana(200, json!({ "id": 7 }));
    let event = |event_type: &str, payload: Value| Received {
        id: "e".to_owned(),
        seq: 1,
        event_type: event_type.to_owned(),
        occurred_at_ms: 1_700_000_000_000,
        payload,
    };
    let events = [
        event("device.status.changed", json!({ "name": "sw-1", "new_status": "offline" })),
        event("controller.change.applied", json!({})),
    ];
    Annotations::on_events(&host, "mark", &events).unwrap();
    let texts: Vec<Value> =
        host.sent.borrow().iter().map(|(_, request)| json_body(request).unwrap()["text"].clone()).collect();
    assert_eq!(texts, ["sw-1 device.status.changed offline", "controller.change.applied"]);
    let first = json_body(&host.sent.borrow()[0].1).unwrap();
    assert_eq!(
        (&first["time"], &first["tags"][1]),
        (&json!(1_700_000_000_000_u64), &json!("device.status.changed"))
    );
    host.settings = json!({ "mark": ["controller.change.failed"] });
    Annotations::on_events(&host, "mark", &events).unwrap();
    assert_eq!(host.sent.borrow().len(), 2);
    let refused = Annotations::on_events(&grafana(503, json!({})), "mark", &events).unwrap_err();
    assert_eq!(refused.word(), "not_ready");
}
