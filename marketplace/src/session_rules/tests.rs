use serde_json::json;

use super::*;

/// A session that uses what a session can have.
fn whole() -> Value {
    json!({
        "login": [{
            "request": { "method": "POST", "path": "/login", "effect": "session", "json": { "p": "{{secret.password}}" } },
            "expect": { "status": [200], "empty": false, "header": { "X-CSRF": { "prefix": "" } } },
            "capture": [
                { "as": "token", "from": { "json": "/token" } },
                { "as": "csrf", "from": { "header": "X-CSRF" } },
                { "as": "site", "from": { "json": "/site" }, "expose": true }
            ]
        }],
        "apply": [
            { "to": { "header": "X-Token" }, "value": "{{session.token}}" },
            { "to": { "header": "X-CSRF" }, "value": "{{session.csrf}}" }
        ],
        "ttl-s": 3600,
        "login-gap-ms": 2000,
        "ttl-from": { "from": { "json": "/life" }, "unit": "seconds" },
        "renew": {
            "after-s": 1800,
            "max-age-s": 7200,
            "request": { "method": "POST", "path": "/renew", "effect": "session", "form": { "t": "{{session.token}}" } },
            "expect": { "status": [200] },
            "capture": [{ "as": "token", "from": { "json": "/token" } }]
        },
        "refresh": [
            { "as": "csrf", "from": { "header": "X-Updated-CSRF" } },
            { "as": "csrf", "from": { "cookie": "csrf" } }
        ]
    })
}

fn judge(session: Value) -> Result<(), String> {
    let session = serde_json::from_value(session).map_err(|error| error.to_string())?;
    check("main", &session).map_err(|error| error.to_string())
}

/// The session with this one value changed is refused with these words.
#[track_caller]
fn refused(pointer: &str, value: Value, words: &str) {
    let mut session = whole();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match session.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        parent => parent[last] = value,
    }
    let problem = judge(session).expect_err(words);
    assert!(problem.contains(words), "{pointer}: {problem}");
}

#[test]
fn a_session_that_can_be_carried_out_is_accepted() {
    assert_eq!(judge(whole()), Ok(()));
}

#[test]
fn a_renewal_comes_before_the_end_and_replaces_what_the_login_captured() {
    refused("/renew/after-s", json!(0), "'renew.after-s' is 0; it is more than 0 and less than 'ttl-s'");
    refused("/renew/after-s", json!(3600), "less than 'ttl-s', which is 3600");
    refused("/renew/max-age-s", json!(1800), "'renew.max-age-s' is 1800; it is more than 'after-s'");
    refused("/renew/max-age-s", json!(604_801), "604800 at most");
    refused("/renew/request/form/t", json!("{{session.other}}"), "no earlier step captures 'other'");
    refused("/renew/request/path", json!("renew"), "it starts with one '/'");
    refused("/renew/expect", json!({}), "'renew.expect' has no condition");
    refused("/renew/capture/0/as", json!("other"), "replaces 'other', which no step of the login captures");
    refused("/renew/capture/0/as", json!("site"), "'site', which is exposed");
    refused("/renew/capture/0/from", json!({ "json": "token" }), "not a JSON pointer");
    let twice = json!({ "as": "token", "from": { "header": "X-Token" } });
    refused("/renew/capture", json!([twice, twice]), "'token' is captured twice in 'renew'");
    refused("/renew/capture/0", json!({ "as": "token", "from": { "json": "/t" }, "expose": true }), "expose");
    refused("/renew/denied", json!({ "status": [401] }), "unknown field `denied`");
}

#[test]
fn a_request_has_headers_that_do_not_make_another_one_of_it() {
    let headers = |name: &str| json!({ name: "{{secret.password}}" });
    let at = "/login/0/request/headers";
    for (name, words) in [
        ("Host", "belongs to the connection"),
        ("proxy-authorization", "belongs to the connection"),
        ("Content-Type", "says how a request is read"),
        ("X-HTTP-Method-Override", "makes another one of it"),
        ("X Token", "cannot name a header"),
    ] {
        refused(at, headers(name), words);
        refused("/apply/0/to", json!({ "header": name }), words);
    }
    refused(at, json!({ "X-A": "{{session.token}}" }), "no earlier step captures 'token'");
    refused(
        at,
        json!(
            (0..17).map(|n| (format!("x-{n}"), "1".to_owned())).collect::<std::collections::BTreeMap<_, _>>()
        ),
        "16 are the most",
    );
    let basic = json!({ "username": "{{secret.username}}", "password": "{{session.token}}" });
    refused("/login/0/request/basic", basic, "no earlier step captures 'token'");
    let mut session = whole();
    session["login"][0]["request"]["headers"] = headers("Authorization");
    assert_eq!(judge(session.clone()), Ok(()));
    session["login"][0]["request"]["basic"] = json!({ "username": "u", "password": "{{secret.password}}" });
    assert!(judge(session).unwrap_err().contains("'basic' or the header 'authorization', not both"));
}

