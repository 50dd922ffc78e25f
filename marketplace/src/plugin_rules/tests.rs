use ed25519_dalek::SigningKey;
use serde_json::{Value, json};

use crate::keys::PublisherKey;
use crate::verify::Verified;
use crate::{DESCRIPTION, PackError, inspect, pack};

/// A plugin that uses everything.
pub(crate) fn template() -> Value {
    let object = || json!({ "type": "object", "additionalProperties": false });
    json!({
        "schema": 1, "id": "acme-alerts", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "ACME alerts",
        "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm",
        "capabilities": {
            "http": [
                { "name": "api", "origin": "https://api.example.net", "methods": ["POST", "GET"], "paths": ["/v1/*", "/v1/me"] },
                { "name": "wiki", "origin": { "setting": "server-url" }, "methods": ["GET"], "paths": ["/wiki/**"], "private": true },
            ],
            "secrets": [{ "name": "api-key", "target": "api", "places": ["header:X-Key", "bearer", "json:/auth/key"] }],
            "events": { "emit": ["plugin.acme-alerts.raised"], "subscribe": ["device.*"] },
            "fabric": { "call": ["network.vlan.create", "inventory.device.find"] },
            "kv": {},
            "schedule": { "min-interval-s": 300 },
        },
        "permissions": [{ "id": "plugin.acme-alerts.send", "title": "Send alerts" }],
        "event-types": [{ "type": "plugin.acme-alerts.raised", "title": "Raised", "payload-schema": object() }],
        "actions": [
            { "id": "send", "title": "Send", "description": "Sends an alert.", "effect": "outward",
              "permission": "plugin.acme-alerts.send", "params-schema": object(), "output-schema": object() },
            { "id": "isolate", "title": "Isolate", "effect": "stage", "params-schema": object(), "output-schema": object() },
        ],
        "triggers": [
            { "id": "outage", "title": "Outage", "description": "Tells of it.", "effect": "outward", "events": ["device.*"] },
            { "id": "nightly", "title": "Nightly", "effect": "stage" },
        ],
        "tools": [{
            "id": "look-up", "title": "Look up", "description": "Says what is known.", "permission": "plugin.acme-alerts.send",
            "params-schema": object(), "output-schema": object(),
        }],
        "hooks": [{
            "name": "answers", "title": "Answers", "effect": "outward",
            "signature": {
                "scheme": "hmac-sha256", "secret": "signing-secret", "header": "X-Signature", "prefix": "v0=",
                "signed": "v0:{header.X-Time}:{body}", "timestamp": { "header": "X-Time", "tolerance-s": 300 },
            },
        }],
        "config-schema": { "type": "object", "properties": { "server-url": { "type": "string", "format": "uri" } } },
    })
}

fn files(name: &str) -> std::collections::BTreeMap<String, Vec<u8>> {
    let component = ("component.wasm".to_owned(), b"\0asm\x0d\0\x01\0body".to_vec());
    let other = (name.to_owned(), b"{\"areas\": []}".to_vec());
    std::iter::once(component).chain((!name.is_empty()).then_some(other)).collect()
}

fn packed(manifest: &Value, file: &str) -> Result<Verified, PackError> {
    let key = PublisherKey::new("acme", SigningKey::from_bytes(&[1; 32])).unwrap();
    let files = pack(manifest.to_string().as_bytes(), files(file), &key)?;
    Ok(Verified::from_files(files, &[key.trusted()])?)
}

/// The plugin with this one value changed is refused with this text in the reason.
#[track_caller]
fn rule(pointer: &str, value: Value, expected: &str) {
    refused(&with(pointer, value), expected);
}

fn with(pointer: &str, value: Value) -> Value {
    let mut manifest = template();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match manifest.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        parent => parent[last] = value,
    }
    manifest
}

#[track_caller]
fn refused(manifest: &Value, expected: &str) {
    let text = packed(manifest, "").expect_err(expected).to_string();
    assert!(text.contains(expected), "expected '{expected}' in: {text}");
}

