//! Bad input and a bad world: each has a clear error, and nothing is lost.

use serde_json::json;

use crate::staging::{Lab, ROUTER_PASSWORD, start_router};
use crate::support::{Database, Options, PASSWORD, Process, Server, on_both, packages, register};

on_both! {
    async fn a_body_that_is_wrong_names_what_is_wrong(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for (body, field, kind) in [
            (r#"{"name": "x""#, "body", "json_invalid"),
            (r#"{"name": "x"} trailing"#, "body", "json_invalid"),
            (r#"{"nam": "x"}"#, "nam", "unknown_field"),
            (r#"{"name": 7}"#, "name", "type_error"),
            (r#"{"name": "x", "settings": 7}"#, "settings", ""),
            ("[]", "body", "type_error"),
        ] {
            let answer = api.send("POST", "/sites", Some(body.as_bytes().to_vec())).await.expect_status(422);
            let detail = &answer.body["error"]["details"][0];
            assert_eq!(answer.error_type(), "validation_error", "{body}");
            assert_eq!(detail["field"], crate::support::at(field), "{body}: {}", answer.text);
            if !kind.is_empty() {
                assert_eq!(detail["type"], kind, "{body}: {}", answer.text);
            }
        }
        let large = vec![b'x'; 1_048_577];
        let answer = api.send("POST", "/sites", Some(large)).await.expect_status(413);
        assert_eq!(answer.body, json!({ "detail": "request body exceeds 1048576-byte limit" }));
        for query in ["page=0", "per_page=0", "per_page=201", "per_page=many", "pag=1"] {
            let answer = api.get(&format!("/devices?{query}")).await.expect_status(422);
            assert_eq!(answer.error_type(), "validation_error", "{query}");
        }
        api.get("/devices/not-an-id").await.expect_status(422);
    }
}

on_both! {
    async fn foreign_and_absent_ids_look_the_same(database: Database) {
        let lab = Lab::start(database).await;
        let absent = "01900000-0000-7000-8000-000000000000";
        for path in ["/sites/", "/controllers/", "/credentials/", "/devices/", "/gateway-vpn/changes/"] {
            let answer = lab.api.get(&format!("{path}{absent}")).await.expect_status(404);
            assert_eq!(answer.error_type(), "not_found", "{path}");
        }
        let body = json!({
            "name": "x", "site_id": absent, "vendor": "openwrt", "url": "http://192.0.2.1", "credential_id": absent,
        });
        let answer = lab.api.post("/controllers", &body).await.expect_status(422);
        assert!(answer.text.contains("site_id"), "{}", answer.text);
    }
}

on_both! {
    async fn a_controller_that_does_not_answer_is_told_as_what_it_is(database: Database) {
        let router = start_router().await;
        let server = Server::start(database).await;
        let api = server.set_up().await;

        let wrong = register(&api, &router.url(), "not the password").await;
        let test = format!("/controllers/{}/test", wrong["id"].as_str().unwrap());
        let answer = api.post(&test, &json!({})).await.expect_status(200).body;
        assert_eq!(answer["ok"], false, "{answer}");
        assert_eq!(answer["error"]["type"], "adapter_authentication_error", "{answer}");

        let closed = register(&api, "http://127.0.0.1:9", ROUTER_PASSWORD).await;
        let test = format!("/controllers/{}/test", closed["id"].as_str().unwrap());
        let answer = api.post(&test, &json!({})).await.expect_status(200).body;
        assert_eq!(answer["error"]["type"], "adapter_connection_error", "{answer}");

        let metadata = register(&api, "http://169.254.169.254", ROUTER_PASSWORD).await;
        let test = format!("/controllers/{}/test", metadata["id"].as_str().unwrap());
        let answer = api.post(&test, &json!({})).await.expect_status(200).body;
        assert_eq!(answer["ok"], false, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("169.254.169.254"), "{answer}");

        for url in ["ftp://192.0.2.1", "http://", "192.0.2.1", "http://user:pw@192.0.2.1", "http://192.0.2.1/?x=1"] {
            let body = json!({
                "name": "x", "site_id": wrong["site_id"], "vendor": "openwrt", "url": url,
                "credential_id": wrong["credential_id"],
            });
            let answer = api.post("/controllers", &body).await.expect_status(422);
            assert_eq!(answer.body["error"]["details"][0]["field"], "/url", "{url}: {}", answer.text);
        }
        let body = json!({
            "name": "x", "site_id": wrong["site_id"], "vendor": "acme", "url": "http://192.0.2.1",
            "credential_id": wrong["credential_id"],
        });
        let answer = api.post("/controllers", &body).await;
        assert!(matches!(answer.status, 400 | 422), "{}", answer.text);
        assert!(answer.text.contains("openwrt"), "it says which vendors there are: {}", answer.text);
    }
}

on_both! {
    async fn settings_that_the_adapter_does_not_declare_are_refused(database: Database) {
        let lab = Lab::start(database).await;
        let path = format!("/controllers/{}", lab.controller);
        let answer = lab.api.patch(&path, &json!({ "settings": { "prefx": "/x" } })).await.expect_status(422);
        assert!(answer.text.contains("prefx"), "{}", answer.text);
        assert_eq!(answer.body["error"]["details"][0]["field"], "/settings/prefx", "{}", answer.text);
    }
}

on_both! {
    async fn an_untrusted_certificate_is_refused_and_can_be_pinned(database: Database) {
        let router =
            heddle_lab_openwrt::Router::builder().password(ROUTER_PASSWORD).tls().start().await;
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let controller = register(&api, &router.url(), ROUTER_PASSWORD).await;
        let path = format!("/controllers/{}", controller["id"].as_str().unwrap());
        let answer = api.post(&format!("{path}/test"), &json!({})).await.expect_status(200).body;
        assert_eq!(answer["ok"], false, "{answer}");
        let fingerprint = router.certificate_sha256().expect("TLS is on");
        assert_eq!(answer["certificate_fingerprint"], fingerprint, "{answer}");

        let pin = json!({ "tls": { "mode": "pin", "fingerprint": fingerprint } });
        api.patch(&path, &pin).await.expect_status(200);
        let answer = api.post(&format!("{path}/test"), &json!({})).await.expect_status(200).body;
        assert_eq!(answer["ok"], true, "{answer}");

        let other = json!({ "tls": { "mode": "pin", "fingerprint": "00".repeat(32) } });
        api.patch(&path, &other).await.expect_status(200);
        let answer = api.post(&format!("{path}/test"), &json!({})).await.expect_status(200).body;
        assert_eq!(answer["ok"], false, "{answer}");
    }
}

/// Starts a server on a copy of the packages that `spoil` has changed.
async fn with_spoiled_package(spoil: impl Fn(&std::path::Path)) -> (Server, String) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("packages/openwrt");
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(packages().join("openwrt")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    spoil(&copy);
    let options =
        Options::default().with("ADAPTER_PACKAGES", folder.path().join("packages").display().to_string());
    let server = Server::start_with(Database::sqlite(), options).await;
    let api = server.set_up().await;
    let detail = api.get("/health/detail").await.expect_status(200).body;
    assert_eq!(detail["status"], "degraded", "{detail}");
    assert_eq!(detail["adapters"], json!([]), "{detail}");
    let reason = detail["refused_adapters"][0]["reason"].as_str().unwrap().to_owned();
    (server, reason)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsigned_package_is_refused_and_the_server_serves() {
    let (_server, reason) = with_spoiled_package(|package| {
        std::fs::remove_file(package.join("manifest.sig")).unwrap();
    })
    .await;
    assert!(reason.contains("manifest.sig"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_altered_component_is_refused_before_it_is_compiled() {
    let (_server, reason) = with_spoiled_package(|package| {
        let path = package.join("component.wasm");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    })
    .await;
    assert!(reason.contains("component.wasm"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_altered_manifest_is_refused() {
    let (_server, reason) = with_spoiled_package(|package| {
        let path = package.join("manifest.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("\"schema\"", "\"schema\" ");
        std::fs::write(path, text).unwrap();
    })
    .await;
    assert!(reason.contains("signature"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_database_is_told_and_nothing_is_lost() {
    let lab = Lab::start(Database::sqlite()).await;
    let path = lab.server.folder().join("data/heddle.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut other = <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let body = json!({ "name": "Branch" });
    let refused = lab.api.post("/sites", &body).await.expect_status(503);
    assert_eq!(refused.error_type(), "unavailable");
    assert!(refused.message().contains("busy"), "{}", refused.text);
    lab.api.get("/sites").await.expect_status(200);
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    lab.api.post("/sites", &body).await.expect_status(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with("ADAPTER_PACKAGES", "").with("LOG_FILTER", "warn");
    let process = Process::start_on_small_disk(folder.path(), 6144, &options).await;
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
        "site": { "name": "Head office" },
    });
    let answer = process.api.post("/setup/complete", &setup).await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(answer.status, 201, "{} log: {log} in {:?}", answer.text, folder.keep());
    let process = process.with_token(answer.body["access_token"].as_str().unwrap());
    let name =
        |n: usize| json!({ "name": format!("{n}-{}", "x".repeat(150)), "settings": { "auto_adopt": false } });
    let mut made = 1;
    let refused = loop {
        let answer = process.api.post("/sites", &name(made)).await;
        if answer.status != 201 {
            break answer;
        }
        made += 1;
        assert!(made < 20_000, "the disk is never full");
    };
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(refused.message().contains("space"), "{}", refused.text);
    let sites = process.api.get("/sites").await.expect_status(200).body;
    assert_eq!(sites["total"], made, "all that was answered is there, and what was refused is not");
    let filler = format!("/proc/{}/root{}/data/filler", process.id(), folder.path().display());
    std::fs::remove_file(filler).unwrap();
    let answer = process.api.post("/sites", &name(made)).await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(answer.status, 201, "once there is space again: {} {log}", answer.text);
}

on_both! {
    async fn the_character_0_in_a_parameter_is_refused(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let refused = api.get("/sites?search=a%00b").await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["field"], "/search", "{}", refused.text);
        api.get("/audit?action=%00").await.expect_status(422);
        api.get("/sites/%00").await.expect_status(422);
    }
}
