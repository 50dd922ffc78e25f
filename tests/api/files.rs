//! Files that people upload.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::{ChangeId, OrgId, Role};
use heddle_store::files::{self, PIECE_BYTES, Usage};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::{Answer, Api, Options, Server, on_both};

/// Texts, so that an answer can be compared; no piece is like another.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + u8::try_from(at / 1_000 % 26).unwrap()).collect()
}

async fn upload(api: &Api, name: &str, bytes: Vec<u8>) -> Answer {
    let api = api.with("content-type", "application/x-tar");
    api.send("POST", &format!("/files?name={name}"), Some(bytes)).await
}

/// What the organization's files take, the parts of broken uploads among them.
async fn usage(server: &Server, api: &Api) -> Usage {
    let me = api.get("/auth/me").await.expect_status(200).body;
    let org: OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
    let mut tx = server.running().app.db.read().await.unwrap();
    files::usage(&mut tx, org).await.unwrap()
}

on_both! {
    async fn a_file_is_uploaded_listed_downloaded_and_removed(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let sent = bytes(PIECE_BYTES * 2 + 7);
        let made = upload(&api, "backup%20%C3%A9.tar", sent.clone()).await.expect_status(201);
        let id = made.body["id"].as_str().unwrap();
        assert_eq!(made.header("location"), format!("/api/v1/files/{id}"));
        assert_eq!(made.body["name"], "backup é.tar");
        assert_eq!(made.body["size_bytes"], sent.len());
        assert_eq!(made.body["content_type"], "application/x-tar");
        assert_eq!(made.body["sha256"], format!("{:x}", Sha256::digest(&sent)));

        let listed = api.get("/files?search=BACKUP&sort=-size_bytes").await.expect_status(200).body;
        assert_eq!((&listed["total"], &listed["items"][0]), (&json!(1), &made.body));
        assert_eq!(api.get(&format!("/files/{id}")).await.expect_status(200).body, made.body);
        let content = api.get(&format!("/files/{id}/content")).await.expect_status(200);
        assert!(content.text.as_bytes() == sent, "byte for byte");
        assert_eq!(content.header("content-type"), "application/octet-stream");
        assert_eq!(content.header("content-length"), sent.len().to_string());
        assert_eq!(content.header("x-content-type-options"), "nosniff");
        assert!(content.header("content-disposition").starts_with("attachment; filename=\"backup _.tar\""));

        let actions = api.get("/audit?target_type=file").await.expect_status(200).body;
        assert_eq!(actions["items"][0]["action"], "file.uploaded", "{actions}");
        api.delete(&format!("/files/{id}")).await.expect_status(204);
        api.get(&format!("/files/{id}")).await.expect_status(404);
        api.get(&format!("/files/{id}/content")).await.expect_status(404);
        assert_eq!(usage(&server, &api).await, Usage { files: 0, bytes: 0 }, "its bytes are gone, too");
    }
}

on_both! {
    async fn what_is_no_file_is_refused_with_what_would_work(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for (path, type_of, body, told) in [
            ("/files", "text/plain", "x", "name"),
            ("/files?name=", "text/plain", "x", "1 to 255 characters"),
            ("/files?name=a%2Fb", "text/plain", "x", "plain file name"),
            ("/files?name=a", "multipart/form-data; boundary=x", "x", "not a form"),
            ("/files?name=a", "nonsense", "x", "media type"),
            ("/files?name=a", "text/plain", "", "send the bytes"),
        ] {
            let api = api.with("content-type", type_of);
            let answer = api.send("POST", path, Some(body.into())).await.expect_status(422);
            assert!(answer.text.contains(told), "{path}: {}", answer.text);
        }
        let keyed = api.with("idempotency-key", "once");
        let answer = upload(&keyed, "a", bytes(10)).await.expect_status(422);
        assert!(answer.text.contains("is not taken by requests that send a file"), "{}", answer.text);
        assert_eq!(usage(&server, &api).await.files, 0);
    }
}

