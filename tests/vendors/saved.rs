//! A device answers a file, which becomes one of the organization without passing through the component.

use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heddle_core::{OrgId, Role};
use heddle_lab::{Controller as _, Fault, FaultKind};
use heddle_lab_opnsense::{Firewall, Settings};
use heddle_store::files::{self, Usage};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::practice::opnsense;
use super::register;
use crate::fixtures::member;
use crate::support::{Adapters, Answer, Api, Database, Options, PASSWORD, Process, Server, on_both};

const BACKUP: &str = "/api/core/backup/download/this";
const NOTHING: Usage = Usage { files: 0, bytes: 0 };
/// More than the limit of an answer.
const BYTES: usize = 12 << 20;

struct Rig {
    server: Server,
    api: Api,
    organization: String,
    site: Value,
    device: heddle_lab::Lab<Firewall>,
    controller: String,
}

impl Rig {
    async fn start(database: Database, bytes: usize) -> Self {
        Self::start_with(database, bytes, Options::default()).await
    }

    async fn start_with(database: Database, bytes: usize, options: Options) -> Self {
        let settings = Settings { backup_bytes_min: bytes, ..Settings::default() };
        let device = heddle_lab::Lab::builder(Firewall::new(settings)).start().await;
        let options = options.serving(Adapters::Of(vec!["opnsense".to_owned()]));
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let credential = json!({ "name": "key", "username": "admin-key", "password": "admin-secret" });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let site = api.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        let body = json!({
            "name": "edge", "site_id": site, "vendor": "opnsense", "url": device.url(),
            "credential_id": credential["id"],
        });
        let controller = api.post("/controllers", &body).await.expect_status(201).body;
        let controller = controller["id"].as_str().unwrap().to_owned();
        let me = api.get("/auth/me").await.expect_status(200).body;
        let organization = me["organization_id"].as_str().unwrap().to_owned();
        Self { server, api, organization, site, device, controller }
    }

    fn at(&self, rest: &str) -> String {
        format!("/gateway-opnsense-system/{}/{rest}", self.controller)
    }

    async fn fetch_as(&self, api: &Api, kind: &str, body: &Value) -> Answer {
        api.post(&self.at(&format!("files/{kind}")), body).await
    }

    async fn fetch(&self) -> Answer {
        self.fetch_as(&self.api, "core.config-backup", &json!({})).await
    }

    /// What the device has as its backup now.
    fn backup(&self) -> Vec<u8> {
        let basic = BASE64_STANDARD.encode("admin-key:admin-secret");
        let request = heddle_lab::Request::new("GET", BACKUP, String::new())
            .with_header("authorization", &format!("Basic {basic}"));
        let mut locked = self.device.lock();
        let (firewall, context) = locked.parts();
        firewall.handle(&request, context).body
    }

    /// How often the device was asked for it.
    fn asked(&self) -> usize {
        self.device.record().iter().filter(|exchange| exchange.path == BACKUP).count()
    }

    /// What files take, those that are not complete among them.
    async fn usage(&self) -> Usage {
        let org: OrgId = self.organization.parse().unwrap();
        let mut tx = self.server.running().app.db.read().await.unwrap();
        files::usage(&mut tx, org).await.unwrap()
    }
}

on_both! {
    async fn a_backup_larger_than_an_answer_becomes_a_file(database: Database) {
        let rig = Rig::start(database, BYTES).await;
        let keyed = rig.api.with("idempotency-key", "nightly");
        let body = json!({ "name": "edge.xml" });
        let made = rig.fetch_as(&keyed, "core.config-backup", &body).await.expect_status(201);
        let (file, backup) = (&made.body, rig.backup());
        assert!(backup.len() >= BYTES);
        assert_eq!(file["sha256"], format!("{:x}", Sha256::digest(&backup)));
        assert_eq!(file["size_bytes"], backup.len());
        assert_eq!((&file["name"], &file["content_type"]), (&json!("edge.xml"), &json!("application/xml")));
        assert_eq!((&file["controller_id"], &file["kind"]), (&json!(rig.controller), &json!("core.config-backup")));
        let id = file["id"].as_str().unwrap();
        assert_eq!(made.header("location"), format!("/api/v1/files/{id}"));
        assert_eq!(rig.api.get(&format!("/files/{id}")).await.expect_status(200).body, *file);
        let content = rig.api.get(&format!("/files/{id}/content")).await.expect_status(200);
        assert!(content.text.as_bytes() == backup, "byte for byte");

        // The same request again is not another file.
        let again = rig.fetch_as(&keyed, "core.config-backup", &body).await.expect_status(201);
        assert_eq!((again.header("idempotency-replayed"), &again.body), ("true", file));
        assert_eq!((rig.asked(), rig.usage().await.files), (1, 1));

        let log = rig.api.get("/audit?target_type=file").await.expect_status(200).body;
        let told = json!({
            "name": "edge.xml", "size_bytes": backup.len(), "sha256": file["sha256"],
            "controller_id": rig.controller, "kind": "core.config-backup",
        });
        for (at, action) in ["file.downloaded", "file.saved"].into_iter().enumerate() {
            let entry = &log["items"][at];
            assert_eq!((&entry["action"], &entry["detail"]), (&json!(action), &told), "{log}");
        }
        rig.api.delete(&format!("/files/{id}")).await.expect_status(204);
        assert_eq!(rig.usage().await, NOTHING);
    }
}

