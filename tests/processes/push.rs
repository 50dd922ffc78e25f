//! One process has the channels of a controller open. When it dies, another one goes on, and nothing that was told is lost.

use std::time::Duration;

use heddle_lab::{Fault, Lab};
use heddle_lab_unifi::{Console, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{number, quick, set_up};
use crate::support::{Adapters, Api, Database, Options, Place, Process, Random, Socket, until};

/// Rounds in which the process that has the channel open is killed at any time.
const KILLS: usize = 6;

/// Two processes that serve one `PostgreSQL`, and a console. The first process has its channel open.
struct World {
    processes: [Process; 2],
    console: Lab<Console>,
    controller: String,
    database: Database,
    token: String,
    folders: [TempDir; 2],
}

fn options() -> Options {
    quick()
        .with("INVENTORY_INTERVAL_SECS", "3600")
        .with("PUSH_ENABLED", "true")
        .serving(Adapters::Of(vec!["unifi".to_owned()]))
}

async fn register(api: &Api, console: &Lab<Console>, key: &str) -> String {
    let credential = json!({ "name": "key", "api_key": key });
    let credential = api.post("/credentials", &credential).await.expect_status(201).body;
    let sites = api.get("/sites").await.expect_status(200).body;
    let body = json!({
        "name": "console", "site_id": sites["items"][0]["id"], "vendor": "unifi", "url": console.url(),
        "credential_id": credential["id"], "settings": { "login": "api-key", "site": "default" },
    });
    let controller = api.post("/controllers", &body).await.expect_status(201).body;
    controller["id"].as_str().expect("an id").to_owned()
}

impl World {
    /// `None` where the tests run without `PostgreSQL`.
    async fn start() -> Option<Self> {
        let database = Database::postgres().await?;
        let settings = Settings::default();
        let key = settings.api_keys[0].clone();
        let console = Lab::builder(Console::new(settings)).start().await;
        let folders = [0, 1].map(|_| tempfile::tempdir().expect("a folder can be made"));
        let first = Process::start(folders[0].path(), &database, &options()).await;
        let token = set_up(&first).await;
        let first = first.with_token(&token);
        let controller = register(&first.api, &console, &key).await;
        stands(&first.api, &controller, "live").await;
        let second = Process::start(folders[1].path(), &database, &options()).await.with_token(&token);
        let world = Self { processes: [first, second], console, controller, database, token, folders };
        world.settled().await;
        Some(world)
    }

    async fn stands(&self, process: usize, state: &str) {
        stands(&self.processes[process].api, &self.controller, state).await;
    }

    /// Waits until everything that was told is read, and nothing is being read.
    async fn settled(&self) {
        let left = "SELECT (SELECT COUNT(*) FROM push_wanted)
            + (SELECT COUNT(*) FROM controller WHERE sync_owner IS NOT NULL)";
        until("what the console told is read", async || number(&self.database, left).await == 0).await;
    }

    /// Waits until the row of a network's new name is written.
    async fn written(&self) {
        let written = "SELECT COUNT(*) FROM push_wanted WHERE kind = 'vlan'";
        until("what the console told is written", async || number(&self.database, written).await == 1).await;
    }

    async fn restart(&mut self, process: usize) {
        let folder = self.folders[process].path();
        let started = Process::start(folder, &self.database, &options()).await;
        self.processes[process] = started.with_token(&self.token);
    }

    /// How often the channel was asked for.
    fn openings(&self) -> usize {
        self.console
            .record()
            .iter()
            .filter(|exchange| exchange.path.ends_with("/wss/s/default/events"))
            .count()
    }

    /// A person gives a network another name.
    fn rename(&self, from: &str, to: &str) {
        let edit = json!({ "do": "update", "table": "networkconf", "which": from, "body": { "name": to } });
        self.console.edit(&edit).expect("the console has the network");
    }

    /// From now on the console opens no channel. One that is open stays.
    fn refuse(&self) {
        self.console.fault(Fault::vendor("events_refused", Value::Null));
    }

    /// The events that a process tells its clients.
    async fn events(&self, process: usize) -> Socket {
        Socket::subscribe(&self.processes[process].api, &["device.*", "controller.*"]).await
    }
}

async fn stands(api: &Api, controller: &str, state: &str) {
    let path = format!("/controllers/{controller}");
    until(&format!("the channel is {state}"), async || {
        api.get(&path).await.expect_status(200).body["push"]["state"] == state
    })
    .await;
}

/// What the event says of a network with another name.
fn renamed(to: &str) -> Value {
    json!({ "kind": "vlan", "after": { "name": to } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_is_open_once_and_another_process_opens_it_when_its_owner_dies() {
    let Some(mut world) = World::start().await else { return };
    let opened = world.openings();
    // Several looks of both processes.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((world.openings(), world.console.lock().listeners()), (opened, 1));
    let mut events = world.events(1).await;
    world.processes[0].kill();
    world.rename("Office", "Desk");
    events.event_saying(&renamed("Desk")).await;
    world.stands(1, "live").await;
    assert_eq!((world.openings(), world.console.lock().listeners()), (opened + 1, 1));
    // It tells as before.
    world.rename("Desk", "Office");
    events.event_saying(&renamed("Office")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_before_a_kill_is_read_by_the_other_process() {
    let Some(mut world) = World::start().await else { return };
    let mut events = world.events(1).await;
    // No reading begins for a while, and the other process cannot open the channel, which would ask for everything.
    let rests =
        "UPDATE controller SET push_rest_until = NOW() + INTERVAL '8 seconds' RETURNING CAST(1 AS BIGINT)";
    assert_eq!(number(&world.database, rests).await, 1);
    world.refuse();
    world.rename("Office", "Desk");
    world.written().await;
    world.processes[0].kill();
    events.event_saying(&renamed("Desk")).await;
    world.stands(1, "polling").await;
    assert_eq!(world.console.lock().listeners(), 0, "no channel told it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_that_dies_with_its_process_is_begun_again_by_the_other() {
    let Some(mut world) = World::start().await else { return };
    let mut events = [world.events(0).await, world.events(1).await];
    world.refuse();
    // The first request of the list is never answered.
    world.console.fault(Fault::hang().on("GET", "*/rest/networkconf").times(1));
    world.rename("Office", "Desk");
    world.written().await;
    until("the list is asked for", async || {
        world.console.record().iter().any(|exchange| exchange.faults.iter().any(|fault| fault == "hang"))
    })
    .await;
    // Any process reads what one has written. The first one has the channel.
    let same = "SELECT COUNT(*) FROM controller WHERE sync_owner = push_owner";
    let (reader, other) = if number(&world.database, same).await == 1 { (0, 1) } else { (1, 0) };
    world.processes[reader].kill();
    events[other].event_saying(&renamed("Desk")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_of_the_owner_loses_what_was_told() {
    let Some(mut world) = World::start().await else { return };
    let mut random = Random::new();
    for round in 0..KILLS {
        let _place = Place(format!("seed {}, round {round}", random.seed));
        let (owner, other) = (round % 2, (round + 1) % 2);
        let (from, to) = if owner == 0 { ("Office", "Desk") } else { ("Desk", "Office") };
        let mut events = world.events(other).await;
        world.rename(from, to);
        // Before the row, before the reading, in it, or behind it.
        tokio::time::sleep(Duration::from_millis(random.next(1_000))).await;
        world.processes[owner].kill();
        events.event_saying(&renamed(to)).await;
        world.restart(owner).await;
        world.stands(other, "live").await;
        world.settled().await;
    }
}
