//! Ten thousand events, a hundred Connections of four organizations, two processes, and a Redis that goes away in the
//! middle: what fires is what a model of the test says, each once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use heddle_core::{OrgId, Role, Timestamp};
use heddle_store::users::{self, NewUser};
use serde_json::json;
use sqlx::FromRow;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::model::{Fact, Fate, Wire, Work, wires};
use super::{Ground, quiet, until};
use crate::fabric::{event, organization};
use crate::processes::{Pair, quick};
use crate::support::{Api, PASSWORD, Proxy, Random, Redis, Socket, Way, event_type};

const ORGANIZATIONS: usize = 4;
const EVENTS: usize = 10_000;
/// Written at a time, by the organizations that they are of.
const BATCH: usize = 100;
/// Of each batch, handed in over HTTP: at both processes in turns.
const HANDED_IN: usize = 2;
const BATCH_PAUSE: Duration = Duration::from_millis(40);
/// Firings of one Connection that did not come to be, of which the newest are kept.
const SKIPPED_MAX: usize = 1_000;
/// Those beyond them that are not counted yet: of each process, and of what it looks at together.
const UNCOUNTED_MAX: usize = 400;
/// Events that are looked at together, in which a kept one may be older than a forgotten one.
const STRETCH: usize = 500;
/// On a machine that is busy with other tests; a quiet one takes a minute.
const SETTLING_MAX: Duration = Duration::from_mins(6);
/// For what is only waited for, on a machine that is busy with other work.
const PATIENCE: Duration = Duration::from_mins(4);
/// The last event of each organization.
const END: &str = "the-end";

/// An organization with events, and how to listen to it.
struct Place {
    org: OrgId,
    /// An administrator of the organization alone, at each process.
    admins: [Api; 2],
    /// The number of the newest event from before the test's own.
    first_seq: i64,
}

#[derive(Debug, FromRow)]
struct Run {
    connection_id: Uuid,
    event_seq: i64,
    state: String,
    reason: Option<String>,
    owner: Option<Uuid>,
    /// When its event happened.
    happened_at: Timestamp,
}

/// All that a listener heard: organization, number, type.
type Heard = Vec<(String, i64, String)>;