#[track_caller]
fn accepted(pointer: &str, value: Value) {
    packed(&with(pointer, value), "").expect("it follows the rules");
}

#[test]
fn a_sound_plugin_is_accepted_and_has_no_description() {
    let opened = packed(&template(), "").unwrap();
    assert_eq!(opened.manifest().action("send").unwrap().title, "Send");
    assert!(opened.description().features.is_empty());
    let refused = packed(&template(), DESCRIPTION).unwrap_err().to_string();
    assert!(refused.contains("'description.json' does not belong"), "{refused}");
    let mut listed = template();
    listed["files"] = json!([{ "path": "component.wasm", "size": 1, "sha256": "0".repeat(64) }]);
    assert_eq!(inspect(listed.to_string().as_bytes()).unwrap().actions.len(), 2);
}

#[test]
fn a_package_has_nothing_of_the_other_kind() {
    for (pointer, value) in [
        ("/capabilities/controller-http", json!(true)),
        (
            "/auth",
            json!({ "main": { "apply": [{ "to": { "header": "X-Key" }, "value": "{{secret.api-key}}" }], "ttl-s": 60 } }),
        ),
        ("/credentials", json!({ "web": { "title": "Web", "fields": { "password": "secret" } } })),
        ("/reads", json!([{ "method": "POST", "path": "/rpc", "json": { "/op": ["get"] } }])),
        ("/secret-fields", json!(["password"])),
        ("/pace", json!({ "read-gap-ms": 10 })),
        (
            "/push",
            json!({ "tasks": {
            "watch": { "every-ms": 1000, "items": "", "key": "/id", "of": ["/status"] },
            "ways": [{ "session": "main", "path": "/tasks" }],
            "rules": [{ "when": { "/id": ["*"] }, "reads": ["device"] }]
        } }),
        ),
    ] {
        let key = pointer.trim_start_matches('/').replace('/', ".");
        rule(pointer, value, &format!("'{key}' does not belong to a package of kind 'plugin'"));
    }
    let adapter = |key: &str, value: Value| {
        let mut manifest = json!({
            "schema": 1, "id": "acme-switch", "version": "1.0.0", "kind": "adapter", "api": "1.0", "name": "ACME",
            "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm", "capabilities": {},
        });
        match key.split_once('.') {
            Some((parent, last)) => manifest[parent][last] = value,
            None => manifest[key] = value,
        }
        packed(&manifest, DESCRIPTION).unwrap_err().to_string()
    };
    for key in ["http", "events", "fabric", "kv"] {
        let key = format!("capabilities.{key}");
        let value = template().pointer(&format!("/{}", key.replace('.', "/"))).unwrap().clone();
        assert!(adapter(&key, value).contains("does not belong to a package of kind 'adapter'"), "{key}");
    }
    for key in ["permissions", "event-types", "actions", "triggers", "tools", "hooks"] {
        assert!(adapter(key, template()[key].clone()).contains("kind 'adapter'"), "{key}");
    }
    let text = adapter("capabilities.secrets", template()["capabilities"]["secrets"].clone());
    assert!(text.contains("an adapter writes true or false"), "{text}");
}

#[test]
fn what_calls_a_plugin_follows_the_rules() {
    let trigger =
        |key: &str, value: Value, expected: &str| rule(&format!("/triggers/0/{key}"), value, expected);
    trigger("id", json!("On"), "an id has 1 to 41 characters");
    trigger("id", json!("nightly"), "it is there twice");
    trigger("events", json!(["link.down"]), "'link.down' is not in 'capabilities.events.subscribe'");
    trigger("events", json!([]), "no trigger has it in its 'events'");
    trigger("title", json!(""), "trigger title");
    rule("/triggers", json!([]), "no trigger has it");
    rule("/capabilities/schedule", Value::Null, "nothing calls it");
    for (pattern, expected) in [
        ("*", "write a type such as"),
        ("device.*.up", "write a type such as"),
        ("Device.up", "write a type such as"),
        ("plugin.*", "events of plugins do not call triggers"),
        ("plugin.acme-alerts.raised", "events of plugins do not call triggers"),
    ] {
        rule("/capabilities/events/subscribe", json!([pattern]), expected);
    }
    for seconds in [0, 59, 31 * 86_400 + 1] {
        let schedule = json!({ "min-interval-s": seconds });
        rule("/capabilities/schedule", schedule, "60 to 2678400 seconds are accepted");
    }
    rule("/triggers", json!(vec![template()["triggers"][0].clone(); 51]), "50");
}

