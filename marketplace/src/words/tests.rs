use serde_json::json;

use super::*;

fn manifest(auth: Value, reads: Value) -> Manifest {
    serde_json::from_value(json!({
        "schema": 1, "id": "acme-switch", "version": "1.0.0", "kind": "adapter", "api": "1.0",
        "name": "ACME switches", "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm",
        "files": [], "auth": auth, "reads": reads,
    }))
    .unwrap()
}

#[test]
fn every_request_that_the_manifest_allows_has_a_line() {
    let auth = json!({ "main": {
        "login": [
            {
                "when": { "setting": "nonce" },
                "request": {
                    "method": "GET", "path": "/nonce", "headers": { "X-A": "1", "X-B": "2" },
                    "basic": { "username": "{{secret.username}}", "password": "{{secret.password}}" }
                },
                "expect": { "status": [200] }
            },
            {
                "request": { "method": "POST", "path": "/login", "effect": "session", "form": { "p": "{{secret.password}}" } },
                "expect": { "status": [200] },
                "capture": [{ "as": "site", "from": { "json": "/site" }, "expose": true }]
            }
        ],
        "apply": [{ "to": { "header": "X-Token" }, "value": "t", "methods": ["POST"] }],
        "ttl-s": 300,
        "renew": {
            "after-s": 200, "expect": { "status": [200] },
            "request": { "method": "POST", "path": "/renew", "effect": "session" }
        },
        "refresh": [{ "as": "csrf", "from": { "header": "X-CSRF" } }],
        "logout": { "method": "DELETE", "path": "/session", "effect": "session" }
    } });
    let reads = json!([
        { "method": "POST", "path": "/rpc", "json": { "/op": ["get", "list"], "/v": [1] } },
        { "method": "POST", "path": "/search", "only-reads": true },
        { "method": "POST", "path": "/cgi", "form": { "op": ["get", "list"] }, "query": { "page": ["*"] } },
    ]);
    let mut manifest = manifest(auth, reads);
    let shape = json!({ "title": "Web login", "fields": { "password": "secret", "username": "text" } });
    manifest.credentials.insert("web".to_owned(), serde_json::from_value(shape).unwrap());
    assert_eq!(
        in_words(&manifest),
        [
            "takes a credential: Web login (password, username)",
            "session 'main', login step 1 of 2, which may be left out: GET /nonce with Basic authorization with the headers X-A, X-B; reads",
            "session 'main', login step 2 of 2: POST /login with the form {\"p\":\"{{secret.password}}\"}; changes the session at the device",
            "session 'main', renewal: POST /renew; changes the session at the device",
            "session 'main', logout: DELETE /session; changes the session at the device",
            "session 'main' is sent in the header 'X-Token' of POST requests",
            "session 'main' takes 'csrf' from the answer's header 'X-CSRF' whenever one has it",
            "session 'main' shows the component '/site' of the JSON answer as 'site'",
            "counts as a read: POST /rpc where '/op' is \"get\" or \"list\" and '/v' is 1",
            "counts as a read: every POST /search, whatever it holds",
            "counts as a read: POST /cgi where the form field 'op' is get or list and the parameter 'page' is there",
        ]
    );
}

#[test]
fn a_line_cannot_look_like_another_one() {
    let reads = json!([{ "method": "POST", "path": "/a\u{202e}b", "json": { "/x": ["\n\u{1b}[2K"] } }]);
    let lines = in_words(&manifest(json!({}), reads));
    assert!(lines.iter().all(|line| line.chars().all(|c| c == ' ' || c.is_ascii_graphic())), "{lines:?}");
    assert!(lines[1].contains("/a\\u{202e}b"), "{lines:?}");
}

