use serde_json::{Value, json};

use super::check_reads;
use crate::description::{Description, Filled};

/// An adapter with a channel of each transport.
pub(crate) fn whole() -> Value {
    json!({
        "schema": 1, "id": "acme-switch", "version": "1.0.0", "kind": "adapter", "api": "1.1",
        "name": "ACME switches", "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm",
        "files": [{ "path": "component.wasm", "size": 1, "sha256": "0".repeat(64) }],
        "capabilities": { "controller-http": true },
        "credentials": { "web": { "title": "Web", "fields": { "password": "secret" } } },
        "auth": { "main": {
            "login": [{
                "request": { "method": "POST", "path": "/login", "effect": "session", "json": { "p": "{{secret.password}}" } },
                "expect": { "status": [200] },
                "capture": [
                    { "as": "token", "from": { "json": "/token" } },
                    { "as": "home", "from": { "json": "/home" }, "expose": true }
                ]
            }],
            "apply": [{ "to": { "header": "X-Token" }, "value": "{{session.token}}" }],
            "ttl-s": 300
        } },
        "push": {
            "events": {
                "per": "site",
                "socket": { "ping-s": 15, "silence-s": 45 },
                "settle-ms": 150,
                "releases": { "from": "9.0" },
                "ways": [
                    { "when": { "setting": "login", "is": ["a"] }, "session": "main", "path": "/wss/{site}/a" },
                    { "session": "main", "path": "/wss/{site}/b" }
                ],
                "unsupported": { "status": [404] },
                "rules": [
                    { "when": { "/meta/message": ["device:*"], "/n": [1, true, null] }, "reads": ["device", "port"] },
                    {
                        "when": { "/data/*/key": ["EVT_*_Lost_*"] }, "reads": ["client"], "every-s": 30, "again-s": 5,
                        "differs": { "by": "/data/*/mac", "of": ["/state"] }
                    }
                ]
            },
            "leases": {
                "stream": { "format": "sse", "silence-s": 60, "renew-s": 20 },
                "each": { "path": "/list", "from": "", "like": "hostapd.*" },
                "ways": [{
                    "session": "main", "path": "/subscribe/{each}",
                    "apply": [{ "to": { "header": "Authorization" }, "value": "Bearer {{session.token}}" }]
                }],
                "rules": [{ "when": { "/event": ["*"] }, "reads": ["client"] }]
            },
            "tasks": {
                "watch": { "every-ms": 1000, "items": "/data", "key": "/upid", "of": ["/status"] },
                "ways": [{ "session": "main", "path": "/tasks" }],
                "rules": [{ "when": { "/type": ["qm*"] }, "reads": ["guest"] }]
            },
            "webhook": {
                "hook": { "proof": { "scheme": "token", "at": { "json": "/secret" } }, "quiet-s": 3600 },
                "site": { "at": "/Site", "is": "name" },
                "rules": [{ "when": { "/text/*": ["*line*"] }, "reads": ["device"] }]
            }
        }
    })
}

fn judge(manifest: &Value) -> Result<(), String> {
    crate::inspect(manifest.to_string().as_bytes()).map(drop).map_err(|error| error.to_string())
}

/// The manifest with this one value changed, below `push` or from the root where the pointer begins with `//`.
fn with(pointer: &str, value: Value) -> Value {
    let mut manifest = whole();
    let pointer = match pointer.strip_prefix('/') {
        Some(root) if root.starts_with('/') => root.to_owned(),
        _ => format!("/push{pointer}"),
    };
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match manifest.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        parent => parent[last] = value,
    }
    manifest
}

#[track_caller]
fn refused(pointer: &str, value: Value, words: &str) {
    let problem = judge(&with(pointer, value)).expect_err(words);
    assert!(problem.contains(words), "{pointer}: {problem}");
}

#[track_caller]
fn accepted(pointer: &str, value: Value) {
    assert_eq!(judge(&with(pointer, value)), Ok(()), "{pointer}");
}

