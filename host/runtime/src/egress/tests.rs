//! Fixtures of the egress tests.

use heddle_marketplace::manifest::Manifest;
use http::Method;
use serde_json::json;

use super::request::{Body, Request};

pub(crate) fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "schema": 1, "id": "acme", "version": "1.0.0", "kind": "adapter", "api": "1.0", "name": "Acme",
        "publisher": "acme", "license": "Apache-2.0", "files": [], "component": "component.wasm",
        "capabilities": {"controller-http": true, "secrets": true},
        "auth": {"main": {
            "login": [{
                "request": {"method": "POST", "path": "/login", "effect": "session", "json": {"u": "{{secret.username}}", "p": "{{secret.password}}"}},
                "expect": {"status": [200], "json": {"/ok": [true]}},
                "denied": {"status": [403]},
                "capture": [{"as": "sid", "from": {"json": "/sid"}}, {"as": "device", "from": {"json": "/device"}, "expose": true}]
            }],
            "apply": [
                {"to": {"json-pointer": "/params/0"}, "value": "{{session.sid}}", "methods": ["POST"]},
                {"to": {"header": "x-token"}, "value": "{{session.sid}}", "methods": ["GET"]}
            ],
            "expired": [{"status": [401]}, {"status": [200], "json": {"/error/code": [-32002]}}],
            "expired-before-effect": true,
            "cookie-jar": true,
            "ttl-s": 300,
            "logout": {"method": "POST", "path": "/logout", "effect": "session", "json": {"params": ["sid"]}}
        }},
        "reads": [{"method": "POST", "path": "/rpc", "json": {"/params/1": ["config"], "/params/2": ["get", "list"]}}],
        "secret-fields": ["psk"]
    }))
    .unwrap()
}

pub(crate) fn request(method: Method, path: &str, body: Body) -> Request {
    Request { method, path: path.to_owned(), headers: Vec::new(), body, timeout: None, max_response: None }
}
