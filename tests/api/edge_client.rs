//! The identity of the client, behind proxies or not.

use serde_json::json;

use crate::support::{Api, Database, Options, PASSWORD, Server, on_both};

const HSTS: &str = "strict-transport-security";

/// The address that the session of a login from this client was given.
async fn address_of_login(api: &Api) -> String {
    let login = json!({ "login": "ada", "password": PASSWORD });
    let tokens = api.post("/auth/login", &login).await.expect_status(200).body;
    let api = api.with_token(tokens["access_token"].as_str().unwrap());
    let sessions = api.get("/auth/sessions").await.expect_status(200).body;
    let current = sessions["items"].as_array().unwrap().iter().find(|session| session["current"] == true);
    current.unwrap()["ip"].as_str().unwrap().to_owned()
}

on_both! {
    async fn a_trusted_proxy_names_the_address_that_the_session_keeps(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let nobody = server.nobody();
        for (given, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("192.0.2.66, 203.0.113.8", "203.0.113.8"),
            ("203.0.113.9, 127.0.0.5", "203.0.113.9"),
            ("2001:db8::7", "2001:db8::7"),
            ("::ffff:203.0.113.10", "203.0.113.10"),
            ("203.0.113.11, nonsense, 127.0.0.5", "127.0.0.5"),
        ] {
            assert_eq!(address_of_login(&nobody.at_ip(given)).await, expected, "{given}");
        }
    }
}

on_both! {
    async fn nobody_else_does(database: Database) {
        let options = Options::default().with("TRUSTED_PROXIES", "10.0.0.0/8").with("RATE_LIMIT_RPM", "6");
        let server = Server::start_with(database, options).await;
        server.set_up().await;
        let api = server.nobody().at_ip("10.0.0.1, 203.0.113.7").with("x-forwarded-proto", "https");
        assert_eq!(address_of_login(&api).await, "127.0.0.1");
        assert_eq!(api.get("/setup/status").await.expect_status(200).header(HSTS), "");
        // A new address in each request does not evade the limit either.
        for ip in ["203.0.113.1", "203.0.113.2", "203.0.113.3"] {
            server.nobody().at_ip(ip).get("/setup/status").await;
        }
        server.nobody().at_ip("203.0.113.4").get("/setup/status").await.expect_status(429);
    }
}

#[tokio::test]
async fn browsers_are_kept_to_https_only_where_it_is_https() {
    let server = Server::start(Database::sqlite()).await;
    let https = server.nobody().with("x-forwarded-proto", "https");
    for path in ["/setup/status", "/nowhere", "/auth/me"] {
        assert_eq!(https.get(path).await.header(HSTS), "max-age=31536000; includeSubDomains", "{path}");
        assert_eq!(server.nobody().get(path).await.header(HSTS), "", "{path}");
        let http = server.nobody().with("x-forwarded-proto", "http");
        assert_eq!(http.get(path).await.header(HSTS), "", "{path}");
    }
}