#[test]
fn a_channel_of_each_transport_is_accepted() {
    assert_eq!(judge(&whole()), Ok(()));
}

#[test]
fn channels_are_of_an_adapter_of_the_interface_that_has_them() {
    refused("//api", json!("1.0"), "write \"api\": \"1.1\"");
    refused("//api", json!("1.2"), "supported: 1.0, 1.1");
    refused("//capabilities/controller-http", json!(false), "write \"controller-http\": true");
    let mut hook = with("//capabilities/controller-http", json!(false));
    hook["push"] = json!({ "webhook": hook["push"]["webhook"] });
    assert_eq!(judge(&hook), Ok(()), "a hook is not opened");
    let mut old = with("//api", json!("1.0"));
    old.as_object_mut().unwrap().remove("push");
    assert_eq!(judge(&old), Ok(()));
    let many = (0..17).map(|n| (format!("c-{n}"), whole()["push"]["tasks"].clone()));
    refused("//push", many.collect(), "16 entries are the most");
    refused("/Events", whole()["push"]["tasks"].clone(), "push 'Events': its name has 1 to 41 characters");
    refused("/secret", whole()["push"]["tasks"].clone(), "give it another name");
}

#[test]
fn a_channel_has_one_transport_within_its_bounds() {
    let socket = json!({ "ping-s": 15, "silence-s": 45 });
    refused(
        "/tasks/socket",
        socket,
        "exactly one of 'socket', 'stream', 'watch' and 'hook'; it has [socket, watch]",
    );
    refused("/tasks/watch", Value::Null, "it has []");
    refused("/tasks/other", json!(1), "unknown field `other`");
    for (pointer, value, words) in [
        ("/events/socket/ping-s", 4, "'socket.ping-s' is 4; 5 to 120 is accepted"),
        ("/events/socket/silence-s", 15, "'socket.silence-s' is 15; 16 to 600 is accepted"),
        ("/leases/stream/silence-s", 4, "5 to 3600"),
        ("/leases/stream/renew-s", 3_601, "'stream.renew-s' is 3601"),
        ("/tasks/watch/every-ms", 999, "'watch.every-ms' is 999; 1000 to 60000 is accepted"),
        ("/webhook/hook/quiet-s", 59, "'hook.quiet-s' is 59"),
        ("/events/settle-ms", 1_001, "'settle-ms' is 1001; 0 to 1000 is accepted"),
    ] {
        refused(pointer, json!(value), words);
    }
    accepted("/events/settle-ms", json!(0));
    refused("/leases/stream/format", json!("text"), "unknown variant `text`");
    refused("/tasks/watch/items", json!("data"), "'watch.items' has 'data', which is no JSON pointer");
    refused("/tasks/watch/key", json!("/a/*"), "it names one place, without '*'");
    refused("/tasks/watch/of", json!([]), "'watch.of' has 0 pointers; 1 to 16 are accepted");
    refused("/events/releases", json!({}), "releases: a range of releases needs 'from' or 'to'");
}

