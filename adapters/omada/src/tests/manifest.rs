//! The package's files, judged as a server does.

use heddle_sdk::testing::conformance;
use serde_json::{Value, json};

use super::device::{description, package};

fn manifest() -> Value {
    serde_json::from_str(include_str!("../../manifest.json")).unwrap()
}

#[test]
fn package_is_sound() {
    conformance::package(include_str!("../../manifest.json"), include_str!("../../description.json"));
    assert!(package().features().len() > 400, "{}", package().features().len());
    assert_eq!(
        manifest()["pace"]["windows"],
        json!([{ "calls": 10, "window-ms": 1000 }]),
        "ten calls a second"
    );
}

#[test]
fn secrets_of_payloads_are_secrets_of_answers() {
    let manifest = manifest();
    let known: Vec<&str> =
        manifest["secret-fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut missing = Vec::new();
    for feature in description()["features"].as_array().unwrap() {
        for operation in feature["operations"].as_array().unwrap() {
            secrets(&operation["payload-schema"], "", &mut |name| {
                if !known.contains(&name) {
                    missing.push(format!("{}: {name}", feature["id"]));
                }
            });
        }
    }
    // The key of a virtual router has a name that other fields share; no answer of it is shown.
    missing.retain(|name| name != "\"omada.routing.vrrp\": key");
    assert!(missing.is_empty(), "{missing:?}");
}

fn by_id<'d>(description: &'d Value, section: &str, id: &str) -> Option<&'d Value> {
    description[section].as_array().unwrap().iter().find(|one| one["id"] == id)
}

#[test]
fn what_opens_a_door_is_a_secret_or_not_there() {
    let description = description();
    let kind = by_id(description, "kinds", "routing.vrrp").unwrap();
    assert_eq!(kind["binding"]["fields"]["key"], json!({ "type": "secret", "unread": true }));
    let feature = by_id(description, "features", "omada.routing.vrrp").unwrap();
    for operation in &feature["operations"].as_array().unwrap()[..2] {
        assert_eq!(operation["payload-schema"]["properties"]["key"]["writeOnly"], true);
    }
    assert!(by_id(description, "kinds", "hotspot.voucher-print").is_none());
    assert!(manifest()["secret-fields"].as_array().unwrap().contains(&json!("deviceKey")));
    let add = by_id(description, "features", "omada.bulk.add-by-key").unwrap();
    let devices = &add["operations"][0]["payload-schema"]["properties"]["devices"];
    assert_eq!(devices["items"]["properties"]["deviceKey"]["writeOnly"], true);
}

#[test]
fn what_cuts_off_or_cannot_be_taken_back_is_destructive() {
    let description = description();
    for (id, operations) in [
        ("insights.known-client", &["delete"][..]),
        ("routing.virtual-wan", &["create", "update", "delete"]),
        ("system.iptv", &["update"]),
        ("device.adopt", &["create"]),
        ("bulk.adopt", &["create"]),
    ] {
        let feature = by_id(description, "features", &format!("omada.{id}")).unwrap();
        let all = feature["operations"].as_array().unwrap();
        assert_eq!(all.len(), operations.len(), "{id}");
        for (operation, word) in all.iter().zip(operations) {
            assert_eq!(operation["operation"], **word, "{id}");
            assert_eq!(operation["danger"], "destructive", "{id}");
            assert_eq!(feature["binding"]["danger"][word], "destructive", "{id}");
        }
    }
}

#[test]
fn reasons_speak_of_the_controller_and_not_of_the_authors_tools() {
    let overlay = include_str!("../../overlay.json").to_lowercase();
    assert!(["simulator", " our "].iter().all(|word| !overlay.contains(word)));
}

fn secrets(schema: &Value, name: &str, found: &mut dyn FnMut(&str)) {
    if schema["writeOnly"] == true {
        found(name);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        secrets(inner, name, found);
    }
    if schema["items"].is_object() {
        secrets(&schema["items"], name, found);
    }
}

#[test]
fn login_reads_the_controllers_id_before_it_asks_for_a_token() {
    let manifest = manifest();
    let session = &manifest["auth"][crate::answer::SESSION];
    assert_eq!(
        session["login"][0]["capture"][0],
        json!({
            "as": "omadacId", "from": { "json": "/result/omadacId" }, "expose": true,
        })
    );
    assert_eq!(session["login"][1]["request"]["json"]["omadacId"], "{{session.omadacId}}");
    assert_eq!(session["apply"][0]["value"], "AccessToken={{session.token}}");
}

/// The rules are tried by the host: here is what the package says to it.
#[test]
fn a_message_is_proved_and_read_as_the_rules_say() {
    let webhook = &manifest()["push"]["webhook"];
    assert_eq!(webhook["hook"]["proof"], json!({ "scheme": "token", "at": { "json": "/shardSecret" } }));
    assert_eq!(webhook["site"], json!({ "at": "/Site", "is": "name" }));
    let rules = webhook["rules"].as_array().unwrap();
    let last = rules.last().unwrap();
    assert_eq!((&last["when"], &last["reads"]), (&json!({ "/Controller": ["*"] }), &json!(["device"])));
    let kinds: Vec<&str> =
        description()["model"].as_array().unwrap().iter().filter_map(|one| one["kind"].as_str()).collect();
    let reads = rules.iter().flat_map(|rule| rule["reads"].as_array().unwrap()).filter_map(Value::as_str);
    for kind in reads.filter(|kind| *kind != "device") {
        assert!(kinds.contains(&kind), "{kind}");
    }
}
