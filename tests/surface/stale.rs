//! `If-Match` at every PATCH, field by field: what was edited since is 412, whether an answer shows it or not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::snapshots::{check, table};
use super::world::{Ids, World};
use crate::support::trace::{counted_request, statements};
use crate::support::{Api, Database, on_both};

/// A path of the document, an object there, and a value for each field that is edited.
struct Subject {
    path: &'static str,
    id: String,
    fields: Value,
}

impl Subject {
    fn of(path: &'static str, id: &str, fields: Value) -> Self {
        Self { path, id: id.to_owned(), fields }
    }

    /// An object made for this: one of each kind, where kinds have fields of their own.
    async fn made(api: &Api, path: &'static str, body: Value, fields: Value) -> Self {
        let (all, _) = path.rsplit_once('/').unwrap();
        let made = api.post(all, &body).await.expect_status(201);
        Self::of(path, made.body["id"].as_str().unwrap(), fields)
    }

    fn url(&self) -> String {
        let (all, _) = self.path.rsplit_once('/').unwrap();
        format!("{all}/{}", self.id)
    }
}

/// With a value for each field of each PATCH. A field that is missing here fails the test.
async fn subjects(world: &World) -> Vec<Subject> {
    let (api, own) = (&world.admin, &world.own);
    let mut all = organizations(world);
    all.extend(fabric(own));
    all.extend(delivery(api, own).await);
    all.extend(providers(api).await);
    all
}

fn organizations(world: &World) -> Vec<Subject> {
    let own = &world.own;
    vec![
        Subject::of(
            "/organizations/{organization_id}",
            &world.foreign["organization_id"],
            json!({ "name": "Acme 2", "slug": "acme-2", "tier": "enterprise", "settings": { "event_retention_days": 9 } }),
        ),
        Subject::of(
            "/sites/{site_id}",
            &own["site_id"],
            json!({ "name": "Depot", "slug": "depot", "settings": { "auto_adopt": true } }),
        ),
        Subject::of(
            "/users/{user_id}",
            &own["user_id"],
            json!({
                "email": "other@acme.test", "full_name": "Other", "is_active": false, "role": "operator",
                "password": "Correct-Horse-9-Staple",
            }),
        ),
        Subject::of(
            "/roles/{role_id}",
            &own["role_id"],
            json!({ "name": "Other", "description": "d", "permissions": ["site:read"] }),
        ),
        Subject::of(
            "/oauth2/apps/{app_id}",
            &own["app_id"],
            json!({
                "name": "Other", "description": "d", "redirect_uris": ["https://other.example/cb"],
                "scopes": ["device:read"],
            }),
        ),
        Subject::of(
            "/credentials/{credential_id}",
            &own["credential_id"],
            json!({
                "name": "Other", "username": "admin", "password": "secret", "api_key": "key", "host": "gw.example",
                "port": 8443, "tls": { "mode": "verify" },
            }),
        ),
        Subject::of(
            "/controllers/{controller_id}",
            &own["controller_id"],
            json!({
                "name": "Other", "url": "http://127.0.0.1:9/", "credential_id": own["credential_id"],
                "site_id": own["site_id"], "settings": {}, "sync_interval_secs": 600, "tls": { "mode": "verify" },
            }),
        ),
        Subject::of(
            "/devices/{device_id}",
            &own["device_id"],
            json!({ "display_name": "Edge", "notes": "n", "tags": ["t"], "state": "maintenance" }),
        ),
    ]
}

fn fabric(own: &Ids) -> Vec<Subject> {
    let steps = json!([{ "operation_id": "sites.list" }]);
    let edited = json!({
        "name": "Other", "description": "d", "source_event": "device.*", "conditions": { "logic": "or", "conditions": [] },
        "steps": steps, "cooldown": 60, "cooldown_key": "{{trigger.device_id}}", "state": "enabled",
    });
    let timed = json!({
        "name": "Other", "description": "d", "cron": "0 1 * * *", "time_zone": "Europe/Berlin", "missed": "run_once",
        "steps": steps, "state": "enabled",
    });
    vec![
        Subject::of("/fabric/connections/{connection_id}", &own["connection_id"], edited.clone()),
        Subject::of("/automation/rules/{rule_id}", &own["rule_id"], edited),
        Subject::of("/automation/schedules/{schedule_id}", &own["schedule_id"], timed),
    ]
}

