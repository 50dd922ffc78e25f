//! Logins as vendors have them: a ticket that is renewed by itself, a token whose life the controller tells.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_lab::{Controller, Exchange, Lab};
use heddle_lab_omada::{Omada, Seed};
use heddle_lab_proxmox::{Proxmox, Setup};
use serde_json::{Value, json};

use crate::support::{Adapters, Api, Database, Options, Server, on_both};

/// A controller of the service, and the device behind it, whose clocks go together.
struct World<C: Controller> {
    server: Server,
    device: Lab<C>,
    controller: String,
}

impl<C: Controller> World<C> {
    async fn start(
        database: Database,
        vendor: &str,
        device: C,
        (credential, settings): (Value, Value),
    ) -> Self {
        let device = Lab::builder(device).start().await;
        // Channels use the same session, and would open it before the test looks.
        let options =
            Options::default().serving(Adapters::Of(vec![vendor.to_owned()])).with("PUSH_ENABLED", "false");
        let server = Server::start_with(database, options).await;
        let root = server.set_up().await;
        let credential = root.post("/credentials", &credential).await.expect_status(201).body;
        let site = root.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        let body = json!({
            "name": "controller", "site_id": site, "vendor": vendor, "url": device.url(), "settings": settings,
            "credential_id": credential["id"], "sync_interval_secs": 86_400,
        });
        let controller = root.post("/controllers", &body).await.expect_status(201).body;
        Self { server, device, controller: controller["id"].as_str().unwrap().to_owned() }
    }

    fn later(&self, secs: u32) {
        self.device.advance(Duration::from_secs(secs.into()));
        self.server.running().app.clock.advance(TimeDelta::seconds(secs.into()));
    }

    /// Asks the controller, and returns how often it was asked for a login meanwhile. No request finds its session ended.
    async fn asked(&self, login: &str) -> usize {
        self.device.forget_record();
        let root: Api = self.server.log_in("ada").await;
        let tested = root.post(&format!("/controllers/{}/test", self.controller), &json!({})).await;
        assert_eq!(tested.expect_status(200).body["ok"], true);
        let record = self.device.record();
        assert!(record.iter().all(|one| !is_expired(one)), "{record:?}");
        record.iter().filter(|one| one.path == login).count()
    }
}

/// Omada says it in the body.
fn is_expired(exchange: &Exchange) -> bool {
    exchange.status == Some(401) || exchange.answer.contains("-44112") || exchange.answer.contains("-44113")
}

const TICKET: &str = "/api2/json/access/ticket";
const TOKEN: &str = "/openapi/authorize/token";

/// Changes the password at the cluster, so that only a ticket opens a session.
#[expect(clippy::disallowed_methods, reason = "an administrator is the outside world")]
async fn change_password(device: &Lab<Proxmox>) {
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let url = |path: &str| format!("{}{path}", device.url().trim_end_matches('/'));
    let login = [("username", "root@pam"), ("password", "proxmox")];
    let answer = http.post(url(TICKET)).form(&login).send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let text = |name: &str| answer["data"][name].as_str().unwrap().to_owned();
    let change = [("userid", "root@pam"), ("password", "another-1"), ("confirmation-password", "proxmox")];
    let changed = http
        .put(url("/api2/json/access/password"))
        .header("cookie", format!("PVEAuthCookie={}", text("ticket").replace('@', "%40")))
        .header("CSRFPreventionToken", text("CSRFPreventionToken"))
        .form(&change);
    let changed = changed.send().await.unwrap();
    assert_eq!(changed.status(), 200, "{}", changed.text().await.unwrap());
}

on_both! {
    async fn a_ticket_is_renewed_by_itself(database: Database) {
        let setup = Setup { login_delay: Duration::ZERO, ..Setup::default() };
        let credential = json!({ "name": "root", "username": "root@pam", "password": "proxmox" });
        let world =
            World::start(database, "proxmox", Proxmox::new(setup), (credential, json!({ "login": "ticket" }))).await;
        world.asked(TICKET).await;
        assert_eq!(world.asked(TICKET).await, 0, "the session is kept");
        change_password(&world.device).await;
        // A ticket lives two hours: the third one is the child of two renewals.
        for _ in 0..3 {
            world.later(3_700);
            assert_eq!(world.asked(TICKET).await, 1);
        }
        // An expired ticket is no password: one ordinary login follows, which the changed password refuses.
        world.later(7_300);
        world.device.forget_record();
        let root = world.server.log_in("ada").await;
        let tested = root.post(&format!("/controllers/{}/test", world.controller), &json!({})).await;
        let error = &tested.expect_status(200).body["error"];
        assert_eq!(error["type"], "adapter_authentication_error", "{error}");
        // A reading by itself may be at its login just now, and has no answer yet.
        let logins: Vec<u16> =
            world.device.record().iter().filter(|one| one.path == TICKET).filter_map(|one| one.status).collect();
        assert!(!logins.is_empty() && logins.iter().all(|status| *status == 401), "{logins:?}");
    }
}

on_both! {
    async fn a_token_is_used_as_long_as_the_controller_says(database: Database) {
        let mut omada = Omada::new(Seed::default());
        omada.sessions.token_ms = 600_000;
        let credential = json!({ "name": "key", "username": "lab-client", "password": "lab-secret" });
        let world = World::start(database, "omada", omada, (credential, json!({}))).await;
        world.asked(TOKEN).await;
        world.later(500);
        assert_eq!(world.asked(TOKEN).await, 0);
        world.later(45);
        assert_eq!(world.asked(TOKEN).await, 1, "a new one before the old one ends");
    }
}
