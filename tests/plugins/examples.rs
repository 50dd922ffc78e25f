//! The example plugins, as they are built from `plugins-sdk/examples`, in a server: with services that keep what they are told,
//! and with the practice devices of vendors.

use std::process::Command;

use heddle_lab_omada::{Omada, Seed};
use heddle_lab_opnsense::{Firewall, Settings};
use serde_json::{Value, json};

use super::services::{ABUSEIPDB_KEY, GRAFANA_TOKEN, SLACK_TOKEN, Services, ZAMMAD_TOKEN};
use super::{Keys, archive_of, send};
use crate::support::plugins::{example, example_folder};
use crate::support::{Adapters, Api, Database, Server, heddle_binary, on_both};

const ALL: [&str; 5] = ["grafana-annotations", "quiet-hours", "slack-notices", "threat-feed", "ticket-desk"];

/// A server with one of the plugins in use.
struct Lab {
    server: Server,
    api: Api,
    services: Services,
    id: &'static str,
}

impl Lab {
    async fn start(
        database: Database,
        id: &'static str,
        settings: Value,
        secret: Option<(&str, &str)>,
    ) -> Self {
        Self::serving(database, id, settings, secret, &["openwrt"]).await
    }

    async fn serving(
        database: Database,
        id: &'static str,
        settings: Value,
        secret: Option<(&str, &str)>,
        adapters: &[&str],
    ) -> Self {
        let (keys, services) = (Keys::new(), Services::start().await);
        let adapters = Adapters::Of(adapters.iter().map(|&id| id.to_owned()).collect());
        let server = Server::start_with(database, keys.options().serving(adapters)).await;
        let api = server.set_up().await;
        let lab = Self { server, api, services, id };
        send(&lab.api, &lab.archive(&keys)).await.expect_status(201);
        let path = |rest: &str| format!("/plugins/{id}/{rest}");
        let asked = lab.api.get(&path("consent")).await.expect_status(200).body;
        lab.api
            .post(&path("consent"), &json!({ "grant_hash": asked["grant_hash"] }))
            .await
            .expect_status(200);
        lab.switch_on(settings).await;
        // Behind the settings: a secret is bound to the address in them.
        if let Some((name, value)) = secret {
            lab.api
                .put(&path(&format!("secrets/{name}")), &json!({ "value": value }))
                .await
                .expect_status(204);
        }
        lab
    }

    /// Switches it on with settings in which `here` is the address of the services.
    async fn switch_on(&self, settings: Value) {
        let settings: Value = serde_json::from_str(
            &settings.to_string().replace("\"here\"", &format!("\"{}\"", self.services.url)),
        )
        .unwrap();
        let body = json!({ "enabled": true, "settings": settings });
        self.api.put(&format!("/plugins/{}/organization", self.id), &body).await.expect_status(200);
    }

    /// The package as it is built, with the test's services in the place of those in the internet.
    fn archive(&self, keys: &Keys) -> Vec<u8> {
        let (mut manifest, component) = example(self.id);
        let targets = manifest["capabilities"].get_mut("http").and_then(Value::as_array_mut);
        for target in targets.into_iter().flatten() {
            if target["origin"].is_string() {
                target["origin"] = json!(self.services.url);
                target["private"] = json!(true);
            }
        }
        archive_of(&manifest, component, &keys.acme)
    }

    /// What the plugin says of itself with these settings and secrets.
    async fn checked(&self) -> Value {
        let path = format!("/plugins/{}/check", self.id);
        self.api.post(&path, &json!({})).await.expect_status(200).body["result"].clone()
    }

    /// Has an action carried out, and answers its step.
    async fn step(&self, action: &str, params: Value) -> Value {
        let body = json!({ "operation_id": format!("plugin.{}.{action}", self.id), "params": params });
        self.api.post("/actions", &body).await.expect_status(201).body["steps"][0].clone()
    }

