//! Requests of others to plugins: proved, bounded, and of one organization.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::watcher::{HOOK_SECRET, Watch, guest, install, log, manifest, switch, triggers, until};
use super::{Keys, archive_of};
use crate::fixtures::member;
use crate::sandbox::device::Device;
use crate::support::{Answer, Api, Process, on_both};

struct Sent<'a> {
    path: &'a str,
    body: &'a str,
    secret: &'a str,
    time: i64,
}

impl Sent<'_> {
    /// Signs the request as the manifest says.
    fn signed(&self, nobody: &Api) -> Api {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).unwrap();
        mac.update(format!("v0:{}:{}", self.time, self.body).as_bytes());
        let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
        let api = nobody.with("x-signature", &signature).with("x-time", &self.time.to_string());
        api.with("content-type", "text/plain").with("cookie", "a=b")
    }

    async fn to(self, nobody: &Api) -> Answer {
        self.signed(nobody).send("POST", self.path, Some(self.body.as_bytes().to_vec())).await
    }
}

/// The path of a hook below the version.
async fn path_of(api: &Api, name: &str) -> String {
    let hooks = triggers(api).await["hooks"].clone();
    let hook = hooks.as_array().unwrap().iter().find(|hook| hook["name"] == name).unwrap().clone();
    hook["path"].as_str().unwrap().strip_prefix("/api/v1").unwrap().to_owned()
}

impl Watch {
    async fn hook(&self, name: &str) -> String {
        path_of(&self.api, name).await
    }

    fn seconds(&self) -> i64 {
        self.server.running().app.clock.now().timestamp()
    }
}

async fn give(api: &Api, name: &str, value: &str) {
    let path = format!("/plugins/watcher/secrets/{name}");
    api.put(&path, &json!({ "value": value })).await.expect_status(204);
}

on_both! {
    async fn a_signed_request_calls_the_plugin_and_no_other_does(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let (path, nobody, now) = (watch.hook("answers").await, watch.server.nobody(), watch.seconds());
        let sent = |body: &'static str, secret: &'static str, time: i64| Sent { path: &path, body, secret, time };
        sent("early", HOOK_SECRET, now).to(&nobody).await.expect_status(404);
        let own = watch.api.get("/plugins/watcher/organization").await.expect_status(200).body;
        assert_eq!(own["secrets_missing"], json!(["key", "signing-secret", "ping-token"]), "{own}");
        give(&watch.api, "signing-secret", HOOK_SECRET).await;

        let called = format!("{path}?a=1&b=%20x");
        let answer = Sent { path: &called, body: "hello", secret: HOOK_SECRET, time: now }.to(&nobody).await;
        let answer = answer.expect_status(200);
        assert_eq!(answer.body["query"], json!([["a", "1"], ["b", " x"]]));
        let headers = answer.body["headers"].to_string();
        assert!(headers.contains("content-type") && headers.contains("x-time"), "{headers}");
        assert!(!headers.contains("x-signature") && !headers.contains("cookie"), "{headers}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        // The very same again is no second call.
        Sent { path: &called, body: "hello", secret: HOOK_SECRET, time: now }.to(&nobody).await.expect_status(409);

        sent("forged", "another secret", now).to(&nobody).await.expect_status(401);
        sent("old", HOOK_SECRET, now - 301).to(&nobody).await.expect_status(401);
        sent("future", HOOK_SECRET, now + 3_000).to(&nobody).await.expect_status(401);
        nobody.post(&path, &json!({})).await.expect_status(401);
        watch.api.post(&path, &json!({})).await.expect_status(401);
        assert_eq!(log(&watch.api).await.iter().filter(|line| line.starts_with("hook")).count(), 1);
        // It is a run, with the rights of who set the plugin; and its secret is nowhere.
        let runs = watch.api.get("/fabric/runs?kind=trigger").await.expect_status(200);
        assert_eq!(runs.body["items"][0]["steps"][0]["operation_id"], "plugin.watcher.answers");
        for shown in ["/plugins/watcher/organization", "/plugins/watcher/triggers", "/fabric/runs", "/events", "/audit"] {
            let text = watch.api.get(shown).await.expect_status(200).text;
            assert!(!text.contains(HOOK_SECRET), "{shown}");
        }
    }
}

on_both! {
    async fn a_signed_request_that_a_kill_ended_is_taken_again_and_then_no_more(database: Database) {
        let (keys, device) = (Keys::new(), Device::start().await);
        let (folder, options) = (tempfile::tempdir().unwrap(), keys.options());
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let mut manifest = manifest(&device.url());
        manifest["capabilities"]["http"][0]["paths"] = json!(["/v1/**", "/slow"]);
        install(&process.api, &archive_of(&manifest, guest(), &keys.acme)).await;
        switch(&process.api, true, json!({})).await;
        until(&process.api, |log| log.iter().any(|line| line.starts_with("configured"))).await;
        give(&process.api, "signing-secret", HOOK_SECRET).await;
        let path = path_of(&process.api, "answers").await;
        let time = heddle_core::Clock::default().now().timestamp();
        let sent = || Sent { path: &path, body: "slow-once", secret: HOOK_SECRET, time };
        // The plugin waits for an answer without end, and the process is killed meanwhile.
        let api = sent().signed(&process.api);
        let sending = api.try_send("POST", &path, Some(b"slow-once".to_vec()));
        let killing = async {
            while !device.seen().iter().any(|seen| seen.path == "/slow") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            process.kill();
        };
        let _ = tokio::join!(sending, killing);
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        let mut again = sent().to(&process.api).await;
        for _ in 0..90 {
            if again.status != 503 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            again = sent().to(&process.api).await;
        }
        again.expect_status(200);
        sent().to(&process.api).await.expect_status(409);
    }
}

on_both! {
    async fn a_token_proves_a_request_and_wrong_ones_are_limited_by_themselves(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        give(&watch.api, "ping-token", "token-canary-1").await;
        let (path, nobody) = (watch.hook("ping").await, watch.server.nobody());
        let send = |token: &str| {
            let api = nobody.with("x-token", token);
            let path = path.clone();
            async move { api.send("POST", &path, Some(b"ping".to_vec())).await }
        };
        send("token-canary-1").await.expect_status(200);
        send("token-canary-1").await.expect_status(200);
        let mut limited = 0;
        for n in 0..40 {
            let answer = send(&format!("guess-{n}")).await;
            assert!([401, 429].contains(&answer.status), "{}", answer.text);
            limited += u32::from(answer.status == 429);
        }
        assert_eq!(limited, 10, "30 a minute");
        send("token-canary-1").await.expect_status(200);
    }
}

on_both! {
    async fn what_a_hook_answers_is_bounded_and_a_fault_is_told(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        give(&watch.api, "ping-token", "t").await;
        let (path, nobody) = (watch.hook("ping").await, watch.server.nobody().with("x-token", "t"));
        let send = |body: &'static str| {
            let (nobody, path) = (&nobody, &path);
            async move { nobody.send("POST", path, Some(body.as_bytes().to_vec())).await }
        };
        let refused = send("refuse").await;
        assert!(refused.status >= 400 && refused.text.contains("the body is refused"), "{}", refused.text);
        let redirect = send("status").await;
        assert!(redirect.status >= 500 && !redirect.text.contains("302 Found"), "{}", redirect.text);
        let large = vec![b'x'; (1 << 20) + 1];
        nobody.send("POST", &path, Some(large)).await.expect_status(413);
        let failed = watch.api.get("/fabric/runs?kind=trigger&outcome=failed").await.expect_status(200).body;
        assert_eq!(failed["total"], 2, "{failed}");
    }
}

