//! How an apply ends is what the device shows of what the plan touched, and every end has a way out.

use std::time::{Duration, Instant};

use serde_json::json;

use super::scripted::{Scripted, after, after_with, before};
use crate::support::on_both;

on_both! {
    async fn a_refused_write_without_an_effect_ends_at_once(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan["holds"] = json!(false);
        lab.script().said.insert("apply".to_owned(), json!({ "fault": { "message": "name is taken", "effect": "none" } }));
        lab.script().then.clear();
        let change = lab.stage("taken").await;
        let began = Instant::now();
        let (status, refused) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}: {refused}", began.elapsed());
        assert_eq!(status, 422, "{refused}");
        let failed = lab.get(&change).await;
        assert_eq!((&failed["outcome"]["state"], &failed["outcome"]["message"]), (&json!("failed"), &json!("name is taken")), "{failed}");
        assert_eq!(lab.script().comparisons, 1, "one look is enough");
    }
}

on_both! {
    async fn a_task_that_fails_says_so_at_once(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan["holds"] = json!(false);
        lab.script().said.insert("apply".to_owned(), json!({ "task": true }));
        lab.script().then.clear();
        lab.script().task = vec![json!({ "task": true }), json!({ "failed": { "message": "exited with code 1", "effect": "possible" } })];
        let change = lab.stage("job").await;
        let began = Instant::now();
        let (status, _) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!(status, 422);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        let failed = lab.get(&change).await;
        assert_eq!(failed["outcome"]["state"], "failed", "{failed}");
        assert!(failed["outcome"]["message"].as_str().unwrap().contains("exited with code 1"), "{failed}");
    }
}

on_both! {
    async fn a_task_of_a_restore_is_waited_for(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply", "restore"] });
        lab.script().then.remove("restore");
        lab.script().said.insert("restore".to_owned(), json!({ "task": true }));
        lab.script().task = vec![json!({ "task": true }), json!({})];
        lab.script().task_then = Some(before());
        let change = lab.stage("slow way back").await;
        lab.apply_held(&change).await;
        let (status, back) = lab.act(&change, "revert", &json!({})).await;
        assert_eq!((status, &back["outcome"]["state"]), (200, &json!("reverted")), "{back}");
        assert_eq!(lab.script().sent, ["apply", "restore"]);
    }
}

on_both! {
    async fn what_is_only_stored_is_told_until_it_is_in_effect(database: Database) {
        let lab = Scripted::start(database).await;
        let stored = json!({ "standing": { "stored": ["reboot"] }, "items": [], "foreign": [] });
        lab.script().then.insert("apply".to_owned(), stored);
        let change = lab.stage("memory").await;
        let (status, applied) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!((status, &applied["outcome"]["state"]), (200, &json!("applied")), "{applied}");
        assert_eq!(applied["outcome"]["detail"]["needs"], json!(["reboot"]), "{applied}");
        assert!(applied["outcome"]["message"].as_str().unwrap().contains("reboot"), "{applied}");
        lab.act(&change, "verify", &json!({})).await;
        assert_eq!(lab.get(&change).await["outcome"]["detail"]["needs"], json!(["reboot"]));
        lab.script().compare = after();
        lab.act(&change, "verify", &json!({})).await;
        let seen = lab.get(&change).await;
        assert!(seen["outcome"]["detail"]["needs"].is_null(), "{seen}");
        assert!(!seen["outcome"]["message"].as_str().unwrap().contains("reboot"), "{seen}");
    }
}