#[test]
fn a_way_is_a_request_that_can_be_built() {
    refused("/events/ways", json!([]), "it has 0 entries in 'ways'; 1 to 8 are accepted");
    let always = json!({ "session": "main", "path": "/wss/{site}" });
    refused("/events/ways/0", always, "only the last one of 'ways' may be without it");
    refused("/events/ways/0/when", json!({ "is": [1] }), "it names a 'secret' or a 'setting'");
    refused("/events/ways/1/session", json!("other"), "which 'auth' does not declare; it declares [main]");
    refused("/events/ways/1/path", json!("wss/{site}"), "it starts with one '/'");
    refused("/events/ways/1/path", json!("/wss"), "'path' has {site} where 'per' is 'site'");
    refused("/tasks/ways/0/path", json!("/wss/{site}"), "'path' has {site} only where 'per' is 'site'");
    refused("/tasks/ways/0/path", json!("/wss/{each}"), "'path' has {each} only where 'each' is there");
    refused("/leases/ways/0/path", json!("/wss"), "'path' has {each} where 'each' is there");
    refused("/tasks/ways/0/path", json!("/wss/{name}"), "{site} and {each} are the only placeholders");
    refused("/tasks/ways/0/method", json!("POST"), "unknown field `method`");
    let apply = |to: Value, value: &str| json!([{ "to": to, "value": value }]);
    let at = "/leases/ways/0/apply";
    refused(at, apply(json!({ "header": "X-A" }), "{{session.other}}"), "no earlier step captures 'other'");
    refused(at, apply(json!({ "header": "X-A" }), "{{session.home}}"), "'home' carries the session");
    refused(at, apply(json!({ "header": "X-A" }), "{{secret.api-key}}"), "has no 'api-key'");
    refused(at, apply(json!({ "header": "Upgrade" }), "1"), "belongs to the connection");
    refused(at, apply(json!({ "form-field": "a" }), "1"), "puts nothing into a body");
    refused(at, json!([{ "to": { "query": "a" }, "value": "1", "methods": ["GET"] }]), "has no 'methods'");
    accepted(at, apply(json!({ "query": "token" }), "{{secret.password}}"));
    refused("/events/unsupported", json!({}), "'unsupported' has no condition");
    let mut lines = with("/leases/unsupported", json!({ "json": { "/code": [4] } }));
    assert_eq!(judge(&lines), Ok(()));
    lines["push"]["leases"]["stream"]["format"] = json!("json-lines");
    assert!(judge(&lines).unwrap_err().contains("whose lines are messages"));
}

#[test]
fn objects_with_a_connection_each_are_listed_by_a_read() {
    refused("/leases/each/path", json!("list"), "'each.path' is 'list'");
    refused("/leases/each/path", json!("/list/{each}"), "{each}");
    refused("/leases/each/from", json!("a"), "'each.from' has 'a'");
    refused("/leases/each/like", json!("a*b*c*"), "a text has 2 '*' at most");
    let each = json!({ "path": "/list", "from": "" });
    let mut watch = with("/tasks/each", each);
    watch["push"]["tasks"]["ways"][0]["path"] = json!("/tasks/{each}");
    assert!(judge(&watch).unwrap_err().contains("'each' is of a 'socket' or a 'stream'"));
    let mut site = with("/leases/per", json!("site"));
    site["push"]["leases"]["ways"][0]["path"] = json!("/subscribe/{site}/{each}");
    site["push"]["leases"]["each"]["path"] = json!("/list/{site}");
    assert_eq!(judge(&site), Ok(()));
}

#[test]
fn a_hook_proves_itself_and_is_not_opened() {
    refused(
        "/webhook/ways",
        whole()["push"]["tasks"]["ways"].clone(),
        "'ways' is of channels that the host opens",
    );
    refused("/webhook/per", json!("site"), "'per' is of channels that the host opens");
    let proof = |proof: Value, words: &str| refused("/webhook/hook/proof", proof, words);
    proof(json!({ "scheme": "token", "at": { "json": "" } }), "names a place in the body");
    proof(json!({ "scheme": "token", "at": { "json": "/a/*" } }), "without '*'");
    proof(json!({ "scheme": "hmac-sha256", "at": { "json": "/a" } }), "a proof in the body is a token");
    proof(json!({ "scheme": "token", "at": { "header": "Host" } }), "belongs to the connection");
    proof(
        json!({ "scheme": "token", "at": { "header": "X-T" }, "signed": "{body}" }),
        "a token signs nothing",
    );
    let signed = json!({ "scheme": "hmac-sha256", "at": { "header": "X-Signature" }, "prefix": "sha256=" });
    accepted("/webhook/hook/proof", signed);
    refused("/events/site", json!({ "at": "/site", "is": "id" }), "each site has a channel of its own");
    refused("/webhook/site/at", json!("site"), "'site.at' has 'site'");
    refused("/webhook/site/is", json!("label"), "unknown variant `label`");
}

