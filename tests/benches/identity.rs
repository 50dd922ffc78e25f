//! The cost of authentication: the check of each request, logins, whether the time of a refused login tells which users
//! exist, and what a burst of logins does to everything else.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use futures::{StreamExt as _, stream};
use heddle_core::Role;
use heddle_kernel::caller::authenticate;
use heddle_store::users::{self, NewUser};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, in_turns, ratio, show, timed};
use crate::support::{Api, Database, Options, PASSWORD, Server};

const CHECKS: usize = 5_000;
const LOGINS: usize = 60;
/// Logins under way at once.
const TOGETHER: usize = 4;
/// Logins of a burst.
const BURST: usize = 60;
/// Between two looks at the health during a burst.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Requests of each side over HTTP.
const REQUESTS: usize = 2_000;
/// Each fails as often as it can before it is locked.
const KNOWN_USERS: usize = 100;
const TRIES_PER_NAME: usize = 5;

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let options = Options::default()
        .with("RATE_LIMIT_RPM", "1000000")
        .with("RATE_LIMIT_BURST", "1000000")
        .hashing_as_served();
    let mut server = runtime.block_on(Server::start_with(Database::sqlite(), options));
    let api = runtime.block_on(server.set_up());
    checks(runtime, report, &server, &api);
    requests(runtime, report, &api);
    report.noise.sample();
    logins(runtime, report, &server);
    report.noise.sample();
    burst(runtime, report, &server);
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

/// One request over one connection that needs a caller and no database, compared with a handler that only answers the
/// bytes.
fn requests(runtime: &Runtime, report: &mut Report, api: &Api) {
    let path = "/api/v1/events/types";
    #[expect(clippy::disallowed_methods, reason = "a bench is the outside world")]
    let http = reqwest::Client::builder().no_proxy().build().expect("a client can be built");
    let ask = |url: &str| {
        let request = http.get(url).bearer_auth(api.token());
        runtime.block_on(async {
            let answer = request.send().await.expect("it answers").error_for_status().expect("200");
            answer.bytes().await.expect("a body")
        })
    };
    let ours = format!("{}{path}", api.base());
    let body = ask(&ours);
    let bare = runtime.block_on(bare(path, body.to_vec()));
    assert_eq!(ask(&bare), body, "both answer the same bytes");
    let (ours, bare) = in_turns(100, REQUESTS, || ask(&ours), || ask(&bare));
    report.row("request of a known caller, bare handler", &bare, "", "");
    let result = format!("{:.2} x", ratio(ours.median(), bare.median()));
    report.row("request of a known caller, ours", &ours, result, "");
}

/// Serves these bytes until the process ends.
async fn bare(path: &'static str, body: Vec<u8>) -> String {
    let json = [(header::CONTENT_TYPE, "application/json")];
    let handler = axum::routing::get(move || async move { (json, body) });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let router = axum::Router::new().route(path, handler);
    #[expect(clippy::disallowed_methods, reason = "it lives as long as the process")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}{path}")
}

/// All logins of a burst at once, with health checks at the same time.
fn burst(runtime: &Runtime, report: &mut Report, server: &Server) {
    let nobody = server.nobody();
    let before = resident_mib();
    let (mut looks, mut peak) = (Vec::new(), before);
    let (elapsed, times) = timed(|| {
        runtime.block_on(async {
            let logins = (0..BURST).map(|_| tries(&nobody, vec!["ada".to_owned()], PASSWORD, 200));
            let logins = futures::future::join_all(logins);
            tokio::pin!(logins);
            loop {
                let look = async {
                    let started = Instant::now();
                    nobody.get_root("/health").await.expect_status(200);
                    let elapsed = started.elapsed();
                    tokio::time::sleep(LOOK_EVERY).await;
                    elapsed
                };
                tokio::select! {
                    done = &mut logins => break done.concat(),
                    elapsed = look => looks.push(elapsed),
                }
                peak = peak.max(resident_mib());
            }
        })
    });
    let logins =
        format!("{:.1}/s", f64::from(u32::try_from(BURST).expect("it is small")) / elapsed.as_secs_f64());
    report.row(format!("{BURST} logins at once, each"), &Samples::of(times), logins, "");
    report.row("health meanwhile", &Samples::of(looks), "", "");
    report.value("resident memory before and at most", format!("{before} and {peak} MiB"), "");
}

/// Of this process, in which the server is.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells the memory");
    let kib = line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    kib.expect("a number of KiB") / 1024
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