on_both! {
    async fn a_file_and_an_organization_have_a_limit(database: Database) {
        let most = PIECE_BYTES * 2;
        let options = Options::default()
            .with("FILE_BYTES_MAX", (PIECE_BYTES + 500_000).to_string())
            .with("FILES_BYTES_MAX", most.to_string());
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        upload(&api, "large", bytes(PIECE_BYTES + 500_001)).await.expect_status(413);
        upload(&api, "one", bytes(PIECE_BYTES + 10)).await.expect_status(201);
        let full = upload(&api, "two", bytes(PIECE_BYTES)).await.expect_status(409);
        assert_eq!(full.body["error"]["type"], "limit_reached");
        assert!(full.text.contains("may take 2097152 bytes together"), "{}", full.text);
        let used = usage(&server, &api).await;
        assert_eq!((used.files, used.bytes), (1, 1_048_586), "nothing is left of what was refused");
    }
}

on_both! {
    async fn an_upload_that_breaks_off_leaves_nothing(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let address = server.running().addr;
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /api/v1/files?name=a HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\n\r\n",
            api.token(),
            PIECE_BYTES * 4
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&bytes(PIECE_BYTES * 2 + 5)).await.unwrap();
        // Two pieces are stored; what is behind them waits for the third.
        while usage(&server, &api).await.bytes < 2_000_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(api.get("/files").await.expect_status(200).body["total"], 0, "it is not complete");
        drop(socket);
        while usage(&server, &api).await.files > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

on_both! {
    async fn a_file_lasts_some_days(database: Database) {
        let server = Server::start_with(database, Options::default().with("FILE_TTL_DAYS", "2")).await;
        let api = server.set_up().await;
        upload(&api, "old", bytes(10)).await.expect_status(201);
        let app = &server.running().app;
        let mut tx = app.db.write().await.unwrap();
        let page = heddle_core::page::PageRequest { page: 1, per_page: 10 };
        let (all, _) = files::list(&mut tx, &heddle_store::Scope::everything(), None, None, page).await.unwrap();
        drop(tx);
        app.clock.advance(TimeDelta::days(1));
        heddle_kernel::retention::round_if_due(app).await.unwrap();
        let mut tx = app.db.write().await.unwrap();
        assert_eq!(files::usage(&mut tx, all[0].org_id).await.unwrap().files, 1);
        drop(tx);
        app.clock.advance(TimeDelta::days(2));
        heddle_kernel::retention::round_if_due(app).await.unwrap();
        let mut tx = app.db.write().await.unwrap();
        assert_eq!(files::usage(&mut tx, all[0].org_id).await.unwrap().files, 0);
    }
}

on_both! {
    async fn only_operators_use_files_and_only_those_of_their_organization(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let id = upload(&api, "mine", bytes(10)).await.expect_status(201).body["id"].clone();
        let path = format!("/files/{}", id.as_str().unwrap());
        let me = api.get("/auth/me").await.expect_status(200).body;
        let own = me["organization_id"].as_str().unwrap();
        let (_, viewer) = crate::fixtures::member(&server, own, Role::Viewer, "vera").await;
        viewer.get("/files").await.expect_status(403);
        upload(&viewer, "theirs", bytes(10)).await.expect_status(403);
        let (_, operator) = crate::fixtures::member(&server, own, Role::Operator, "olaf").await;
        operator.get(&path).await.expect_status(200);
        let other = json!({ "name": "Other", "slug": "other" });
        let other = api.post("/organizations", &other).await.expect_status(201).body["id"].clone();
        let (_, stranger) =
            crate::fixtures::member(&server, other.as_str().unwrap(), Role::OrgAdmin, "stan").await;
        stranger.get(&path).await.expect_status(404);
        stranger.get(&format!("{path}/content")).await.expect_status(404);
        stranger.delete(&path).await.expect_status(404);
        assert_eq!(stranger.get("/files").await.expect_status(200).body["total"], 0);
    }
}

/// An administrator of the organization, and another one who may access one new site only.
async fn with_limited(server: &Server) -> (Api, Api) {
    let admin = server.set_up().await;
    let branch =
        admin.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body["id"].clone();
    let limited = super::sites_limited::log_in_limited(server, &admin, &branch).await;
    (admin, limited)
}

on_both! {
    async fn a_caller_of_some_sites_sees_only_their_own_files(database: Database) {
        let server = Server::start(database).await;
        let (admin, limited) = with_limited(&server).await;
        let other = upload(&admin, "other", bytes(10)).await.expect_status(201).body["id"].clone();
        let own = upload(&limited, "own", bytes(20)).await.expect_status(201).body;
        let listed = limited.get("/files").await.expect_status(200).body;
        assert_eq!((&listed["total"], &listed["items"][0]), (&json!(1), &own));
        let path = format!("/files/{}", other.as_str().unwrap());
        limited.get(&path).await.expect_status(404);
        limited.get(&format!("{path}/content")).await.expect_status(404);
        limited.delete(&path).await.expect_status(404);
        assert_eq!(admin.get("/files").await.expect_status(200).body["total"], 2);
    }
}

/// Stages a change at a controller of the first site that gives no answer, and lets it need these contents.
async fn hold(server: &Server, admin: &Api, sha256: &str) -> ChangeId {
    let credential = json!({ "name": "device", "username": "root", "password": "hunter2" });
    let credential = admin.post("/credentials", &credential).await.expect_status(201).body["id"].clone();
    let sites = admin.get("/sites?search=Branch").await.expect_status(200).body;
    let branch = &sites["items"][0]["id"];
    let sites = admin.get("/sites").await.expect_status(200).body;
    let first = sites["items"].as_array().unwrap().iter().find(|site| site["id"] != *branch).unwrap();
    let controller = json!({
        "name": "edge", "site_id": first["id"], "vendor": "openwrt", "url": "http://127.0.0.1:9",
        "credential_id": credential,
    });
    let controller = admin.post("/controllers", &controller).await.expect_status(201).body["id"].clone();
    let path = format!(
        "/gateway-openwrt-firewall/{}/changes/openwrt.firewall.rule?operation=create",
        controller.as_str().unwrap()
    );
    let payload = json!({ "payload": { "name": "r", "src": "wan", "target": "ACCEPT" } });
    let change = admin.post(&path, &payload).await.expect_status(201).body;
    let id: ChangeId = serde_json::from_value(change["id"].clone()).unwrap();
    let org: OrgId = serde_json::from_value(change["organization_id"].clone()).unwrap();
    let mut tx = server.running().app.db.write().await.unwrap();
    files::hold(&mut tx, id, org, sha256).await.unwrap();
    tx.commit().await.unwrap();
    id
}

on_both! {
    async fn a_file_in_use_stays_unless_a_copy_lasts_as_long(database: Database) {
        let server = Server::start(database).await;
        let (admin, limited) = with_limited(&server).await;
        let file = upload(&limited, "one", bytes(10)).await.expect_status(201).body;
        let change = hold(&server, &admin, file["sha256"].as_str().unwrap()).await.to_string();
        let path = format!("/files/{}", file["id"].as_str().unwrap());
        let refused = admin.delete(&path).await.expect_status(409);
        assert!(refused.text.contains(&change), "{}", refused.text);
        assert_eq!(refused.error_type(), "in_use");
        let refused = limited.delete(&path).await.expect_status(409);
        assert!(!refused.text.contains(&change), "the caller does not see the change: {}", refused.text);
        let copy = upload(&admin, "two", bytes(10)).await.expect_status(201).body;
        limited.delete(&path).await.expect_status(204);
        let last = admin.delete(&format!("/files/{}", copy["id"].as_str().unwrap())).await.expect_status(409);
        assert_eq!(last.error_type(), "in_use");
    }
}
