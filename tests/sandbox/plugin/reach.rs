//! What a plugin reaches: its targets, its secrets, its storage, operations and events.

use heddle_marketplace::plugin::ActionEffect;
use serde_json::{Value, json};

use super::services::KEY;
use super::{Lab, guest, manifest, prepare};
use crate::sandbox::package;

fn http(target: &str, method: &str, path: &str) -> Value {
    json!({ "do": "http", "target": target, "method": method, "path": path })
}

fn with_secret(path: &str, place: &str, name: &str) -> Value {
    json!({ "do": "http", "target": "api", "path": path, "secrets": { place: name } })
}

#[tokio::test]
async fn an_action_gets_its_parameters_and_answers() {
    let lab = Lab::start().await;
    let answer = lab.works("look", json!({ "do": "echo", "value": { "a": [1, "b"] } })).await;
    assert_eq!(answer, json!({ "value": { "a": [1, "b"] } }));
    let answer = lab.works("look", json!({ "do": "settings" })).await;
    assert_eq!(answer["settings"]["server-url"], lab.device.url());
    assert_eq!(lab.refused("look", json!({ "do": "nothing" })).await, "params");
    assert_eq!(lab.refused("none", json!({})).await, "unknown-action");
}

#[tokio::test]
async fn a_plugin_is_looked_up_while_it_is_in_service() {
    let lab = Lab::start().await;
    let mut installed = lab.runtime.installed();
    assert_eq!(lab.runtime.plugin("scripted").unwrap().identity(), lab.plugin.identity());
    assert!(lab.runtime.plugins().len() == 1 && lab.runtime.adapter("scripted").is_none());
    let before = *installed.borrow_and_update();
    assert!(lab.runtime.withdraw_plugin("scripted") && !lab.runtime.withdraw_plugin("scripted"));
    assert_eq!(*installed.borrow_and_update(), before + 1);
    assert!(lab.runtime.plugin("scripted").is_none());
}

