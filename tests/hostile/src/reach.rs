//! Behaviours that ask the host for requests which it should not send, and
//! report what it answered.

use heddle_sdk::bindings::heddle::host::{http, secrets};
use heddle_sdk::{Auth, Body, Fault, FaultExt as _, Header, Host, Method, Place, Request, Response};
use serde_json::{Map, Value, json};

/// Paths that mean something else than they say, somewhere.
const PATHS: &[&str] = &[
    "",
    "read",
    "?op=read",
    "//evil.test/",
    "///evil.test/",
    "/../read",
    "/a/../read",
    "/a/..",
    "/./read",
    "/%2e%2e/read",
    "/a/%2E%2e/read",
    "/a/.%2e/read",
    "/a/%2e/read",
    "/a\\..\\read",
    "\\\\evil.test\\",
    "http://evil.test/read",
    "https://evil.test/read",
    "@evil.test/read",
    ":81/read",
    "/read#fragment",
    "/read\n",
    "/read\r\nHost: evil.test",
    "/read HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "/re\tad",
    "/re\0ad",
    "/re\x7fad",
];

/// Headers that only the host sets, or that break the message.
const HEADERS: &[(&str, &str)] = &[
    ("host", "evil.test"),
    ("HOST", "evil.test"),
    ("connection", "close"),
    ("keep-alive", "timeout=5"),
    ("proxy-authorization", "Basic eDp5"),
    ("proxy-connection", "close"),
    ("te", "trailers"),
    ("trailer", "x-late"),
    ("transfer-encoding", "chunked"),
    ("upgrade", "websocket"),
    ("content-length", "5"),
    ("Content-Length", "0"),
    ("expect", "100-continue"),
    ("cookie", "session=1"),
    ("Cookie", "session=1"),
    ("authorization", "Bearer x"),
    ("Authorization", "Bearer x"),
    ("x-injected", "a\r\nx-evil: 1"),
    ("x-injected", "a\nx-evil: 1"),
    ("x-injected", "a\0b"),
    ("x-evil: 1\r\nx-injected", "a"),
    ("x injected", "a"),
    ("x:injected", "a"),
    ("", "a"),
];

pub(crate) fn calm(host: &dyn Host) -> Value {
    outcome(host.send(Request::get("/read"), Auth::None))
}

/// What the description says of a kind and a feature, and of what it does not know.
pub(crate) fn bindings(host: &dyn Host) -> Value {
    let other =
        [host.kind_binding("spin"), host.kind_binding("hostile.lab.thing"), host.feature_binding("calm")];
    json!({
        "kind": host.kind_binding("calm"),
        "feature": host.feature_binding("hostile.lab.thing"),
        "other": other,
    })
}

/// The same, once the device has answered.
pub(crate) fn held_bindings(host: &dyn Host) -> Value {
    let answer = outcome(host.send(Request::get("/held"), Auth::None));
    json!({ "answer": answer, "bindings": bindings(host) })
}

pub(crate) fn request_flood(host: &dyn Host) -> Value {
    for sent in 0..1_000 {
        if let Err(fault) = host.send(Request::get("/read"), Auth::None) {
            return json!({ "sent": sent, "end": outcome(Err(fault)) });
        }
    }
    json!({ "sent": 1_000 })
}

pub(crate) fn request_flood_at_once(host: &dyn Host) -> Value {
    let requests = (0..600).map(|_| Request::get("/read")).collect();
    let answers = host.send_all(requests, Auth::None, u8::MAX);
    let sent = answers.iter().filter(|answer| answer.is_ok()).count();
    let end = answers.into_iter().find(Result::is_err).map(outcome);
    json!({ "sent": sent, "end": end })
}

/// Long waits in the host, and hardly any work of its own.
pub(crate) fn patience(host: &dyn Host) -> Value {
    for _ in 0..60 {
        if let Err(fault) = host.send(Request::get("/after-30-ms"), Auth::None) {
            return outcome(Err(fault));
        }
    }
    json!("waited")
}

pub(crate) fn paths(host: &dyn Host) -> Value {
    let tried = PATHS.iter().map(|path| {
        let answer = host.send(Request::get(*path), Auth::None);
        (path.escape_default().to_string(), outcome(answer))
    });
    Value::Object(tried.collect())
}