#[test]
fn a_plugin_shows_what_it_may_do_and_what_it_offers() {
    let mut manifest = crate::plugin_rules::tests::template();
    manifest["files"] = json!([]);
    manifest["capabilities"] = json!({ "kv": {}, "fabric": { "call": ["fabric.notify"] } });
    let mut manifest: Manifest = serde_json::from_value(manifest).unwrap();
    manifest.event_types.clear();
    assert_eq!(
        in_words(&manifest),
        [
            "high risk: calls the operation 'fabric.notify', which may change something",
            "high risk: stages changes by the action 'isolate'",
            "high risk: acts at its own targets by the action 'send'",
            "high risk: stages changes by the trigger 'nightly'",
            "high risk: is told of events of the type 'device.*', by the trigger 'outage'",
            "high risk: acts at its own targets by the trigger 'outage'",
            "high risk: is called from outside at the hook 'answers', by requests with a proof (signed by 'signing-secret' within 300 s)",
            "high risk: acts at its own targets by the hook 'answers'",
            "low risk: offers the action 'isolate' to everyone who may use the Fabric",
            "low risk: offers the action 'send' to those with 'plugin.acme-alerts.send'",
            "low risk: runs the trigger 'nightly' by itself",
            "low risk: runs the trigger 'outage' by itself",
            "low risk: offers the tool 'look-up' to those with 'plugin.acme-alerts.send'",
            "low risk: keeps up to 1048576 bytes for each organization",
            "low risk: uses up to 64 MiB of memory in a call",
            "low risk: uses up to 500 ms of a processor in a call",
            "low risk: sends up to 64 requests in a call",
            "low risk: sends up to 4 requests at once to a target",
            "low risk: sends up to 1048576 bytes in a request",
            "action 'send' (Send): changes something at its own targets; needs 'plugin.acme-alerts.send'",
            "action 'isolate' (Isolate): stages changes for review",
            "trigger 'outage' (Outage), by device.*: changes something at its own targets",
            "trigger 'nightly' (Nightly), by timers: stages changes for review",
            "tool 'look-up' (Look up): reads; needs 'plugin.acme-alerts.send'",
            "hook 'answers' (Answers): changes something at its own targets",
            "permission 'plugin.acme-alerts.send' (Send alerts)",
        ]
    );
    manifest.capabilities = serde_json::from_value(json!({})).unwrap();
    assert_eq!(in_words(&manifest)[0], "no capability: it computes and reaches nothing");
}

#[test]
fn every_channel_says_how_it_is_opened_and_what_it_has_read() {
    let mut manifest = manifest(json!({}), json!([]));
    let rules = json!([{ "when": { "/a": ["*"] }, "reads": ["device", "client"] }]);
    let push = json!({
        "events": {
            "per": "site", "socket": { "ping-s": 15, "silence-s": 45 }, "rules": rules,
            "each": { "path": "/list", "from": "" },
            "ways": [{
                "session": "main", "path": "/wss/{site}/{each}",
                "apply": [{ "to": { "header": "X-Token" }, "value": "t" }]
            }]
        },
        "tasks": {
            "watch": { "every-ms": 1000, "items": "/data", "key": "/id", "of": ["/status"] }, "rules": rules,
            "ways": [{ "session": "main", "path": "/tasks" }]
        },
        "webhook": {
            "hook": { "proof": { "scheme": "token", "at": { "json": "/secret" } }, "quiet-s": 3600 }, "rules": rules
        }
    });
    manifest.push = serde_json::from_value(push).unwrap();
    let lines = in_words(&manifest);
    assert_eq!(
        lines.iter().filter(|line| line.starts_with("channel")).collect::<Vec<_>>(),
        [
            "channel 'events' lists its objects: GET /list; reads",
            "channel 'events' keeps a WebSocket open: GET /wss/{site}/{each} in session 'main', for each site; reads",
            "channel 'events' is sent in the header 'X-Token'",
            "channel 'events' has read again: client, device",
            "channel 'tasks' asks every 1000 ms: GET /tasks in session 'main'; reads",
            "channel 'tasks' has read again: client, device",
            "channel 'webhook' is called by the controller, which proves itself by its secret at '/secret' of the body",
            "channel 'webhook' has read again: client, device",
        ]
    );
}