/// The expected outcome of the events.
struct Expected {
    /// By Connection and number.
    fates: BTreeMap<String, BTreeMap<i64, Fate>>,
    /// The names of events, by organization and number.
    names: HashMap<(OrgId, i64), String>,
    /// Rows of runs, fired or not.
    rows: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_events_fire_what_they_must_once_while_redis_is_cut() {
    let redis = Redis::start();
    let (way, url) = Proxy::to_redis(&redis.url()).await;
    let Some(pair) = Pair::start(quick().with("CACHE_URL", url)).await else { return };
    let ground = Ground::of(&pair).await;
    let mut random = Random::new();
    let seed = random.seed;
    let places = places(&pair, &ground).await;
    let wires: Vec<Wire> =
        places.iter().enumerate().flat_map(|(at, place)| wires(&mut random, at, place.org)).collect();
    let ids = connect_all(&pair.a.api, &ground, &wires, &pair.controller).await;
    assert_eq!(ids.len(), 100);
    let listeners = listen(&pair, &places).await;

    let mut facts: Vec<(usize, Fact)> = (0..EVENTS)
        .map(|n| (*random.pick(&[0, 1, 2, 3]), Fact::random(&mut random, format!("e-{n}"))))
        .collect();
    let mut batches = facts.chunks(BATCH);
    tell(&ground, &places, batches.by_ref().take(40)).await;
    way.set(Way::Cut);
    tokio::join!(
        until_health(&pair, &["cache", "event_wakeups"]),
        tell(&ground, &places, batches.by_ref().take(30))
    );
    let meanwhile = both_go_on(&ground, &places).await;
    way.set(Way::Open);
    tokio::join!(until_health(&pair, &[]), tell(&ground, &places, batches));
    facts.extend(meanwhile);
    settle(&ground, &expected(&ground, &places, &wires, &facts).await, seed).await;

    for (at, place) in places.iter().enumerate() {
        let end = Fact::plain(event_type("device.offline"), END);
        ground.tell(&[event(end.event_type, place.org, end.payload())]).await;
        facts.push((at, end));
    }
    let heard: Vec<Heard> =
        futures::future::join_all(listeners).await.into_iter().map(Result::unwrap).collect();
    let expected = expected(&ground, &places, &wires, &facts).await;
    settle(&ground, &expected, seed).await;
    let runs = runs(&ground).await;
    for (wire, id) in wires.iter().zip(&ids) {
        let own = runs.get(id).map(Vec::as_slice).unwrap_or_default();
        check(wire, &expected.fates[&wire.name], own, seed);
    }
    let owners: BTreeSet<Uuid> = runs.values().flatten().filter_map(|run| run.owner).collect();
    assert_eq!(owners.len(), 2, "both processes carried runs out");
    done_once(&pair, &ground, &wires.iter().zip(ids).collect::<Vec<_>>(), &runs, &expected.names).await;
    heard_all(&ground, &places, &heard).await;
    ground.db.close().await;
}

/// The pair's organization and three more, when nothing happens in them now.
async fn places(pair: &Pair, ground: &Ground) -> Vec<Place> {
    quiet(pair).await;
    let mut orgs = vec![organization(&pair.a.api).await];
    for name in ["Umbrella", "Initech", "Hooli"].iter().take(ORGANIZATIONS - 1) {
        let made = pair.a.api.post("/organizations", &json!({ "name": name })).await.expect_status(201).body;
        orgs.push(crate::fabric::id_of(&made).parse().unwrap());
    }
    let mut places = Vec::new();
    for (at, org) in orgs.into_iter().enumerate() {
        let name = format!("admin-{at}");
        let mut tx = ground.db.write().await.unwrap();
        let first = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
        let new = NewUser {
            id: ground.clock.new_id(),
            org_id: org,
            username: name.clone(),
            email: format!("{name}@acme.test"),
            full_name: None,
            password_hash: first.password_hash,
            role: Role::OrgAdmin,
            now: ground.clock.now(),
        };
        users::insert(&mut tx, &new).await.unwrap();
        let first_seq = heddle_store::events::last_seq(&mut tx, org).await.unwrap();
        tx.commit().await.unwrap();
        let login = json!({ "login": name, "password": PASSWORD });
        let tokens = pair.a.api.post("/auth/login", &login).await.expect_status(200).body;
        let token = tokens["access_token"].as_str().unwrap();
        let admins = [pair.a.api.with_token(token), pair.b.api.with_token(token)];
        places.push(Place { org, admins, first_seq });
    }
    places
}

/// The model's events have fields that no type declares, so their conditions are written past the API.
async fn connect_all(api: &Api, ground: &Ground, wires: &[Wire], controller: &str) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for wire in wires {
        let mut body = wire.body(controller);
        let conditions =
            std::mem::replace(&mut body["conditions"], json!({ "logic": "and", "conditions": [] }));
        let created = super::connect(api, body).await;
        let id: Uuid = crate::fabric::id_of(&created).parse().unwrap();
        let mut tx = ground.db.write().await.unwrap();
        let scope = heddle_store::Scope::organization(wire.org);
        let row = heddle_store::connections::find_any(&mut tx, &scope, id.into()).await.unwrap().unwrap();
        let row = heddle_store::connections::ConnectionRow {
            conditions: serde_json::from_value(conditions).unwrap(),
            ..row
        };
        heddle_store::connections::update(&mut tx, &row, ground.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        ids.push(id);
    }
    ids
}

/// At each process one who hears everything, and one of each organization.
async fn listen(pair: &Pair, places: &[Place]) -> Vec<JoinHandle<Heard>> {
    let mut listeners = Vec::new();
    for (at, process) in [&pair.a, &pair.b].into_iter().enumerate() {
        let socket = Socket::subscribe(&process.api, &["*"]).await;
        listeners.push((socket, places.len()));
        for place in places {
            let patterns = ["device.*", "controller.*", "user.*"];
            listeners.push((Socket::subscribe(&place.admins[at], &patterns).await, 1));
        }
    }
    #[expect(clippy::disallowed_methods, reason = "a listener is the outside world")]
    listeners.into_iter().map(|(socket, ends)| tokio::spawn(hear(socket, ends))).collect()
}

/// Hears until so many organizations have come to their end.
async fn hear(mut socket: Socket, mut ends: usize) -> Heard {
    let mut heard = Vec::new();
    while ends > 0 {
        let frame = socket.next_within(SETTLING_MAX).await;
        assert_eq!(frame["type"], "event", "{frame}");
        let event = &frame["event"];
        ends -= usize::from(event["payload"]["name"] == END);
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        heard.push((text("organization_id"), event["seq"].as_i64().unwrap(), text("event_type")));
    }
    heard
}

/// Writes batches of events into the database, and hands some of them in.
async fn tell(ground: &Ground, places: &[Place], batches: impl Iterator<Item = &[(usize, Fact)]>) {
    for (round, batch) in batches.enumerate() {
        let (external, mut own): (Vec<_>, Vec<_>) =
            batch.iter().partition(|(_, fact)| fact.event_type == event_type("ingest.external"));
        for (turn, (at, fact)) in external.iter().take(HANDED_IN).enumerate() {
            hand_in(&places[*at].admins[(round + turn) % 2], fact).await;
        }
        own.extend(external.into_iter().skip(HANDED_IN));
        for (at, place) in places.iter().enumerate() {
            let of_place = own.iter().filter(|(of, _)| *of == at);
            let events: Vec<_> =
                of_place.map(|(_, fact)| event(fact.event_type, place.org, fact.payload())).collect();
            ground.tell(&events).await;
        }
        tokio::time::sleep(BATCH_PAUSE).await;
    }
}

async fn hand_in(admin: &Api, fact: &Fact) {
    let body = json!({ "name": fact.name, "payload": fact.fields() });
    admin.post("/fabric/ingest", &body).await.expect_status(202);
}

/// Health and metrics of both processes say that these are down, and no others.
async fn until_health(pair: &Pair, down: &[&str]) {
    for api in [&pair.a.api, &pair.b.api] {
        until(&format!("{down:?} are down"), PATIENCE, async || {
            let health = api.get("/health").await.body["degraded_subsystems"] == json!(down);
            let metrics = api.get_root("/metrics").await.expect_status(200).text;
            health
                && ["cache", "event_wakeups"].iter().all(|name| {
                    let up = i32::from(!down.contains(name));
                    metrics.contains(&format!("heddle_subsystem_up{{subsystem=\"{name}\"}} {up}\n"))
                })
        })
        .await;
    }
}

/// While the processes do not hear each other, what is handed in at one of them comes to the Connections, and both
/// carry out what waits.
async fn both_go_on(ground: &Ground, places: &[Place]) -> Vec<(usize, Fact)> {
    let since = ground.clock.now();
    let mut meanwhile = Vec::new();
    for turn in 0..2 {
        let fact = Fact::plain(event_type("ingest.external"), &format!("while-cut-{turn}"));
        hand_in(&places[1].admins[turn], &fact).await;
        meanwhile.push((1, fact));
    }
    until("events that are handed in meanwhile come to the Connections", PATIENCE, async || {
        let names = "SELECT COUNT(DISTINCT e.id) FROM event e JOIN connection_run r ON r.event_id = e.id
            WHERE e.payload ->> 'name' LIKE 'while-cut-%'";
        ground.count(names).await == 2
    })
    .await;
    until("both carry runs out meanwhile", PATIENCE, async || {
        let owners = "SELECT COUNT(DISTINCT owner) FROM connection_run WHERE started_at > $1";
        let owners: i64 =
            sqlx::query_scalar(owners).bind(since).fetch_one(&mut ground.connection().await).await.unwrap();
        owners == 2
    })
    .await;
    meanwhile
}

/// What the model says of all events that there are by now.
async fn expected(ground: &Ground, places: &[Place], wires: &[Wire], facts: &[(usize, Fact)]) -> Expected {
    let by_name: HashMap<(OrgId, &str), &Fact> =
        facts.iter().map(|(at, fact)| ((places[*at].org, fact.name.as_str()), fact)).collect();
    let mut expected = Expected { fates: BTreeMap::new(), names: HashMap::new(), rows: 0 };
    let mut written = 0;
    for (at, place) in places.iter().enumerate() {
        let rows: Vec<(i64, String, Option<String>)> = sqlx::query_as(
            "SELECT seq, event_type, payload ->> 'name' FROM event WHERE org_id = $1 AND seq > $2 ORDER BY seq",
        )
        .bind(place.org)
        .bind(place.first_seq)
        .fetch_all(&mut ground.connection().await)
        .await
        .unwrap();
        let mut events = Vec::new();
        for (seq, event_type, name) in &rows {
            match name.as_deref().and_then(|name| by_name.get(&(place.org, name))) {
                Some(fact) => {
                    assert_eq!(fact.event_type.as_str(), event_type);
                    expected.names.insert((place.org, *seq), fact.name.clone());
                    events.push((*seq, *fact));
                }
                // An event that the Connections that write cause; none waits for it.
                None => assert_eq!((at, event_type.as_str()), (0, "controller.change.staged")),
            }
        }
        written += events.len();
        for wire in wires.iter().filter(|wire| wire.org == place.org) {
            let fates = wire.fates(&events);
            expected.rows += fates.len() - forgotten(&fates);
            expected.fates.insert(wire.name.clone(), fates);
        }
    }
    assert_eq!(written, facts.len(), "every event is there, once");
    expected
}

/// How many firings that did not come to be are too many to be kept.
fn forgotten(fates: &BTreeMap<i64, Fate>) -> usize {
    let skipped = fates.values().filter(|fate| matches!(fate, Fate::Skipped(_))).count();
    let is_timed = fates.values().any(|fate| *fate == Fate::Timed);
    assert!(!is_timed || fates.len() <= SKIPPED_MAX, "what the clock decides must be kept");
    skipped.saturating_sub(SKIPPED_MAX)
}

async fn settle(ground: &Ground, expected: &Expected, seed: u64) {
    let what = format!("{} rows, and none of them open; seed {seed}", expected.rows);
    until(&what, SETTLING_MAX, async || {
        ground.runs().await >= expected.rows && ground.open_runs().await == 0
    })
    .await;
}

async fn runs(ground: &Ground) -> HashMap<Uuid, Vec<Run>> {
    let rows: Vec<Run> = sqlx::query_as(
        "SELECT r.connection_id, r.event_seq, r.state, r.reason, r.owner, e.occurred_at AS happened_at
            FROM connection_run r JOIN event e ON e.id = r.event_id ORDER BY r.event_seq",
    )
    .fetch_all(&mut ground.connection().await)
    .await
    .unwrap();
    let mut runs: HashMap<Uuid, Vec<Run>> = HashMap::new();
    for run in rows {
        runs.entry(run.connection_id).or_default().push(run);
    }
    runs
}

/// The runs of a Connection are what the model says; what was forgotten is old.
fn check(wire: &Wire, fates: &BTreeMap<i64, Fate>, runs: &[Run], seed: u64) {
    let seqs: BTreeSet<i64> = runs.iter().map(|run| run.event_seq).collect();
    assert_eq!(seqs.len(), runs.len(), "seed {seed}, {wire:?}: each event once");
    let least = fates.len() - forgotten(fates);
    let most = fates.len().min(least + UNCOUNTED_MAX);
    assert!(
        (least..=most).contains(&runs.len()),
        "seed {seed}, {wire:?}: {} of {least} to {most}",
        runs.len()
    );
    let mut fired_at: Option<Timestamp> = None;
    for run in runs {
        let fate = fates.get(&run.event_seq).unwrap_or_else(|| panic!("seed {seed}, {wire:?}: {run:?}"));
        let has_fired = run.state == "success";
        let reason = run.reason.as_deref().unwrap_or_default();
        let fits = match fate {
            Fate::Fires => has_fired,
            Fate::Skipped(why) => run.state == "skipped" && reason.starts_with(why.as_str()),
            Fate::Timed => {
                let since = fired_at.map(|at| (run.happened_at - at).num_milliseconds());
                let is_ready = since.is_none_or(|since| since >= wire.cooldown_secs * 1000);
                has_fired == is_ready
                    && (has_fired || (run.state == "skipped" && reason.starts_with("cooldown: ")))
            }
        };
        assert!(fits, "seed {seed}, {wire:?}: {run:?}, expected {fate:?}");
        if has_fired {
            fired_at = Some(run.happened_at);
        }
    }
    let skipped: Vec<i64> =
        fates.iter().filter(|(_, fate)| matches!(fate, Fate::Skipped(_))).map(|(seq, _)| *seq).collect();
    let surely = skipped.len().min(SKIPPED_MAX.saturating_sub(STRETCH));
    for seq in &skipped[skipped.len() - surely..] {
        assert!(seqs.contains(seq), "seed {seed}, {wire:?}: {seq} is among the newest and not there");
    }
}

/// Every step was done once: in the log of one process, or in the table of changes.
async fn done_once(
    pair: &Pair,
    ground: &Ground,
    wires: &[(&Wire, Uuid)],
    runs: &HashMap<Uuid, Vec<Run>>,
    names: &HashMap<(OrgId, i64), String>,
) {
    let (mut logged, mut staged) = (Vec::new(), Vec::new());
    for (wire, id) in wires {
        for run in runs.get(id).into_iter().flatten().filter(|run| run.state == "success") {
            let event = &names[&(wire.org, run.event_seq)];
            match wire.work {
                Work::Log => logged.push(format!("{} {}", wire.name, run.event_seq)),
                Work::Stage => staged.push(format!("{}-{event}", wire.name)),
            }
        }
    }
    assert!((8_000..18_000).contains(&logged.len()), "{} lines", logged.len());
    // Thirteen by expectation: of so few, one run in a hundred has five or less.
    assert!(!staged.is_empty());
    let logs = pair.log_of_a() + &pair.log_of_b();
    let mut lines: Vec<String> = logs.lines().filter_map(logged_by).collect();
    lines.sort_unstable();
    logged.sort_unstable();
    assert_eq!(lines.len(), logged.len(), "as many lines as runs");
    assert!(lines == logged, "a line for each run");
    let mut changes: Vec<String> = sqlx::query_scalar("SELECT payload ->> 'name' FROM change")
        .fetch_all(&mut ground.connection().await)
        .await
        .unwrap();
    changes.sort_unstable();
    staged.sort_unstable();
    assert_eq!(changes, staged, "a change for each run");
}

/// Connection and event of a line that a step wrote.
fn logged_by(line: &str) -> Option<String> {
    let (_, said) = line.split_once("did w-")?;
    let end = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == ' ');
    let said = said.split(end).next()?;
    let mut words = said.split(' ');
    Some(format!("w-{} {}", words.next()?, words.next()?))
}

