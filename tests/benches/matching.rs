//! What an event costs the Connections, next to 10 and next to 10,000 of other types: it must be the same.
//!
//! Two servers, each with a database of its own, take the same events in turns. Besides the whole way, from the commit
//! of a few events to what follows from them, the query of the database is measured alone.

use std::time::Duration;

use heddle_core::condition::{Condition, Conditions, Logic, Operator};
use heddle_core::event::NewEvent;
use heddle_core::operation::{ConnectionKind, StepOutline};
use heddle_core::{OrgId, UserId};
use heddle_kernel::app::App;
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::{event_consumers, events, users};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, in_turns, ratio};
use crate::support::{Database, Options, Server, event_type};

const FEW: usize = 10;
const MANY: usize = 10_000;
/// Connections of the events' own type, none of which fires: nothing else runs.
const OWN: &[&str] = &["device.offline", "device.*", "*"];
/// The types that the others wait for.
const OTHERS: &[&str] = &[
    "controller.change.staged",
    "controller.change.applied",
    "controller.status.changed",
    "controller.*",
    "user.created",
    "user.*",
    "ingest.external",
    "automation.connection.broken",
];
/// Few at a time, so that what is done once for all of them weighs.
const EVENTS_AT_ONCE: usize = 20;
const TURNS: usize = if cfg!(debug_assertions) { 50 } else { 500 };
const WARM_UP: usize = 20;

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    for (name, few, many) in databases(runtime) {
        let mut few = runtime.block_on(Place::start(few, FEW));
        let mut many = runtime.block_on(Place::start(many, MANY));
        questions(name, runtime, report, &few, &many);
        report.noise.sample();
        events_through(name, runtime, report, &mut few, &mut many);
        report.noise.sample();
        runtime.block_on(few.server.stop());
        runtime.block_on(many.server.stop());
    }
}

fn databases(runtime: &Runtime) -> Vec<(&'static str, Database, Database)> {
    let mut databases = vec![("SQLite", Database::sqlite(), Database::sqlite())];
    let postgres = || runtime.block_on(Database::postgres());
    databases.extend(postgres().zip(postgres()).map(|(few, many)| ("PostgreSQL", few, many)));
    databases
}

/// The question by itself: the Connections of one type among all.
fn questions(name: &str, runtime: &Runtime, report: &mut Report, few: &Place, many: &Place) {
    let patterns: Vec<String> = OWN.iter().map(|pattern| (*pattern).to_owned()).collect();
    let ask = |place: &Place| {
        runtime.block_on(async {
            let mut tx = place.app().db.read().await.expect("the database answers");
            let found = connections::matching(&mut tx, place.org, &patterns).await.expect("it can be read");
            assert_eq!(found.len(), OWN.len());
        });
    };
    let (few, many) = in_turns(WARM_UP, TURNS, || ask(few), || ask(many));
    let what =
        |count: usize| format!("Connections of a type, asked of the database beside {count} others, {name}");
    rows(report, what, &few, &many);
}

/// From the commit of events to what follows from them.
fn events_through(name: &str, runtime: &Runtime, report: &mut Report, few: &mut Place, many: &mut Place) {
    let (few, many) =
        in_turns(WARM_UP, TURNS, || runtime.block_on(few.pass()), || runtime.block_on(many.pass()));
    let what = |count: usize| {
        format!(
            "{EVENTS_AT_ONCE} events, from their commit past {} Connections beside {count} others, {name}",
            OWN.len()
        )
    };
    rows(report, what, &few, &many);
}

fn rows(report: &mut Report, what: impl Fn(usize) -> String, few: &Samples, many: &Samples) {
    report.row(what(FEW), few, "", "");
    let times = ratio(many.median(), few.median());
    report.row(what(MANY), many, format!("x {times:.2}"), "x 1");
}

/// A server whose organization has some Connections.
struct Place {
    server: Server,
    org: OrgId,
    /// The number of the organization's newest event.
    newest: i64,
}

impl Place {
    async fn start(database: Database, others: usize) -> Self {
        let options = Options::default().with("SYNC_INTERVAL_SECS", "3600");
        let server = Server::start_with(database, options).await;
        server.set_up().await;
        let app = &server.running().app;
        let mut tx = app.db.write().await.expect("the database answers");
        let author =
            users::find_by_login(&mut tx, "ada").await.expect("it can be read").expect("there is one");
        let (org, author) = (author.user.org_id, author.user.id);
        let patterns = OTHERS.iter().cycle().take(others).chain(OWN);
        for (number, pattern) in patterns.enumerate() {
            let row = connection(app, org, author, number, pattern);
            connections::insert(&mut tx, &row).await.expect("it is written");
        }
        let newest = events::last_seq(&mut tx, org).await.expect("it can be read");
        tx.commit().await.expect("it is written");
        Self { server, org, newest }
    }

    fn app(&self) -> &App {
        &self.server.running().app
    }

    /// Writes some events and waits until the Connections have passed them.
    async fn pass(&mut self) {
        let event = NewEvent {
            event_type: event_type("device.offline"),
            org_id: self.org,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: json!({ "name": "edge" }),
        };
        self.newest += i64::try_from(EVENTS_AT_ONCE).expect("it is small");
        let app = self.app();
        let mut tx = app.db.write().await.expect("the database answers");
        let news = vec![event; EVENTS_AT_ONCE];
        events::append_all(&mut tx, self.org, &news, &app.clock).await.expect("it is written");
        tx.commit().await.expect("it is written");
        loop {
            let mut tx = app.db.read().await.expect("the database answers");
            let positions = event_consumers::positions(&mut tx, "fabric").await.expect("it can be read");
            if positions.get(&self.org) >= Some(&self.newest) {
                return;
            }
            drop(tx);
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    }
}

/// One that matches by its pattern alone, and never fires.
fn connection(app: &App, org: OrgId, author: UserId, number: usize, pattern: &str) -> ConnectionRow {
    let now = app.clock.now();
    let never = Condition { field: "name".to_owned(), operator: Operator::Eq, value: json!("another") };
    ConnectionRow {
        name: format!("Connection {number}"),
        source_event: pattern.to_owned(),
        conditions: Conditions { logic: Logic::And, conditions: vec![never] },
        steps: vec![StepOutline {
            operation_id: "fabric.log".to_owned(),
            continue_on_error: false,
            when: None,
            for_each: None,
            on_error: false,
        }],
        // Its empty secret is never opened: no run begins.
        ..ConnectionRow::draft(app.clock.new_id(), ConnectionKind::Connection, org, author, now)
    }
}
