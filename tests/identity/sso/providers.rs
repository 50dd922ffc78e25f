//! Providers as administrators manage them, and what others see of them.

use heddle_core::secret::Secret;
use heddle_store::Scope;
use heddle_store::sso;
use serde_json::{Value, json};

use super::{PAGE, add, audited, oidc_body, with};
use crate::support::{Api, Server, on_both};

const SECRET: &str = "client-canary-8Wk";

fn company() -> Value {
    oidc_body("https://id.example", "heddle", Some(SECRET))
}

/// A member of another organization with this role.
async fn other_admin(server: &Server, admin: &Api) -> Api {
    let other = admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
    let user = json!({
        "username": "eve", "email": "eve@umbrella.test", "password": crate::support::PASSWORD, "role": "org_admin",
        "organization_id": other["id"],
    });
    admin.post("/users", &user).await.expect_status(201);
    server.log_in("eve").await
}

#[track_caller]
fn wrong_fields(answer: &crate::support::Answer) -> Vec<String> {
    assert_eq!(answer.status, 422, "{}", answer.text);
    let details = answer.body["error"]["details"].as_array().expect("details");
    details.iter().map(|detail| detail["field"].as_str().unwrap().to_owned()).collect()
}

on_both! {
    async fn a_secret_goes_in_and_never_comes_out(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let keyed = admin.with("idempotency-key", "one");
        let made = keyed.post("/auth/sso/providers", &company()).await.expect_status(201);
        let again = keyed.post("/auth/sso/providers", &company()).await.expect_status(201);
        assert_eq!(again.body["id"], made.body["id"]);
        let id = made.body["id"].as_str().unwrap();
        let path = format!("/auth/sso/providers/{id}");
        assert_eq!(made.header("location"), format!("/api/v1{path}"));
        assert_eq!((&made.body["has_secret"], &made.body["default_role"]), (&json!(true), &json!("viewer")));
        assert_eq!(made.body["oidc"]["scopes"], json!(["email", "profile"]));
        let tag = made.header("etag").to_owned();
        let one = admin.get(&path).await.expect_status(200);
        assert_eq!(one.header("etag"), tag);
        let renamed = admin.with("if-match", &tag).patch(&path, &json!({ "label": "Other" })).await.expect_status(200);
        assert_eq!((&renamed.body["label"], &renamed.body["has_secret"]), (&json!("Other"), &json!(true)));
        admin.with("if-match", &tag).patch(&path, &json!({ "label": "Late" })).await.expect_status(412);
        admin.with("if-match", &tag).delete(&path).await.expect_status(412);
        let list = admin.get("/auth/sso/providers?kind=oidc&search=oth").await.expect_status(200);
        assert_eq!(list.body["total"], 1);
        assert_eq!(admin.get("/auth/sso/providers?kind=ldap").await.expect_status(200).body["total"], 0);
        let trail = admin.get("/audit?per_page=200").await.expect_status(200);
        for answer in [&made, &again, &one, &renamed, &list, &trail] {
            assert!(!answer.text.contains(SECRET));
        }
        let app = &server.running().app;
        let stored = {
            let mut tx = app.db.read().await.unwrap();
            sso::find_sealed(&mut tx, &Scope::everything(), id.parse().unwrap()).await.unwrap().unwrap()
        };
        let sealed = stored.secret.unwrap();
        assert!(!sealed.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
        let opened = app.keys.open_sealed(&format!("identity_provider:{id}"), &sealed).unwrap();
        assert_eq!(Secret::new(std::str::from_utf8(&opened).unwrap()), Secret::new(SECRET));
        let cleared = admin.patch(&path, &json!({ "client_secret": null })).await.expect_status(200);
        assert_eq!(cleared.body["has_secret"], false);
        admin.delete(&path).await.expect_status(204);
        admin.get(&path).await.expect_status(404);
        let back = admin.post(&format!("{path}/restore"), &json!({})).await.expect_status(200);
        assert_eq!(back.body["label"], "Other");
        let actions = ["created", "updated", "removed", "restored"];
        for action in actions {
            assert!(!audited(&admin, &format!("identity_provider.{action}")).await.is_empty(), "{action}");
        }
        assert_eq!(audited(&admin, "identity_provider.updated").await[1]["detail"]["changed"], json!(["label"]));
    }
}

on_both! {
    async fn a_stored_secret_is_not_sent_to_somebody_else(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let id = add(&admin, &company()).await;
        let path = format!("/auth/sso/providers/{id}");
        let moved = json!({ "issuer": "https://evil.example", "client_id": "heddle", "redirect_uris": [PAGE] });
        let refused = admin.patch(&path, &json!({ "oidc": moved })).await;
        assert_eq!(wrong_fields(&refused), ["/client_secret"]);
        admin.patch(&path, &json!({ "oidc": moved, "client_secret": "a new one" })).await.expect_status(200);
        let ldap = json!({ "url": "ldaps://dir.example", "bind_dn": "cn=s", "base_dn": "dc=x", "user_filter": "(uid={login})" });
        let directory = json!({ "kind": "ldap", "label": "Directory", "bind_password": SECRET, "ldap": ldap });
        let id = add(&admin, &directory).await;
        let path = format!("/auth/sso/providers/{id}");
        for change in [json!({ "url": "ldaps://evil.example" }), json!({ "url": "ldap://dir.example", "insecure": true })] {
            let refused = admin.patch(&path, &json!({ "ldap": with(ldap.clone(), change) })).await;
            assert_eq!(wrong_fields(&refused), ["/bind_password"]);
        }
        let narrower = with(ldap.clone(), json!({ "base_dn": "ou=people,dc=x" }));
        admin.patch(&path, &json!({ "ldap": narrower })).await.expect_status(200);
        let refused = admin.patch(&path, &json!({ "bind_password": null })).await;
        assert_eq!(wrong_fields(&refused), ["/bind_password"]);
    }
}

on_both! {
    async fn roles_are_known_and_none_is_above_org_admin(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        for (changes, status, kind) in [
            (json!({ "default_role": "king" }), 400, "unknown_role"),
            (json!({ "role_mapping": { "a": "king" } }), 400, "unknown_role"),
            (json!({ "default_role": "super_admin" }), 403, "role_too_high"),
            (json!({ "role_mapping": { "a": "super_admin" } }), 403, "role_too_high"),
            (json!({ "role_mapping": { "": "viewer" } }), 422, "validation_error"),
        ] {
            let answer = admin.post("/auth/sso/providers", &with(company(), changes.clone())).await;
            assert_eq!((answer.status, answer.error_type()), (status, kind), "{changes}: {}", answer.text);
        }
        let id = add(&admin, &with(company(), json!({ "default_role": "guest", "role_mapping": { "a": "admin" } }))).await;
        let path = format!("/auth/sso/providers/{id}");
        let made = admin.get(&path).await.expect_status(200).body;
        assert_eq!((&made["default_role"], &made["role_mapping"]), (&json!("guest"), &json!({ "a": "org_admin" })));
        admin.patch(&path, &json!({ "default_role": "king" })).await.expect_status(400);
        // An administrator of an organization gives by a provider no role that they could not give by hand.
        let olga = json!({ "username": "olga", "email": "olga@acme.test", "password": crate::support::PASSWORD, "role": "org_admin" });
        admin.post("/users", &olga).await.expect_status(201);
        let olga = server.log_in("olga").await;
        for change in [json!({ "default_role": "org_admin" }), json!({ "role_mapping": { "a": "org_admin" } })] {
            olga.post("/auth/sso/providers", &with(company(), change.clone())).await.expect_status(403);
            olga.patch(&path, &change).await.expect_status(403);
        }
        olga.patch(&path, &json!({ "default_role": "site_admin" })).await.expect_status(200);
    }
}

on_both! {
    async fn a_mapping_that_would_map_nothing_and_a_filter_without_an_end_are_refused(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let directory = |changes: Value| {
            let ldap = json!({ "url": "ldaps://dir.example", "base_dn": "dc=example", "user_filter": "(uid={login})" });
            with(ldap, changes)
        };
        let mapping = json!({ "admins": "operator" });
        let silent = json!({ "kind": "ldap", "label": "Directory", "ldap": directory(json!({})) });
        let answer = admin.post("/auth/sso/providers", &with(silent.clone(), json!({ "role_mapping": mapping }))).await;
        assert_eq!(wrong_fields(&answer), ["/role_mapping"]);
        let id = add(&admin, &silent).await;
        let path = format!("/auth/sso/providers/{id}");
        assert_eq!(wrong_fields(&admin.patch(&path, &json!({ "role_mapping": mapping })).await), ["/role_mapping"]);
        let both = json!({ "role_mapping": mapping, "ldap": directory(json!({ "group_attribute": "memberOf" })) });
        admin.patch(&path, &both).await.expect_status(200);
        let deep = format!("{}(uid={{login}}){}", "(!".repeat(300), ")".repeat(300));
        let deep = json!({ "ldap": directory(json!({ "user_filter": deep, "group_attribute": "memberOf" })) });
        assert_eq!(wrong_fields(&admin.patch(&path, &deep).await), ["/ldap/user_filter"]);
    }
}

on_both! {
    async fn what_belongs_to_another_kind_is_refused(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let saml = json!({ "entry_point": "https://id.example/sso", "entity_id": "e" });
        for (changes, fields) in [
            (json!({ "bind_password": "x" }), vec!["bind_password"]),
            (json!({ "saml": saml }), vec!["saml"]),
            (json!({ "oidc": null }), vec!["oidc"]),
            (json!({ "label": " " }), vec!["label"]),
            (json!({ "client_secret": "" }), vec!["client_secret"]),
        ] {
            let answer = admin.post("/auth/sso/providers", &with(company(), changes.clone())).await;
            assert_eq!(wrong_fields(&answer), fields.iter().map(|field| crate::support::at(field)).collect::<Vec<_>>(), "{changes}");
        }
        let id = add(&admin, &company()).await;
        let answer = admin.patch(&format!("/auth/sso/providers/{id}"), &json!({ "kind": "ldap" })).await;
        assert_eq!(wrong_fields(&answer), ["/kind"]);
    }
}

on_both! {
    async fn providers_of_another_organization_do_not_exist(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let id = add(&admin, &company()).await;
        let eve = other_admin(&server, &admin).await;
        let path = format!("/auth/sso/providers/{id}");
        eve.get(&path).await.expect_status(404);
        eve.patch(&path, &json!({ "label": "Mine" })).await.expect_status(404);
        eve.delete(&path).await.expect_status(404);
        eve.post(&format!("{path}/restore"), &json!({})).await.expect_status(404);
        eve.post(&format!("{path}/test"), &json!({})).await.expect_status(404);
        assert_eq!(eve.get("/auth/sso/providers").await.expect_status(200).body["total"], 0);
        let own = add(&eve, &company()).await;
        assert_eq!(eve.get("/auth/sso/providers").await.expect_status(200).body["items"][0]["id"], own.as_str());
        admin.get(&path).await.expect_status(200);
    }
}

on_both! {
    async fn a_login_page_sees_buttons_and_nothing_else(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let id = add(&admin, &company()).await;
        add(&admin, &with(company(), json!({ "is_enabled": false, "label": "Off" }))).await;
        let nobody = server.nobody();
        let shown = nobody.get("/auth/sso/providers/public?organization_slug=acme").await.expect_status(200);
        assert_eq!(shown.body, json!({ "items": [{ "id": id, "kind": "oidc", "label": "Company account" }] }));
        for slug in ["nowhere", "", "ac%25", "ACME%20x"] {
            let path = format!("/auth/sso/providers/public?organization_slug={slug}");
            assert_eq!(nobody.get(&path).await.expect_status(200).body, json!({ "items": [] }), "{slug}");
        }
        nobody.get("/auth/sso/providers/public").await.expect_status(422);
        let elsewhere = json!({ "provider_id": id, "redirect_uri": "https://evil.example/back" });
        let refused = nobody.post("/auth/sso/oidc/authorize", &elsewhere).await;
        assert_eq!(wrong_fields(&refused), ["/redirect_uri"]);
        admin.patch(&format!("/auth/sso/providers/{id}"), &json!({ "is_enabled": false })).await.expect_status(200);
        let off = json!({ "provider_id": id, "redirect_uri": PAGE });
        nobody.post("/auth/sso/oidc/authorize", &off).await.expect_status(404);
        let ldap = json!({ "provider_id": id, "login": "a", "password": "b" });
        nobody.post("/auth/sso/ldap/authenticate", &ldap).await.expect_status(404);
    }
}