#[test]
fn tools_follow_the_rules() {
    let tool = |key: &str, value: Value, expected: &str| rule(&format!("/tools/0/{key}"), value, expected);
    tool("id", json!("send"), "an action has the same id");
    tool("id", json!("9"), "an id has 1 to 41 characters");
    tool("description", json!(""), "tool description");
    tool("permission", json!("plugin.acme-alerts.other"), "which 'permissions' does not declare");
    tool("params-schema", json!({ "type": "string" }), "it is of objects");
    tool("effect", json!("outward"), "unknown field `effect`");
    rule("/tools", json!(vec![template()["tools"][0].clone(); 21]), "20");
}

#[test]
fn hooks_follow_the_rules() {
    let hook = |key: &str, value: Value, expected: &str| rule(&format!("/hooks/0/{key}"), value, expected);
    hook("name", json!("a/b"), "a name has 1 to 41 characters");
    hook("effect", json!("write"), "unknown variant");
    let signed = |key: &str, value: Value, expected: &str| {
        rule(&format!("/hooks/0/signature/{key}"), value, expected);
    };
    signed("secret", json!("api-key"), "is one of 'capabilities.secrets'");
    signed("secret", json!("A b"), "has no name of a-z");
    signed("scheme", json!("token"), "a token signs nothing");
    signed("scheme", json!("none"), "unknown variant");
    signed("header", json!("transfer-encoding"), "belongs to the connection");
    signed("signed", json!("v0:{header.x-time}"), "has to have {body} once");
    signed("signed", json!("{body}{body}"), "has to have {body} once");
    signed("signed", json!("{header.x-time}{path}{body}"), "'{path}' is not known");
    signed("signed", json!("{body"), "without a '}'");
    signed("signed", json!("{body}"), "which is not signed");
    signed("timestamp", json!({ "header": "x-time", "tolerance-s": 901 }), "is not 1 to 900");
    accepted("/hooks/0/signature", json!({ "scheme": "token", "secret": "hook-token", "header": "X-Token" }));
    rule("/hooks", json!(vec![template()["hooks"][0].clone(); 9]), "8");
}

#[test]
fn targets_follow_the_rules() {
    let target = "/capabilities/http/0";
    for (key, value, expected) in [
        ("name", json!("Api"), "a name has 1 to 32 characters"),
        ("name", json!("x".repeat(33)), "a name has 1 to 32 characters"),
        ("name", json!("wiki"), "it is there twice"),
        ("origin", json!("https://*.example.net"), "a wildcard is not accepted"),
        ("origin", json!("http://api.example.net"), "http is for targets with \"private\": true"),
        ("origin", json!("ftp://api.example.net"), "its scheme is https"),
        ("origin", json!("https://u:p@api.example.net"), "without user, path or query"),
        ("origin", json!("https://api.example.net/v1"), "without user, path or query"),
        ("origin", json!("https://api.example.net?x=1"), "without user, path or query"),
        ("origin", json!("api.example.net"), "write it as https://host"),
        ("origin", json!(7), "an origin is a text"),
        ("origin", json!({ "setting": "other" }), "has no property 'other'"),
        ("methods", json!([]), "it has no methods"),
        ("methods", json!(["GET", "GET"]), "a method is there twice"),
        ("methods", json!(["CONNECT"]), "'CONNECT' is no method"),
        ("paths", json!([]), "it has no paths"),
        ("paths", json!(["v1"]), "starts with one '/'"),
        ("paths", json!(["/v1?x=1"]), "it has no query"),
        ("paths", json!(["/v1/a*"]), "'*' stands for one whole segment"),
        ("paths", json!(["/**/x"]), "'*' stands for one whole segment"),
        ("paths", json!(["/a/../b"]), "'.' and '..'"),
        ("paths", json!(vec!["/x"; 65]), "64 are the most"),
        ("tls", json!("any"), "unknown field `tls`"),
    ] {
        rule(&format!("{target}/{key}"), value, expected);
    }
    rule(
        "/capabilities/http",
        json!(vec![template()["capabilities"]["http"][0].clone(); 9]),
        "8 entries are the most",
    );
    rule("/config-schema/properties/server-url", json!({ "type": "string" }), "the format uri");
    accepted("/capabilities/http/1/origin", json!("http://10.0.0.1:8080"));
    accepted("/capabilities/http/0/paths", json!(["/", "/a/*/b", "/**"]));
}

