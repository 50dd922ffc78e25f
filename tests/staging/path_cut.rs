//! The path to the router is cut at many moments; its state must be what it was.

use std::time::Duration;

use heddle_lab_openwrt::{Effect, Fault};
use serde_json::json;

use super::Lab;
use super::foreign::edits::Edit;
use crate::support::{Options, on_both};

fn quick() -> Options {
    // The device's own timer ends 15 s after ours.
    Options::default().with("APPLY_HOLD_SECS", "5")
}

on_both! {
    async fn a_change_that_moves_the_management_address_takes_itself_back(database: Database) {
        let lab = Lab::start_with(database, quick()).await;
        let before = lab.router.fingerprint();
        let change = lab.stage_lockout().await;
        assert_eq!(change["plan"]["lockout_risk"], true, "{change}");
        let answer = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await;
        assert_ne!(answer.status, 200, "never reported as applied: {}", answer.text);
        let ended = lab.wait_for(&change, &["reverted", "failed"]).await;
        assert_eq!(ended["status"], "pending", "{ended}");
        assert_eq!(lab.router.fingerprint(), before);
    }
}

on_both! {
    async fn an_unconfirmed_change_is_taken_back(database: Database) {
        let lab = Lab::start(database).await;
        let before = lab.router.fingerprint();
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let body = json!({ "force": true, "confirm_within_secs": 10 });
        lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200);
        assert_ne!(lab.router.fingerprint(), before);
        let ended = lab.wait_for(&change, &["reverted"]).await;
        assert_eq!(ended["status"], "pending");
        assert_eq!(lab.router.fingerprint(), before);
        let late = lab.api.post(&Lab::path(&change, "confirm"), &json!({})).await.expect_status(409);
        assert_eq!(late.error_type(), "not_awaiting_confirm");
    }
}

on_both! {
    async fn an_unconfirmed_change_is_taken_back_although_the_server_restarted(database: Database) {
        let mut lab = Lab::start(database).await;
        let before = lab.router.fingerprint();
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let body = json!({ "force": true, "confirm_within_secs": 10 });
        lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200);
        lab.server.restart().await;
        lab.api = lab.server.nobody().with_token(lab.api.token());
        let ended = lab.wait_for(&change, &["reverted"]).await;
        assert_eq!(ended["status"], "pending");
        assert_eq!(lab.router.fingerprint(), before);
    }
}

on_both! {
    async fn a_power_cycled_router_that_kept_the_change_is_brought_back_by_the_server(database: Database) {
        let lab = Lab::start(database).await;
        let before = lab.router.fingerprint();
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let body = json!({ "force": true, "confirm_within_secs": 10 });
        lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200);
        // The router forgets its rollback and keeps the change; only the server can bring it back.
        lab.router.reboot();
        let ended = lab.wait_for(&change, &["reverted", "partial"]).await;
        assert_eq!(ended["outcome"]["state"], "reverted", "{ended}");
        assert_eq!(lab.router.fingerprint(), before);
    }
}

/// The path is cut right after the nth write, for a while: before, during and after the apply.
async fn cut_after(lab: &Lab, writes: u32, name: &str) {
    let before = lab.router.fingerprint();
    let change = lab.stage_rule(name).await;
    lab.router.fault(Fault::AfterWrites { writes, then: Effect::Cut { for_ms: Some(2500) } });
    let body = json!({ "force": true, "confirm_within_secs": 10 });
    let answer = lab.api.post(&Lab::path(&change, "apply"), &body).await;
    let ended = lab.wait_for(&change, &["reverted", "failed", "applied"]).await;
    assert_ne!(ended["outcome"]["state"], "applied", "write {writes}: {} {ended}", answer.text);
    assert_eq!(lab.router.fingerprint(), before, "write {writes}: {ended}");
    lab.router.clear_faults();
    lab.api.post(&Lab::path(&change, "discard"), &json!({})).await.expect_status(200);
}

on_both! {
    async fn a_path_cut_at_any_write_leaves_the_router_as_it_was(database: Database) {
        let lab = Lab::start_with(database, quick()).await;
        for writes in 1..=6 {
            cut_after(&lab, writes, &format!("Cut-{writes}")).await;
        }
    }
}

