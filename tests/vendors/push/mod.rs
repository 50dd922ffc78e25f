//! What controllers tell on their channels, with every vendor whose manifest has any: an edit becomes an event at once, nothing is
//! lost with a connection, and without a channel the interval finds it.

mod at_once;
mod cut;
mod refused;

use heddle_core::ControllerId;
use heddle_marketplace::manifest::Manifest;
use heddle_store::push::wanted;
use serde_json::{Value, json};

use super::Lab;
use super::practice::{self, Opened, Pushes, Vendor};
use crate::support::{Adapters, Database, Options, Server, Socket, packages, until};

/// A controller whose channels are open and whose first readings are over.
struct Telling {
    lab: Lab,
    pushes: Pushes,
    events: Socket,
}

impl Telling {
    /// Reads the controller every so many seconds. `None` for a vendor whose controllers tell nothing.
    ///
    /// Those that open the channels themselves get address and secret from a person.
    async fn start(vendor: &'static dyn Vendor, interval_secs: &str) -> Option<Self> {
        let pushes = vendor.pushes()?;
        let options = Options::default()
            .with("SYNC_INTERVAL_SECS", interval_secs)
            .with("INVENTORY_INTERVAL_SECS", interval_secs)
            .with("PUSH_ENABLED", "true")
            .serving(Adapters::Of(vec![vendor.id().to_owned()]));
        let server = Server::start_with(Database::sqlite(), options).await;
        let lab = Lab::on(server, vendor, vendor.start().await).await;
        let events = Socket::subscribe(&lab.api, &["device.*", "controller.*"]).await;
        let telling = Self { lab, pushes, events };
        if let Opened::ByController(enter) = telling.pushes.opened {
            let made = telling
                .lab
                .api
                .post(&format!("{}/push/secret", telling.path()), &json!({}))
                .await
                .expect_status(200)
                .body;
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            let url = text(&made["hooks"][0]["url"]);
            let (_, path) = url.split_once("/api/v1").expect("an address of the API");
            enter(
                &*telling.lab.device,
                &format!("{}/api/v1{path}", telling.lab.api.base()),
                &text(&made["secret"]),
            );
        }
        telling.stands("live").await;
        telling.settled().await;
        Some(telling)
    }

    fn path(&self) -> String {
        format!("/controllers/{}", self.lab.controller)
    }

    async fn push(&self) -> Value {
        self.lab.api.get(&self.path()).await.expect_status(200).body["push"].clone()
    }

    /// Waits until the channels stand like this; returns the reason.
    async fn stands(&self, state: &str) -> Value {
        let what = format!("{}: the channels are {state}", self.lab.vendor.id());
        until(&what, async || self.push().await["state"] == state).await;
        self.push().await["reason"].clone()
    }

    /// Waits until nothing is left to be read of what was told by now.
    async fn settled(&self) {
        let app = &self.lab.server.running().app;
        let controller: ControllerId = self.lab.controller.parse().expect("an id");
        until("what the controller told is read", async || {
            let mut tx = app.db.read().await.unwrap();
            wanted::of(&mut tx, controller, app.clock.now()).await.unwrap().is_empty()
        })
        .await;
    }

    /// The fault that refuses the channels, and the reason then. `None` where the controller opens them.
    fn refusal(&self) -> Option<(&Value, &'static str)> {
        match &self.pushes.opened {
            Opened::ByHost { refusal, reason } => Some((refusal, reason)),
            Opened::ByController(_) => None,
        }
    }

    fn edit(&self, number: usize) {
        self.lab.device.edit(&self.pushes.edits[number % 2].order);
    }

    /// Waits for the event of this edit.
    async fn event_of(&mut self, number: usize) {
        self.events.event_saying(&self.pushes.edits[number % 2].says).await;
    }

    /// Has a person switch the channels on or off.
    async fn switch(&self, is_on: bool) {
        self.lab.api.patch(&self.path(), &json!({ "push_enabled": is_on })).await.expect_status(200);
    }
}

#[test]
fn every_vendor_with_channels_is_tested_here() {
    for vendor in practice::all() {
        let manifest = std::fs::read(packages().join(vendor.id()).join("manifest.json"));
        let manifest: Manifest = serde_json::from_slice(&manifest.expect("packages are built")).unwrap();
        assert_eq!(vendor.pushes().is_some(), !manifest.push.is_empty(), "{}", vendor.id());
    }
}
