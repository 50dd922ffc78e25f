//! The event stream: what 5,000 connections cost that wait for nothing, how soon 200 among them hear of an event, and
//! 2,000 events a second to 100 listeners. Beside it a bare broadcast over axum's WebSocket, in the same run.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message as Sent, Utf8Bytes, WebSocketUpgrade};
use axum::routing::any;
use futures::future::join_all;
use futures::{SinkExt as _, StreamExt as _};
use heddle_core::event::{EventType, NewEvent};
use heddle_core::{Clock, OrgId, Role};
use heddle_store::users::{self, NewUser};
use heddle_store::{Db, PoolSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::measure::{Report, Samples};
use crate::support::{Api, Database, Options, PASSWORD, Process, Server};

const CONNECTIONS: usize = 5_000;
const PER_USER: usize = 25;
const SUBSCRIBERS: usize = 200;
const SINGLE_EVENTS: usize = 50;
const LISTENERS: usize = 100;
const EVENTS_PER_BURST: usize = 100;
const BURSTS: usize = 100;
/// Two thousand events a second.
const BURST_PERIOD: Duration = Duration::from_millis(50);
const FILES: u64 = 12_000;

type Client = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    raise_limit();
    runtime.block_on(idle(report));
    report.noise.sample();
    runtime.block_on(busy(report));
}

fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |maximum| maximum.min(FILES));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).expect("a limit can be raised");
}

fn options() -> Options {
    let unlimited =
        Options::default().with("RATE_LIMIT_RPM", "10000000").with("RATE_LIMIT_BURST", "10000000");
    unlimited.with("SYNC_INTERVAL_SECS", "3600")
}

/// Memory of a process that is its own, in bytes.
fn memory(id: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("the kernel says it");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

async fn connect(base: &str, token: Option<&str>) -> Client {
    let url = format!("{}/api/v1/ws", base.replace("http://", "ws://"));
    let (mut client, _) = tokio_tungstenite::connect_async(url).await.expect("the stream accepts");
    if let Some(token) = token {
        say(&mut client, &json!({ "type": "auth", "token": token })).await;
        assert_eq!(hear(&mut client).await["type"], "connected");
    }
    client
}

async fn say(client: &mut Client, frame: &Value) {
    client.send(Message::Text(frame.to_string().into())).await.expect("the stream takes a frame");
}

async fn hear(client: &mut Client) -> Value {
    serde_json::from_str(&text(client).await).expect("frames are JSON")
}

async fn text(client: &mut Client) -> String {
    loop {
        if let Message::Text(text) = client.next().await.expect("the stream is open").expect("a good frame") {
            return text.to_string();
        }
    }
}

async fn subscribe(client: &mut Client) {
    say(client, &json!({ "type": "subscribe", "subscriptions": ["*"] })).await;
    assert_eq!(hear(client).await["type"], "subscribed");
}

/// Many users of the first organization, each with a token.
async fn tokens(api: &Api, db: &Db) -> Vec<String> {
    let clock = Clock::default();
    let mut tx = db.write().await.expect("the database answers");
    let admin = users::find_by_login(&mut tx, "ada").await.expect("it can be read").expect("there is one");
    let names: Vec<String> = (0..CONNECTIONS / PER_USER).map(|n| format!("listener-{n}")).collect();
    for name in &names {
        let new = NewUser {
            id: clock.new_id(),
            org_id: admin.user.org_id,
            username: name.clone(),
            email: format!("{name}@acme.test"),
            full_name: None,
            password_hash: admin.password_hash.clone(),
            role: Role::SuperAdmin,
            now: clock.now(),
        };
        users::insert(&mut tx, &new).await.expect("a user is new");
    }
    tx.commit().await.expect("it is written");
    let mut tokens = Vec::new();
    for name in names {
        let login = json!({ "login": name, "password": PASSWORD });
        let answer = api.post("/auth/login", &login).await.expect_status(200).body;
        tokens.push(answer["access_token"].as_str().expect("a token").to_owned());
    }
    tokens
}

/// Connections that wait, in a process of their own, and how soon some of them hear.
async fn idle(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let process = Process::start(folder.path(), &Database::sqlite(), &options()).await;
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    let answer = process.api.post("/setup/complete", &setup).await.expect_status(201).body;
    let api = process.api.with_token(answer["access_token"].as_str().expect("a token"));
    let url = format!("sqlite://{}", folder.path().join("data/heddle.db").display());
    let pool = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_secs(10) };
    let db = Db::open(&url, &pool).await.expect("the database opens");
    let tokens = tokens(&api, &db).await;
    let before = memory(process.id());
    let mut clients = Vec::new();
    for token in &tokens {
        let of_one = (0..PER_USER).map(|_| connect(api.base(), Some(token)));
        clients.extend(join_all(of_one).await);
    }
    let each = (memory(process.id()).saturating_sub(before)) / clients.len();
    report.value(
        format!("{} idle connections, memory of each", clients.len()),
        format!("{:.1} KiB", bytes(each) / 1024.0),
        "",
    );
    let mut subscribers: Vec<Client> = clients.split_off(clients.len() - SUBSCRIBERS);
    for client in &mut subscribers {
        subscribe(client).await;
    }
    let mut heard = Vec::new();
    for n in 0..SINGLE_EVENTS {
        let started = Instant::now();
        let event = json!({ "name": format!("n{n}") });
        let handing_in = api.post("/fabric/ingest", &event);
        let hearing = join_all(subscribers.iter_mut().map(async |client| {
            text(client).await;
            started.elapsed()
        }));
        heard.extend(tokio::join!(handing_in, hearing).1);
    }
    let among = format!("one event, from the request to each of {SUBSCRIBERS} among {CONNECTIONS}");
    report.row(among, &Samples::of(heard), "", "");
}