#[tokio::test]
async fn a_plugin_says_whether_it_can_work() {
    let lab = Lab::start().await;
    let shown = lab.plugin.check(&lab.call()).await.unwrap().unwrap();
    assert_eq!(shown["settings"]["server-url"], lab.device.url());
    // A check emits nothing.
    let mut call = lab.call();
    call.settings = json!({ "emit-in-check": "plugin.scripted.done" });
    let refused = lab.plugin.check(&call).await.unwrap_err();
    assert!(refused.to_string().contains("a check or a migration emits no events"), "{refused}");
    assert!(lab.services.emitted().is_empty());
    // Nor does it store something.
    call.settings = json!({ "store-in-check": "a" });
    let refused = lab.plugin.check(&call).await.unwrap_err();
    assert!(refused.to_string().contains("a check changes no storage"), "{refused}");
    assert_eq!(lab.services.asked(), 0);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_schema_is_a_fault() {
    let lab = Lab::start().await;
    for answer in [json!([1]), json!("text"), json!(null)] {
        let raw = json!({ "do": "raw", "value": answer });
        assert_eq!(lab.refused("look", raw).await, "output");
    }
}

#[tokio::test]
async fn requests_go_to_declared_targets_methods_and_paths() {
    let lab = Lab::start().await;
    lab.works("look", http("api", "GET", "/v1/a/b")).await;
    lab.works("look", http("own", "GET", "/v1/a")).await;
    lab.works("act", http("api", "POST", "/v1/a")).await;
    assert_eq!(lab.device.seen().len(), 3);
    for (action, step, expected) in [
        ("act", http("controller", "GET", "/v1/a"), "no-target"),
        ("act", http("other", "GET", "/v1/a"), "no-target"),
        ("act", http("api", "PUT", "/v1/a"), "method"),
        ("act", http("own", "POST", "/v1/a"), "method"),
        ("act", http("api", "GET", "/v2/a"), "path"),
        ("act", http("api", "GET", "/v1/../v2"), "path"),
        ("look", http("api", "POST", "/v1/a"), "read-only"),
        ("arrange", http("api", "POST", "/v1/a"), "read-only"),
        ("act", http("public", "GET", "/v1/a"), "address"),
    ] {
        let shown = format!("{action} {step}");
        assert_eq!(lab.refused(action, step).await, expected, "{shown}");
    }
    assert_eq!(lab.device.seen().len(), 3);
}

#[tokio::test]
async fn the_address_of_a_target_may_be_a_setting() {
    let lab = Lab::start().await;
    for (settings, expected) in [
        (json!({}), "target-address"),
        (json!({ "server-url": "https://127.0.0.1/base" }), "target-address"),
        (json!({ "server-url": "https://169.254.169.254" }), "address"),
    ] {
        let mut call = lab.call();
        call.settings = settings.clone();
        let ended = lab.plugin.run(&call, "look", &http("own", "GET", "/v1/a")).await;
        assert_eq!(crate::sandbox::fault(ended).code.as_deref(), Some(expected), "{settings}");
    }
}

#[tokio::test]
async fn the_host_puts_secrets_in_and_takes_them_out_of_answers() {
    let lab = Lab::start().await;
    let answer = lab.works("look", with_secret("/echo", "header:X-Key", "key")).await;
    assert!(!answer.to_string().contains("canary"), "{answer}");
    let seen = lab.device.seen();
    assert!(seen[0].headers.contains(&("x-key".to_owned(), KEY.to_owned())));
    let both = json!({ "basic-username": "user", "basic-password": "key" });
    lab.works("act", json!({ "do": "http", "target": "api", "path": "/v1/a", "secrets": both })).await;
    assert!(lab.device.authorization().starts_with("Basic "));
    for (step, expected) in [
        (with_secret("/v1/a", "header:X-Other", "key"), "secret-place"),
        (with_secret("/v1/a", "bearer", "user"), "secret-place"),
    ] {
        assert_eq!(lab.refused("act", step).await, expected);
    }
    // The other organization has given none.
    let other =
        lab.plugin.run(&lab.call_of(lab.other_org), "look", &with_secret("/v1/a", "bearer", "key")).await;
    assert_eq!(crate::sandbox::fault(other).kind.as_str(), "authentication");
    assert_eq!(lab.device.seen().len(), 2);
}

#[tokio::test]
async fn storage_is_of_one_organization() {
    let lab = Lab::start().await;
    let kv = |mut step: Value| {
        step["do"] = json!("kv");
        step
    };
    lab.works("look", kv(json!({ "use": "set", "key": "a", "text": "one" }))).await;
    let get = kv(json!({ "use": "get", "key": "a" }));
    let found = lab.works("act", get.clone()).await;
    assert_eq!(found["text"], "one");
    let other = lab.plugin.run(&lab.call_of(lab.other_org), "act", &get).await.unwrap();
    assert_eq!(other, json!({}));
    let change =
        |version: &Value| kv(json!({ "use": "transact", "keys": ["a"], "version": version, "text": "two" }));
    assert_eq!(lab.works("act", change(&json!(0))).await["done"], false);
    assert_eq!(lab.works("act", change(&found["version"])).await["done"], true);
    assert_eq!(lab.works("act", get).await["text"], "two");
    let page = lab.works("act", kv(json!({ "use": "list", "prefix": "a", "limit": 5 }))).await;
    assert_eq!(page, json!({ "keys": ["a"], "next": null }));
    lab.works("act", kv(json!({ "use": "delete", "key": "a" }))).await;
    let full = kv(json!({ "use": "set", "key": "b", "bytes": 60_000 }));
    lab.works("act", full.clone()).await;
    let more = kv(json!({ "use": "set", "key": "c", "bytes": 60_000 }));
    assert_eq!(lab.refused("act", more).await, "quota");
}

#[tokio::test]
async fn operations_are_called_on_behalf_of_the_author() {
    let lab = Lab::start().await;
    let call = |operation: &str| json!({ "do": "call", "operation": operation, "params": { "n": 1 } });
    for (action, effect) in
        [("look", ActionEffect::Read), ("arrange", ActionEffect::Stage), ("act", ActionEffect::Outward)]
    {
        let answer = lab.works(action, call("network.vlan.create")).await;
        assert_eq!(answer, json!({ "answer": { "done": { "n": 1 } } }));
        let last = lab.services.called().pop().unwrap();
        assert_eq!(last, ("ada".to_owned(), effect, "network.vlan.create".to_owned(), json!({ "n": 1 })));
    }
    let asked = lab.services.asked();
    assert_eq!(lab.refused("arrange", call("network.vlan.delete")).await, "operation");
    assert_eq!(lab.services.asked(), asked);
}

#[tokio::test]
async fn events_are_of_declared_types_and_fit_their_schema() {
    let lab = Lab::start().await;
    let emit = |event_type: &str, payload: Value| json!({ "do": "emit", "event-type": event_type, "payload": payload, "dedup-key": "k" });
    lab.works("look", emit("plugin.scripted.done", json!({ "n": 7 }))).await;
    let emitted = lab.services.emitted();
    assert_eq!((emitted.len(), emitted[0].0), (1, lab.org));
    assert_eq!((&emitted[0].1.payload, emitted[0].1.dedup_key.as_deref()), (&json!({ "n": 7 }), Some("k")));
    assert_eq!(lab.refused("act", emit("device.offline", json!({}))).await, "event-type");
    assert_eq!(lab.refused("act", emit("plugin.scripted.done", json!({ "n": "x" }))).await, "event-payload");
    assert_eq!(lab.services.emitted().len(), 1);
}

#[tokio::test]
async fn a_component_is_linked_only_with_its_capabilities() {
    let lab = Lab::start().await;
    for (capability, interface) in
        [("kv", "heddle:plugin/kv"), ("fabric", "heddle:plugin/fabric"), ("events", "heddle:plugin/events")]
    {
        let mut less = manifest(&lab.device.url());
        less["capabilities"].as_object_mut().unwrap().remove(capability);
        if capability == "events" {
            less["event-types"] = json!([]);
        }
        if capability == "fabric" {
            less["actions"][1]["effect"] = json!("read");
        }
        let refused = prepare(&lab.runtime, &less, guest()).await.unwrap_err();
        assert!(refused.contains(interface) && refused.contains(capability), "{refused}");
    }
    let mut none = manifest(&lab.device.url());
    none["capabilities"]["secrets"] = json!([]);
    none["capabilities"]["http"] = json!([]);
    let refused = prepare(&lab.runtime, &none, guest()).await.unwrap_err();
    assert!(refused.contains("heddle:host/") && refused.contains("capabilities"), "{refused}");
}

/// Exports `run` with another type than the interface has.
const OTHER_TYPE: &str = r#"
(component
  (core module $m (func (export "run") (result i32) (i32.const 7)))
  (core instance $i (instantiate $m))
  (func $run (result u32) (canon lift (core func $i "run")))
  (instance $actions (export "run" (func $run)))
  (export "heddle:plugin/actions@1.0.0" (instance $actions)))
"#;

#[tokio::test]
async fn an_export_of_another_type_is_refused_when_it_is_loaded() {
    let lab = Lab::start().await;
    let component = wat::parse_str(OTHER_TYPE).expect("the text is a component");
    let refused = prepare(&lab.runtime, &manifest(&lab.device.url()), component).await.unwrap_err();
    assert!(refused.starts_with("the component does not fit the interface"), "{refused}");
}

#[tokio::test]
async fn manifest_and_exports_go_together() {
    let lab = Lab::start().await;
    let mut idle = manifest(&lab.device.url());
    idle["actions"] = json!([]);
    let refused = prepare(&lab.runtime, &idle, guest()).await.unwrap_err();
    assert!(refused.contains("the manifest declares no actions"), "{refused}");
    // An adapter in the clothes of a plugin, and the other way round.
    let refused = prepare(&lab.runtime, &manifest(&lab.device.url()), package::hostile()).await.unwrap_err();
    assert!(
        refused.contains("heddle:host/description") || refused.contains("heddle:plugin/actions"),
        "{refused}"
    );
    let plugin = super::verified(&manifest(&lab.device.url()), guest());
    let refused = lab.runtime.load(&plugin).await.unwrap_err().to_string();
    assert!(refused.contains("kind 'plugin'"), "{refused}");
    let adapter = package::verified(&package::manifest(), &package::hostile());
    let refused = lab.runtime.prepare_plugin(&adapter).await.unwrap_err().to_string();
    assert!(refused.contains("kind 'adapter'"), "{refused}");
}
