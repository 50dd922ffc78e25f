//! Which users a user may manage: only those with a lower role, and never the last administrator.

use serde_json::json;

use super::{World, new_user, refused};
use crate::support::{Answer, on_both};

#[track_caller]
fn too_high(answer: Answer) {
    refused(answer, 403, "role_too_high");
}

on_both! {
    async fn only_roles_below_the_own_one_are_given(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await;
        for role in ["super_admin", "org_admin", "admin"] {
            too_high(bea.api.post("/users", &new_user("eve", role)).await);
        }
        too_high(world.root.post("/users", &new_user("eve", "super_admin")).await);
        let carl = world.member("carl", "viewer").await;
        for role in ["super_admin", "org_admin", "admin"] {
            too_high(bea.api.patch(&carl.path(), &json!({ "role": role })).await);
        }
        too_high(world.root.patch(&carl.path(), &json!({ "role": "super_admin" })).await);
        refused(bea.api.patch(&carl.path(), &json!({ "role": "king" })).await, 400, "unknown_role");
        for role in ["site_admin", "operator", "guest", "viewer"] {
            let changed = bea.api.patch(&carl.path(), &json!({ "role": role })).await.expect_status(200);
            assert_eq!(changed.body["role"], role);
        }
        let promoted = world.root.patch(&carl.path(), &json!({ "role": "admin" })).await.expect_status(200);
        assert_eq!(promoted.body["role"], "org_admin");
    }
}

on_both! {
    async fn only_users_below_oneself_are_managed(database: Database) {
        let world = World::start(database).await;
        let (bea, peer) = (world.member("bea", "org_admin").await, world.member("peer", "org_admin").await);
        let ada = crate::tenancy::text(&world.root.get("/auth/me").await.body["id"]);
        for path in [peer.path(), format!("/users/{ada}")] {
            for body in [
                json!({ "role": "viewer" }), json!({ "is_active": false }), json!({ "full_name": "x" }),
                json!({ "email": "mine@acme.test" }), json!({ "password": "Another-Horse-8-Battery" }),
            ] {
                too_high(bea.api.patch(&path, &body).await);
            }
            too_high(bea.api.delete(&path).await);
        }
        world.root.delete(&peer.path()).await.expect_status(204);
        too_high(bea.api.post(&format!("{}/restore", peer.path()), &json!({})).await);
        // Also where the name was taken since: the answer tells nothing of a user that the caller may not manage.
        let namesake = world.root.post("/users", &new_user("PEER", "viewer")).await.expect_status(201);
        too_high(bea.api.post(&format!("{}/restore", peer.path()), &json!({})).await);
        let namesake = format!("/users/{}", crate::tenancy::text(&namesake.body["id"]));
        world.root.delete(&namesake).await.expect_status(204);
        world.root.post(&format!("{}/restore", peer.path()), &json!({})).await.expect_status(200);
        let site_admin = world.member("sid", "site_admin").await;
        for answer in [
            site_admin.api.get("/users").await,
            site_admin.api.post("/users", &new_user("eve", "viewer")).await,
            site_admin.api.delete(&bea.path()).await,
        ] {
            let answer = refused(answer, 403, "permission_denied");
            let names_what_would_do = ["user:read", "org_admin"].iter().any(|word| answer.message().contains(word));
            assert!(names_what_would_do, "{}", answer.message());
        }
    }
}

on_both! {
    async fn nobody_lifts_their_own_limits_or_locks_themself_out(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await;
        let ada = format!("/users/{}", crate::tenancy::text(&world.root.get("/auth/me").await.body["id"]));
        for (api, path) in [(&bea.api, bea.path()), (&world.root, ada)] {
            for body in [
                json!({ "role": "viewer" }), json!({ "is_active": false }),
                json!({ "password": "Another-Horse-8-Battery" }),
            ] {
                refused(api.patch(&path, &body).await, 403, "own_account");
            }
            refused(api.delete(&path).await, 403, "own_account");
            let own = api.get(&path).await.expect_status(200).body;
            let same = json!({ "role": own["role"], "is_active": true, "full_name": "Myself" });
            assert_eq!(api.patch(&path, &same).await.expect_status(200).body["full_name"], "Myself");
            let cleared = api.patch(&path, &json!({ "full_name": null })).await.expect_status(200).body;
            assert_eq!((&cleared["full_name"], &cleared["token_version"]), (&json!(null), &own["token_version"]));
            api.get("/auth/me").await.expect_status(200);
        }
        let email = json!({ "email": "bea@new.test" });
        assert_eq!(bea.api.patch(&bea.path(), &email).await.expect_status(200).body["email"], "bea@new.test");
        world.log_in("BEA@new.test").await;
    }
}

