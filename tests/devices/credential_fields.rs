//! Fields of credentials that adapters name, and the shapes that a controller's credential has to complete.

use serde_json::{Value, json};

use super::{audited, id_of};
use crate::support::{Adapters, Api, Database, Options, Server, on_both};

const SECRET: &str = "correct horse battery";

async fn server(database: Database) -> (Server, Api) {
    let options = Options::default().serving(Adapters::Of(vec!["proxmox".to_owned()]));
    let server = Server::start_with(database, options).await;
    let api = server.set_up().await;
    (server, api)
}

async fn stored(api: &Api, body: Value) -> Value {
    api.post("/credentials", &body).await.expect_status(201).body
}

on_both! {
    async fn of_other_fields_only_the_names_are_shown(database: Database) {
        let (_server, api) = server(database).await;
        let body = json!({ "name": "open", "fields": { "client-secret": SECRET, "client-id": "c-1" } });
        let credential = stored(&api, body).await;
        assert_eq!(credential["field_names"], json!(["client-id", "client-secret"]));
        assert_eq!((&credential["has_password"], &credential["has_api_key"]), (&json!(false), &json!(false)));
        let at = format!("/credentials/{}", id_of(&credential));
        let renamed = api.patch(&at, &json!({ "name": "other" })).await.expect_status(200).body;
        assert_eq!((&renamed["field_names"], &renamed["version"]), (&credential["field_names"], &json!(1)));
        let body = json!({ "fields": { "client-secret": SECRET }, "password": "p" });
        let changed = api.patch(&at, &body).await.expect_status(200).body;
        assert_eq!(changed["field_names"], json!(["client-secret"]), "they replace the stored ones");
        assert_eq!((&changed["has_password"], &changed["version"]), (&json!(true), &json!(2)));
        let cleared = api.patch(&at, &json!({ "fields": {} })).await.expect_status(200).body;
        assert_eq!(cleared["field_names"], json!([]));
        let entries = audited(&api, "credential.updated").await;
        let named: Vec<&Value> = entries.iter().map(|entry| &entry["detail"]["changed"]).collect();
        assert!(named.contains(&&json!(["fields", "password", "fields.client-secret"])), "{named:?}");
        for seen in [json!([credential, renamed, changed, entries]), api.get("/credentials").await.body] {
            assert!(!seen.to_string().contains(SECRET), "{seen}");
        }
    }
}

on_both! {
    async fn fields_have_names_of_their_own_and_bounded_values(database: Database) {
        let (_server, api) = server(database).await;
        let many: serde_json::Map<String, Value> = (0..17).map(|n| (format!("f{n}"), json!("x"))).collect();
        for (fields, words) in [
            (json!({ "password": "x" }), "give it as 'password' beside 'fields'"),
            (json!({ "api-key": "x" }), "give it as 'api_key' beside 'fields'"),
            (json!({ "Client": "x" }), "'Client' cannot name a field"),
            (json!({ "pin": "" }), "must have 1 to 8192 bytes"),
            (json!({ "pin": "x".repeat(8_193) }), "must have 1 to 8192 bytes"),
            (Value::Object(many), "must not have more than 16 entries"),
        ] {
            let refused = api.post("/credentials", &json!({ "name": "n", "fields": fields })).await;
            assert!(refused.text.contains(words), "{}", refused.text);
            refused.expect_status(422);
        }
        let nothing = api.post("/credentials", &json!({ "name": "n", "fields": {} })).await;
        assert!(nothing.text.contains("or other fields"), "{}", nothing.text);
        let most = json!({ "name": "n", "fields": { "pin": "x".repeat(8_192) } });
        stored(&api, most).await;
    }
}

on_both! {
    async fn a_credential_that_completes_no_shape_is_not_assigned(database: Database) {
        let (_server, api) = server(database).await;
        let shapes = api.get("/adapters/proxmox").await.expect_status(200).body["credentials"].clone();
        assert_eq!(
            shapes,
            json!([
                {
                    "id": "ticket", "title": "User and password",
                    "fields": [{ "name": "password", "is_secret": true }, { "name": "username", "is_secret": false }]
                },
                { "id": "token", "title": "API token", "fields": [{ "name": "api-key", "is_secret": true }] },
            ])
        );
        api.get("/adapters/none").await.expect_status(404);
        let words = "'proxmox' takes User and password (password, username) or API token (api-key)";
        let half = stored(&api, json!({ "name": "half", "username": "root@pam", "fields": { "pin": "1234" } })).await;
        let key = stored(&api, json!({ "name": "key", "api_key": "root@pam!lab=secret" })).await;
        let site = api.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        let controller = |credential: &Value| {
            json!({ "name": "c", "site_id": site, "vendor": "proxmox", "url": "http://127.0.0.1:9", "credential_id": credential["id"] })
        };
        let refused = |answer: crate::support::Answer| {
            let text = answer.text.clone();
            assert!(text.contains(&format!("has username, pin; {words}")), "{text}");
            answer.expect_status(422);
        };
        refused(api.post("/controllers", &controller(&half)).await);
        let created = api.post("/controllers", &controller(&key)).await.expect_status(201).body;
        let at = format!("/controllers/{}", id_of(&created));
        refused(api.patch(&at, &json!({ "credential_id": half["id"] })).await);
        let test = format!("/credentials/{}/test", id_of(&half));
        refused(api.post(&test, &json!({ "controller_id": created["id"] })).await);
        refused(api.post(&test, &json!({ "vendor": "proxmox", "url": "http://127.0.0.1:9" })).await);
        // The credential of a controller keeps what its adapter needs.
        let used = format!("/credentials/{}", id_of(&key));
        let kept = api.patch(&used, &json!({ "api_key": null, "password": "p" })).await;
        assert!(kept.text.contains(&format!("has password; {words}")), "{}", kept.text);
        kept.expect_status(422);
        let other = json!({ "api_key": null, "username": "root@pam", "password": "p" });
        api.patch(&used, &other).await.expect_status(200);
        let unused = format!("/credentials/{}", id_of(&half));
        api.patch(&unused, &json!({ "fields": {} })).await.expect_status(200);
    }
}
