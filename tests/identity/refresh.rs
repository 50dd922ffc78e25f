use chrono::TimeDelta;
use futures::StreamExt as _;
use futures::stream;
use serde_json::json;

use crate::support::{Api, Database, PASSWORD, Process, Server, on_both};

/// How many present the same token.
const MANY: usize = 1_000;
async fn tokens(api: &Api) -> (String, String) {
    let login = json!({ "login": "ada", "password": PASSWORD });
    let body = api.post("/auth/login", &login).await.expect_status(200).body;
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// The statuses of a thousand refreshes of one token, spread over these servers.
async fn race(servers: &[Api], refresh: &str) -> Vec<u16> {
    let body = json!({ "refresh_token": refresh });
    let tries = (0..MANY).map(|n| {
        let (api, body) = (servers[n % servers.len()].clone(), body.clone());
        async move { api.post("/auth/refresh", &body).await.status }
    });
    stream::iter(tries).buffer_unordered(MANY).collect().await
}

#[track_caller]
fn check_one_won(statuses: &[u16]) {
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!(
        (count(200), count(401)),
        (1, MANY - 1),
        "of {MANY}, one wins and all others are told that they lost"
    );
}

on_both! {
    async fn of_a_thousand_refreshes_of_one_token_one_succeeds(database: Database) {
        let server = Server::start_with(database, crate::surface::unlimited()).await;
        server.set_up().await;
        let (access, refresh) = tokens(&server.nobody()).await;
        check_one_won(&race(&[server.nobody()], &refresh).await);
        // A lost race is no theft: the session lives.
        server.nobody().with_token(&access).get("/auth/me").await.expect_status(200);
        server.running().app.clock.advance(TimeDelta::seconds(11));
        let late = server.nobody().post("/auth/refresh", &json!({ "refresh_token": refresh })).await;
        assert_eq!(late.expect_status(401).message(), "session is revoked");
        server.nobody().with_token(&access).get("/auth/me").await.expect_status(401);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_refreshes_at_two_processes_one_succeeds() {
    let Some(database) = Database::postgres().await else { return };
    let options = crate::surface::unlimited();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = Process::start(folders[0].path(), &database, &options).await;
    let two = Process::start(folders[1].path(), &database, &options).await;
    let body = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    one.api.post("/setup/complete", &body).await.expect_status(201);
    let (_, refresh) = tokens(&one.api).await;
    check_one_won(&race(&[one.api.clone(), two.api.clone()], &refresh).await);
}