on_both! {
    async fn after_a_confirmation_nothing_is_undone_whatever_is_read(database: Database) {
        let lab = Scripted::start(database).await;
        let other = json!({ "standing": { "rule": "changed" }, "items": [], "foreign": ["rule 'x' was added"] });
        for (standing, word) in [(after_with(&["rule 'x' was added"]), "rule 'x' was added"), (other, "changed by others")] {
            lab.script().compare = before();
            lab.script().sent.clear();
            lab.script().then.insert("confirm".to_owned(), standing);
            let change = lab.stage("confirmed").await;
            lab.apply_held(&change).await;
            let (status, applied) = lab.act(&change, "confirm", &json!({})).await;
            assert_eq!((status, &applied["outcome"]["state"]), (200, &json!("applied")), "{applied}");
            assert_eq!(applied["status"], "applied");
            assert!(applied["outcome"]["message"].as_str().unwrap().contains(word), "{applied}");
            assert!(!applied["outcome"]["detail"]["warnings"].as_array().unwrap().is_empty(), "{applied}");
            assert_eq!(lab.script().sent, ["apply", "confirm"]);
        }
    }
}

on_both! {
    async fn a_refused_confirmation_of_what_is_back_already_tells_the_true_reason(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().said.insert("confirm".to_owned(), json!({ "fault": { "message": "nothing pending" } }));
        lab.script().then.insert("confirm".to_owned(), before());
        let change = lab.stage("gone").await;
        lab.apply_held(&change).await;
        let (status, _) = lab.act(&change, "confirm", &json!({})).await;
        assert_ne!(status, 200);
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        let message = seen["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("nothing pending") && message.contains("own timer"), "{message}");
        assert_eq!(lab.script().sent, ["apply", "confirm"], "nothing was undone");
    }
}

on_both! {
    async fn a_partial_end_has_every_way_out(database: Database) {
        let lab = Scripted::start(database).await;
        let other = json!({ "standing": { "half": true }, "items": [], "foreign": ["rule 'y' was removed"] });
        for stage in ["apply", "undo", "restore"] {
            lab.script().then.insert(stage.to_owned(), other.clone());
        }
        let mut partials = Vec::new();
        for name in ["verified", "planned", "reverted", "discarded"] {
            lab.script().compare = before();
            let change = lab.stage(name).await;
            let (status, _) = lab.act(&change, "apply", &json!({ "force": true })).await;
            assert_ne!(status, 200);
            let seen = lab.get(&change).await;
            assert_eq!(seen["outcome"]["state"], "partial", "{seen}");
            let (status, refused) = lab.act(&change, "apply", &json!({ "force": true })).await;
            assert_eq!(status, 409, "{refused}");
            partials.push(change);
        }
        // Compared again: it is as planned now.
        lab.script().compare = after();
        let (status, verified) = lab.act(&partials[0], "verify", &json!({})).await;
        assert_eq!((status, &verified["change"]["outcome"]["state"]), (200, &json!("applied")), "{verified}");
        // Planned again, once the device was compared.
        lab.script().compare = other.clone();
        let (status, refused) = lab.act(&partials[1], "plan", &json!({})).await;
        assert_eq!(status, 409, "{refused}");
        lab.act(&partials[1], "verify", &json!({})).await;
        let (status, planned) = lab.act(&partials[1], "plan", &json!({})).await;
        assert_eq!((status, &planned["outcome"]["state"]), (200, &json!("none")), "{planned}");
        assert_eq!(planned["attempts"].as_array().unwrap().len(), 1, "attempts are kept");
        // Taken back.
        lab.script().then.insert("undo".to_owned(), before());
        let (status, back) = lab.act(&partials[2], "revert", &json!({})).await;
        assert_eq!((status, &back["outcome"]["state"]), (200, &json!("reverted")), "{back}");
        // Given up: the record says what remains.
        let (status, gone) = lab.act(&partials[3], "discard", &json!({})).await;
        assert_eq!((status, &gone["status"], &gone["outcome"]["state"]), (200, &json!("discarded"), &json!("partial")), "{gone}");
        let message = gone["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("still holds") && message.contains("rule 'y' was removed"), "{message}");
        assert_eq!(gone["outcome"]["detail"]["difference"], json!({ "half": true }), "{gone}");
    }
}
