//! What it costs to know who calls: the check of each request, logins, and whether the time of a refused login
//! tells who exists.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use futures::StreamExt as _;
use futures::stream;
use heddle_core::Role;
use heddle_server::auth::authenticate;
use heddle_store::users::{self, NewUser};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, show, timed};
use crate::support::{Api, Database, Options, PASSWORD, Server};

const CHECKS: usize = 5_000;
const LOGINS: usize = 60;
/// Logins under way at once.
const TOGETHER: usize = 4;
/// Each fails as often as it can before it is locked.
const KNOWN_USERS: usize = 100;
const TRIES_PER_NAME: usize = 5;

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let options = Options::default().with("RATE_LIMIT_RPM", "1000000").with("RATE_LIMIT_BURST", "1000000");
    let mut server = runtime.block_on(Server::start_with(Database::sqlite(), options));
    let api = runtime.block_on(server.set_up());
    checks(runtime, report, &server, &api);
    logins(runtime, report, &server);
    report.noise.sample();
    refusals(runtime, report, &server);
    runtime.block_on(server.stop());
}

fn checks(runtime: &Runtime, report: &mut Report, server: &Server, api: &Api) {
    let app = &server.running().app;
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", api.token())).expect("a token is ASCII");
    headers.insert(header::AUTHORIZATION, bearer);
    let check =
        || timed(|| runtime.block_on(authenticate(app, &headers)).map(drop).expect("the token is good")).0;
    check();
    let warm = Samples::of((0..CHECKS).map(|_| check()).collect());
    report.row("token check, known a moment ago", &warm, "", "");
    let cold = (0..CHECKS / 10).map(|_| {
        app.callers.forget();
        check()
    });
    report.row("token check, asking the database (SQLite)", &Samples::of(cold.collect()), "", "");
}

fn logins(runtime: &Runtime, report: &mut Report, server: &Server) {
    let nobody = server.nobody();
    let (elapsed, times) =
        timed(|| runtime.block_on(tries(&nobody, vec!["ada".to_owned(); LOGINS], PASSWORD, 200)));
    let each = Samples::of(times);
    let count = u32::try_from(LOGINS).expect("it is small");
    report.row("login", &each, format!("{:.1}/s", f64::from(count) / elapsed.as_secs_f64()), "");
}

fn refusals(runtime: &Runtime, report: &mut Report, server: &Server) {
    runtime.block_on(add_users(server));
    let nobody = server.nobody();
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for _ in 0..TRIES_PER_NAME {
        // In turns, so that what disturbs one disturbs the other.
        for chunk in 0..KNOWN_USERS / TOGETHER {
            let numbers = chunk * TOGETHER..(chunk + 1) * TOGETHER;
            let named = |word: &str| numbers.clone().map(|n| format!("{word}-{n:03}")).collect::<Vec<_>>();
            known.extend(runtime.block_on(tries(&nobody, named("known"), "Wrong-Horse-7-x", 401)));
            unknown.extend(runtime.block_on(tries(&nobody, named("nobody"), "Wrong-Horse-7-x", 401)));
        }
    }
    let (known, unknown) = (Samples::of(known), Samples::of(unknown));
    let difference = known.median().abs_diff(unknown.median());
    report.row(format!("refused login, {} of users", KNOWN_USERS * TRIES_PER_NAME), &known, "", "");
    let result = format!("{} apart", show(difference));
    report.row(
        format!("refused login, {} of nobody", KNOWN_USERS * TRIES_PER_NAME),
        &unknown,
        result,
        "noise",
    );
}

/// How long each of these logins took.
async fn tries(nobody: &Api, names: Vec<String>, password: &str, status: u16) -> Vec<Duration> {
    let each = names.into_iter().map(|name| async move {
        let started = Instant::now();
        let answer = nobody.post("/auth/login", &json!({ "login": name, "password": password })).await;
        let elapsed = started.elapsed();
        assert_eq!(answer.status, status, "{name}: {}", answer.text);
        elapsed
    });
    stream::iter(each).buffer_unordered(TOGETHER).collect().await
}

/// With the password's hash of the first user: as costly as theirs.
async fn add_users(server: &Server) {
    let app = &server.running().app;
    let mut tx = app.db.write().await.expect("the database takes writes");
    let first = users::find_by_login(&mut tx, "ada").await.expect("it can be read").expect("there is one");
    for number in 0..KNOWN_USERS {
        let new = NewUser {
            id: app.clock.new_id(),
            org_id: first.user.org_id,
            username: format!("known-{number:03}"),
            email: format!("known-{number:03}@acme.test"),
            full_name: None,
            password_hash: first.password_hash.clone(),
            role: Role::Viewer,
            now: app.clock.now(),
        };
        users::insert(&mut tx, &new).await.expect("the name is free");
    }
    tx.commit().await.expect("they can be kept");
}