pub(crate) fn headers(host: &dyn Host) -> Value {
    let mut tried = Map::new();
    for (name, value) in HEADERS {
        let answer = host.send(with_header(Request::get("/read"), name, value), Auth::None);
        tried.insert(format!("{name}: {value}").escape_default().to_string(), outcome(answer));
    }
    let key = with_header(Request::get("/read"), "x-key", "mine");
    tried.insert("beside its secret".to_owned(), outcome(host.send(key, in_header())));
    let many = (0..65).fold(Request::get("/read"), |r, n| with_header(r, &format!("x-{n}"), "a"));
    tried.insert("65 headers".to_owned(), outcome(host.send(many, Auth::None)));
    let large = with_header(Request::get("/read"), "x-large", &"a".repeat(33 << 10));
    tried.insert("33 KiB".to_owned(), outcome(host.send(large, Auth::None)));
    Value::Object(tried)
}

/// Targets that the host never gave.
pub(crate) fn other_targets(_: &dyn Host) -> Value {
    let names = ["", "Controller", "http://evil.test", "169.254.169.254", "controller/.."];
    let tried = names.iter().map(|name| ((*name).to_owned(), json!(http::open(name).is_ok())));
    Value::Object(tried.collect())
}

pub(crate) fn writes_in_read(host: &dyn Host) -> Value {
    let read = json!({ "op": "read" });
    let bytes = |text: &str| Request {
        body: Body::Bytes(("application/json".to_owned(), text.as_bytes().to_vec())),
        ..Request::new(Method::Post, "/read")
    };
    let requests = [
        ("post elsewhere", Request::new(Method::Post, "/write").with_json(&read)),
        ("post without a body", Request::new(Method::Post, "/read")),
        ("post a write", Request::new(Method::Post, "/read").with_json(&json!({ "op": "write" }))),
        ("post with a query", Request::new(Method::Post, "/read?op=write").with_json(&read)),
        ("post below", Request::new(Method::Post, "/read/write").with_json(&read)),
        ("post with a slash", Request::new(Method::Post, "/read/").with_json(&read)),
        ("post encoded", Request::new(Method::Post, "/%72ead").with_json(&json!({ "op": "write" }))),
        ("post bytes", bytes("{\"op\":\"write\"}")),
        (
            "post a form",
            Request {
                body: Body::Form(vec![("op".to_owned(), "write".to_owned())]),
                ..Request::new(Method::Post, "/read")
            },
        ),
        ("put", Request::new(Method::Put, "/read").with_json(&read)),
        ("patch", Request::new(Method::Patch, "/read").with_json(&read)),
        ("delete", Request::new(Method::Delete, "/read")),
        (
            "override",
            with_header(
                Request::new(Method::Post, "/read").with_json(&read),
                "x-http-method-override",
                "DELETE",
            ),
        ),
        ("override a get", with_header(Request::get("/read"), "X-HTTP-Method-Override", "DELETE")),
        ("get with a body", Request::get("/read").with_json(&json!({ "op": "write" }))),
    ];
    let mut tried = Map::new();
    tried.insert("a read".to_owned(), {
        outcome(host.send(Request::new(Method::Post, "/read").with_json(&read), Auth::None))
    });
    for (name, request) in requests {
        let at_once = host.send_all(vec![request.clone()], Auth::None, 1).into_iter().next();
        tried.insert(format!("{name}, at once"), at_once.map_or(Value::Null, outcome));
        tried.insert(name.to_owned(), outcome(host.send(request, Auth::None)));
    }
    Value::Object(tried)
}

pub(crate) fn batches(host: &dyn Host) -> Value {
    let post =
        |body: Value| outcome(host.send(Request::new(Method::Post, "/read").with_json(&body), Auth::None));
    json!({
        "reads": post(json!([{ "op": "read" }, { "op": "read" }])),
        "second writes": post(json!([{ "op": "read" }, { "op": "write" }])),
        "nested": post(json!([{ "op": "read" }, [{ "op": "write" }]])),
        "with a number": post(json!([{ "op": "read" }, 1])),
        "empty": post(json!([])),
    })
}

/// Bodies that two parsers may understand differently.
pub(crate) fn duplicate_keys(host: &dyn Host) -> Value {
    let bodies = [
        r#"{"op":"read","op":"write"}"#,
        r#"{"op":"write","op":"read"}"#,
        r#"{"op":"read","\u006fp":"write"}"#,
        r#"[{"op":"read","op":"write"}]"#,
        r#"{"op":"read"}{"op":"write"}"#,
        r#"{"op":"read","more":{"a":1,"a":2}}"#,
        r#"{"$serde_json::private::RawValue":"{\"op\":\"write\"}"}"#,
        r#"{"op":"read","#,
        "",
    ];
    let tried = bodies.iter().map(|body| {
        let request = Request { body: Body::Json((*body).to_owned()), ..Request::new(Method::Post, "/read") };
        ((*body).to_owned(), outcome(host.send(request, Auth::None)))
    });
    Value::Object(tried.collect())
}

