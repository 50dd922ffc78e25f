//! One-time codes and tokens, held against programs that others wrote.

use std::process::Command;

use serde_json::json;

use crate::support::{Database, PASSWORD, Server, tool};

/// What Python prints, its own line end aside.
fn python(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(tool("TEST_PYTHON", "Python with pyotp and PyJWT"));
    let output = command.arg("-c").arg(program).args(arguments).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text").trim_end().to_owned()
}

/// `PyOTP` makes the codes that the server takes, and reads the address that the server shows.
#[tokio::test]
async fn an_independent_program_and_the_server_agree_on_one_time_codes() {
    let server = Server::start(Database::sqlite()).await;
    let admin = server.set_up().await;
    let staged = admin.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
    let uri = staged["otpauth_uri"].as_str().unwrap();
    let read = python(
        "import pyotp, sys; t = pyotp.parse_uri(sys.argv[1]); print(t.secret, t.digits, t.interval, t.issuer, t.name)",
        &[uri],
    );
    assert_eq!(read, format!("{} 6 30 Heddle ada", staged["secret"].as_str().unwrap()));
    let make = "import pyotp, sys; print(pyotp.parse_uri(sys.argv[1]).at(int(sys.argv[2])))";
    let now = server.running().app.clock.now().timestamp();
    let code = python(make, &[uri, &now.to_string()]);
    let enabled = admin.post("/auth/mfa/enable", &json!({ "code": code })).await.expect_status(200).body;
    let left = server.nobody().with_token(enabled["access_token"].as_str().unwrap());
    assert_eq!(left.get("/auth/mfa").await.body["enabled"], true);
    let login = json!({ "login": "ada", "password": PASSWORD });
    let proof = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
    // The next step's code: the server allows for clocks that are a step ahead.
    let code = python(make, &[uri, &(now + 30).to_string()]);
    let second = json!({ "mfa_token": proof["mfa_token"], "code": code });
    server.nobody().post("/auth/login/mfa", &second).await.expect_status(200);
}

/// `PyJWT` reads what the server signed, and signs what the server reads; of what is wrong, both think the same.
#[tokio::test]
async fn an_independent_library_and_the_server_agree_on_access_tokens() {
    let server = Server::start(Database::sqlite()).await;
    let admin = server.set_up().await;
    let key = hex::encode(*server.running().app.keys.token_key());
    let read = "import jwt, sys, json; print(json.dumps(jwt.decode(sys.argv[2], bytes.fromhex(sys.argv[1]), \
                algorithms=['HS256'], audience='svc-api', issuer='svc')))";
    let claims: serde_json::Value = serde_json::from_str(&python(read, &[&key, admin.token()])).unwrap();
    let me = admin.get("/auth/me").await.expect_status(200).body;
    assert_eq!(claims["sub"], me["id"]);
    assert_eq!((&claims["org_id"], &claims["role"]), (&me["organization_id"], &me["role"]));
    assert_eq!(
        (&claims["tv"], &claims["aud"], &claims["iss"]),
        (&me["token_version"], &json!("svc-api"), &json!("svc"))
    );
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 1800);
    assert!(claims["jti"].is_string());
    let sign = "import jwt, sys, json; print(jwt.encode(json.loads(sys.argv[2]), \
                bytes.fromhex(sys.argv[1]) if sys.argv[3] != 'none' else None, algorithm=sys.argv[3]))";
    let signed = |claims: &serde_json::Value, algorithm: &str| {
        server.nobody().with_token(&python(sign, &[&key, &claims.to_string(), algorithm]))
    };
    let altered = |name: &str, value: serde_json::Value| {
        let mut altered = claims.clone();
        altered[name] = value;
        altered
    };
    signed(&claims, "HS256").get("/auth/me").await.expect_status(200);
    // The stored role decides, whatever the token says.
    let demoted = signed(&altered("role", json!("viewer")), "HS256");
    demoted.get("/organizations").await.expect_status(200);
    for (what, token) in [
        ("no signature", signed(&claims, "none")),
        ("another algorithm", signed(&claims, "HS512")),
        ("another audience", signed(&altered("aud", json!("svc-mfa")), "HS256")),
        ("another issuer", signed(&altered("iss", json!("other")), "HS256")),
        ("expired", signed(&altered("exp", json!(claims["iat"].as_i64().unwrap() - 1)), "HS256")),
        ("another version", signed(&altered("tv", json!(claims["tv"].as_i64().unwrap() + 1)), "HS256")),
        ("another session", signed(&altered("sid", json!(uuid::Uuid::nil())), "HS256")),
    ] {
        let refused = token.get("/auth/me").await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.text);
        assert_eq!(refused.header("www-authenticate"), "Bearer", "{what}");
    }
}