#[test]
fn a_rule_can_fit_and_says_what_is_read() {
    refused("/events/rules", json!([]), "it has 0 rules; 1 to 64 are accepted");
    let rule = whole()["push"]["events"]["rules"][0].clone();
    refused("/events/rules", vec![rule; 65].into(), "it has 65 rules");
    let at = "/events/rules/0/when";
    refused(at, json!({}), "rule 1: 'when' has 0 conditions; 1 to 8 are accepted");
    refused(at, json!({ "a": [1] }), "'when' has 'a', which is no JSON pointer");
    refused(at, json!({ "/*/*/*": [1] }), "with 3 '*'; 2 is the most");
    refused(at, json!({ "/a": [] }), "'/a' has 0 values; 1 to 32 are accepted");
    refused(at, json!({ "/a": [[1]] }), "texts, numbers, true, false and null only");
    refused(at, json!({ "/a": ["*a*b*"] }), "a text has 2 '*' at most");
    refused(at, json!({ "/a": [""] }), "a text has 1 to 200 bytes");
    accepted(at, json!({ "": ["a"] }));
    let at = "/events/rules/1/reads";
    refused(at, json!([]), "rule 2: 'reads' has 0 entries");
    refused(at, json!(["devices"]), "'reads' has 'devices'; write 'device', or a kind of the model");
    refused(at, json!(["client", "client"]), "'reads' has 'client' twice");
    refused("/events/rules/1/every-s", json!(0), "'every-s' is 0; 1 to 3600 is accepted");
    refused("/events/rules/1/again-s", json!(61), "'again-s' is 61; 1 to 60 is accepted");
    let at = "/events/rules/1/differs";
    refused(
        at,
        json!({ "by": "/a/*/b/*", "of": ["/c"] }),
        "'differs.by' has '/a/*/b/*' with 2 '*'; 1 is the most",
    );
    refused(at, json!({ "by": "/a", "of": ["/c/*"] }), "'differs.of' has '/c/*'; it names one place");
    refused(at, json!({ "by": "/a", "of": [] }), "'differs.of' has 0 pointers");
    let differs = json!({ "by": "/a", "of": ["/b"] });
    refused("/tasks/rules/0/differs", differs.clone(), "a 'watch' compares its elements already");
    refused("/webhook/rules/0/differs", differs, "nothing is remembered between two calls");
}

#[test]
fn the_values_of_all_rules_of_a_channel_are_bounded() {
    let rule = |values: usize| {
        let values: Vec<usize> = (0..values).collect();
        json!({ "when": { "/a": values.clone(), "/*/*": values }, "reads": ["device"] })
    };
    let mut rules = vec![rule(32); 4];
    accepted("/events/rules", rules.clone().into());
    rules.push(rule(1));
    let words = "push 'events': 'when' of its rules has 258 values together; 256 are the most";
    refused("/events/rules", rules.into(), words);
}

#[test]
fn what_is_read_is_filled_by_the_package() {
    let manifest = serde_json::from_value(whole()).unwrap();
    let filled = |kinds: &[&str]| {
        let one = |kind: &&str| Filled {
            kind: (*kind).to_owned(),
            fields: Vec::new(),
            per: crate::description::Per::Site,
            writes: Vec::new(),
            releases: None,
            binding: None,
        };
        Description { model: kinds.iter().map(one).collect(), ..Description::default() }
    };
    assert!(check_reads(&manifest, &filled(&["port", "client", "guest"])).is_ok());
    let problem = check_reads(&manifest, &filled(&["port", "guest"])).unwrap_err().to_string();
    assert!(problem.contains("push 'events': a rule reads 'client', which 'model'"), "{problem}");
}