/// What it gets to know of a secret, with the device's help.
pub(crate) fn secret(host: &dyn Host) -> Value {
    let name = secrets::get("password").map(|secret| secret.name());
    let unknown = secrets::get("master-key").is_some();
    let basic = Auth::Basic { username: "username".into(), password: "password".into() };
    let show = |path, auth| match host.send(Request::get(path), auth) {
        Ok(response) => shown(&response),
        Err(fault) => outcome(Err(fault)),
    };
    json!({
        "name": name,
        "unknown": unknown,
        "echo": show("/echo", in_header()),
        "basic": show("/headers", basic),
        "later": show("/last", Auth::None),
    })
}

/// An answer with everything that the guest sees of it.
fn shown(response: &Response) -> Value {
    let headers = response.headers.iter().map(|header| String::from_utf8_lossy(&header.value));
    json!({ "body": String::from_utf8_lossy(&response.body), "headers": headers.collect::<Vec<_>>() })
}

/// Places for a secret that would change what was checked.
pub(crate) fn secret_places(host: &dyn Host) -> Value {
    let read = || Request::new(Method::Post, "/read").with_json(&json!({ "op": "read" }));
    let batch = Request::new(Method::Post, "/read").with_json(&json!([{ "op": "read" }]));
    let header = |name: &str, prefix: &str| Place::Header((name.to_owned(), prefix.to_owned()));
    let requests = [
        ("the operation", read(), Place::JsonPointer("/op".to_owned())),
        ("the operation of a batch", batch, Place::JsonPointer("/op".to_owned())),
        ("the host", read(), header("Host", "evil.test")),
        ("the method", read(), header("X-HTTP-Method-Override", "DELETE")),
        ("the range", read(), header("Range", "bytes=0-3,")),
        ("the coding", read(), header("Accept-Encoding", "br,")),
        ("the content type", read(), header("Content-Type", "text/plain;")),
        ("the length", read(), header("Content-Length", "0")),
        ("a name with a line break", read(), header("x-a\r\nx-b", "")),
    ];
    let tried = requests.into_iter().map(|(name, request, place)| {
        (name.to_owned(), outcome(host.send(request, Auth::Inject(vec![(place, "password".into())]))))
    });
    Value::Object(tried.collect())
}

/// What it gets to know of its session, with the device's help.
pub(crate) fn session(host: &dyn Host) -> Value {
    let read = match host.send(Request::get("/login-body"), Auth::session("main")) {
        Ok(response) => shown(&response),
        Err(fault) => outcome(Err(fault)),
    };
    let facts = match host.session_facts("main") {
        Ok(facts) => facts.into_iter().map(|(name, value)| (name, json!(value))).collect(),
        Err(fault) => outcome(Err(fault)),
    };
    host.reset_session("main");
    json!({ "facts": facts, "read": read })
}

pub(crate) fn gzip_bomb(host: &dyn Host) -> Value {
    outcome(host.send(Request::get("/bomb"), Auth::None))
}

pub(crate) fn endless_body(host: &dyn Host) -> Value {
    outcome(host.send(Request::get("/endless"), Auth::None))
}

pub(crate) fn slow_body(host: &dyn Host) -> Value {
    outcome(host.send(Request::get("/slow").with_timeout_ms(300), Auth::None))
}

pub(crate) fn redirect(host: &dyn Host) -> Value {
    outcome(host.send(Request::get("/redirect"), Auth::None))
}

/// The credential's password in a header of its own.
fn in_header() -> Auth {
    Auth::Inject(vec![(Place::Header(("x-key".to_owned(), String::new())), "password".into())])
}

pub(crate) fn with_header(mut request: Request, name: &str, value: &str) -> Request {
    request.headers.push(Header { name: name.to_owned(), value: value.as_bytes().to_vec() });
    request
}

/// An answer or a refusal, as JSON that a test reads.
pub(crate) fn outcome(answer: Result<Response, Fault>) -> Value {
    match answer {
        Ok(response) => {
            let location =
                response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("location"));
            json!({
                "status": response.status,
                "bytes": response.body.len(),
                "location": location.map(|header| String::from_utf8_lossy(&header.value)),
            })
        }
        Err(fault) => {
            let info = fault.info();
            json!({ "fault": fault.word(), "code": info.code, "message": info.message })
        }
    }
}
