//! A controller that tells what changed with requests to the service: what proves them, and what comes of them.

use chrono::TimeDelta;
use heddle_core::{ControllerId, Role, SiteLevel};
use heddle_store::push::wanted;
use serde_json::{Value, json};

use super::{Device, Lab, id_of, two_ports};
use crate::devices::member;
use crate::support::{Answer, Api, Database, on_both, until};

/// A device with two ports, whose controller is read once and then not for an hour, and has a hook.
async fn start(database: Database) -> Lab {
    let device = Device::start().await;
    device.declare(&json!({
        "api": "1.1",
        "push": { "webhook": {
            "hook": { "proof": { "scheme": "token", "at": { "json": "/secret" } }, "quiet-s": 3_600 },
            "settle-ms": 0,
            "rules": [{ "when": { "/what": ["port*"] }, "reads": ["port"] }]
        } }
    }));
    device.tell("port", two_ports());
    let options = device.options().with("SYNC_INTERVAL_SECS", "3600").with("INVENTORY_INTERVAL_SECS", "3600");
    let options = options.with("PUSH_ENABLED", "true");
    let lab = Lab::start_with(database, device, options).await;
    lab.device.script().asked.clear();
    lab
}

impl Lab {
    fn secret_path(&self) -> String {
        format!("/controllers/{}/push/secret", self.controller)
    }

    async fn makes_secret(&self) -> String {
        let made = self.api.post(&self.secret_path(), &json!({})).await.expect_status(200).body;
        made["secret"].as_str().expect("a secret").to_owned()
    }

    /// Sends what the controller would.
    async fn hears(&self, secret: &str, what: &str) -> Answer {
        sent(&self.server.nobody(), &format!("/controllers/{}/push/webhook", self.controller), secret, what)
            .await
    }

    /// How the channels stand: state and reason.
    async fn stands(&self) -> (Value, String) {
        let path = format!("/controllers/{}", self.controller);
        let push = self.api.get(&path).await.expect_status(200).body["push"].clone();
        (push["state"].clone(), push["reason"].as_str().unwrap_or_default().to_owned())
    }

    async fn comes_to(&self, state: &str, reason: &str) {
        until(&format!("the channels are {state} {reason}"), async || {
            let (is, why) = self.stands().await;
            is == *state && why.contains(reason)
        })
        .await;
    }

    async fn entries(&self, action: &str) -> Vec<Value> {
        let page = self.api.get(&format!("/audit?action={action}")).await.expect_status(200).body;
        page["items"].as_array().expect("a page has items").clone()
    }
}

async fn sent(api: &Api, path: &str, secret: &str, what: &str) -> Answer {
    let body = json!({ "secret": secret, "what": what }).to_string();
    api.send("POST", path, Some(body.into_bytes())).await
}

on_both! {
    async fn a_request_with_the_secret_is_read_at_once(database: Database) {
        let lab = start(database).await;
        lab.comes_to("polling", "no secret").await;
        let secret = lab.makes_secret().await;
        lab.comes_to("polling", "no request with its secret yet").await;
        lab.hears("guess", "port p1").await.expect_status(401);
        lab.device.tell("port", json!({ "objects": [] }));
        let answer = lab.hears(&secret, "port p1").await.expect_status(204);
        assert_eq!(answer.text, "");
        until("the ports are read", async || lab.objects("port", "").await.is_empty()).await;
        lab.comes_to("live", "").await;
        let told = lab.api.get("/events?event_type=controller.push.changed").await.expect_status(200).body;
        let states: Vec<&Value> = told["items"].as_array().unwrap().iter().map(|event| &event["payload"]["push_state"]).collect();
        assert!(states.contains(&&json!("polling")) && states.contains(&&json!("live")), "{told}");
        lab.hears(&secret, "weather").await.expect_status(204);
    }
}

on_both! {
    async fn what_is_switched_off_is_taken_and_not_read(database: Database) {
        let lab = start(database).await;
        let secret = lab.makes_secret().await;
        let path = format!("/controllers/{}", lab.controller);
        lab.api.patch(&path, &json!({ "push_enabled": false })).await.expect_status(200);
        lab.hears(&secret, "port p1").await.expect_status(204);
        lab.comes_to("polling", "switched off").await;
        lab.api.patch(&path, &json!({ "push_enabled": true })).await.expect_status(200);
        lab.comes_to("polling", "no request with its secret yet").await;
        lab.hears(&secret, "port p1").await.expect_status(204);
        lab.comes_to("live", "").await;
    }
}