#[test]
fn secrets_go_to_declared_targets_and_places() {
    let secret = "/capabilities/secrets/0";
    for (key, value, expected) in [
        ("name", json!("API"), "a name has 1 to 64 characters"),
        ("target", json!("other"), "which has [api, wiki]"),
        ("places", json!([]), "1 to 8 are accepted"),
        ("places", json!(["bearer", "bearer"]), "a place is there twice"),
        ("places", json!(["header:X-Key", "header:x-key"]), "a place is there twice"),
        ("places", json!(["body"]), "write bearer, basic-username"),
        ("places", json!(["bearer:x"]), "write bearer, basic-username"),
        ("places", json!(["header:Host"]), "belongs to the connection"),
        ("places", json!(["header:X-Forwarded-For"]), "use another header"),
        ("places", json!(["query:"]), "write bearer, basic-username"),
        ("places", json!(["json:auth"]), "write bearer, basic-username"),
    ] {
        rule(&format!("{secret}/{key}"), value, expected);
    }
    rule("/capabilities/secrets", json!(true), "a plugin lists each secret");
    let twice = template()["capabilities"]["secrets"][0].clone();
    rule("/capabilities/secrets", json!([twice, twice]), "it is there twice");
    accepted("/capabilities/secrets", json!(false));
    accepted(
        &format!("{secret}/places"),
        json!(["basic-username", "basic-password", "query:key", "form:key"]),
    );
}

#[test]
fn names_are_the_plugins_own() {
    for (pointer, value, expected) in [
        ("/permissions/0/id", json!("plugin.other.send"), "write plugin.acme-alerts.WORD"),
        ("/permissions/0/id", json!("plugin.acme-alerts.Send"), "write plugin.acme-alerts.WORD"),
        ("/permissions/0/id", json!("plugin.acme-alerts.a.b"), "write plugin.acme-alerts.WORD"),
        ("/permissions/0/title", json!(""), "permission title"),
        ("/event-types/0/type", json!("device.offline"), "not declared in 'event-types'"),
        ("/capabilities/events/emit", json!([]), "not in 'capabilities.events.emit'"),
        ("/capabilities/events/emit", json!(["plugin.acme-alerts.*"]), "not declared in 'event-types'"),
        ("/event-types/0/payload-schema", json!({}), "it is of objects"),
    ] {
        rule(pointer, value, expected);
    }
    let mut foreign = with("/event-types/0/type", json!("device.offline"));
    foreign["capabilities"]["events"]["emit"] = json!(["device.offline"]);
    refused(&foreign, "write plugin.acme-alerts.WORD");
}

#[test]
fn operations_are_named_exactly() {
    let call = |id: &str, expected: &str| rule("/capabilities/fabric/call", json!([id]), expected);
    call("network.*", "exact id");
    call("network", "an id is words");
    call("Network.vlan", "an id is words");
    call("network..vlan", "an id is words");
    call("plugin.acme-alerts.send", "cannot call the actions of plugins");
    rule("/capabilities/fabric/call", json!(["a.b", "a.b"]), "it is there twice");
    let many: Vec<String> = (0..65).map(|n| format!("a.b{n}")).collect();
    rule("/capabilities/fabric/call", json!(many), "64 entries are the most");
}

