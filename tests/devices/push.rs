//! Whether a controller tells what changes: who sees and switches it, and what an edit of it is.

use heddle_core::push::PushState;
use heddle_core::{ControllerId, Role, SiteLevel};
use heddle_store::push::{self, Push};
use serde_json::{Value, json};

use super::{audited, id_of, member};
use crate::inventory::{Device, Lab};
use crate::support::{Api, Database, on_both};

/// A controller whose adapter has no channel, so that no process says how they stand.
async fn start(database: Database) -> Lab {
    Lab::start(database, Device::start().await).await
}

impl Lab {
    fn controller_path(&self) -> String {
        format!("/controllers/{}", self.controller)
    }

    /// Has the channels of the controller stand like this, as a process says that is gone by now.
    async fn polls(&self, reason: &str) {
        let app = &self.server.running().app;
        let id: ControllerId = self.controller.parse().unwrap();
        let (owner, since) = (app.clock.new_id(), Some(app.clock.now()));
        let polling = Push { state: Some(PushState::Polling), since, reason: Some(reason.to_owned()) };
        let mut tx = app.db.write().await.unwrap();
        assert!(push::claim(&mut tx, &[id], owner).await.unwrap().contains(&id));
        push::set_state(&mut tx, id, owner, &polling).await.unwrap();
        tx.commit().await.unwrap();
    }
}

async fn got(api: &Api, path: &str) -> Value {
    api.get(path).await.expect_status(200).body
}

/// The ids of a list of controllers.
async fn listed(api: &Api, query: &str) -> Vec<Value> {
    let page = got(api, &format!("/controllers?{query}")).await;
    page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
}

on_both! {
    async fn a_controller_says_how_its_channels_stand(database: Database) {
        let lab = start(database).await;
        let path = lab.controller_path();
        let known = got(&lab.api, &path).await;
        assert_eq!((&known["push"], &known["push_enabled"]), (&Value::Null, &json!(true)));
        let second = lab.device.register(&lab.api, "second", &lab.site).await;
        lab.polls("status 404").await;
        let known = got(&lab.api, &path).await;
        let push = &known["push"];
        assert_eq!((&push["state"], &push["reason"]), (&json!("polling"), &json!("status 404")), "{known}");
        assert!(push["since"].is_string(), "{known}");
        assert_eq!(listed(&lab.api, "push_state=polling").await, [json!(lab.controller)]);
        assert!(listed(&lab.api, "push_state=live").await.is_empty());
        assert!(listed(&lab.api, "").await.contains(&json!(second)));
        lab.api.get("/controllers?push_state=loud").await.expect_status(422);
    }
}

on_both! {
    async fn how_channels_stand_is_no_edit(database: Database) {
        let lab = start(database).await;
        let path = lab.controller_path();
        let before = lab.api.get(&path).await.expect_status(200);
        lab.polls("status 404").await;
        let after = lab.api.get(&path).await.expect_status(200);
        assert_ne!(before.body["push"], after.body["push"]);
        assert_eq!(before.header("etag"), after.header("etag"));
        let matched = lab.api.with("if-match", before.header("etag"));
        let off = matched.patch(&path, &json!({ "push_enabled": false })).await.expect_status(200);
        assert_ne!(off.header("etag"), before.header("etag"), "a person switched it");
        assert_eq!(off.body["push_enabled"], false);
        let entry = audited(&lab.api, "controller.updated").await.remove(0);
        let detail = (&entry["detail"]["before"]["push_enabled"], &entry["detail"]["after"]["push_enabled"]);
        assert_eq!(detail, (&json!(true), &json!(false)), "{entry}");
    }
}

on_both! {
    async fn the_switch_is_for_administrators_of_the_site(database: Database) {
        let lab = start(database).await;
        let path = lab.controller_path();
        let known = got(&lab.api, &path).await;
        let site = known["site_id"].as_str().unwrap();
        let off = json!({ "push_enabled": false });
        let viewer = member(&lab.server, "vera", Role::Viewer, &[]).await;
        assert_eq!(got(&viewer, &path).await["push_enabled"], true);
        viewer.patch(&path, &off).await.expect_status(403);
        let reader = member(&lab.server, "rita", Role::OrgAdmin, &[(site, SiteLevel::Read)]).await;
        reader.patch(&path, &off).await.expect_status(403);
        let keeper = member(&lab.server, "kay", Role::OrgAdmin, &[(site, SiteLevel::Admin)]).await;
        keeper.patch(&path, &off).await.expect_status(200);
        let other = lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let elsewhere = member(&lab.server, "eva", Role::OrgAdmin, &[(id_of(&other), SiteLevel::Admin)]).await;
        elsewhere.get(&path).await.expect_status(404);
        elsewhere.patch(&path, &off).await.expect_status(404);
        lab.polls("switched off").await;
        assert!(listed(&elsewhere, "push_state=polling").await.is_empty());
        for wrong in [json!({ "push_enabled": null }), json!({ "push_enabled": "no" }), json!({ "push": {} })] {
            lab.api.patch(&path, &wrong).await.expect_status(422);
        }
    }
}

on_both! {
    async fn a_controller_is_registered_with_its_switch(database: Database) {
        let lab = start(database).await;
        let known = got(&lab.api, &lab.controller_path()).await;
        let mut new = json!({ "name": "quiet", "url": "http://127.0.0.1:9", "push_enabled": false });
        for field in ["site_id", "vendor", "credential_id"] {
            new[field] = known[field].clone();
        }
        let made = lab.api.post("/controllers", &new).await.expect_status(201).body;
        assert_eq!((&made["push_enabled"], &made["push"]), (&json!(false), &Value::Null));
    }
}

on_both! {
    async fn the_event_says_which_controller_stands_how(database: Database) {
        let lab = start(database).await;
        let types = got(&lab.api, "/events/types").await;
        let found = types.as_array().unwrap().iter().find(|item| item["event_type"] == "controller.push.changed");
        let schema = &found.expect("the type is declared")["payload_schema"];
        for field in ["controller_id", "site_id", "push_state", "since", "reason"] {
            assert!(schema["properties"][field].is_object(), "{field}: {schema}");
        }
    }
}
