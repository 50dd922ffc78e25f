//! One configuration that everybody saves to as a whole, and a save that another one holds up.

use heddle_sdk::{Adapter as _, Change, Effect, Fault, FaultExt, Listing, Operation, Sent, Stage, fault};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Opnsense;

const ALIASES: &str = "Firewall/Alias:aliases.alias";

fn create(name: &str) -> Change {
    let payload = json!({ "name": name, "type": "host", "content": ["192.0.2.7"] });
    change("firewall.alias", Operation::Create, &payload)
}

fn describe(name: &str, description: &str) -> Change {
    change("firewall.alias", Operation::Update, &json!({ "name": name, "description": description }))
}

/// The id and the fields of an alias.
fn alias(device: &Device, name: &str) -> Option<(String, Value)> {
    let stored = device.stored();
    let all = stored[ALIASES].as_object()?.iter();
    all.into_iter().find(|(_, alias)| alias["name"] == name).map(|(id, alias)| (id.clone(), alias.clone()))
}

/// What another person saves and makes active.
fn edit(device: &Device, name: &str, fields: &Value) {
    let id = alias(device, name).unwrap().0;
    let edit = json!({ "do": "set", "node": ALIASES, "id": id, "fields": fields, "apply": true });
    device.lab().edit(&edit).unwrap();
}

#[test]
fn manifest_paces_writes() {
    let manifest: Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    assert!(manifest["pace"]["write-gap-ms"].as_u64().is_some_and(|gap| gap >= 100));
}

#[test]
fn save_without_the_lock_may_have_been_halfway_and_the_device_tells() {
    let device = Device::new();
    let made = plan(&device, &create("sample")).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("config_lock_busy", Value::Null).times(1));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Generic(info) if matches!(info.effect, Effect::Possible)), "{fault:?}");
    assert_eq!(standing(&device, &made), "before");
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
}

#[test]
fn field_that_another_person_changed_is_not_written_over() {
    let device = Device::new();
    let made = plan(&device, &describe("web_servers", "ours")).unwrap();
    edit(&device, "web_servers", &json!({ "description": "theirs" }));
    let posts = device.posts.get();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::StateMoved(info) if info.message.contains("web_servers")), "{fault:?}");
    assert_eq!(device.posts.get(), posts, "nothing was sent");
    assert_eq!(alias(&device, "web_servers").unwrap().1["description"], "theirs");
}

/// An update says what it changes and nothing else, so that a save in the last moment is not lost either.
#[test]
fn field_beside_ours_that_another_person_changed_stays() {
    let device = Device::new();
    let made = plan(&device, &describe("web_servers", "ours")).unwrap();
    let body = made.native[0].json().unwrap();
    assert_eq!(body, json!({ "alias": { "name": "web_servers", "description": "ours" } }));
    edit(&device, "web_servers", &json!({ "counters": "1" }));
    // The review showed the whole object.
    assert!(matches!(run(&device, Stage::Apply, &made).unwrap_err(), Fault::StateMoved(_)));
    let made = plan(&device, &describe("web_servers", "ours")).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let now = alias(&device, "web_servers").unwrap().1;
    assert_eq!((&now["description"], &now["counters"]), (&json!("ours"), &json!("1")), "{now}");
}

/// A write with an unknown id would create the object.
#[test]
fn object_that_another_person_deleted_is_not_brought_back() {
    let device = Device::new();
    run(&device, Stage::Apply, &plan(&device, &create("sample")).unwrap()).unwrap();
    let made = plan(&device, &describe("sample", "ours")).unwrap();
    let id = alias(&device, "sample").unwrap().0;
    device.lab().edit(&json!({ "do": "remove", "node": ALIASES, "id": id, "apply": true })).unwrap();
    let posts = device.posts.get();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)), "{fault:?}");
    assert_eq!((device.posts.get(), alias(&device, "sample")), (posts, None));
}

/// A reload may take longer than anybody waits, and end well all the same.
#[test]
fn reload_that_times_out_leaves_the_effect_open() {
    let device = Device::new();
    let made = plan(&device, &create("sample")).unwrap();
    let calls = made.native.iter().filter(|call| call.stage == Stage::Apply).count();
    assert_eq!(calls, 2, "a save and a reload");
    for index in 0..calls {
        let lost = fault::timeout("no answer came").with_effect(Effect::Possible);
        let sent = Sent { stage: Stage::Apply, index };
        let found = Opnsense::judge(&device.host(), sent, Err(lost), &[], &made.token).unwrap_err();
        assert!(matches!(&found, Fault::Timeout(info) if !matches!(info.effect, Effect::None)), "{found:?}");
    }
}

/// Lists also have what the system made, and rules that were not moved to the new list.
#[test]
fn row_of_the_system_is_shown_and_not_written() {
    let device = Device::new();
    let rows = |kind: &str| {
        let page = Opnsense::list_objects(&device.host(), &Listing::of(kind, 1000)).unwrap();
        let bodies = page.items.into_iter().map(|item| (item.reference.key, item.body));
        bodies.collect::<Vec<_>>()
    };
    let aliases = rows("firewall.alias");
    assert!(aliases.iter().any(|(key, _)| key == "bogons"), "{aliases:?}");
    plan(&device, &describe("bogons", "ours")).unwrap_err();
    let gone = change("firewall.alias", Operation::Delete, &json!({ "name": "bogons" }));
    plan(&device, &gone).unwrap_err();
    // By its id the rule that keeps the way to the box open is one of the system.
    let kept = "keeps the way to the box open";
    let off = |kind: &str, payload: Value| {
        assert!(rows(kind).iter().any(|(key, _)| key == kept), "{kind}");
        plan(&device, &change(kind, Operation::Update, &payload)).unwrap_err();
    };
    off("nat.port-forward", json!({ "descr": kept, "disabled": true }));
    off("firewall.rule", json!({ "description": kept, "enabled": false }));
    assert_eq!(device.posts.get(), 0);
}
