//! A file that a person uploaded reaches a storage of a vendor by a reviewed call, and is taken back.

use heddle_lab::{Fault, FaultKind};
use heddle_lab_proxmox::{Proxmox, ROOT_TOKEN};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::path;
use super::practice::proxmox::quick_tasks;
use crate::support::{Adapters, Answer, Api, Database, Options, Server, on_both};

const NAME: &str = "debian 13.iso";
/// As the vendor writes it.
const PLAIN: &str = "debian_13.iso";
const VOLUME: &str = "local:iso/debian_13.iso";
const UPLOAD: &str = "/api2/json/nodes/pve1/storage/local/upload";

/// A server with a cluster of practice behind it, and a file that was uploaded.
struct Rig {
    _server: Server,
    api: Api,
    device: heddle_lab::Lab<Proxmox>,
    controller: String,
    file: Value,
}

impl Rig {
    async fn start(database: Database, file: Vec<u8>) -> Self {
        let device = heddle_lab::Lab::builder(Proxmox::new(quick_tasks())).start().await;
        let serving = Adapters::Of(vec!["proxmox".to_owned()]);
        let options = Options::default().serving(serving).with("APPLY_SETTLE_MS", "50");
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let credential = json!({ "name": "key", "api_key": ROOT_TOKEN.trim_start_matches("PVEAPIToken=") });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let sites = api.get("/sites").await.expect_status(200).body;
        let body = json!({
            "name": "pve", "site_id": sites["items"][0]["id"], "vendor": "proxmox", "url": device.url(),
            "credential_id": credential["id"], "settings": { "login": "token" },
        });
        let controller = api.post("/controllers", &body).await.expect_status(201).body;
        let controller = controller["id"].as_str().unwrap().to_owned();
        let sending = api.with("content-type", "application/x-iso9660-image");
        let path = format!("/files?name={}", NAME.replace(' ', "%20"));
        let file = sending.send("POST", &path, Some(file)).await.expect_status(201).body;
        Self { _server: server, api, device, controller, file }
    }

    async fn try_stage(&self, file: &Value) -> Answer {
        let path = format!(
            "/gateway-proxmox-storage/{}/changes/proxmox.storage.upload?operation=create",
            self.controller
        );
        let payload = json!({ "node": "pve1", "storage": "local", "content": "iso", "file": file });
        self.api.post(&path, &json!({ "payload": payload })).await
    }

    async fn stage(&self) -> Value {
        let change = self.try_stage(&self.file["id"]).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        change
    }

    async fn act(&self, change: &Value, verb: &str, body: &Value) -> Answer {
        self.api.post(&path(change, verb), body).await
    }

    /// The digest of what the device has under the name of the file.
    fn uploaded(&self) -> Value {
        self.device.state()["uploads"][VOLUME].clone()
    }

    /// How often the device carried an upload out, and how often one arrived whole.
    fn uploads(&self) -> usize {
        self.device.record().iter().filter(|exchange| exchange.path == UPLOAD).count()
    }
}

/// Some pieces, and no two alike.
fn bytes() -> Vec<u8> {
    (0..3_000_007_u32).map(|at| u8::try_from(at / 1_000 % 251).unwrap()).collect()
}

on_both! {
    async fn a_file_is_reviewed_sent_and_taken_back(database: Database) {
        let sent = bytes();
        let digest = format!("{:x}", Sha256::digest(&sent));
        let rig = Rig::start(database, sent.clone()).await;
        let change = rig.stage().await;

        // The review names the file, and nothing has left.
        assert_eq!(change["payload"]["file"]["name"], NAME, "{change}");
        let call = &change["plan"]["native"][0];
        let file = json!({
            "sha256": digest, "name": PLAIN, "content_type": "application/octet-stream", "size_bytes": sent.len(),
        });
        assert_eq!(call["multipart"], json!([
            { "name": "checksum-algorithm", "text": "sha256" },
            { "name": "content", "text": "iso" },
            { "name": "checksum", "text": digest },
            { "name": "filename", "file": file },
        ]), "{change}");
        assert_eq!(rig.uploads(), 0);

        // Nobody takes away what a pending change needs.
        let held = rig.api.delete(&format!("/files/{}", rig.file["id"].as_str().unwrap())).await;
        assert_eq!(held.expect_status(409).error_type(), "in_use");

        let hash = &change["plan"]["hash"];
        let body = json!({ "force": true, "plan_hash": hash, "confirm_within_secs": 60 });
        let held = rig.act(&change, "apply", &body).await.expect_status(200).body;
        assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
        assert_eq!(rig.uploaded(), json!(digest), "the device computed the same digest");
        let back = rig.act(&change, "revert", &Value::Null).await.expect_status(200).body;
        assert_eq!(back["outcome"]["state"], "reverted", "{back}");
        assert_eq!(rig.uploaded(), Value::Null, "the volume is gone");
        assert_eq!(rig.uploads(), 1);
    }
}

on_both! {
    async fn a_file_that_was_sent_for_good_is_taken_back_by_a_change(database: Database) {
        let rig = Rig::start(database, bytes()).await;
        let change = rig.stage().await;
        let applied = rig.act(&change, "apply", &json!({ "force": true })).await.expect_status(200).body;
        assert_eq!(applied["outcome"]["state"], "applied", "{applied}");
        rig.api.delete(&format!("/files/{}", rig.file["id"].as_str().unwrap())).await.expect_status(204);
        let inverse = rig.act(&change, "revert", &json!({})).await.expect_status(201).body;
        assert_eq!(inverse["feature"], "proxmox.storage.volume", "{inverse}");
        let body = json!({ "force": true, "plan_hash": inverse["plan"]["hash"] });
        let reverted = rig.act(&inverse, "apply", &body).await.expect_status(200).body;
        assert_eq!(reverted["outcome"]["state"], "applied", "{reverted}");
        assert_eq!(rig.uploaded(), Value::Null);
    }
}

on_both! {
    async fn an_upload_that_breaks_off_is_not_sent_again(database: Database) {
        let rig = Rig::start(database, bytes()).await;
        let change = rig.stage().await;
        rig.device.fault(Fault::from(FaultKind::CutRequest { after_bytes: 1_000_000 }).on("POST", UPLOAD).times(1));
        let refused = rig.act(&change, "apply", &json!({ "force": true })).await;
        assert_ne!(refused.status, 200, "{}", refused.text);
        let seen = rig.api.get(&path(&change, "")).await.expect_status(200).body;
        assert_eq!(seen["outcome"]["step"], "idle", "{seen}");
        assert_eq!((rig.uploads(), rig.uploaded()), (0, Value::Null), "no second one came: {seen}");
    }
}

on_both! {
    async fn what_is_no_file_of_the_organization_is_refused(database: Database) {
        let rig = Rig::start(database, bytes()).await;
        let reference = format!("hdl-file:{}", rig.file["sha256"].as_str().unwrap());
        for (file, told) in [
            (json!("01981a7e-5c00-7000-8000-00000000000a"), "must be the id of a file of this organization"),
            (json!("x"), "must be the id of a file of this organization"),
            (json!(reference), "longer than 36 characters"),
        ] {
            let answer = rig.try_stage(&file).await.expect_status(422);
            assert!(answer.text.contains(told), "{}", answer.text);
        }
    }
}