on_both! {
    async fn an_organization_keeps_its_last_administrator(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let otto = other.admin.path();
        world.member_of(&other.org, "sid", "site_admin").await;
        refused(world.root.delete(&otto).await, 409, "last_admin");
        refused(world.root.patch(&otto, &json!({ "role": "site_admin" })).await, 409, "last_admin");
        refused(world.root.patch(&otto, &json!({ "is_active": false })).await, 409, "last_admin");
        other.admin.api.get("/auth/me").await.expect_status(200);

        let second = world.member_of(&other.org, "olga", "org_admin").await;
        world.root.patch(&second.path(), &json!({ "is_active": false })).await.expect_status(200);
        refused(world.root.delete(&otto).await, 409, "last_admin");
        world.root.delete(&second.path()).await.expect_status(204);
        refused(world.root.delete(&otto).await, 409, "last_admin");
        world.root.post(&format!("{}/restore", second.path()), &json!({})).await.expect_status(200);
        world.root.patch(&second.path(), &json!({ "is_active": true })).await.expect_status(200);
        world.root.delete(&otto).await.expect_status(204);
        refused(world.root.delete(&second.path()).await, 409, "last_admin");
    }
}

on_both! {
    async fn of_two_who_take_the_last_two_administrators_one_fails(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        for round in 0..6 {
            let second = world.member_of(&other.org, &format!("olga{round}"), "org_admin").await;
            let admins = world.root.get(&format!("/users?organization_id={}&role=admin", other.org)).await.body;
            assert_eq!(admins["total"], 2, "{admins}");
            let first = format!("/users/{}", crate::tenancy::text(&admins["items"][0]["id"]));
            let demote = json!({ "role": "viewer" });
            let disable = json!({ "is_active": false });
            let path = second.path();
            let (one, two) = match round % 3 {
                0 => tokio::join!(world.root.delete(&first), world.root.delete(&path)),
                1 => tokio::join!(world.root.delete(&first), world.root.patch(&path, &demote)),
                _ => tokio::join!(world.root.patch(&first, &disable), world.root.patch(&path, &demote)),
            };
            let failed: Vec<&Answer> = [&one, &two].into_iter().filter(|answer| answer.status == 409).collect();
            assert_eq!(failed.len(), 1, "{} {}", one.text, two.text);
            assert_eq!(failed[0].error_type(), "last_admin");
            let left = format!("/users?organization_id={}&role=org_admin&is_active=true", other.org);
            assert_eq!(world.root.get(&left).await.body["total"], 1, "round {round}");
            let inactive = format!("/users?organization_id={}&role=org_admin&is_active=false", other.org);
            for id in crate::tenancy::column(&world.root.get(&inactive).await.body, "id") {
                world.root.delete(&format!("/users/{id}")).await.expect_status(204);
            }
        }
    }
}

on_both! {
    async fn grants_of_sites_do_not_manage_users(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await;
        let carl = world.member("carl", "viewer").await;
        let access = format!("/organizations/{}/site-access", world.org);
        let grant = json!({ "user_id": bea.id, "site_id": world.site, "level": "full" });
        world.root.post(&access, &grant).await.expect_status(201);
        for answer in [
            bea.api.post("/users", &new_user("eve", "viewer")).await,
            bea.api.patch(&carl.path(), &json!({ "full_name": "x" })).await,
            bea.api.patch(&bea.path(), &json!({ "full_name": "x" })).await,
            bea.api.delete(&carl.path()).await,
            bea.api.post(&format!("{}/restore", carl.path()), &json!({})).await,
            bea.api.post(&access, &json!({ "user_id": carl.id, "site_id": world.site, "level": "read" })).await,
            bea.api.post("/roles", &json!({ "name": "Mine", "permissions": [] })).await,
        ] {
            refused(answer, 403, "all_sites_required");
        }
        bea.api.get("/users").await.expect_status(200);
    }
}
