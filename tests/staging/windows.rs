//! The confirm window: ended, extended, and what goes back with a change that is not confirmed.

use serde_json::{Value, json};

use super::Lab;
use super::scripted::{Scripted, after_with, before};
use crate::support::on_both;

const ADDED: &str = "firewall rule 'Allow-SSH' was added";

on_both! {
    async fn what_may_go_with_a_change_is_said_beforehand(database: Database) {
        let lab = Scripted::start(database).await;
        let change = lab.stage("takes all").await;
        let warnings = change["plan"]["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|w| w.as_str().unwrap().contains("taken back with it")), "{change}");
        lab.script().plan["undo_takes_all"] = json!(false);
        let change = lab.stage("takes its own").await;
        assert_eq!(change["plan"]["warnings"], json!([]), "{change}");
    }
}

on_both! {
    async fn what_others_saved_stays_where_the_device_can_spare_it(database: Database) {
        let lab = Scripted::start(database).await;
        let change = lab.stage("spares").await;
        lab.apply_held(&change).await;
        lab.script().compare = after_with(&[ADDED]);
        lab.script().then.insert("restore".to_owned(), json!({ "standing": "before", "items": [], "foreign": [ADDED] }));
        let (status, back) = lab.act(&change, "revert", &json!({})).await;
        assert_eq!((status, &back["outcome"]["state"]), (200, &json!("reverted")), "{back}");
        assert_eq!(lab.script().sent, ["apply", "restore"], "only our own part went back");
        assert!(back["outcome"]["detail"]["lost"].is_null(), "{back}");
    }
}

on_both! {
    async fn what_went_with_a_change_is_named(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan["stages"] = json!(["apply", "confirm", "undo"]);
        let change = lab.stage("takes along").await;
        lab.apply_held(&change).await;
        lab.script().compare = after_with(&[ADDED]);
        let (_, back) = lab.act(&change, "revert", &json!({})).await;
        assert_eq!(back["outcome"]["state"], "reverted", "{back}");
        assert_eq!(lab.script().sent, ["apply", "undo"]);
        assert_eq!(back["outcome"]["detail"]["lost"], json!([ADDED]), "{back}");
        assert!(back["outcome"]["message"].as_str().unwrap().contains(ADDED), "{back}");
    }
}

on_both! {
    async fn what_the_device_took_back_by_itself_is_told_with_what_was_seen(database: Database) {
        let lab = Scripted::start(database).await;
        let change = lab.stage("timer").await;
        lab.apply_held(&change).await;
        lab.script().compare = after_with(&[ADDED]);
        let (status, _) = lab.act(&change, "verify", &json!({})).await;
        assert_eq!(status, 200);
        lab.script().compare = before();
        let (_, back) = lab.act(&change, "revert", &json!({})).await;
        assert_eq!(back["outcome"]["state"], "reverted", "{back}");
        let message = back["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("own timer") && message.contains(ADDED), "{message}");
        assert_eq!(lab.script().sent, ["apply"]);
    }
}

on_both! {
    async fn a_window_ends_at_once_when_a_person_takes_the_change_back(database: Database) {
        let lab = Lab::start(database).await;
        let fingerprint = lab.router.fingerprint();
        let change = lab.stage_rule("Taken-back").await;
        let body = json!({ "force": true, "confirm_within_secs": 300 });
        let held = lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200).body;
        let message = held["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("confirm window until"), "{message}");
        let refused = lab.api.post(&Lab::path(&change, "discard"), &json!({})).await.expect_status(409);
        assert!(refused.text.contains("confirm window until"), "{}", refused.text);
        let back = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(200).body;
        assert_eq!((&back["outcome"]["state"], &back["status"]), (&json!("reverted"), &json!("pending")), "{back}");
        assert_eq!(lab.router.fingerprint(), fingerprint);
        let late = lab.api.post(&Lab::path(&change, "confirm"), &json!({})).await.expect_status(409);
        assert_eq!(late.error_type(), "not_awaiting_confirm");
    }
}

on_both! {
    async fn a_window_is_extended_as_far_as_the_device_holds(database: Database) {
        let lab = Scripted::start(database).await;
        let change = lab.stage("short").await;
        let short = lab.apply_held(&change).await;
        let (status, refused) = lab.act(&change, "extend", &json!({ "secs": 60 })).await;
        assert_eq!((status, &refused["error"]["type"]), (409, &json!("not_extendable")), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("extendable_to_secs"), "{refused}");
        lab.act(&change, "revert", &json!({})).await;

        let change = lab.stage("long").await;
        let body = json!({ "force": true, "confirm_within_secs": 60, "extendable_to_secs": 600 });
        let (_, held) = lab.act(&change, "apply", &body).await;
        let (status, extended) = lab.act(&change, "extend", &json!({ "secs": 300 })).await;
        assert_eq!(status, 200, "{extended}");
        let deadline = |change: &Value| change["outcome"]["confirm_deadline"].as_str().unwrap().to_owned();
        assert!(deadline(&extended) > deadline(&held) && deadline(&held) > deadline(&short), "{extended}");
        let (status, _) = lab.act(&change, "extend", &json!({ "secs": 300 })).await;
        assert_eq!(status, 409, "600 s in all");
        let (status, _) = lab.act(&change, "extend", &json!({ "secs": 0 })).await;
        assert_eq!(status, 422);
        let (status, confirmed) = lab.act(&change, "confirm", &json!({})).await;
        assert_eq!((status, &confirmed["outcome"]["state"]), (200, &json!("applied")), "{confirmed}");
    }
}
