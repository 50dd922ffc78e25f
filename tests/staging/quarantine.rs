//! An adapter that is quarantined while a change waits for its confirmation.

use chrono::TimeDelta;
use heddle_core::tls::TlsPolicy;
use heddle_runtime::{Call, Target, Urgency};
use serde_json::{Value, json};

use super::scripted::Scripted;
use crate::support::on_both;

/// A call of another organization, to a controller of its own.
fn another_tenant(lab: &Scripted) -> Call {
    let clock = &lab.server.running().app.clock;
    Call {
        target: Target {
            org_id: clock.new_id(),
            controller_id: clock.new_id(),
            url: lab.device().url.parse().expect("a device has a URL"),
            tls: TlsPolicy::default(),
            credential_id: clock.new_id(),
            credential_version: 1,
            settings: json!({}),
            site_ref: None,
        },
        request_id: "quarantine".to_owned(),
        deadline: None,
        progress: None,
        urgency: Urgency::Ordinary,
    }
}

/// The adapter fails at three organizations, and at three others each time when its suspension is over.
async fn quarantine(lab: &Scripted) {
    let app = &lab.server.running().app;
    let adapter = app.runtime.adapter("hostile").expect("it is installed");
    for _ in 0..3 {
        for _ in 0..3 {
            let call = another_tenant(lab);
            for _ in 0..3 {
                // Two failures suspend it for the controller: the third call is refused.
                drop(adapter.list_objects(&call, "not-json", None, None, 1, &[]).await);
            }
        }
        // The first suspension is of 30 s, the second of 60 s.
        app.clock.advance(TimeDelta::seconds(61));
    }
    assert!(adapter.is_quarantined());
}

on_both! {
    async fn a_change_in_its_window_is_confirmed_and_a_person_releases_the_adapter(database: Database) {
        let lab = Scripted::start(database).await;
        let change = lab.stage("held").await;
        let body = json!({ "force": true, "confirm_within_secs": 300 });
        let (status, held) = lab.act(&change, "apply", &body).await;
        assert_eq!((status, &held["outcome"]["state"]), (200, &json!("awaiting_confirm")), "{held}");
        quarantine(&lab).await;
        let adapter = lab.api.get("/adapters/hostile").await.expect_status(200).body;
        assert_eq!(adapter["quarantined"], true, "{adapter}");
        let refused = lab.stage("meanwhile").await;
        assert_eq!((&refused["plan"], &refused["plan_error"]["type"]), (&Value::Null, &json!("adapter_suspended")), "{refused}");

        let (status, confirmed) = lab.act(&change, "confirm", &json!({})).await;
        assert_eq!((status, &confirmed["outcome"]["state"]), (200, &json!("applied")), "{confirmed}");

        let released = lab.api.post("/adapters/hostile/release", &json!({})).await.expect_status(200).body;
        assert_eq!(released["quarantined"], false, "{released}");
        let audit = lab.api.get("/audit?action=adapter.released").await.expect_status(200).body;
        assert_eq!((&audit["total"], &audit["items"][0]["detail"]["was_quarantined"]), (&json!(1), &json!(true)), "{audit}");
        let (status, planned) = lab.act(&refused, "plan", &json!({})).await;
        assert_eq!((status, planned["plan"].is_object()), (200, true), "{planned}");
    }
}
