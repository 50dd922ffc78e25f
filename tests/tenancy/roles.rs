//! Stored roles: lists of permissions that decide nothing.

use serde_json::{Value, json};

use super::{ABSENT, World, column, if_match, refused, text};
use crate::support::on_both;

const BUILT_IN: [&str; 7] =
    ["super_admin", "org_admin", "admin", "site_admin", "operator", "viewer", "guest"];

fn role(name: &str, permissions: &[&str]) -> Value {
    json!({ "name": name, "permissions": permissions })
}

on_both! {
    async fn built_in_roles_are_shown_first_and_are_read_only(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await.api;
        let page = bea.get("/roles").await.expect_status(200).body;
        assert_eq!(column(&page, "name"), BUILT_IN);
        for item in page["items"].as_array().unwrap() {
            assert_eq!((&item["is_builtin"], &item["organization_id"]), (&json!(true), &json!(null)), "{item}");
            let path = format!("/roles/{}", text(&item["id"]));
            assert_eq!(&bea.get(&path).await.expect_status(200).body, item);
            refused(bea.patch(&path, &json!({ "description": "mine" })).await, 409, "builtin_role");
            refused(bea.delete(&path).await, 409, "builtin_role");
        }
        let levels: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["level"].clone()).collect();
        assert_eq!(json!(levels), json!([100, 60, 60, 40, 20, 10, 5]));
        assert_eq!(page["items"][0]["permissions"], json!(["*"]));
        let me = bea.get("/auth/me").await.body;
        assert_eq!(page["items"][1]["permissions"], me["permissions"], "the table that decides is the one shown");
        for name in ["viewer", "ADMIN"] {
            refused(bea.post("/roles", &role(name, &[])).await, 409, "conflict");
        }
    }
}

on_both! {
    async fn a_page_goes_on_from_the_built_in_roles_to_the_stored(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await.api;
        for name in ["one", "two", "three", "100%"] {
            bea.post("/roles/", &role(name, &["device:read"])).await.expect_status(201);
        }
        let mut seen = Vec::new();
        for page in 1..=4 {
            let body = bea.get(&format!("/roles?per_page=3&page={page}")).await.expect_status(200).body;
            assert_eq!((&body["total"], &body["pages"]), (&json!(11), &json!(4)));
            seen.extend(column(&body, "name"));
        }
        let expected: Vec<&str> = BUILT_IN.into_iter().chain(["one", "two", "three", "100%"]).collect();
        assert_eq!(seen, expected, "every role once");
        for (search, expected) in [("%25", &["100%"][..]), ("OPER", &["operator"]), ("t", &["admin", "site_admin", "operator", "viewer", "guest", "two", "three"])] {
            let found = bea.get(&format!("/roles?search={search}")).await.expect_status(200).body;
            for name in expected {
                assert!(column(&found, "name").contains(&(*name).to_owned()), "{search}: {found}");
            }
            assert_eq!(found["total"], column(&found, "name").len(), "{search}");
        }
        assert_eq!(bea.get("/roles?page=9").await.expect_status(200).body["items"], json!([]));
    }
}

on_both! {
    async fn a_stored_role_holds_known_permissions_of_its_author(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await.api;
        let created = bea.post("/roles", &role("Scripts", &["device:read", "controller:*"])).await.expect_status(201);
        assert_eq!(created.header("location"), format!("/api/v1/roles/{}", text(&created.body["id"])));
        assert_eq!((&created.body["is_builtin"], &created.body["level"]), (&json!(false), &json!(null)));
        let answer = refused(bea.post("/roles", &role("Typo", &["device:read", "devices:*", "x"])).await, 422, "validation_error");
        let details = answer.body["error"]["details"].as_array().unwrap();
        assert_eq!(details.iter().map(|d| d["field"].clone()).collect::<Vec<_>>(), ["/permissions/1", "/permissions/2"]);
        let everything = refused(bea.post("/roles", &role("All", &["*"])).await, 403, "permission_denied");
        assert!(everything.message().contains("'*'"), "{}", everything.message());
        world.root.post("/roles", &role("All", &["*"])).await.expect_status(201);
        let path = format!("/roles/{}", text(&created.body["id"]));
        refused(bea.patch(&path, &json!({ "permissions": ["*"] })).await, 403, "permission_denied");
        bea.post("/roles", &json!({ "name": "x", "permissions": [], "level": 50 })).await.expect_status(422);
        bea.post("/roles", &json!({ "name": "x", "permissions": [], "description": "d".repeat(2001) })).await.expect_status(422);
    }
}

