use serde_json::{Value, json};

use super::*;
use crate::plugin_rules::tests::template;

fn manifest(change: impl FnOnce(&mut Value)) -> Manifest {
    let mut manifest = template();
    manifest["files"] = json!([]);
    change(&mut manifest);
    serde_json::from_value(manifest).unwrap()
}

fn reads(id: &str) -> bool {
    id == "inventory.device.find"
}

fn shown(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| format!("{}: {}", item.risk.as_str(), item.text)).collect()
}

#[test]
fn equal_capabilities_have_one_hash_however_they_are_written() {
    let before = of(&manifest(|_| ()));
    let after = of(&manifest(|manifest| {
        let has = &mut manifest["capabilities"];
        has["http"].as_array_mut().unwrap().reverse();
        has["http"][1]["origin"] = json!("https://API.example.net:443/");
        has["http"][1]["methods"] = json!(["GET", "POST"]);
        has["kv"] = json!({ "bytes": 1_048_576 });
        has["fabric"]["call"].as_array_mut().unwrap().reverse();
        manifest["version"] = json!("2.0.0");
    }));
    assert_eq!(before.canonical_json(), after.canonical_json());
    assert_eq!((before.hash().len(), before.hash()), (64, after.hash()));
    assert_eq!(serde_json::from_str::<Grant>(&before.canonical_json()).unwrap(), before);
    assert_eq!(
        before.canonical_json(),
        concat!(
            r#"{"actions":[{"effect":"stage","id":"isolate","permission":null},{"effect":"outward","id":"send","permission":"plugin.acme-alerts.send"}],"#,
            r#""events":["plugin.acme-alerts.raised"],"fabric":["inventory.device.find","network.vlan.create"],"#,
            r#""hooks":[{"effect":"outward","name":"answers","proof":"signed by 'signing-secret' within 300 s"}],"#,
            r#""http":[{"methods":["GET","POST"],"name":"api","origin":{"fixed":"https://api.example.net:443"},"paths":["/v1/*","/v1/me"],"private":false},"#,
            r#"{"methods":["GET"],"name":"wiki","origin":{"setting":"server-url"},"paths":["/wiki/**"],"private":true}],"#,
            r#""kv-bytes":1048576,"limits":{"cpu-ms":500,"memory-mib":64,"parallel":4,"request-bytes":1048576,"requests":64},"schedule-s":300,"#,
            r#""secrets":[{"name":"api-key","places":["bearer","header:x-key","json:/auth/key"],"target":"api"}],"#,
            r#""tools":[{"id":"look-up","permission":"plugin.acme-alerts.send"}],"#,
            r#""triggers":[{"effect":"stage","events":[],"id":"nightly"},{"effect":"outward","events":["device.*"],"id":"outage"}]}"#
        )
    );
}

#[test]
fn items_are_in_words_and_high_risks_come_first() {
    assert_eq!(
        shown(&of(&manifest(|_| ())).items(reads)),
        [
            "high: sends POST requests to 'api' (https://api.example.net:443)",
            "high: asks 'api' (https://api.example.net:443) for /v1/*",
            "high: reaches 'wiki' (the address in the organization's setting 'server-url') also in private networks",
            "high: asks 'wiki' (the address in the organization's setting 'server-url') for /wiki/**",
            "high: puts the secret 'api-key' into requests to 'api': as a bearer token",
            "high: puts the secret 'api-key' into requests to 'api': in the header 'x-key'",
            "high: puts the secret 'api-key' into requests to 'api': in the JSON body at '/auth/key'",
            "high: calls the operation 'network.vlan.create', which may change something",
            "high: stages changes by the action 'isolate'",
            "high: acts at its own targets by the action 'send'",
            "high: stages changes by the trigger 'nightly'",
            "high: is told of events of the type 'device.*', by the trigger 'outage'",
            "high: acts at its own targets by the trigger 'outage'",
            "high: is called from outside at the hook 'answers', by requests with a proof (signed by 'signing-secret' within 300 s)",
            "high: acts at its own targets by the hook 'answers'",
            "low: sends GET requests to 'api' (https://api.example.net:443)",
            "low: asks 'api' (https://api.example.net:443) for /v1/me",
            "low: sends GET requests to 'wiki' (the address in the organization's setting 'server-url')",
            "low: calls the operation 'inventory.device.find', which reads",
            "low: offers the action 'isolate' to everyone who may use the Fabric",
            "low: offers the action 'send' to those with 'plugin.acme-alerts.send'",
            "low: runs the trigger 'nightly' by itself",
            "low: runs the trigger 'outage' by itself",
            "low: offers the tool 'look-up' to those with 'plugin.acme-alerts.send'",
            "low: sets timers, each of which comes at most every 300 s",
            "low: emits events of the type 'plugin.acme-alerts.raised'",
            "low: keeps up to 1048576 bytes for each organization",
            "low: uses up to 64 MiB of memory in a call",
            "low: uses up to 500 ms of a processor in a call",
            "low: sends up to 64 requests in a call",
            "low: sends up to 4 requests at once to a target",
            "low: sends up to 1048576 bytes in a request",
        ]
    );
    let harmless = of(&manifest(|manifest| {
        for key in ["actions", "triggers", "tools", "hooks"] {
            manifest[key] = json!([]);
        }
        manifest["capabilities"] = json!({ "http": [
            { "name": "api", "origin": "https://api.example.net", "methods": ["GET"], "paths": ["/v1/me"] },
        ] });
    }));
    assert!(harmless.items(reads).iter().all(|item| item.risk == Risk::Low), "{harmless:?}");
}

