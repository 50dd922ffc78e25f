//! Changes at sites of the vendor's own: which callers act on them when the place of one is another than before.

use heddle_core::{Role, SiteLevel};
use heddle_store::object::Object as _;
use heddle_store::vendor_sites::{self, Choice};
use heddle_store::{Controller, Scope};
use serde_json::{Value, json};

use super::Lab as RouterLab;
use super::scripted::{Device, Scripted, before};
use crate::devices::member;
use crate::inventory::read;
use crate::support::{Answer, Api, Database, on_both};

/// The controller has the sites `a` and `b`. The first is the head office, the second the branch.
struct World {
    lab: Scripted,
    head: String,
    branch: String,
    /// May write at the branch, and read at the head office.
    bo: Api,
}

fn id_of(object: &Value) -> String {
    object["id"].as_str().expect("an object has an id").to_owned()
}

impl World {
    async fn start(database: Database) -> Self {
        let device = Device::start().await;
        device.script().sites = vec!["a", "b"];
        let lab = Scripted::start_on(database, device).await;
        read(&lab.api, &lab.controller).await;
        let head = id_of(&lab.api.get("/sites").await.expect_status(200).body["items"][0]);
        let branch =
            id_of(&lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body);
        let grants = [(branch.as_str(), SiteLevel::Write), (head.as_str(), SiteLevel::Read)];
        let bo = member(&lab.server, "bo", Role::SiteAdmin, &grants).await;
        let world = Self { lab, head, branch, bo };
        world.choose(&json!({ "site_id": world.branch })).await;
        world
    }

    /// Says what the site `b` is to us.
    async fn choose(&self, choice: &Value) {
        let path = format!("/controllers/{}/vendor-sites/b", self.lab.controller);
        self.lab.api.post(&path, choice).await.expect_status(200);
    }

    /// Asks for a change at the site `b`.
    async fn ask(&self, api: &Api, name: &str) -> Answer {
        let controller = &self.lab.controller;
        let path = format!(
            "/gateway-hostile-lab/{controller}/changes/hostile.lab.thing?operation=update&site_ref=b"
        );
        let body = json!({ "payload": { "trick": format!("scripted {name}") } });
        api.post(&path, &body).await
    }

    async fn stage(&self, name: &str) -> Value {
        let staged = self.ask(&self.bo, name).await.expect_status(201).body;
        assert_eq!((&staged["site_id"], &staged["site_ref"]), (&json!(self.branch), &json!("b")));
        staged
    }