on_both! {
    async fn a_stored_role_is_changed_removed_and_brought_back(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await.api;
        let body = json!({ "name": "Scripts", "description": "nightly", "permissions": ["device:read"] });
        let created = bea.post("/roles", &body).await.expect_status(201);
        let (path, tag) = (format!("/roles/{}", text(&created.body["id"])), created.header("etag").to_owned());
        refused(bea.post("/roles", &role("SCRIPTS", &[])).await, 409, "conflict");
        let changed = bea.patch(&path, &json!({ "description": null, "permissions": ["vpn:read"] })).await.expect_status(200).body;
        assert_eq!((&changed["description"], &changed["permissions"]), (&json!(null), &json!(["vpn:read"])));
        assert_eq!(changed["name"], "Scripts");
        assert_eq!(if_match(&bea, "PATCH", &path, &tag, &json!({ "name": "x" })).await, 412);
        assert_eq!(if_match(&bea, "DELETE", &path, &tag, &json!({})).await, 412);
        bea.delete(&path).await.expect_status(204);
        bea.get(&path).await.expect_status(404);
        bea.delete(&path).await.expect_status(404);
        bea.post(&format!("{path}/restore"), &json!({})).await.expect_status(200);
        bea.delete(&path).await.expect_status(204);
        bea.post("/roles", &role("scripts", &[])).await.expect_status(201);
        refused(bea.post(&format!("{path}/restore"), &json!({})).await, 409, "conflict");
        for action in ["role.created", "role.updated", "role.removed", "role.restored"] {
            assert!(!world.audited(action).await.is_empty(), "{action}");
        }
    }
}

on_both! {
    async fn another_organizations_role_looks_like_an_absent_one(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await.admin.api;
        let created = world.root.post("/roles", &role("Scripts", &[])).await.expect_status(201).body;
        let foreign = format!("/roles/{}", text(&created["id"]));
        let absent = format!("/roles/{ABSENT}");
        for path in [&foreign, &absent] {
            for answer in [
                other.get(path).await,
                other.patch(path, &json!({ "name": "x" })).await,
                other.delete(path).await,
                other.post(&format!("{path}/restore"), &json!({})).await,
            ] {
                assert_eq!(refused(answer, 404, "not_found").message(), "role not found");
            }
        }
        assert_eq!(other.get("/roles").await.body["total"], 7);
        assert_eq!(world.root.get("/roles").await.body["total"], 8);
        other.post("/roles", &role("Scripts", &[])).await.expect_status(201);
    }
}

on_both! {
    async fn a_stored_role_gives_nobody_anything(database: Database) {
        let world = World::start(database).await;
        let vic = world.member("vic", "viewer").await;
        let before = vic.api.get("/auth/me").await.body["permissions"].clone();
        world.root.post("/roles", &role("Writers", &["device:*", "user:*"])).await.expect_status(201);
        assert_eq!(vic.api.get("/auth/me").await.body["permissions"], before);
        vic.api.get("/roles").await.expect_status(403);
        refused(world.root.patch(&vic.path(), &json!({ "role": "Writers" })).await, 400, "unknown_role");
        let document = world.root.get("/openapi.json").await.expect_status(200).body;
        let summary = text(&document["paths"]["/api/v1/roles"]["get"]["summary"]);
        assert!(summary.contains("never by these"), "{summary}");
    }
}