async fn delivery(api: &Api, own: &Ids) -> Vec<Subject> {
    let channel = "/notifications/channels/{channel_id}";
    let webhook = json!({ "url": "https://hook.example/a?key=1" });
    let ntfy = json!({ "server_url": "https://ntfy.example", "topic": "alerts" });
    vec![
        Subject::of(
            "/webhooks/{subscription_id}",
            &own["subscription_id"],
            json!({
                "name": "Other", "url": "https://hook.example/?secret=2", "events": ["user.*"], "is_enabled": false,
                "headers": { "x-token": "2" }, "site_id": own["site_id"], "template_id": own["template_id"],
            }),
        ),
        Subject::of(
            "/webhooks/templates/{template_id}",
            &own["template_id"],
            json!({ "name": "Other", "payload": { "text": "t" } }),
        ),
        Subject::made(
            api,
            channel,
            json!({ "kind": "slack", "label": "Slack", "webhook_url": "https://hooks.example/a" }),
            json!({ "webhook_url": "https://hooks.example/b", "label": "Other", "is_enabled": false }),
        )
        .await,
        Subject::made(
            api,
            channel,
            json!({ "kind": "webhook", "label": "Hook", "webhook": webhook }),
            json!({ "webhook": { "url": "https://hook.example/a?key=2" }, "signing_secret": "sixteen-letters-long" }),
        )
        .await,
        Subject::made(
            api,
            channel,
            json!({ "kind": "ntfy", "label": "Push", "ntfy": ntfy }),
            json!({ "ntfy": { "server_url": "https://ntfy.example", "topic": "other" }, "token": "tk_2" }),
        )
        .await,
        Subject::made(
            api,
            channel,
            json!({ "kind": "email", "label": "Mail", "email": { "recipients": ["a@acme.test"] } }),
            json!({ "email": { "recipients": ["b@acme.test"] } }),
        )
        .await,
    ]
}

async fn providers(api: &Api) -> Vec<Subject> {
    let path = "/auth/sso/providers/{provider_id}";
    let oidc = |claim: &str| {
        json!({
            "issuer": "https://id.example", "client_id": "heddle", "groups_claim": claim,
            "redirect_uris": ["https://heddle.example/"],
        })
    };
    let ldap = |base: &str| {
        json!({
            "url": "ldaps://ldap.example", "base_dn": base, "bind_dn": "cn=search", "user_filter": "(uid={login})",
        })
    };
    let saml = |id: &str| json!({ "entry_point": "https://id.example/sso", "entity_id": id });
    vec![
        Subject::made(
            api,
            path,
            json!({ "kind": "oidc", "label": "OIDC", "oidc": oidc("groups"), "client_secret": "one" }),
            json!({
                "client_secret": "two", "oidc": oidc("roles"), "label": "Other", "is_enabled": false,
                "allow_registration": true, "allow_linking": true, "default_role": "operator",
                "role_mapping": { "admins": "org_admin" },
            }),
        )
        .await,
        Subject::made(
            api,
            path,
            json!({ "kind": "ldap", "label": "LDAP", "ldap": ldap("ou=a"), "bind_password": "one" }),
            json!({ "bind_password": "two", "ldap": ldap("ou=b") }),
        )
        .await,
        Subject::made(
            api,
            path,
            json!({ "kind": "saml", "label": "SAML", "saml": saml("urn:a") }),
            json!({ "saml": saml("urn:b") }),
        )
        .await,
    ]
}

async fn seen(api: &Api, url: &str) -> String {
    api.get(url).await.expect_status(200).header("etag").to_owned()
}