on_both! {
    async fn a_path_cut_at_any_moment_of_the_window_leaves_the_router_as_it_was(database: Database) {
        let lab = Lab::start_with(database, quick()).await;
        for (n, moment_ms) in [0_u64, 40, 90, 150, 400].into_iter().enumerate() {
            let before = lab.router.fingerprint();
            let change = lab.stage_rule(&format!("Moment-{n}")).await;
            let (api, path) = (lab.api.clone(), Lab::path(&change, "apply"));
            let body = json!({ "force": true, "confirm_within_secs": 10 });
            let applying = async move { api.post(&path, &body).await };
            let cutting = async {
                tokio::time::sleep(Duration::from_millis(moment_ms)).await;
                lab.router.fault(Fault::Cut { for_ms: Some(11_500) });
            };
            let (answer, ()) = tokio::join!(applying, cutting);
            // A router that did not answer before its first write gets none, and nothing was begun.
            let is_refused = answer.status == 502 && lab.get(&change).await["attempts"] == json!([]);
            let states: &[&str] = if is_refused { &["none"] } else { &["reverted", "failed", "applied"] };
            let ended = lab.wait_for(&change, states).await;
            assert_ne!(ended["outcome"]["state"], "applied", "at {moment_ms} ms: {} {ended}", answer.text);
            assert_eq!(lab.router.fingerprint(), before, "at {moment_ms} ms: {ended}");
            lab.router.clear_faults();
        }
    }
}

on_both! {
    async fn a_lost_answer_to_the_apply_itself_is_found_out(database: Database) {
        let lab = Lab::start_with(database, quick()).await;
        let change = lab.stage_rule("Lost-answer").await;
        lab.router.fault(Fault::AfterCall { call: "uci.apply".to_owned(), then: Effect::DropAnswer });
        let answer = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await;
        let ended = lab.wait_for(&change, &["applied", "failed", "reverted"]).await;
        assert_eq!(ended["outcome"]["state"], "applied", "{} {ended}", answer.text);
        assert_eq!(lab.router.counters().applies, 1, "applied once");
        assert_eq!(lab.router.counters().rollbacks, 0);
    }
}

on_both! {
    /// The device puts what it took back into the staging of the session that made it, and a
    /// restarted server gets that very session: what is staged there must not pass for the state.
    async fn what_the_router_took_back_is_not_mistaken_for_applied(database: Database) {
        let mut lab = Lab::start_with(database, quick()).await;
        let before = lab.router.fingerprint();
        let change = lab.stage_rule("Ghost").await;
        let body = json!({ "force": true, "confirm_within_secs": 10 });
        lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200);
        lab.server.restart().await;
        lab.api = lab.server.nobody().with_token(lab.api.token());
        // Reads with the session that the router gives to the next login.
        let rules = format!("{}/firewall.rule", lab.area("firewall"));
        lab.api.get(&rules).await.expect_status(200);
        lab.router.fault(Fault::Cut { for_ms: Some(27_000) });
        let confirm = Lab::path(&change, "confirm");
        assert_ne!(lab.api.post(&confirm, &json!({})).await.status, 200);
        let ended = lab.wait_for(&change, &["reverted", "failed", "applied", "partial"]).await;
        assert_eq!(ended["outcome"]["state"], "reverted", "{ended}");
        assert_eq!(lab.router.fingerprint(), before);
        let again = lab.stage_rule("Ghost").await;
        assert!(again["plan"].is_object(), "the ghost does not stand in the way: {again}");
    }
}

on_both! {
    /// Others saved something meanwhile, so the way back is calls of the plan. The adapter then finds nothing left to do.
    async fn a_lost_answer_to_the_end_of_the_way_back_is_found_out(database: Database) {
        let lab = Lab::start_with(database, quick()).await;
        let change = lab.stage_rule("Lost-on-the-way-back").await;
        let body = json!({ "force": true, "confirm_within_secs": 60 });
        lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200);
        let edit = Edit::added("theirs", "Foreign");
        edit.save(&lab.router);
        lab.router.fault(Fault::AfterCall { call: "uci.apply".to_owned(), then: Effect::DropAnswer });
        let answer = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await;
        let ended = lab.wait_for(&change, &["applied", "failed", "reverted", "partial"]).await;
        assert_eq!(ended["outcome"]["state"], "reverted", "{} {ended}", answer.text);
        assert!(edit.is_there(&lab.router), "{ended}");
        assert_eq!(lab.router.counters().rollbacks, 0);
    }
}
