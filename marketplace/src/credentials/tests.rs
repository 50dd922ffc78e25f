use serde_json::{Value, json};

use super::*;

fn manifest() -> Value {
    json!({
        "schema": 1, "id": "acme-switch", "version": "1.0.0", "kind": "adapter", "api": "1.0",
        "name": "ACME switches", "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm",
        "files": [],
        "credentials": {
            "open-api": { "title": "Open API", "fields": { "client-id": "text", "client-secret": "secret" } },
            "web": { "title": "Web login", "fields": { "username": "text", "password": "secret", "otp": "secret" } },
        },
        "auth": {
            "open": {
                "credential": "open-api", "ttl-s": 60,
                "apply": [{ "to": { "basic": "{{secret.client-id}}" }, "value": "{{secret.client-secret}}" }],
            },
            "any": { "ttl-s": 60, "apply": [{ "to": { "header": "X-Key" }, "value": "{{secret.password}}" }] },
            "web": {
                "credential": "web", "ttl-s": 60,
                "login": [{
                    "when": { "secret": "client-id" },
                    "request": {
                        "method": "GET", "path": "/{{secret.client-id}}", "headers": { "X-User": "{{secret.username}}" },
                        "basic": { "username": "{{secret.username}}", "password": "{{secret.otp}}" },
                    },
                    "expect": { "status": [200] },
                }],
                "cookie-jar": true,
                "apply": [],
            },
        },
    })
}

fn parsed(manifest: Value) -> Manifest {
    serde_json::from_value(manifest).unwrap()
}

#[track_caller]
fn refused(pointer: &str, value: Value, words: &str) {
    let mut manifest = manifest();
    *manifest.pointer_mut(pointer).unwrap() = value;
    let problem = check(&parsed(manifest)).expect_err(words).to_string();
    assert!(problem.contains(words), "{pointer}: {problem}");
}

#[test]
fn shapes_name_fields_that_a_credential_can_have() {
    check(&parsed(manifest())).unwrap();
    let fields = |name: &str| json!({ name: "secret" });
    let at = "/credentials/open-api/fields";
    refused(at, fields("api_key"), "field 'api_key' is called 'api-key' in a manifest");
    refused(at, fields("Client"), "'Client' cannot name a field");
    refused(at, fields(&"a".repeat(65)), "cannot name a field");
    refused(at, json!({}), "it has 0 fields; 1 to 16 are accepted");
    refused(at, json!({ "password": "text" }), "field 'password' is always a secret");
    refused(at, json!({ "user": "text", "api-key": "text" }), "field 'api-key' is always a secret");
    refused("/credentials/open-api/title", json!(" "), "'title' has 1 to 80 characters");
    refused(
        "/credentials",
        json!({ "Web": { "title": "Web", "fields": { "a": "text" } } }),
        "begins with a letter",
    );
    let shape = json!({ "title": "Web", "fields": { "password": "secret" } });
    let many: serde_json::Map<String, Value> = (0..9).map(|n| (format!("s{n}"), shape.clone())).collect();
    refused("/credentials", Value::Object(many), "8 entries are the most");
}

#[test]
fn a_session_uses_fields_of_its_shape_in_every_place() {
    refused("/auth/open/credential", json!("oauth"), "names 'oauth', which 'credentials' does not declare");
    refused("/auth/open/apply/0/value", json!("{{secret.password}}"), "'{{secret.password}}' is used");
    refused("/auth/open/apply/0/to", json!({ "basic": "{{secret.username}}" }), "has no 'username'");
    refused("/auth/any/apply/0/value", json!("{{secret.api-key}}"), "has no 'api-key'");
    refused("/auth/web/login/0/when", json!({ "secret": "pin" }), "the field 'pin', which no shape");
    for (place, value) in [
        ("path", json!("/{{secret.client-secret}}")),
        ("headers", json!({ "X-User": "{{secret.client-secret}}" })),
        ("basic", json!({ "username": "{{secret.client-secret}}", "password": "x" })),
        ("basic", json!({ "username": "x", "password": "{{secret.client-secret}}" })),
    ] {
        refused(&format!("/auth/web/login/0/request/{place}"), value, "has no 'client-secret'");
    }
    for body in
        [json!({ "json": [{ "a": "{{secret.api-key}}" }] }), json!({ "form": { "a": "{{secret.api-key}}" } })]
    {
        let mut whole = manifest();
        for (key, value) in body.as_object().unwrap() {
            whole["auth"]["web"]["login"][0]["request"][key] = value.clone();
        }
        assert!(check(&parsed(whole)).is_err(), "{body}");
        let mut whole = manifest();
        let mut request = json!({ "method": "POST", "path": "/out", "effect": "session" });
        request.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        whole["auth"]["web"]["logout"] = request;
        assert!(check(&parsed(whole)).is_err(), "logout with {body}");
    }
}

#[test]
fn without_shapes_every_field_can_be_used_and_all_but_the_user_name_are_hidden() {
    let mut manifest = manifest();
    manifest["credentials"] = json!({});
    manifest["auth"]["open"].as_object_mut().unwrap().remove("credential");
    manifest["auth"]["web"].as_object_mut().unwrap().remove("credential");
    let manifest = parsed(manifest);
    check(&manifest).unwrap();
    assert!(manifest.takes_credential(&[]));
    let hidden = ["username", "password", "api-key", "client-id"].map(|field| manifest.hides_field(field));
    assert_eq!(hidden, [false, true, true, true]);
}

#[test]
fn a_field_is_hidden_where_a_shape_calls_it_a_secret() {
    let mut both = manifest();
    both["credentials"]["web"]["fields"]["client-id"] = json!("secret");
    let (manifest, both) = (parsed(manifest()), parsed(both));
    let fields = ["client-id", "client-secret", "username", "password", "api-key"];
    assert_eq!(fields.map(|field| manifest.hides_field(field)), [false, true, false, true, true]);
    assert!(both.hides_field("client-id"));
    // Also of a package that an earlier version took.
    let mut shown = self::manifest();
    for field in ["password", "api-key"] {
        shown["credentials"]["web"]["fields"][field] = json!("text");
        assert!(parsed(shown.clone()).hides_field(field), "{field}");
    }
}

#[test]
fn a_credential_completes_a_shape_with_all_of_its_fields() {
    let manifest = parsed(manifest());
    assert!(manifest.takes_credential(&["client-secret", "note", "client-id"]));
    assert!(!manifest.takes_credential(&["client-id", "username", "password"]));
    assert!(!manifest.takes_credential(&[]));
}