#[test]
fn a_step_is_left_out_on_a_condition_that_can_hold() {
    let at = "/login/0/when";
    refused(at, json!({}), "names a 'secret' or a 'setting'");
    refused(at, json!({ "secret": "otp", "is": [1] }), "name it in 'setting'");
    refused(at, json!({ "secret": "one time" }), "cannot name a secret");
    refused(at, json!({ "setting": "" }), "cannot name a setting");
    refused(at, json!({ "secret": "otp", "not": true }), "unknown field `not`");
    // What one step captured, a later one that may be left out can replace; another one cannot.
    let mut session = whole();
    let mut second = session["login"][0].clone();
    second["when"] = json!({ "secret": "otp" });
    session["login"].as_array_mut().unwrap().push(second);
    assert_eq!(judge(session.clone()), Ok(()));
    session["login"][1].as_object_mut().unwrap().remove("when");
    assert!(judge(session).unwrap_err().contains("'token' is captured twice"));
}

#[test]
fn a_matcher_has_conditions_that_an_answer_can_meet() {
    let at = "/login/0/expect";
    refused(at, json!({ "header": { "X CSRF": { "prefix": "" } } }), "cannot name a header");
    refused(at, json!({ "header": { "X-CSRF": { "values": [] } } }), "has no values");
    refused(at, json!({ "header": { "X-CSRF": { "suffix": "" } } }), "unknown variant `suffix`");
    refused(at, json!({ "empty": true, "json": { "/a": [1] } }), "JSON in an empty body");
}

#[test]
fn logins_have_a_distance_within_bounds() {
    refused("/login-gap-ms", json!(0), "'login-gap-ms' is 0; 1 to 300000 is accepted");
    refused("/login-gap-ms", json!(300_001), "1 to 300000 is accepted");
}

#[test]
fn a_life_is_read_from_json_or_a_header() {
    refused("/ttl-from/from", json!({ "cookie": "life" }), "not a cookie");
    refused("/ttl-from/from", json!({ "json": "life" }), "not a JSON pointer");
    refused("/ttl-from/unit", json!("minutes"), "unknown variant `minutes`");
}

#[test]
fn only_captured_values_that_stay_hidden_are_replaced() {
    refused(
        "/refresh/0/as",
        json!("other"),
        "'refresh' replaces 'other', which no step of the login captures",
    );
    refused("/refresh/0/as", json!("site"), "'site', which is exposed");
    refused("/refresh/0/from", json!({ "header": "X CSRF" }), "cannot name a header or a cookie");
    let many = vec![json!({ "as": "csrf", "from": { "cookie": "csrf" } }); 17];
    refused("/refresh", json!(many), "17 entries; 16 are the most");
    // The place that replaces what carries the session is not shown under another name.
    let exposed = |from: Value| json!({ "as": "shown", "from": from, "expose": true });
    let carries = "'shown' carries the session in 'apply'";
    refused("/login/0/capture/2", exposed(json!({ "header": "X-Updated-CSRF" })), carries);
    let mut session = whole();
    session["renew"]["capture"][0]["from"] = json!({ "json": "/renewed" });
    session["login"][0]["capture"][2] = exposed(json!({ "json": "/renewed" }));
    assert!(judge(session).unwrap_err().contains(carries));
}

#[test]
fn what_carries_the_session_anywhere_but_in_a_path_is_not_exposed() {
    let at_place = |pointer: &str, value: Value| {
        let mut session = whole();
        session["logout"] = json!({ "method": "POST", "path": "/out", "effect": "session" });
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        session.pointer_mut(parent).unwrap()[last] = value;
        judge(session)
    };
    let site = "{{session.site}}";
    for (pointer, value) in [
        ("/apply/0/to", json!({ "basic": site })),
        ("/renew/request/headers", json!({ "X-Site": site })),
        ("/renew/request/basic", json!({ "username": "u", "password": site })),
        ("/renew/request/form", json!({ "s": site })),
        ("/logout/json", json!({ "deep": [site] })),
        ("/logout/basic", json!({ "username": site, "password": "p" })),
    ] {
        let problem = at_place(pointer, value).expect_err(pointer);
        assert!(problem.contains("'site' carries the session"), "{pointer}: {problem}");
    }
    for pointer in ["/renew/request/path", "/logout/path"] {
        assert_eq!(at_place(pointer, json!(format!("/{site}/out"))), Ok(()), "{pointer}");
    }
}

#[test]
fn a_session_without_a_login_has_nothing_to_renew() {
    let key =
        json!({ "apply": [{ "to": { "header": "X-Key" }, "value": "{{secret.api-key}}" }], "ttl-s": 3600 });
    assert_eq!(judge(key.clone()), Ok(()));
    for field in ["renew", "refresh", "ttl-from", "login-gap-ms"] {
        let mut session = key.clone();
        session[field] = whole()[field].take();
        assert!(judge(session).unwrap_err().contains("without 'login' steps"), "{field}");
    }
}