    async fn works(&self, action: &str, params: Value) -> Value {
        let step = self.step(action, params).await;
        assert!(step["output"].is_object(), "{step}");
        step["output"].clone()
    }

    /// The message of an action that fails.
    async fn fails(&self, action: &str, params: Value) -> String {
        let step = self.step(action, params).await;
        assert!(step["output"].is_null(), "{step}");
        step["message"].as_str().unwrap().to_owned()
    }

    async fn register(&self, vendor: &str, url: &str, login: (&str, &str), settings: Value) -> String {
        let credential = json!({ "name": vendor, "username": login.0, "password": login.1 });
        let credential = self.api.post("/credentials", &credential).await.expect_status(201).body;
        let sites = self.api.get("/sites").await.expect_status(200).body;
        let controller = json!({
            "name": vendor, "vendor": vendor, "url": url, "site_id": sites["items"][0]["id"],
            "credential_id": credential["id"], "settings": settings,
        });
        let controller = self.api.post("/controllers", &controller).await.expect_status(201).body;
        controller["id"].as_str().unwrap().to_owned()
    }

    /// Applies a staged change as the person who reviewed it.
    async fn apply(&self, id: &Value) {
        let path = format!("/gateway-vpn/changes/{}", id.as_str().unwrap());
        let change = self.api.get(&path).await.expect_status(200).body;
        assert_eq!(change["status"], "pending", "{change}");
        let body = json!({ "force": true, "plan_hash": change["plan"]["hash"] });
        let done = self.api.post(&format!("{path}/apply"), &body).await.expect_status(200).body;
        assert_eq!(done["outcome"]["state"], "applied", "{done}");
    }

    /// How many changes were ever staged.
    async fn changes(&self) -> Value {
        self.api.get("/gateway-vpn/changes").await.expect_status(200).body["total"].clone()
    }
}

#[test]
fn the_recorded_calls_of_every_example_end_as_they_were_recorded() {
    for id in ALL {
        let mut tool = Command::new(heddle_binary());
        let output = tool.args(["plugin", "test", "--project"]).arg(example_folder(id)).output().unwrap();
        let (said, problem) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() && said.contains("recorded calls, 0 failed"),
            "{id}: {said}{problem}"
        );
    }
}

on_both! {
    async fn slack_gets_a_message_whose_buttons_carry_their_answers(database: Database) {
        let token = Some(("bot-token", SLACK_TOKEN));
        let lab = Lab::start(database, "slack-notices", json!({ "channel": "#network" }), token).await;
        assert_eq!(lab.checked().await, json!({ "channel": "#network" }));
        let output = lab.works("post", json!({
            "title": "Switch 3 is down", "severity": "critical", "text": "<!channel> look",
            "fields": [{ "name": "Site", "value": "Berlin" }],
            "answers": [{ "label": "I look", "value": "taken", "style": "primary" }], "about": "device 3",
        })).await;
        assert_eq!(output, json!({ "channel": "C0123456789", "ts": "1795471200.000001" }));
        let message = lab.services.kept().messages[0].clone();
        assert_eq!(message["blocks"][0]["text"]["text"], "Switch 3 is down");
        let shown = &message["attachments"][0];
        assert_eq!((&shown["color"], &shown["blocks"][0]["text"]["text"]), (&json!("#e01e5a"), &json!("&lt;!channel&gt; look")));
        let button = &shown["blocks"][2]["elements"][0];
        let value: Value = serde_json::from_str(button["value"].as_str().unwrap()).unwrap();
        assert_eq!(value, json!({ "about": "device 3", "answer": "taken" }));
        assert_eq!(button["action_id"], "heddle-answer-0");

        let message = lab.fails("post", json!({ "title": "x", "channel": "#nowhere" })).await;
        assert!(message.contains("channel_not_found"), "{message}");
        lab.api.put("/plugins/slack-notices/secrets/bot-token", &json!({ "value": "stale" })).await.expect_status(204);
        let message = lab.fails("post", json!({ "title": "x" })).await;
        assert!(message.contains("invalid_auth"), "{message}");
        assert_eq!(lab.services.kept().messages.len(), 1, "what is refused is not posted");
    }
}

