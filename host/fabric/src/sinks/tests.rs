//! The steps as a run does them: against a whole service, without its listener.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};

use heddle_core::notification::ChannelKind;
use heddle_core::operation::StepErrorCode;
use heddle_core::{OrgId, Role, UserId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::config::Config;
use heddle_kernel::opening::Surroundings;
use heddle_runtime::Compiler;
use heddle_store::channels::{self, ChannelId, NewChannel};
use heddle_store::notices::{self, Reader};
use heddle_store::organizations::{self, NewOrganization};
use heddle_store::users::{self, NewUser};
use heddle_store::{Scope, SiteScope};
use serde_json::{Value, json};

use crate::Operations;
use crate::operation::{StepCall, StepError};

struct Bench {
    app: SharedApp,
    author: Caller,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let settings = [
            ("DATA_DIR", folder.path().display().to_string()),
            ("FABRIC_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1".to_owned()),
            ("EGRESS_EXTRA_NETWORKS", "127.0.0.0/8".to_owned()),
        ];
        let settings: BTreeMap<String, String> =
            settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let config =
            Config::from_maps(&settings, &BTreeMap::new(), &crate::testing::FEATURES.settings()).unwrap();
        let compiler = Compiler { program: "/bin/false".into(), args: Vec::new(), is_awaited: false };
        let app = App::open(config, Surroundings::from(compiler), crate::testing::FEATURES).await.unwrap();
        let (org, user): (OrgId, UserId) = (app.clock.new_id(), app.clock.new_id());
        let now = app.clock.now();
        let mut tx = app.db.write().await.unwrap();
        let new =
            NewOrganization { id: org, name: "A".to_owned(), slug: "a".to_owned(), settings: json!({}), now };
        organizations::insert(&mut tx, &new).await.unwrap();
        let new = NewUser {
            id: user,
            org_id: org,
            username: "ada".to_owned(),
            email: "ada@acme.test".to_owned(),
            full_name: None,
            password_hash: "$hash".to_owned(),
            role: Role::OrgAdmin,
            now,
        };
        users::insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        let author = Caller {
            user_id: user,
            username: "ada".to_owned(),
            org_id: org,
            role: Role::OrgAdmin,
            credential: Credential::Session(app.clock.new_id()),
            scopes: None,
            sites: SiteScope::All,
            grants: BTreeMap::new(),
        };
        Self { app, author, _folder: folder }
    }

    async fn run(&self, operation: &str, key: &str, params: Value) -> Result<Value, StepError> {
        let call = StepCall {
            app: &self.app,
            author: &self.author,
            event: None,
            run_id: uuid::Uuid::nil().into(),
            key,
            step: 0,
            connection: None,
        };
        Operations::of(&self.app).find(operation).unwrap().run(&call, params).await
    }

    async fn channel(&self, secret: &str) -> ChannelId {
        let id: ChannelId = self.app.clock.new_id();
        let new = NewChannel {
            id,
            org_id: self.author.org_id,
            kind: ChannelKind::Slack,
            label: "s".to_owned(),
            is_enabled: true,
            settings: json!({}),
            secret: Some(self.app.keys.seal(&format!("channel:{id}"), secret.as_bytes())),
            now: self.app.clock.now(),
        };
        let mut tx = self.app.db.write().await.unwrap();
        channels::insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        id
    }
}

/// Answers one request with this status.
fn answer_once(status: u16) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/canary", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut part = [0; 1024];
        // The body is JSON, and its end is the end of the request.
        while !asked.ends_with(b"}") {
            let count = peer.read(&mut part).unwrap();
            asked.extend_from_slice(&part[..count]);
        }
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
        peer.write_all(answer.as_bytes()).unwrap();
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_channel_the_administrators_are_told_once_for_a_step() {
    let bench = Bench::new().await;
    let params = json!({ "subject": "Line down", "body": "since 9:00", "severity": "critical" });
    let first = bench.run("fabric.notify", "0", params.clone()).await.unwrap();
    let again = bench.run("fabric.notify", "0", params.clone()).await.unwrap();
    let other = bench.run("fabric.notify", "1", params).await.unwrap();
    assert_eq!(first, again, "the same step again");
    assert_ne!(first["notice_id"], other["notice_id"]);
    let reader = Reader { org: bench.author.org_id, user: bench.author.user_id, role: Role::OrgAdmin };
    let mut tx = bench.app.db.read().await.unwrap();
    assert_eq!(notices::count_unread(&mut tx, reader).await.unwrap(), 2);
    let viewer = Reader { role: Role::Viewer, ..reader };
    assert_eq!(notices::count_unread(&mut tx, viewer).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_takes_it_or_the_step_says_why_not() {
    let bench = Bench::new().await;
    let say = |id: ChannelId| json!({ "channel_id": id, "subject": "s", "body": "b" });
    let good = bench.channel(&answer_once(200)).await;
    let told = bench.run("fabric.notify", "0", say(good)).await.unwrap();
    assert_eq!(told, json!({ "channel_id": good, "notice_id": null, "status": 200 }));
    let mut expected = vec![
        (bench.channel(&answer_once(500)).await, StepErrorCode::BadStatus),
        (bench.channel("http://10.0.0.1/canary").await, StepErrorCode::SsrfBlocked),
        (bench.channel("http://127.0.0.1:1/canary").await, StepErrorCode::DeliveryError),
        (bench.app.clock.new_id(), StepErrorCode::NotFound),
    ];
    let disabled = bench.channel("http://127.0.0.1:1/canary").await;
    let mut tx = bench.app.db.write().await.unwrap();
    let change = channels::ChannelUpdate { is_enabled: Some(false), ..channels::ChannelUpdate::default() };
    channels::update(&mut tx, &Scope::everything(), disabled, &change, bench.app.clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    expected.push((disabled, StepErrorCode::DeliveryError));
    for (id, code) in expected {
        let error = bench.run("fabric.notify", "0", say(id)).await.unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(!error.message.contains("canary"), "{}", error.message);
    }
    let error = bench.run("fabric.notify", "0", json!({ "subject": "s" })).await.unwrap_err();
    assert_eq!(error.code, StepErrorCode::InvalidParams);
}

/// What a subscriber wrote.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_line_names_the_organization_and_holds_no_secret() {
    let bench = Bench::new().await;
    let written = Written::default();
    let writer = written.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let guard = tracing::subscriber::set_default(log);
    let params =
        json!({ "level": "warn", "message": "port\nflaps", "fields": { "n": 3, "token": "canary" } });
    assert_eq!(bench.run("fabric.log", "0", params).await.unwrap(), json!({ "level": "warn" }));
    drop(guard);
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("WARN") && text.contains("port flaps") && text.contains("{\"n\":3}"), "{text}");
    assert!(text.contains(&format!("organization.id={}", bench.author.org_id)), "{text}");
    assert!(!text.contains("canary"), "{text}");
}
