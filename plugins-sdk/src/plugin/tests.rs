use serde::Deserialize;
use serde_json::json;

use super::testing::FakeHost;
use super::*;
use crate::{Auth, Request, Response};

/// Counts how often each name was greeted, and tells a server.
struct Greet;

#[derive(Deserialize)]
struct Whom {
    name: String,
}

impl Action for Greet {
    const ID: &'static str = "greet";
    type Params = Whom;
    type Output = Value;

    fn run(host: &dyn Host, whom: Whom) -> Result<Value, Fault> {
        let stored = host.kv_get(&whom.name)?;
        let (count, expected) = match &stored {
            None => (1, Expected::Absent),
            Some(stored) => (stored.value[0] + 1, Expected::Version(stored.version)),
        };
        let change = Change::Set(NewValue { value: vec![count], ttl_s: None });
        let was_changed = host.kv_transact(&[Op { key: whom.name.clone(), expected, change }])?;
        host.send("api", Request::get("/greeted"), Auth::None)?;
        host.emit(&[Event::new("plugin.greeter.greeted", json!({ "name": whom.name }))])?;
        Ok(json!({ "count": count, "was_changed": was_changed }))
    }
}

struct Greeter;

impl Plugin for Greeter {
    const ACTIONS: &'static [Entry] = &[action::<Greet>()];
    const TOOLS: &'static [Entry] = &[action::<Greet>()];

    fn configure(host: &dyn Host) -> Result<(), Fault> {
        let timer = |name: &str, when| Timer { name: name.to_owned(), trigger_id: "bow".to_owned(), when };
        host.set_timers(&[timer("often", When::EveryS(60)), timer("once", When::AtMs(7))])
    }
}

register_plugin!(Greeter: actions, triggers, tools, hooks, configuration, migration);

fn host<'a>() -> FakeHost<'a> {
    FakeHost::new(|target, _, _| {
        assert_eq!(target, "api");
        Ok(Response { status: 200, reason: None, headers: vec![], body: vec![], elapsed_ms: 1 })
    })
}

#[test]
fn an_action_is_found_by_its_id_and_typed() {
    let host = host();
    let greet = || run::<Greeter>(&host, "greet", json!({ "name": "ada" })).unwrap();
    assert_eq!(greet(), json!({ "count": 1, "was_changed": true }));
    assert_eq!(greet(), json!({ "count": 2, "was_changed": true }));
    assert_eq!((host.sent.borrow().len(), host.emitted.borrow().len()), (2, 2));
    let unknown = run::<Greeter>(&host, "bow", json!({})).unwrap_err();
    assert!(matches!(unknown, Fault::Unsupported(_)));
    let unfit = run::<Greeter>(&host, "greet", json!({ "nme": 1 })).unwrap_err();
    assert_eq!((unfit.word(), unfit.info().code.as_deref()), ("invalid", Some("params")));
    assert!(Greeter::check(&host).unwrap().is_none());
}

#[test]
fn what_calls_a_plugin_besides_people_is_unsupported_where_it_has_none() {
    let host = host();
    assert_eq!(invoke::<Greeter>(&host, "greet", json!({ "name": "ada" })).unwrap()["count"], 1);
    assert!(invoke::<Greeter>(&host, "bow", json!({})).is_err());
    assert!(matches!(Greeter::on_events(&host, "bow", &[]), Err(Fault::Unsupported(_))));
    assert!(matches!(Greeter::on_schedule(&host, "bow", "often", 0), Err(Fault::Unsupported(_))));
    let request =
        HookRequest { hook: "bow".to_owned(), headers: Vec::new(), query: Vec::new(), body: Vec::new() };
    assert!(matches!(Greeter::receive(&host, request), Err(Fault::Unsupported(_))));
    Greeter::configure(&host).unwrap();
    host.cancel_timers(&["once".to_owned()]).unwrap();
    let timers = host.timers().unwrap();
    assert_eq!((timers.len(), timers[0].next_at_ms), (1, host.now_ms() + 60_000));
}

#[test]
fn the_storage_of_a_test_is_atomic_bounded_and_in_pages() {
    let mut host = FakeHost::alone();
    host.kv_bytes = 20;
    for key in ["a1", "a2", "b1"] {
        host.kv_set(key, b"x", None).unwrap();
    }
    let set = |key: &str, expected| Op {
        key: key.to_owned(),
        expected,
        change: Change::Set(NewValue { value: b"y".to_vec(), ttl_s: None }),
    };
    assert!(!host.kv_transact(&[set("a1", Expected::Any), set("a2", Expected::Absent)]).unwrap());
    assert_eq!(host.kv_get("a1").unwrap().unwrap().value, b"x");
    let full = host.kv_set("c", &[0; 20], None).unwrap_err();
    assert_eq!(full.info().code.as_deref(), Some("quota"));
    let page = host.kv_list("a", None, 1).unwrap();
    assert_eq!((page.items[0].key.as_str(), page.next.as_deref()), ("a1", Some("a1")));
    let page = host.kv_list("a", page.next.as_deref(), 9).unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
    host.kv_delete("a1").unwrap();
    assert!(host.kv_get("a1").unwrap().is_none());
}

#[test]
fn settings_are_read_as_the_plugin_wants_them() {
    let mut host = FakeHost::alone();
    host.settings = json!({ "name": "ada" });
    assert_eq!(settings::<Whom>(&host).unwrap().name, "ada");
    host.settings = json!({});
    assert!(settings::<Whom>(&host).is_err());
}