on_both! {
    async fn grafana_keeps_what_is_annotated_and_finds_it_by_its_tags(database: Database) {
        let settings = json!({ "grafana-url": "here", "tags": ["noc & more"] });
        let lab = Lab::start(database, "grafana-annotations", settings, Some(("token", GRAFANA_TOKEN))).await;
        assert_eq!(lab.checked().await, json!({ "found": 0 }));
        for (text, tag) in [("Applied", "berlin"), ("Reverted", "oslo")] {
            let params = json!({ "text": text, "tags": [tag], "time_ms": 1_795_471_200_000_u64 });
            assert_eq!(lab.works("annotate", params).await["tags"], json!(["noc & more", tag]));
        }
        let kept = lab.services.kept().annotations.clone();
        let expected = json!({ "id": 2, "time": 1_795_471_200_000_u64, "tags": ["noc & more", "oslo"], "text": "Reverted" });
        assert_eq!(kept[1], expected);
        let texts = |found: &Value| -> Vec<String> {
            found["annotations"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(texts(&lab.works("find", json!({})).await), ["Reverted", "Applied"]);
        assert_eq!(texts(&lab.works("find", json!({ "tags": ["noc & more", "berlin"] })).await), ["Applied"]);
        assert_eq!(texts(&lab.works("find", json!({ "tags": ["paris"] })).await), Vec::<String>::new());
    }
}

on_both! {
    async fn a_key_has_one_open_ticket_in_zammad(database: Database) {
        let settings = json!({ "zammad-url": "here", "customer": "noc@example.net" });
        let lab = Lab::start(database, "ticket-desk", settings, Some(("token", ZAMMAD_TOKEN))).await;
        assert_eq!(lab.checked().await, json!({ "agent": "noc@example.net" }));
        let open = |key: &str, text: &str| lab.works("open-ticket", json!({ "key": key, "title": "Down", "text": text }));
        let first = open("switch-3", "no answer").await;
        let url = format!("{}/#ticket/zoom/7", lab.services.url);
        assert_eq!(first, json!({ "ticket_id": 7, "number": "69007", "url": url, "is_new": true }));
        assert_eq!(open("switch-3", "still none").await["is_new"], false);
        assert_eq!(open("switch-4", "no answer").await["ticket_id"], 8);
        lab.works("note", json!({ "key": "switch-3", "text": "a fan" })).await;
        let seen = lab.works("ticket", json!({ "key": "switch-3" })).await;
        assert_eq!((&seen["state"], &seen["articles"]), (&json!("new"), &json!(3)));

        lab.works("close-ticket", json!({ "key": "switch-3", "text": "it is back" })).await;
        let ticket = lab.services.kept().tickets[&7].clone();
        assert_eq!(ticket.articles, ["no answer", "still none", "a fan", "it is back"]);
        assert_eq!((ticket.title.as_str(), ticket.state.as_str()), ("Down", "closed"));
        let message = lab.fails("note", json!({ "key": "switch-3", "text": "x" })).await;
        assert!(message.contains("has no ticket"), "{message}");
        assert_eq!(open("switch-3", "again").await["ticket_id"], 9);

        // A person closed this one in Zammad.
        lab.services.kept().tickets.get_mut(&8).unwrap().state = String::from("closed");
        assert_eq!(open("switch-4", "again").await["ticket_id"], 10);
    }
}

on_both! {
    async fn a_connection_that_a_plugin_proposes_is_in_the_catalogue_and_can_be_created(database: Database) {
        let settings = json!({ "zammad-url": "here", "customer": "noc@example.net" });
        let lab = Lab::start(database, "ticket-desk", settings, Some(("token", ZAMMAD_TOKEN))).await;
        let api = &lab.api;
        let proposed = async |api: &Api, query: &str| {
            let catalog = api.get(&format!("/fabric/catalog{query}")).await.expect_status(200).body;
            catalog["templates"].as_array().unwrap().clone()
        };
        let all = proposed(api, "").await;
        assert_eq!((all.len(), &all[0]["id"], &all[0]["tier"]), (1, &json!("plugin.ticket-desk.outages"), &json!("plugin")));
        assert_eq!(proposed(api, "?search=offline%20device").await, all);
        assert_eq!(proposed(api, "?search=cheese").await, Vec::<Value>::new());
        assert_eq!(proposed(api, "?owner=openwrt").await, Vec::<Value>::new());
        let made = api.post("/fabric/connections", &all[0]["connection"]).await.expect_status(201).body;
        assert_eq!((&made["state"], &made["name"]), (&json!("enabled"), &json!("Tickets for outages")), "{made}");
        let id = made["id"].as_str().unwrap();
        let event = json!({ "payload": {
            "device_id": "0192f0c1-2b7a-7cc0-8000-000000000001", "controller_id": "0192f0c1-2b7a-7cc0-8000-000000000002",
            "site_id": null, "name": "switch-3",
        } });
        let tried = api.post(&format!("/fabric/connections/{id}/test"), &event).await.expect_status(200).body;
        assert_eq!(lab.services.kept().tickets[&7].title, "switch-3 is offline", "{tried}");

        // A user without the permission for its operations does not see it. Where the plugin is switched off, no user does.
        let me = api.get("/auth/me").await.expect_status(200).body;
        let org = me["organization_id"].as_str().unwrap();
        let (_, viewer) = crate::fixtures::member(&lab.server, org, heddle_core::Role::Viewer, "vic").await;
        assert_eq!(proposed(&viewer, "").await, Vec::<Value>::new());
        let off = json!({ "enabled": false, "settings": { "zammad-url": lab.services.url, "customer": "noc@example.net" } });
        api.put("/plugins/ticket-desk/organization", &off).await.expect_status(200);
        assert_eq!(proposed(api, "").await, Vec::<Value>::new());
    }
}

on_both! {
    async fn an_address_that_is_reported_often_is_blocked_once_a_person_applies_it(database: Database) {
        let key = Some(("api-key", ABUSEIPDB_KEY));
        let settings = json!({ "alias": "web_servers", "threshold": 80 });
        let lab = Lab::serving(database, "threat-feed", settings, key, &["opnsense"]).await;
        assert_eq!(lab.checked().await, json!({ "alias": "web_servers", "threshold": 80 }));
        let firewall = heddle_lab::Lab::builder(Firewall::new(Settings::default())).start().await;
        let controller = lab.register("opnsense", &firewall.url(), ("admin-key", "admin-secret"), json!({})).await;
        let (bad, fair) = ("203.0.113.66", "203.0.113.7");
        lab.services.kept().scores.extend([(bad.to_owned(), 97), (fair.to_owned(), 79)]);

        let seen = lab.works("look-up", json!({ "address": bad })).await;
        assert_eq!((&seen["score"], &seen["is_cached"]), (&json!(97), &json!(false)));
        let block = |address: &str| lab.works("block", json!({ "address": address, "controller_id": controller }));
        assert_eq!(block(fair).await["outcome"], "below-threshold");
        assert_eq!(lab.changes().await, 0);
        let staged = block(bad).await;
        assert_eq!((&staged["outcome"], &staged["problem"]), (&json!("staged"), &Value::Null), "{staged}");
        assert_eq!(lab.services.kept().look_ups, 2, "what was looked up is kept");
        assert!(!firewall.state().to_string().contains(bad), "staging writes nothing");
        lab.apply(&staged["change_id"]).await;
        assert!(firewall.state().to_string().contains(bad));
        assert_eq!(block(bad).await["outcome"], "there-already");
        assert_eq!(lab.changes().await, 1, "what is there already is not staged again");
    }
}

on_both! {
    async fn a_radio_is_off_in_its_quiet_hours_once_a_person_applies_it(database: Database) {
        let whole_week = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let settings = |controller: &str, key: &str, days: &[&str]| json!({
            "zone": { "offset_minutes": 60, "summer_time": "eu" },
            "targets": [{ "name": "hall", "kind": "radio", "controller_id": controller, "key": key }],
            "rules": [{ "name": "Always", "days": days, "from": "00:00", "to": "00:00", "targets": ["hall"] }],
        });
        let nobody = "00000000-0000-7000-8000-000000000000";
        let first = settings(nobody, "none", &whole_week);
        let lab = Lab::serving(database, "quiet-hours", first, None, &["omada"]).await;
        assert!(lab.checked().await["local_time"].is_string());
        let message = lab.fails("apply-now", json!({})).await;
        assert!(message.contains("controller"), "{message}");

        let omada = heddle_lab::Lab::builder(Omada::new(Seed::default())).start().await;
        let controller =
            lab.register("omada", &omada.url(), ("lab-client", "lab-secret"), json!({ "site": "Main" })).await;
        let radio = first_radio(&lab.api, &controller).await;
        let key = radio["key"].as_str().unwrap();
        lab.switch_on(settings(&controller, key, &whole_week)).await;
        let planned = lab.works("plan", json!({})).await;
        assert_eq!((&planned["targets"][0]["is_off"], &planned["targets"][0]["would_stage"]), (&json!(true), &json!(true)));
        let applied = lab.works("apply-now", json!({})).await;
        let staged = &applied["staged"][0];
        assert_eq!((&staged["to"], &staged["problem"]), (&json!("off"), &Value::Null), "{applied}");
        assert_eq!(lab.works("apply-now", json!({})).await["unchanged"], 1);
        lab.apply(&staged["change_id"]).await;
        assert_eq!(is_enabled(&lab.api, &controller, key).await, json!(false));

        // A target that no rule names any more is switched on again, also where another target fails.
        let mut over = settings(&controller, key, &whole_week);
        over["rules"][0]["targets"] = json!(["lamp"]);
        over["targets"].as_array_mut().unwrap().push(
            json!({ "name": "lamp", "kind": "port", "controller_id": controller, "key": "none" }),
        );
        lab.switch_on(over).await;
        let applied = lab.works("apply-now", json!({})).await;
        assert_eq!(applied["failed"][0]["name"], "lamp", "{applied}");
        assert_eq!(applied["staged"][0]["to"], "on", "{applied}");
        lab.apply(&applied["staged"][0]["change_id"]).await;
        assert_eq!(is_enabled(&lab.api, &controller, key).await, json!(true));
    }
}

/// Radios of the inventory, after a reading.
async fn radios(api: &Api, controller: &str) -> Vec<Value> {
    let at = format!("/controllers/{controller}");
    let sync = api.post(&format!("{at}/sync"), &json!({})).await.expect_status(202).body;
    let path = format!("{at}/syncs/{}", sync["id"].as_str().unwrap());
    for _ in 0..600 {
        let sync = api.get(&path).await.expect_status(200).body;
        if !sync["ended_at"].is_null() {
            assert!(sync["error"].is_null(), "{sync}");
            let page = api.get("/inventory/radio?per_page=200").await.expect_status(200).body;
            return page["items"].as_array().unwrap().clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the sync does not end");
}

async fn first_radio(api: &Api, controller: &str) -> Value {
    let radios = radios(api, controller).await;
    radios.into_iter().find(|radio| radio["fields"]["enabled"] == true).expect("a radio is on")
}

async fn is_enabled(api: &Api, controller: &str, key: &str) -> Value {
    let radios = radios(api, controller).await;
    radios.into_iter().find(|radio| radio["key"] == key).expect("the radio is there")["fields"]["enabled"]
        .clone()
}