on_both! {
    async fn nothing_stays_of_a_file_that_did_not_come_whole(database: Database) {
        let rig = Rig::start(database, 3 << 20).await;
        let html = FaultKind::Html { status: 200 };
        let refused = FaultKind::Status { status: 500, retry_after_secs: None };
        for (kind, status) in [(FaultKind::CutBody, 502), (html, 502), (refused, 502)] {
            rig.device.fault(Fault::from(kind.clone()).on("GET", BACKUP));
            let answer = rig.fetch().await;
            assert_eq!(answer.status, status, "{kind:?}: {}", answer.text);
            assert_eq!(rig.usage().await, NOTHING, "{kind:?}");
            rig.device.clear_faults();
        }
        rig.fetch().await.expect_status(201);
        let missing = json!({ "key": "config-1.xml" });
        let none = rig.fetch_as(&rig.api, "core.config-revision-backup", &missing).await;
        assert_eq!(none.error_type(), "adapter_not_found", "{}", none.text);
        assert_eq!(rig.usage().await.files, 1);
    }
}

on_both! {
    async fn a_file_that_is_too_large_or_finds_no_room_is_refused(database: Database) {
        let options = Options::default()
            .with("FILE_BYTES_MAX", (2 << 20).to_string())
            .with("FILES_BYTES_MAX", (3 << 20).to_string());
        let rig = Rig::start_with(database, (2 << 20) + 1, options).await;
        let large = rig.fetch().await.expect_status(409);
        assert_eq!(large.error_type(), "limit_reached");
        assert!(large.text.contains("FILE_BYTES_MAX"), "{}", large.text);
        assert_eq!(rig.usage().await, NOTHING);

        let sending = rig.api.with("content-type", "application/octet-stream");
        sending.send("POST", "/files?name=other", Some(vec![7; 2 << 20])).await.expect_status(201);
        rig.device.lock().parts().0.set_backup_bytes_min(3 << 19);
        let full = rig.fetch().await.expect_status(409);
        assert!(full.text.contains("may take 3145728 bytes together"), "{}", full.text);
        assert_eq!(rig.usage().await, Usage { files: 1, bytes: 2 << 20 });
    }
}

