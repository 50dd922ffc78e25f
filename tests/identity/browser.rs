use serde_json::json;

use crate::support::{Api, PASSWORD, Server, on_both};

/// A browser's cookies after a login.
struct Cookies {
    access: String,
    refresh: String,
    csrf: String,
    lines: Vec<String>,
}

async fn log_in(server: &Server) -> Cookies {
    let login = json!({ "login": "ada", "password": PASSWORD });
    let answer = server.nobody().post("/auth/login", &login).await.expect_status(200);
    let lines: Vec<String> = answer
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|line| line.to_str().expect("cookies are ASCII").to_owned())
        .collect();
    let value = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name)).expect("the cookie is set");
        line.split(['=', ';']).nth(1).expect("it has a value").to_owned()
    };
    Cookies { access: value("svc_access="), refresh: value("svc_refresh="), csrf: value("svc_csrf="), lines }
}

fn browser(server: &Server, cookies: &Cookies) -> Api {
    let line = format!("theme=dark; svc_access={}; svc_csrf={}", cookies.access, cookies.csrf);
    server.nobody().with("cookie", &line)
}

on_both! {
    async fn a_login_sets_the_cookies_of_a_browser(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let cookies = log_in(&server).await;
        let line = |name: &str| cookies.lines.iter().find(|line| line.starts_with(name)).unwrap();
        for hidden in ["svc_access", "svc_refresh"] {
            assert!(line(hidden).contains("HttpOnly") && line(hidden).contains("SameSite=Strict"), "{}", line(hidden));
        }
        assert!(line("svc_refresh").contains("Path=/api/v1/auth"));
        assert!(line("svc_csrf").contains("Path=/;") && !line("svc_csrf").contains("HttpOnly"));
        let page = browser(&server, &cookies);
        assert_eq!(page.get("/auth/me").await.expect_status(200).body["username"], "ada");
        let left = page.with("x-csrf-token", &cookies.csrf).post("/auth/logout", &json!({})).await.expect_status(204);
        let ended: Vec<_> = left.headers.get_all("set-cookie").iter().collect();
        assert!(ended.len() == 3 && ended.iter().all(|line| line.to_str().unwrap().contains("Max-Age=0")));
        page.get("/auth/me").await.expect_status(401);
    }
}

on_both! {
    async fn a_refresh_takes_the_cookie(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let cookies = log_in(&server).await;
        let line = format!("svc_access={}; svc_refresh={}", cookies.access, cookies.refresh);
        let page = server.nobody().with("cookie", &line);
        let fresh = page.send("POST", "/auth/refresh", None).await.expect_status(200);
        assert_eq!(fresh.headers.get_all("set-cookie").iter().count(), 3);
        page.send("POST", "/auth/refresh", None).await.expect_status(401);
        let without = server.nobody().send("POST", "/auth/refresh", None).await.expect_status(422);
        assert_eq!(without.body["error"]["details"][0]["field"], "/refresh_token");
    }
}

on_both! {
    /// Every channel with every method, with the right token, a wrong one, another session's, and none.
    async fn only_a_page_that_echoes_its_token_writes_with_cookies(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (own, other) = (log_in(&server).await, log_in(&server).await);
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let key = key["api_key"].as_str().unwrap();
        let nobody = server.nobody();
        let channels = [
            ("bearer", nobody.with_token(admin.token()), false),
            ("key", nobody.with("x-api-key", key), false),
            ("cookie", browser(&server, &own), true),
            ("cookie and bearer", browser(&server, &own).with_token(admin.token()), true),
            ("cookie and key", browser(&server, &own).with("x-api-key", key), true),
            ("worthless cookie and bearer", nobody.with_token(admin.token()).with("cookie", "svc_access=x"), true),
        ];
        let planted = browser(&server, &Cookies { csrf: other.csrf.clone(), lines: Vec::new(), ..log_in(&server).await });
        for (name, channel, is_browser) in &channels {
            for method in ["GET", "HEAD", "OPTIONS"] {
                let answer = channel.send(method, "/sites", None).await;
                assert_ne!(answer.error_type(), "csrf_failed", "{name} {method}");
            }
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                let path = if method == "POST" { "/sites".to_owned() } else { format!("/sites/{}", uuid::Uuid::nil()) };
                for (token, fits) in [(None, false), (Some(""), false), (Some("nonsense"), false),
                    (Some(other.csrf.as_str()), false), (Some(own.csrf.as_str()), true)] {
                    let sender = token.map_or_else(|| channel.clone(), |token| channel.with("x-csrf-token", token));
                    let answer = sender.send(method, &path, Some(b"{}".to_vec())).await;
                    let fits = fits && *name != "worthless cookie and bearer";
                    // There is no PUT route; a request without a route changes nothing.
                    let is_refused = *is_browser && !fits && method != "PUT";
                    assert_eq!(answer.error_type() == "csrf_failed", is_refused, "{name} {method} {token:?}: {}", answer.text);
                    assert!(!is_refused || answer.status == 403);
                }
            }
        }
        // A token that another site planted as a cookie and echoes does not belong to the session.
        let forged = planted.with("x-csrf-token", &other.csrf).post("/sites", &json!({ "name": "forged" })).await;
        assert_eq!(forged.expect_status(403).error_type(), "csrf_failed");
    }
}

on_both! {
    async fn who_has_no_session_yet_needs_no_token(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let page = browser(&server, &log_in(&server).await);
        for path in ["/auth/login", "/auth/login/", "/auth/refresh"] {
            let answer = page.post(path, &json!({})).await;
            assert_ne!(answer.error_type(), "csrf_failed", "{path}");
        }
    }
}