on_both! {
    async fn the_secret_is_for_administrators_of_the_site_and_shown_once(database: Database) {
        let lab = start(database).await;
        let path = lab.secret_path();
        let send = async |api: &Api, status: u16| {
            api.post(&path, &json!({})).await.expect_status(status);
            api.delete(&path).await.expect_status(status);
        };
        send(&lab.server.nobody(), 401).await;
        send(&member(&lab.server, "vera", Role::Viewer, &[]).await, 403).await;
        send(&member(&lab.server, "rita", Role::OrgAdmin, &[(&lab.site, SiteLevel::Read)]).await, 403).await;
        let branch = id_of(&lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body);
        send(&member(&lab.server, "eva", Role::OrgAdmin, &[(&branch, SiteLevel::Admin)]).await, 404).await;
        lab.api.delete(&path).await.expect_status(404);
        let keeper = member(&lab.server, "kay", Role::OrgAdmin, &[(&lab.site, SiteLevel::Admin)]).await;
        let made = keeper.post(&path, &json!({})).await.expect_status(200).body;
        let (secret, hook) = (made["secret"].as_str().unwrap(), &made["hooks"][0]);
        assert_eq!(hook["channel"], "webhook");
        let address = format!("/api/v1/controllers/{}/push/webhook", lab.controller);
        assert!(hook["url"].as_str().is_some_and(|url| url.starts_with("http") && url.ends_with(&address)), "{hook}");
        for seen in [format!("/controllers/{}", lab.controller), "/audit?per_page=200".to_owned()] {
            let text = lab.api.get(&seen).await.expect_status(200).text;
            assert!(!text.contains(secret), "{seen}");
        }
        let entry = lab.entries("controller.push_secret_made").await.remove(0);
        assert_eq!((&entry["actor_name"], &entry["detail"]["hooks"]), (&json!("kay"), &json!(["webhook"])), "{entry}");
        lab.hears(secret, "port p1").await.expect_status(204);
        let next = lab.makes_secret().await;
        lab.hears(secret, "port p1").await.expect_status(401);
        lab.comes_to("polling", "no request with its secret yet").await;
        lab.hears(&next, "port p1").await.expect_status(204);
        keeper.delete(&path).await.expect_status(204);
        lab.hears(&next, "port p1").await.expect_status(401);
        lab.comes_to("polling", "no secret").await;
        assert_eq!(lab.entries("controller.push_secret_forgotten").await.len(), 1);
        lab.api.delete(&path).await.expect_status(404);
    }
}

on_both! {
    async fn a_request_without_proof_learns_nothing(database: Database) {
        let lab = start(database).await;
        let secret = lab.makes_secret().await;
        let (nobody, absent) = (lab.server.nobody(), "01900000-0000-7000-8000-000000000000");
        let mut answers = Vec::new();
        for (path, given) in [
            (format!("/controllers/{}/push/webhook", lab.controller), "guess"),
            (format!("/controllers/{}/push/webhook", lab.controller), ""),
            (format!("/controllers/{}/push/alarms", lab.controller), &*secret),
            (format!("/controllers/{absent}/push/webhook"), &*secret),
        ] {
            let refused = sent(&nobody, &path, given, "port p1").await.expect_status(401);
            answers.push((refused.error_type().to_owned(), refused.message().to_owned()));
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
        lab.hears(&secret, &"x".repeat(70_000)).await.expect_status(413);
        lab.api.delete(&format!("/controllers/{}", lab.controller)).await.expect_status(204);
        lab.hears(&secret, "port p1").await.expect_status(401);
    }
}

on_both! {
    async fn requests_without_proof_have_a_limit_and_keep_no_others_out(database: Database) {
        let lab = start(database).await;
        let secret = lab.makes_secret().await;
        let mut limited = 0;
        for _ in 0..40 {
            let answer = lab.hears("guess", "weather").await;
            assert!([401, 429].contains(&answer.status), "{}", answer.text);
            limited += u32::from(answer.status == 429);
        }
        assert!(limited > 0);
        lab.hears(&secret, "weather").await.expect_status(204);
    }
}

on_both! {
    async fn what_comes_beyond_the_rate_is_read_later(database: Database) {
        let lab = start(database).await;
        let secret = lab.makes_secret().await;
        let app = &lab.server.running().app;
        let controller: ControllerId = lab.controller.parse().expect("an id");
        lab.comes_to("polling", "no request with its secret yet").await;
        lab.hears(&secret, "weather").await.expect_status(204);
        lab.comes_to("live", "").await;
        until("what a hook that becomes live could have told is read", async || {
            let now = app.clock.now() + TimeDelta::hours(2);
            wanted::of(&mut app.db.read().await.unwrap(), controller, now).await.unwrap().is_empty()
        })
        .await;
        for _ in 0..130 {
            lab.hears(&secret, "weather").await.expect_status(204);
        }
        let within = |secs| app.clock.now() + TimeDelta::seconds(secs);
        let of = async |at| wanted::of(&mut app.db.read().await.unwrap(), controller, at).await.unwrap().len();
        assert_eq!((of(within(0)).await, of(within(61)).await), (0, 1), "one reading for all of them");
    }
}

on_both! {
    async fn a_controller_without_a_hook_has_no_secret(database: Database) {
        let lab = Lab::start(database, Device::start().await).await;
        let refused = lab.api.post(&lab.secret_path(), &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "no_hook");
        lab.api.delete(&lab.secret_path()).await.expect_status(404);
    }
}
