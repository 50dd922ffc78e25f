//! What pages of other sites may do.

use serde_json::json;

use crate::support::{Answer, Api, Database, Options, Server};

const APP: &str = "https://app.example.org";

fn options() -> Options {
    Options::default().with("CORS_ORIGINS", "https://app.example.org, http://localhost:3000")
}

fn cors_headers(answer: &Answer) -> Vec<&str> {
    let names = answer.headers.keys().map(reqwest::header::HeaderName::as_str);
    names.filter(|name| name.starts_with("access-control-")).collect()
}

#[track_caller]
fn allows(answer: &Answer, origin: &str) {
    assert_eq!(answer.header("access-control-allow-origin"), origin, "{}", answer.text);
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    let exposed = answer.header("access-control-expose-headers");
    for name in ["x-request-id", "etag", "location", "retry-after", "x-ratelimit-limit", "x-response-time"] {
        assert!(exposed.split(',').any(|one| one.trim() == name), "{name} in '{exposed}'");
    }
}

async fn preflight(api: &Api, path: &str, origin: &str) -> Answer {
    let api = api.with("origin", origin).with("access-control-request-method", "PATCH");
    api.with("access-control-request-headers", "if-match,x-csrf-token").send("OPTIONS", path, None).await
}

#[tokio::test]
async fn pages_of_allowed_origins_read_answers_and_errors_alike() {
    let options = options().with("RATE_LIMIT_RPM", "7");
    let server = Server::start_with(Database::sqlite(), options).await;
    let page = server.nobody().at_ip("203.0.113.7").with("origin", APP);
    allows(&page.get("/setup/status").await.expect_status(200), APP);
    allows(&page.get("/auth/me").await.expect_status(401), APP);
    allows(&page.get("/nowhere").await.expect_status(404), APP);
    allows(&page.delete("/setup/status").await.expect_status(405), APP);
    allows(&page.post("/auth/login", &json!({})).await.expect_status(422), APP);
    allows(&page.send("POST", "/auth/login", Some(vec![b'x'; 1_048_577])).await.expect_status(413), APP);
    page.get("/setup/status").await.expect_status(200);
    allows(&page.get("/setup/status").await.expect_status(429), APP);
    let other = server.nobody().with("origin", "http://localhost:3000");
    allows(&other.get("/setup/status").await.expect_status(200), "http://localhost:3000");
}

#[tokio::test]
async fn a_preflight_is_answered_with_what_is_allowed_and_counts() {
    let server = Server::start_with(Database::sqlite(), options().with("RATE_LIMIT_RPM", "3")).await;
    let api = server.nobody().at_ip("203.0.113.7");
    let answer = preflight(&api, "/sites/01900000-0000-7000-8000-000000000000", APP).await.expect_status(200);
    assert_eq!(answer.header("access-control-allow-origin"), APP);
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    for (header, values) in [
        ("access-control-allow-methods", ["GET", "POST", "PATCH", "DELETE"].as_slice()),
        (
            "access-control-allow-headers",
            &[
                "authorization",
                "content-type",
                "x-csrf-token",
                "x-api-key",
                "x-request-id",
                "if-match",
                "idempotency-key",
            ],
        ),
    ] {
        for value in values {
            let given = answer.header(header);
            assert!(given.split(',').any(|one| one.trim() == *value), "{value} in {header}: '{given}'");
        }
    }
    assert_eq!(answer.header("x-frame-options"), "DENY");
    assert!(
        !answer.header("x-request-id").is_empty() && !answer.header("content-security-policy").is_empty()
    );
    assert!(answer.headers.get_all("vary").iter().any(|v| v.to_str().unwrap().contains("origin")));
    preflight(&api, "/nowhere", APP).await.expect_status(200);
    preflight(&api, "/setup/status", APP).await.expect_status(200);
    let refused = preflight(&api, "/setup/status", APP).await.expect_status(429);
    assert_eq!(refused.body, json!({ "detail": "Rate limit exceeded", "retry_after": 60 }));
    api.get("/setup/status").await.expect_status(429);
}

#[tokio::test]
async fn pages_of_other_origins_are_allowed_nothing() {
    let server = Server::start_with(Database::sqlite(), options()).await;
    for origin in
        ["https://evil.example", "https://app.example.org.evil.example", "http://app.example.org", "null"]
    {
        let page = server.nobody().with("origin", origin);
        assert_eq!(page.get("/setup/status").await.header("access-control-allow-origin"), "", "{origin}");
        let answer = preflight(&server.nobody(), "/setup/status", origin).await;
        assert_eq!(answer.header("access-control-allow-origin"), "", "{origin}");
    }
}

#[tokio::test]
async fn without_the_setting_no_answer_says_a_word_about_origins() {
    let server = Server::start(Database::sqlite()).await;
    let page = server.nobody().with("origin", APP);
    for answer in
        [page.get("/setup/status").await.expect_status(200), page.get("/auth/me").await.expect_status(401)]
    {
        assert_eq!(cors_headers(&answer), Vec::<&str>::new());
    }
    let answer = preflight(&server.nobody(), "/setup/status", APP).await.expect_status(405);
    assert_eq!(cors_headers(&answer), Vec::<&str>::new());
    assert_eq!(answer.header("allow"), "GET,HEAD");
}
