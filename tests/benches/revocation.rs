//! How soon a revocation takes effect in the process that carries it out: from the answer that confirms it until the open
//! event stream is closed and a request is refused, each beside a request that is let in. An API key opens no stream.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, ratio};
use crate::support::{Api, Database, Options, Server, Socket};

const ROUNDS: usize = if cfg!(debug_assertions) { 20 } else { 200 };
const PATH: &str = "/auth/me";
/// What the API promises, for every process.
const AIM: &str = "< 1 s";
/// A credential that is still accepted after this time is a fault and no measurement.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let mut databases = vec![("SQLite", Database::sqlite())];
    databases.extend(runtime.block_on(Database::postgres()).map(|database| ("PostgreSQL", database)));
    for (name, database) in databases {
        runtime.block_on(revocations(name, database, report));
        report.noise.sample();
    }
}

async fn revocations(name: &str, database: Database, report: &mut Report) {
    let options = Options::default().with("SYNC_INTERVAL_SECS", "3600");
    let mut server = Server::start_with(database, options).await;
    let admin = server.set_up().await;
    let mut let_in = Vec::new();
    let (mut logged_out, mut removed, mut revoked) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let_in.push(request(&admin).await);

        let (session, stream) = listening(&server).await;
        session.post("/auth/logout", &json!({})).await.expect_status(204);
        logged_out.push(ended(&session, stream).await);

        let (session, stream) = listening(&server).await;
        let path = format!("/auth/sessions/{}", own_id(&session).await);
        admin.delete(&path).await.expect_status(204);
        removed.push(ended(&session, stream).await);

        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let holder = server.nobody().with("x-api-key", key["api_key"].as_str().expect("a key"));
        request(&holder).await;
        let path = format!("/api-keys/{}", key["id"].as_str().expect("an id"));
        admin.delete(&path).await.expect_status(204);
        revoked.push(refused(&holder, Instant::now()).await);
    }
    server.stop().await;

    let let_in = Samples::of(let_in);
    report.row(format!("request of a known caller, {name}"), &let_in, "", "");
    let mut row = |what: &str, times: Vec<Duration>| {
        let times = Samples::of(times);
        let result = format!("x {:.1}", ratio(times.median(), let_in.median()));
        report.row(format!("{what}, {name}"), &times, result, AIM);
    };
    for (what, times) in [("logout", logged_out), ("removed session", removed)] {
        let (closed, refused): (Vec<_>, Vec<_>) = times.into_iter().unzip();
        row(&format!("{what}, until its stream is closed"), closed);
        row(&format!("{what}, until a request is refused"), refused);
    }
    row("revoked API key, until a request is refused", revoked);
}

/// How long a request of a caller takes who was known a moment before.
async fn request(api: &Api) -> Duration {
    api.get(PATH).await.expect_status(200);
    let started = Instant::now();
    api.get(PATH).await.expect_status(200);
    started.elapsed()
}

/// A new session that is known to the server and has an open stream.
async fn listening(server: &Server) -> (Api, Socket) {
    let session = server.log_in("ada").await;
    let stream = Socket::authenticated(&session).await;
    request(&session).await;
    (session, stream)
}

/// The id of the session that asks.
async fn own_id(session: &Api) -> String {
    let sessions = session.get("/auth/sessions").await.expect_status(200).body;
    let all = sessions["items"].as_array().expect("a page has items");
    let own = all.iter().find(|one| one["current"] == true).expect("the session is active");
    own["id"].as_str().expect("an id").to_owned()
}

/// How long it takes from now until the session's stream is closed, and until a request of it is refused.
async fn ended(session: &Api, mut stream: Socket) -> (Duration, Duration) {
    let started = Instant::now();
    let closed = async {
        assert_eq!(stream.close_code().await, 1008);
        started.elapsed()
    };
    tokio::join!(closed, refused(session, started))
}

async fn refused(api: &Api, started: Instant) -> Duration {
    while api.get(PATH).await.status != 401 {
        assert!(started.elapsed() < PATIENCE, "it is still let in");
    }
    started.elapsed()
}