on_both! {
    async fn a_hook_is_of_one_organization_and_gone_with_the_plugin(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        give(&watch.api, "ping-token", "t").await;
        let (path, nobody) = (watch.hook("ping").await, watch.server.nobody().with("x-token", "t"));
        let send = |path: String| {
            let nobody = &nobody;
            async move { nobody.send("POST", &path, Some(b"x".to_vec())).await.status }
        };
        assert_eq!(send(path.clone()).await, 200);
        let other = watch.api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let other = other["id"].as_str().unwrap().to_owned();
        let (base, own) = path.rsplit_once('/').unwrap();
        let foreign = format!("{base}/{other}");
        assert_eq!(send(foreign.clone()).await, 404, "it does not use the plugin");
        let (_, stranger) = member(&watch.server, &other, heddle_core::Role::OrgAdmin, "uma").await;
        switch(&stranger, true, json!({})).await;
        assert_eq!(send(foreign.clone()).await, 404, "it has set no secret");
        give(&stranger, "ping-token", "other").await;
        assert_eq!(send(foreign).await, 401);
        for unknown in [format!("{base}/0192f0c1-2b7a-7cc0-8000-000000000009"), path.replace("/ping/", "/pong/"), path.replace("/watcher/", "/watchers/")] {
            assert_eq!(send(unknown).await, 404);
        }
        assert_eq!(send(format!("{base}/x")).await, 422, "{own}");
        switch(&watch.api, false, json!({})).await;
        assert_eq!(send(path.clone()).await, 404);
        switch(&watch.api, true, json!({})).await;
        watch.api.post("/plugins/watcher/disable", &json!({})).await.expect_status(200);
        assert_eq!(send(path).await, 404);
        let Value::Array(hooks) = triggers(&watch.api).await["hooks"].clone() else { panic!("a list") };
        assert_eq!(hooks.len(), 2);
    }
}
