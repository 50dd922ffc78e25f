//! The operation against a receiver that gives the answer of the test.

use std::collections::BTreeMap;

use heddle_core::event::Event;
use heddle_core::{Clock, Role};
use heddle_inventory::devices::declarations::DEVICE_OFFLINE;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::config::Config;
use heddle_runtime::Compiler;
use heddle_store::SiteScope;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

/// Answers every request with this text; the requests that came are in the channel.
async fn receiver(answer: &'static str) -> (String, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, got) = unbounded_channel();
    let work = async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut bytes = vec![0; 64 * 1024];
            let count = socket.read(&mut bytes).await.unwrap_or_default();
            let _ = sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
            let _ = socket.write_all(answer.as_bytes()).await;
            let _ = socket.shutdown().await;
        }
    };
    #[expect(clippy::disallowed_methods, reason = "the receiver lives as long as the test")]
    tokio::spawn(work);
    (url, got)
}

async fn app(folder: &std::path::Path, more: &[(&str, &str)]) -> SharedApp {
    rustls::crypto::ring::default_provider().install_default().ok();
    let folder = folder.display().to_string();
    let base = [
        ("DATA_DIR", folder.as_str()),
        ("EGRESS_EXTRA_NETWORKS", "127.0.0.0/8"),
        ("FABRIC_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1"),
        ("COMPONENT_INSTANCES", "8"),
    ];
    let settings: BTreeMap<String, String> =
        base.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config =
        Config::from_maps(&settings, &BTreeMap::new(), &crate::testing::FEATURES.settings()).unwrap();
    let compiler = Compiler { program: "unused".into(), args: Vec::new(), is_awaited: false };
    App::open(config, compiler.into(), crate::testing::FEATURES).await.unwrap()
}

fn event(clock: &Clock) -> Event {
    Event {
        id: clock.new_id(),
        seq: 7,
        event_type: DEVICE_OFFLINE,
        category: "device".to_owned(),
        priority: DEVICE_OFFLINE.priority(),
        organization_id: clock.new_id(),
        occurred_at: clock.now(),
        causation_id: None,
        schema_version: 1,
        payload: json!({ "name": "edge", "password": "hunter2" }),
    }
}

async fn run(app: &SharedApp, params: Value) -> Result<Value, StepError> {
    let author = Caller {
        user_id: app.clock.new_id(),
        username: "ada".to_owned(),
        org_id: app.clock.new_id(),
        role: Role::OrgAdmin,
        credential: Credential::Session(app.clock.new_id()),
        scopes: None,
        grants: BTreeMap::new(),
        sites: SiteScope::All,
    };
    let event = event(&app.clock);
    let call = StepCall {
        app,
        author: &author,
        event: Some(&event),
        run_id: app.clock.new_id(),
        key: "0",
        step: 0,
        connection: None,
    };
    Webhook::new().run(&call, params).await
}

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const BAD: &str = "HTTP/1.1 422 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\nnope";

#[tokio::test]
async fn a_step_sends_the_event_or_its_payload_signed_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path(), &[("FABRIC_WEBHOOK_SIGNING_SECRET", "s3cret")]).await;
    let (url, mut got) = receiver(FINE).await;
    let output = run(&app, json!({ "url": url })).await.unwrap();
    assert_eq!(
        (&output["status_code"], &output["body"], &output["truncated"]),
        (&json!(200), &json!("ok"), &json!(false))
    );
    let sent = got.recv().await.unwrap();
    assert!(sent.starts_with("POST /hook HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("x-fabric-signature: sha256=") && sent.contains("x-fabric-timestamp: "), "{sent}");
    assert!(sent.contains(r#""payload":{"name":"edge"}"#) && !sent.contains("hunter2"), "{sent}");

    let params = json!({ "url": url, "method": "PUT", "payload": { "a": [1], "token": "x" }, "headers": { "X-A": "b" } });
    run(&app, params).await.unwrap();
    let sent = got.recv().await.unwrap();
    assert!(
        sent.starts_with("PUT ") && sent.contains("x-a: b\r\n") && sent.ends_with(r#"{"a":[1]}"#),
        "{sent}"
    );
    run(&app, json!({ "url": url, "method": "GET" })).await.unwrap();
    let sent = got.recv().await.unwrap();
    assert!(sent.starts_with("GET ") && sent.ends_with("\r\n\r\n"), "{sent}");
}

#[tokio::test]
async fn without_a_secret_nothing_is_signed() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path(), &[]).await;
    let (url, mut got) = receiver(FINE).await;
    run(&app, json!({ "url": url })).await.unwrap();
    assert!(!got.recv().await.unwrap().contains("x-fabric-"));
}

#[tokio::test]
async fn a_step_that_fails_says_why_and_is_not_sent_twice() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path(), &[]).await;
    let (url, mut got) = receiver(BAD).await;
    let failed = run(&app, json!({ "url": url })).await.unwrap_err();
    assert_eq!(failed.code, StepErrorCode::BadStatus);
    let output = failed.output.unwrap();
    assert_eq!((&output["status_code"], &output["body"]), (&json!(422), &json!("nope")));
    got.recv().await.unwrap();
    let second = tokio::time::timeout(std::time::Duration::from_secs(2), got.recv()).await;
    assert!(second.is_err(), "once is enough: {second:?}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    for (params, code) in [
        (json!({ "url": closed }), StepErrorCode::DeliveryError),
        (json!({ "url": "http://nowhere.invalid/" }), StepErrorCode::DeliveryError),
        (json!({ "url": "http://10.0.0.1/" }), StepErrorCode::SsrfBlocked),
        (json!({ "url": "http://169.254.169.254/" }), StepErrorCode::SsrfBlocked),
        (json!({ "url": "http://localhost/" }), StepErrorCode::SsrfBlocked),
        (json!({ "url": "ftp://hook.example/" }), StepErrorCode::InvalidParams),
        (json!({ "url": url, "method": "DELETE" }), StepErrorCode::InvalidParams),
        (json!({ "url": url, "headers": { "Host": "x" } }), StepErrorCode::InvalidParams),
        (json!({}), StepErrorCode::InvalidParams),
    ] {
        let failed = run(&app, params.clone()).await.unwrap_err();
        assert_eq!(failed.code, code, "{params}: {}", failed.message);
    }
    assert!(got.try_recv().is_err());
}