fn bytes(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("it is small"))
}

fn now_micros() -> u64 {
    u64::try_from(Clock::default().now().timestamp_micros()).expect("it is after 1970")
}

/// When the event was written, as it says itself.
fn delay(frame: &str) -> Duration {
    let at = frame.split_once("\"at\":").expect("an event says when").1;
    let digits: String = at.chars().take_while(char::is_ascii_digit).collect();
    Duration::from_micros(now_micros().saturating_sub(digits.parse().expect("a number")))
}

/// All that each listener hears, until they have heard everything.
async fn listen(clients: Vec<Client>) -> Samples {
    let all = join_all(clients.into_iter().map(async |mut client| {
        let mut delays = Vec::with_capacity(EVENTS_PER_BURST * BURSTS);
        while delays.len() < EVENTS_PER_BURST * BURSTS {
            delays.push(delay(&text(&mut client).await));
        }
        delays
    }));
    let heard = tokio::time::timeout(Duration::from_mins(2), all).await.expect("nobody is dropped");
    Samples::of(heard.concat())
}

async fn busy(report: &mut Report) {
    let mut server = Server::start_with(Database::sqlite(), options()).await;
    let api = server.set_up().await;
    let me = api.get("/auth/me").await.expect_status(200).body;
    let org: OrgId = serde_json::from_value(me["organization_id"].clone()).expect("an id");
    let app = server.running().app.clone();
    let mut clients = Vec::new();
    for token in tokens(&api, &app.db).await.into_iter().take(LISTENERS) {
        let mut client = connect(api.base(), Some(&token)).await;
        subscribe(&mut client).await;
        clients.push(client);
    }
    let writing = async {
        let mut period = tokio::time::interval(BURST_PERIOD);
        for _ in 0..BURSTS {
            period.tick().await;
            let data = json!({ "at": now_micros(), "text": "x".repeat(200) });
            let event = NewEvent {
                event_type: EventType::IngestExternal,
                org_id: org,
                site_id: None,
                controller_id: None,
                device_id: None,
                causation_id: None,
                run_id: None,
                payload: json!({ "name": "burst", "data": data }),
            };
            let events = vec![event; EVENTS_PER_BURST];
            let mut tx = app.db.write().await.expect("the database answers");
            heddle_store::events::append_all(&mut tx, org, &events, &app.clock).await.expect("it is written");
            tx.commit().await.expect("it is written");
            app.hub.wake();
        }
    };
    let ours = tokio::join!(listen(clients), writing).0;
    server.stop().await;
    report.row(format!("2,000 events a second to {LISTENERS}, none dropped"), &ours, "", "");
    let bare = bare().await;
    report.row("the same as a bare broadcast, without a database", &bare, "", "");
}

async fn bare() -> Samples {
    let sender = broadcast::channel::<Utf8Bytes>(4096).0;
    let relay = |upgrade: WebSocketUpgrade, State(sender): State<broadcast::Sender<Utf8Bytes>>| async move {
        let mut receiver = sender.subscribe();
        upgrade.on_upgrade(async move |mut socket| {
            while let Ok(frame) = receiver.recv().await {
                if socket.send(Sent::Text(frame)).await.is_err() {
                    return;
                }
            }
        })
    };
    let router = Router::new().route("/api/v1/ws", any(relay)).with_state(sender.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address: SocketAddr = listener.local_addr().expect("it is bound");
    #[expect(clippy::disallowed_methods, reason = "a baseline is no part of the service")]
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let base = format!("http://{address}");
    let clients = join_all((0..LISTENERS).map(|_| connect(&base, None))).await;
    let writing = async {
        let mut period = tokio::time::interval(BURST_PERIOD);
        for _ in 0..BURSTS {
            period.tick().await;
            for _ in 0..EVENTS_PER_BURST {
                let data = json!({ "at": now_micros(), "text": "x".repeat(400) });
                sender.send(data.to_string().into()).expect("somebody listens");
            }
        }
    };
    let heard = tokio::join!(listen(clients), writing).0;
    serving.abort();
    heard
}