    /// Waits until as many plans were asked for as these, which wait.
    async fn planning(&self, plans: usize) {
        while self.lab.script().plans < plans {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    async fn reads(&self) {
        read(&self.lab.api, &self.lab.controller).await;
    }
}

async fn act(api: &Api, change: &Value, verb: &str) -> Answer {
    let body = if verb == "apply" { json!({ "force": true }) } else { json!({}) };
    api.post(&RouterLab::path(change, verb), &body).await
}

on_both! {
    async fn a_grant_to_read_is_not_enough_where_a_change_is_now(database: Database) {
        let world = World::start(database).await;
        let root = &world.lab.api;
        let changes = [world.stage("pending").await, world.stage("half done").await];
        let other = json!({ "standing": { "half": true }, "items": [], "foreign": [] });
        for stage in ["apply", "undo", "restore"] {
            world.lab.script().then.insert(stage.to_owned(), other.clone());
        }
        assert_ne!(act(&world.bo, &changes[1], "apply").await.status, 200);
        let seen = root.get(&RouterLab::path(&changes[1], "")).await.expect_status(200).body;
        assert_eq!(seen["outcome"]["state"], "partial", "{seen}");
        world.lab.script().compare = before();
        let before = world.lab.script().sent.clone();
        // The branch is removed while no controller is at it: the site 'b' of the vendor's is at the head office then.
        let controller = format!("/controllers/{}", world.lab.controller);
        root.delete(&controller).await.expect_status(204);
        root.delete(&format!("/sites/{}", world.branch)).await.expect_status(204);
        root.post(&format!("{controller}/restore"), &json!({})).await.expect_status(200);
        world.bo.get(&RouterLab::path(&changes[0], "")).await.expect_status(200);
        for verb in ["plan", "apply", "verify", "discard"] {
            let refused = act(&world.bo, &changes[0], verb).await.expect_status(403);
            assert!(refused.message().contains(&world.head), "{verb}: {}", refused.text);
        }
        for verb in ["verify", "revert", "discard"] {
            let refused = act(&world.bo, &changes[1], verb).await.expect_status(403);
            assert!(refused.message().contains(&world.head), "{verb}: {}", refused.text);
        }
        assert_eq!(world.lab.script().sent, before);
        for change in &changes {
            act(root, change, "discard").await.expect_status(200);
        }
    }
}

on_both! {
    async fn a_change_of_a_controller_that_is_gone_can_be_discarded(database: Database) {
        let world = World::start(database).await;
        let change = world.stage("pending").await;
        world.lab.api.delete(&format!("/controllers/{}", world.lab.controller)).await.expect_status(204);
        act(&world.bo, &change, "discard").await.expect_status(200);
    }
}

on_both! {
    async fn a_site_that_is_mapped_while_a_change_is_planned_refuses_it(database: Database) {
        let world = World::start(database).await;
        let members = [id_of(&world.stage("one").await), id_of(&world.stage("two").await)];
        let set = json!({ "change_ids": members });
        for what in ["change", "set"] {
            let plans = world.lab.script().plans;
            world.lab.script().holds_plans = true;
            let asked = async {
                if what == "set" {
                    return world.bo.post("/gateway-vpn/changes/sets", &set).await;
                }
                world.ask(&world.bo, "late").await
            };
            let mapped = async {
                world.planning(plans + 1).await;
                world.choose(&json!({ "site_id": null })).await;
                world.lab.script().holds_plans = false;
            };
            let (refused, ()) = tokio::join!(asked, mapped);
            let refused = refused.expect_status(409);
            assert!(refused.message().contains("another site"), "{what}: {}", refused.text);
            world.choose(&json!({ "site_id": world.branch })).await;
        }
        let all = world.lab.api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(all["total"], 2, "{all}");
        world.bo.post("/gateway-vpn/changes/sets", &set).await.expect_status(201);
    }
}

on_both! {
    async fn a_site_that_is_mapped_while_an_apply_begins_takes_the_right_to_it_away(database: Database) {
        let world = World::start(database).await;
        let change = world.stage("late").await;
        let app = &world.lab.server.running().app;
        let controller = world.lab.controller.parse().unwrap();
        let mut tx = app.db.write().await.unwrap();
        Controller::lock(&mut tx, &Scope::everything(), controller).await.unwrap().unwrap();
        let mapped = async {
            // The apply waits for the controller's row by then. One that comes later is refused as well.
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            let choice = Choice { site_id: None, is_ignored: false };
            let head = world.head.parse().unwrap();
            vendor_sites::choose(&mut tx, controller, "b", &choice, head, app.clock.now()).await.unwrap();
            tx.commit().await.unwrap();
        };
        let (refused, ()) = tokio::join!(act(&world.bo, &change, "apply"), mapped);
        refused.expect_status(403);
        assert!(world.lab.script().sent.is_empty());
        let seen = world.lab.get(&change).await;
        assert_eq!((&seen["status"], &seen["outcome"]["state"]), (&json!("pending"), &json!("none")), "{seen}");
        assert_eq!((&seen["site_id"], &seen["attempts"]), (&json!(world.head), &json!([])), "{seen}");
    }
}

on_both! {
    async fn a_change_of_a_site_that_is_not_read_is_only_taken_back_or_given_up(database: Database) {
        let world = World::start(database).await;
        let (one, two, applied) = (world.stage("one").await, world.stage("two").await, world.stage("applied").await);
        act(&world.bo, &applied, "apply").await.expect_status(200);
        let known = world.lab.script().sent.clone();
        let set = json!({ "change_ids": [one["id"], two["id"]] });
        let refusals = async |words: &str| {
            for (change, verb) in [(&one, "plan"), (&one, "apply"), (&applied, "revert")] {
                let refused = act(&world.bo, change, verb).await.expect_status(409);
                assert!(refused.message().contains(words), "{verb}: {}", refused.text);
            }
            let refused = world.bo.post("/gateway-vpn/changes/sets", &set).await.expect_status(409);
            assert!(refused.message().contains(words), "set: {}", refused.text);
        };
        world.choose(&json!({ "is_ignored": true })).await;
        refusals("site 'Site b' of the controller is ignored").await;
        world.choose(&json!({ "is_ignored": false })).await;
        world.lab.script().sites = vec!["a"];
        world.reads().await;
        refusals("site 'b' of the vendor's is gone").await;
        assert_eq!(world.lab.script().sent, known);
        act(&world.bo, &one, "verify").await.expect_status(200);
        act(&world.bo, &one, "discard").await.expect_status(200);

        // What waits for its confirmation is taken back.
        world.lab.script().sites = vec!["a", "b"];
        world.reads().await;
        world.lab.script().compare = before();
        let held = json!({ "force": true, "confirm_within_secs": 60 });
        world.bo.post(&RouterLab::path(&two, "apply"), &held).await.expect_status(200);
        world.lab.script().sites = vec!["a"];
        world.reads().await;
        let back = act(&world.bo, &two, "revert").await.expect_status(200).body;
        assert_eq!(back["outcome"]["state"], "reverted", "{back}");
    }
}

on_both! {
    async fn a_change_that_was_staged_before_the_sites_were_known_is_staged_again(database: Database) {
        let lab = Scripted::start(database).await;
        let (first, second) = (lab.stage("early").await, lab.stage("as early").await);
        assert_eq!(first["site_ref"], Value::Null);
        act(&lab.api, &first, "plan").await.expect_status(200);
        lab.script().sites = vec!["a", "b"];
        read(&lab.api, &lab.controller).await;
        for verb in ["plan", "apply"] {
            let refused = act(&lab.api, &first, verb).await.expect_status(409);
            assert!(refused.message().contains("stage it again"), "{verb}: {}", refused.text);
        }
        let set = json!({ "change_ids": [first["id"], second["id"]] });
        lab.api.post("/gateway-vpn/changes/sets", &set).await.expect_status(409);
        assert!(lab.script().sent.is_empty());
        act(&lab.api, &first, "discard").await.expect_status(200);
    }
}