on_both! {
    async fn a_file_of_a_device_needs_more_than_reading(database: Database) {
        let rig = Rig::start(database, 0).await;
        let (_, viewer) = member(&rig.server, &rig.organization, Role::Viewer, "vera").await;
        rig.fetch_as(&viewer, "core.config-backup", &json!({})).await.expect_status(403);
        let user = json!({
            "username": "rita", "email": "rita@acme.test", "password": PASSWORD, "role": "site_admin",
        });
        let user = rig.api.post("/users", &user).await.expect_status(201).body;
        let grants = format!("/organizations/{}/site-access", rig.organization);
        let grant = |level: &str| json!({ "user_id": user["id"], "site_id": rig.site, "level": level });
        rig.api.post(&grants, &grant("read")).await.expect_status(201);
        let reader = rig.server.log_in("rita").await;
        rig.fetch_as(&reader, "core.config-backup", &json!({})).await.expect_status(403);
        let other = json!({ "name": "Other", "slug": "other" });
        let other = rig.api.post("/organizations", &other).await.expect_status(201).body["id"].clone();
        let (_, stranger) = member(&rig.server, other.as_str().unwrap(), Role::OrgAdmin, "stan").await;
        rig.fetch_as(&stranger, "core.config-backup", &json!({})).await.expect_status(404);
        assert_eq!((rig.asked(), rig.usage().await), (0, NOTHING), "the device was not asked");

        let given = format!("{grants}/{}/{}", user["id"].as_str().unwrap(), rig.site.as_str().unwrap());
        rig.api.delete(&format!("{given}?widen=true")).await.expect_status(204);
        rig.api.post(&grants, &grant("write")).await.expect_status(201);
        let made = rig.fetch_as(&reader, "core.config-backup", &json!({})).await.expect_status(201).body;
        assert_eq!((&made["name"], &made["created_by"]), (&json!("config.xml"), &user["id"]));

        // Downloading is as good as fetching: reading files is not enough, and neither is a grant that was taken away.
        let content = format!("/files/{}/content", made["id"].as_str().unwrap());
        reader.get(&content).await.expect_status(200);
        let key = json!({ "name": "files", "scopes": ["file:read"] });
        let key = rig.api.post("/api-keys", &key).await.expect_status(201).body;
        let key = rig.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        key.get(&format!("/files/{}", made["id"].as_str().unwrap())).await.expect_status(200);
        key.get(&content).await.expect_status(403);
        rig.api.delete(&format!("{given}?widen=true")).await.expect_status(204);
        rig.api.post(&grants, &grant("read")).await.expect_status(201);
        reader.get(&content).await.expect_status(403);
        let log = rig.api.get("/audit?action=file.downloaded").await.expect_status(200).body;
        assert_eq!((&log["total"], &log["items"][0]["target_id"]), (&json!(1), &made["id"]), "{log}");
    }
}

on_both! {
    async fn a_file_is_fetched_and_an_object_is_listed(database: Database) {
        let rig = Rig::start(database, 0).await;
        let listed = rig.api.get(&rig.at("core.config-backup")).await.expect_status(404);
        assert!(listed.text.contains("is a file"), "{}", listed.text);
        let object = rig.fetch_as(&rig.api, "core.config-revision", &json!({})).await.expect_status(404);
        assert!(object.text.contains("is no file"), "{}", object.text);
        let nearest = rig.fetch_as(&rig.api, "core.config-backups", &json!({})).await.expect_status(404);
        assert!(nearest.text.contains("nearest is 'core.config-backup'"), "{}", nearest.text);
        for (body, told) in [
            (json!({ "filter": { "host": "x" } }), "take no filter"),
            (json!({ "key": "x" }), "leave the key out"),
            (json!({ "name": "a/b" }), "plain file name"),
        ] {
            let refused = rig.fetch_as(&rig.api, "core.config-backup", &body).await.expect_status(422);
            assert!(refused.text.contains(told), "{}", refused.text);
        }
        assert_eq!((rig.asked(), rig.usage().await), (0, NOTHING));
    }
}

/// Kills the server at some moments of a fetch: what is shown is whole, and what came in part is not shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_has_a_whole_file_or_none() {
    let device = opnsense::firewall(Settings { backup_bytes_min: 2 * BYTES, ..Settings::default() }).await;
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::sqlite());
    let options = Options::default().serving(Adapters::Of(vec!["opnsense".to_owned()]));
    let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
    let controller = register(&process.api, "opnsense", &*device).await;
    let path = format!("/gateway-opnsense-system/{controller}/files/core.config-backup");
    let begun = Instant::now();
    process.api.post(&path, &json!({})).await.expect_status(201);
    let whole = begun.elapsed();
    let mut unanswered = 0;
    for round in 1..=6_u32 {
        let sent = process.api.try_send("POST", &path, Some(b"{}".to_vec()));
        let answered = tokio::time::timeout(whole * round / 7, sent).await;
        unanswered += u32::from(answered.is_err());
        process.kill();
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        let files = process.api.get("/files?per_page=100").await.expect_status(200).body;
        for file in files["items"].as_array().unwrap() {
            let content = process.api.get(&format!("/files/{}/content", file["id"].as_str().unwrap())).await;
            let content = content.expect_status(200).text;
            assert_eq!(file["sha256"], format!("{:x}", Sha256::digest(content.as_bytes())), "{file}");
            assert_eq!(file["size_bytes"], content.len(), "{file}");
        }
    }
    assert!(unanswered >= 3, "{unanswered} of 6 fetches were cut off; a whole one took {whole:?}");
    // It goes on.
    process.api.post(&path, &json!({})).await.expect_status(201);
    let chain = process.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(chain["valid"], true, "{chain}");
}