/// The grant with this one value changed.
fn with(pointer: &str, value: Value) -> Grant {
    of(&manifest(|manifest| {
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        match manifest.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
            parent => parent[last] = value,
        }
    }))
}

#[test]
fn everything_more_shows_in_the_difference() {
    let old = of(&manifest(|_| ()));
    assert_eq!(difference(&old, &old, reads), Difference::default());
    for (pointer, value) in [
        ("/capabilities/http/0/name", json!("other")),
        ("/capabilities/http/0/origin", json!("https://api.example.net:8443")),
        ("/capabilities/http/0/origin", json!({ "setting": "server-url" })),
        ("/capabilities/http/0/methods", json!(["GET", "PUT"])),
        ("/capabilities/http/0/paths", json!(["/v2/*"])),
        ("/capabilities/http/0/private", json!(true)),
        ("/capabilities/secrets/0/name", json!("other")),
        ("/capabilities/secrets/0/target", json!("wiki")),
        ("/capabilities/secrets/0/places", json!(["query:key"])),
        ("/capabilities/events/emit", json!(["plugin.acme-alerts.other"])),
        ("/capabilities/fabric/call", json!(["fabric.notify"])),
        ("/capabilities/kv/bytes", json!(1_048_577)),
        ("/actions/0/id", json!("other")),
        ("/actions/0/permission", Value::Null),
        ("/actions/0/permission", json!("plugin.acme-alerts.other")),
        ("/actions/0/effect", json!("stage")),
        ("/actions/1/effect", json!("outward")),
        ("/capabilities/schedule", json!({ "min-interval-s": 299 })),
        ("/triggers/0/events", json!(["device.*", "link.down"])),
        ("/triggers/0/effect", json!("stage")),
        ("/triggers/1/id", json!("other")),
        ("/tools/0/id", json!("other")),
        ("/tools/0/permission", Value::Null),
        ("/hooks/0/name", json!("other")),
        ("/hooks/0/effect", json!("stage")),
        ("/hooks/0/signature/secret", json!("other")),
        ("/hooks/0/signature/timestamp/tolerance-s", json!(301)),
        ("/hooks/0/signature/scheme", json!("token")),
        ("/limits", json!({ "cpu-ms": 501 })),
        ("/limits", json!({ "memory-mib": 65 })),
        ("/limits", json!({ "requests": 65 })),
        ("/limits", json!({ "parallel": 5 })),
        ("/limits", json!({ "request-bytes": 1_048_577 })),
    ] {
        let new = with(pointer, value.clone());
        assert_ne!(new.hash(), old.hash(), "{pointer} {value}");
        assert!(!difference(&old, &new, reads).added.is_empty(), "{pointer} {value}");
    }
}

#[test]
fn what_is_less_adds_nothing() {
    let old = of(&manifest(|_| ()));
    for (pointer, value, removed) in [
        ("/capabilities/http/0/methods", json!(["GET"]), "sends POST requests to"),
        ("/capabilities/http/0/paths", json!(["/v1/me"]), "for /v1/*"),
        ("/capabilities/http/1/private", json!(false), "private networks"),
        ("/capabilities/secrets/0/places", json!(["bearer"]), "'x-key'"),
        ("/capabilities/fabric/call", json!(["inventory.device.find"]), "network.vlan.create"),
        ("/capabilities/kv", Value::Null, "keeps up to 1048576 bytes"),
        ("/capabilities/kv/bytes", json!(7), "keeps up to 1048576 bytes"),
        ("/capabilities/schedule", json!({ "min-interval-s": 301 }), "every 300 s"),
        ("/triggers/0/events", json!([]), "events of the type 'device.*'"),
        ("/hooks", json!([]), "at the hook 'answers'"),
        ("/actions/0/effect", json!("read"), "acts at its own targets by the action 'send'"),
        ("/actions/1/permission", json!("plugin.acme-alerts.send"), "'isolate' to everyone"),
        ("/limits", json!({ "cpu-ms": 499 }), "500 ms"),
    ] {
        let new = with(pointer, value.clone());
        assert_ne!(new.hash(), old.hash(), "{pointer} {value}");
        let difference = difference(&old, &new, reads);
        assert_eq!(shown(&difference.added), Vec::<String>::new(), "{pointer} {value}");
        assert!(shown(&difference.removed).join(" ").contains(removed), "{difference:?}");
    }
}