/// Every listener heard what there is for it, once and in order.
async fn heard_all(ground: &Ground, places: &[Place], all: &[Heard]) {
    assert_eq!(all.len(), 2 * (1 + places.len()));
    for of_process in all.chunks(1 + places.len()) {
        for (at, place) in places.iter().enumerate() {
            let rows: Vec<(i64, String)> = sqlx::query_as(
                "SELECT seq, event_type FROM event WHERE org_id = $1 AND seq > $2 ORDER BY seq",
            )
            .bind(place.org)
            .bind(place.first_seq)
            .fetch_all(&mut ground.connection().await)
            .await
            .unwrap();
            assert!((place.first_seq + 1..).zip(&rows).all(|(seq, row)| seq == row.0), "numbers have no gap");
            let org = place.org.to_string();
            let of_org = |heard: &Heard| -> Vec<(i64, String)> {
                let own = heard.iter().filter(|(of, ..)| *of == org);
                own.map(|(_, seq, event_type)| (*seq, event_type.clone())).collect()
            };
            assert!(of_org(&of_process[0]) == rows, "who hears everything heard it, once and in order");
            let admin = &of_process[1 + at];
            let own: Vec<(i64, String)> = rows
                .into_iter()
                .filter(|(_, event_type)| {
                    ["device.", "controller.", "user."].iter().any(|begin| event_type.starts_with(begin))
                })
                .collect();
            assert!(of_org(admin) == own, "an administrator heard their organization's");
            assert_eq!(admin.len(), own.len(), "and no other's");
        }
    }
}