on_both! {
    async fn a_field_that_was_edited_since_it_was_read_is_not_overwritten(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let mut edited: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut wrong = Vec::new();
        for subject in subjects(&world).await {
            let url = subject.url();
            for (field, value) in subject.fields.as_object().unwrap() {
                let tag = seen(&world.admin, &url).await;
                let body = json!({ field: value });
                let tagged = world.admin.with("if-match", &tag);
                let first = tagged.patch(&url, &body).await;
                edited.entry(subject.path).or_default().insert(field.clone());
                if first.status != 200 {
                    wrong.push(format!("{url} {body}: {}", first.text));
                    continue;
                }
                let now = seen(&world.admin, &url).await;
                let stale = [tagged.patch(&url, &body).await.status, tagged.delete(&url).await.status];
                if first.header("etag") != now || now == tag || stale != [412, 412] {
                    wrong.push(format!("{url} {body}: {tag}, {now}, {stale:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for operation in contract.operations().iter().filter(|operation| operation.method == "PATCH") {
            let schema = &operation.definition["requestBody"]["content"]["application/json"]["schema"];
            let fields: BTreeSet<String> =
                contract.resolve(schema)["properties"].as_object().unwrap().keys().cloned().collect();
            let known = edited.remove(operation.path.as_str());
            assert_eq!(known.as_ref(), Some(&fields), "teach the test the fields of PATCH {}", operation.path);
        }
        assert!(edited.is_empty(), "no such PATCH: {edited:?}");
    }
}

on_both! {
    async fn a_tag_stays_while_an_object_is_only_measured_and_when_its_creation_is_sent_again(database: Database) {
        let world = World::start(database).await;
        let keyed = world.admin.with("idempotency-key", "once");
        let site = json!({ "name": "Branch" });
        let made = keyed.post("/sites", &site).await.expect_status(201);
        let again = keyed.post("/sites", &site).await.expect_status(201);
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(made.header("etag"), again.header("etag"));
        let url = format!("/sites/{}", made.body["id"].as_str().unwrap());
        assert_eq!(seen(&world.admin, &url).await, made.header("etag"));
        let controller = json!({
            "name": "Counted", "site_id": made.body["id"], "vendor": "openwrt", "url": "http://127.0.0.1:9",
            "credential_id": world.own["credential_id"],
        });
        world.admin.post("/controllers", &controller).await.expect_status(201);
        let counted = world.admin.get(&url).await.expect_status(200);
        assert_eq!(counted.body["controller_count"].as_i64(), Some(1));
        assert_eq!(counted.header("etag"), made.header("etag"));
        // What is asked for and what is tried is no edit either.
        let controller = format!("/controllers/{}", world.own["controller_id"]);
        let before = world.admin.get(&controller).await.expect_status(200);
        world.admin.post(&format!("{controller}/sync"), &json!({})).await.expect_status(202);
        assert_eq!(seen(&world.admin, &controller).await, before.header("etag"));
        let user = format!("/users/{}", world.own["user_id"]);
        let before = world.admin.get(&user).await.expect_status(200);
        let wrong = json!({ "login": before.body["username"], "password": "wrong" });
        world.server.nobody().post("/auth/login", &wrong).await.expect_status(401);
        assert_eq!(seen(&world.admin, &user).await, before.header("etag"));
    }
}

/// Every edit, with the statements that it takes: a change of the numbers shows in review.
#[tokio::test]
async fn how_often_an_edit_asks_the_database() {
    let world = World::start(Database::sqlite()).await;
    let mut rows = Vec::new();
    for subject in subjects(&world).await {
        let (field, value) = subject.fields.as_object().unwrap().iter().next().unwrap();
        // The caller is known: what is counted is the edit.
        seen(&world.admin, &subject.url()).await;
        let request = counted_request();
        let body = json!({ field: value });
        world.admin.with_request_id(&request).patch(&subject.url(), &body).await.expect_status(200);
        // What SQLite's own thread logs can come after the answer.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let edit = statements(&request);
        let is_own = |statement: &&String| !["BEGIN", "COMMIT"].iter().any(|end| statement.starts_with(end));
        let own = edit.iter().filter(is_own);
        rows.push(vec![subject.path.to_owned(), field.clone(), own.count().to_string()]);
    }
    check("edits.txt", &table(&rows));
}