#[test]
fn templates_are_connections_that_use_the_plugin() {
    let connection =
        json!({ "source_event": "device.*", "steps": [{ "operation_id": "plugin.acme-alerts.send" }] });
    let one =
        |id: &str, connection: Value| json!([{ "id": id, "title": "Outages", "connection": connection }]);
    accepted("/templates", one("outages", connection.clone()));
    let event =
        json!({ "source_event": "plugin.acme-alerts.raised", "steps": [{ "operation_id": "fabric.log" }] });
    accepted("/templates", one("raised", event));
    let changed = |key: &str, value: Value| {
        let mut changed = connection.clone();
        changed[key] = value;
        one("outages", changed)
    };
    let step = |id: &str| json!([{ "operation_id": id }]);
    for (templates, expected) in [
        (one("Outages", connection.clone()), "an id has 1 to 41 characters"),
        (one("outages", json!([])), "the body of POST /fabric/connections, an object"),
        (changed("steps", json!([])), "has a 'source_event' and 'steps'"),
        (changed("source_event", json!("")), "has a 'source_event' and 'steps'"),
        (changed("steps", step("plugin.acme-alerts.other")), "is no action or tool of the manifest"),
        (changed("source_event", json!("plugin.acme-alerts.other")), "not declared in 'event-types'"),
        (changed("steps", step("fabric.log")), "it uses nothing of the plugin"),
        (changed("state", json!("enabled")), "'state', which is for the person"),
        (changed("name", json!("x".repeat(17_000))), "at most 16384 bytes"),
        (json!([{ "id": "a", "title": " ", "connection": connection }]), "template title"),
    ] {
        rule("/templates", templates, expected);
    }
    let many = |count: usize| {
        let all = (0..count).map(|n| one(&format!("t{n}"), connection.clone())[0].clone());
        Value::Array(all.collect())
    };
    accepted("/templates", many(20));
    rule("/templates", many(21), "20 entries are the most");
    let twice = Value::Array(vec![one("a", connection.clone())[0].clone(); 2]);
    rule("/templates", twice, "it is there twice");
}

#[test]
fn storage_is_bounded() {
    rule("/capabilities/kv/bytes", json!(0), "1 to 16777216 bytes");
    rule("/capabilities/kv/bytes", json!(16_777_217), "1 to 16777216 bytes");
    accepted("/capabilities/kv/bytes", json!(16_777_216));
}

#[test]
fn actions_follow_the_rules() {
    for (key, value, expected) in [
        ("id", json!("Send"), "an id has 1 to 41 characters"),
        ("id", json!("isolate"), "it is there twice"),
        ("title", json!(" "), "action title"),
        ("description", json!("x".repeat(1_001)), "action description"),
        ("effect", json!("write"), "unknown variant `write`"),
        ("permission", json!("plugin.acme-alerts.other"), "which 'permissions' does not declare"),
        ("params-schema", json!({ "type": "string" }), "params-schema: it is of objects"),
        (
            "params-schema",
            json!({ "type": "object", "properties": { "a": { "$ref": "https://x.test" } } }),
            "leaves the schema",
        ),
        ("output-schema", json!([]), "output-schema: it must be an object"),
        ("output-schema", json!({ "type": "object", "title": "x".repeat(70_000) }), "bytes"),
    ] {
        rule(&format!("/actions/0/{key}"), value, expected);
    }
    rule("/capabilities/fabric", json!({}), "names no operation that could stage");
    let action = |n: usize| {
        let mut action = template()["actions"][0].clone();
        action["id"] = json!(format!("send{n}"));
        action
    };
    rule("/actions", json!((0..51).map(action).collect::<Vec<_>>()), "50 entries are the most");
    accepted("/actions", json!((0..50).map(action).collect::<Vec<_>>()));
}
