//! Many grants at once, each by itself.

use serde_json::{Value, json};

use super::{ABSENT, World, refused, text};
use crate::support::on_both;

on_both! {
    async fn one_bad_item_undoes_no_other(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let branch = world.new_site(&world.root, "Branch").await;
        let foreign = world.new_site(&other.admin.api, "Foreign").await;
        let bea = world.member("bea", "org_admin").await;
        let peer = world.member("peer", "org_admin").await;
        let (vic, wim) = (world.member("vic", "viewer").await, world.member("wim", "operator").await);
        let access = format!("/organizations/{}/site-access", world.org);
        let item = |user: &str, site: &str, level: &str| json!({ "user_id": user, "site_id": site, "level": level });
        bea.api.post(&access, &item(&vic.id, &world.site, "read")).await.expect_status(201);

        let grants = [
            (item(&vic.id, &world.site, "full"), "updated", ""),
            (item(&vic.id, &branch, "read"), "granted", ""),
            (item(ABSENT, &branch, "read"), "error", "not_found"),
            (item(&other.admin.id, &branch, "read"), "error", "not_found"),
            (item(&wim.id, &foreign, "read"), "error", "not_found"),
            (item(&bea.id, &branch, "full"), "error", "own_account"),
            (item(&peer.id, &branch, "read"), "error", "role_too_high"),
            (item(&vic.id, &branch, "write"), "error", "repeated"),
            (item(&wim.id, &branch, "write"), "granted", ""),
        ];
        let request: Vec<&Value> = grants.iter().map(|(grant, ..)| grant).collect();
        let answer = bea.api.post(&format!("{access}/bulk"), &json!({ "grants": request })).await.expect_status(200).body;
        assert_eq!((&answer["granted"], &answer["failed"]), (&json!(3), &json!(6)), "{answer}");
        for (index, (grant, status, kind)) in grants.iter().enumerate() {
            let result = &answer["results"][index];
            assert_eq!((&result["index"], &result["status"]), (&json!(index), &json!(status)), "{result}");
            assert_eq!((&result["user_id"], &result["site_id"]), (&grant["user_id"], &grant["site_id"]));
            assert_eq!(result["error"]["type"].as_str().unwrap_or_default(), *kind, "{result}");
            assert_eq!(result["error"]["message"].is_string(), !kind.is_empty(), "{result}");
        }
        let stored = world.root.get(&access).await.expect_status(200).body;
        let mut levels: Vec<(String, String, String)> = stored["items"].as_array().unwrap().iter()
            .map(|grant| (text(&grant["username"]), text(&grant["site_name"]), text(&grant["level"])))
            .collect();
        levels.sort();
        let expected = [("vic", "Branch", "read"), ("vic", "Head office", "full"), ("wim", "Branch", "write")];
        let expected: Vec<(String, String, String)> =
            expected.map(|(user, site, level)| (user.to_owned(), site.to_owned(), level.to_owned())).into();
        assert_eq!(levels, expected);
        let entries = world.audited("site_access.granted_bulk").await;
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0]["detail"]["grants"], json!([grants[0].0, grants[1].0, grants[8].0]));
        assert_eq!(world.root.get("/audit/validate").await.body["valid"], true);
    }
}

on_both! {
    async fn a_request_of_bad_items_alone_writes_nothing(database: Database) {
        let world = World::start(database).await;
        let bulk = format!("/organizations/{}/site-access/bulk", world.org);
        let bad = json!({ "user_id": ABSENT, "site_id": world.site, "level": "read" });
        let answer = world.root.post(&bulk, &json!({ "grants": [bad] })).await.expect_status(200).body;
        assert_eq!((&answer["granted"], &answer["failed"]), (&json!(0), &json!(1)));
        assert!(world.audited("site_access.granted_bulk").await.is_empty());
        for (count, status) in [(0, 422), (200, 200), (201, 422)] {
            let grants = vec![bad.clone(); count];
            let answer = world.root.post(&bulk, &json!({ "grants": grants })).await.expect_status(status);
            if status == 422 {
                assert_eq!(answer.body["error"]["details"][0]["field"], "/grants", "{count}");
            }
        }
        let typo = json!({ "grants": [bad, { "user_id": ABSENT, "site_id": world.site, "level": "owner" }] });
        let answer = refused(world.root.post(&bulk, &typo).await, 422, "validation_error");
        assert_eq!(answer.body["error"]["details"][0]["field"], "/grants/1/level", "{}", answer.text);
    }
}

on_both! {
    async fn two_hundred_users_get_their_site_in_one_request(database: Database) {
        let world = World::start(database).await;
        let app = &world.server.running().app;
        let mut tx = app.db.write().await.unwrap();
        let first = heddle_store::users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
        let mut grants = Vec::new();
        for number in 0..200 {
            let new = heddle_store::users::NewUser {
                id: app.clock.new_id(),
                org_id: first.user.org_id,
                username: format!("u{number}"),
                email: format!("u{number}@acme.test"),
                full_name: None,
                password_hash: String::new(),
                role: heddle_core::Role::Viewer,
                now: app.clock.now(),
            };
            heddle_store::users::insert(&mut tx, &new).await.unwrap();
            grants.push(json!({ "user_id": new.id, "site_id": world.site, "level": "write" }));
        }
        tx.commit().await.unwrap();
        let access = format!("/organizations/{}/site-access", world.org);
        for status in ["granted", "updated"] {
            let answer = world.root.post(&format!("{access}/bulk"), &json!({ "grants": grants })).await.expect_status(200).body;
            assert_eq!((&answer["granted"], &answer["failed"]), (&json!(200), &json!(0)));
            assert!(answer["results"].as_array().unwrap().iter().all(|item| item["status"] == status), "{status}");
        }
        assert_eq!(world.root.get(&access).await.body["total"], 200);
    }
}
