//! Channels: kept, shown without their secrets, and what each service gets.

use axum::http::StatusCode;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::sink::{Sink, options};
use crate::support::smtp::{Mode, Smtp};
use crate::support::{Api, Server, on_both};

const CHANNELS: &str = "/notifications/channels";

async fn create(api: &Api, body: &Value) -> Value {
    api.post(CHANNELS, body).await.expect_status(201).body
}

fn path(channel: &Value) -> String {
    format!("{CHANNELS}/{}", channel["id"].as_str().unwrap())
}

async fn test(api: &Api, channel: &Value) -> Value {
    api.post(&format!("{}/test", path(channel)), &json!({})).await.expect_status(200).body
}

on_both! {
    async fn a_channel_lives_through_its_days_and_never_shows_its_secret(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let body = json!({ "kind": "slack", "label": " On call ", "webhook_url": "https://hooks.example/canary" });
        let made = api.with("idempotency-key", "c1").post(CHANNELS, &body).await.expect_status(201);
        assert_eq!(made.header("location"), format!("/api/v1{}", path(&made.body)));
        let channel = &made.body;
        assert_eq!((&channel["label"], &channel["is_enabled"], &channel["has_secret"]), (&json!("On call"), &json!(true), &json!(true)));
        let again = api.with("idempotency-key", "c1").post(CHANNELS, &body).await.expect_status(201);
        assert_eq!(again.body, *channel);
        let shown = api.get(&path(channel)).await.expect_status(200);
        let changed = api
            .with("if-match", shown.header("etag"))
            .patch(&path(channel), &json!({ "label": "Nights", "is_enabled": false }))
            .await
            .expect_status(200);
        assert_eq!((&changed.body["label"], &changed.body["is_enabled"]), (&json!("Nights"), &json!(false)));
        let late = api.with("if-match", shown.header("etag"));
        late.patch(&path(channel), &json!({ "label": "x" })).await.expect_status(412);
        late.delete(&path(channel)).await.expect_status(412);
        let list = api.get(&format!("{CHANNELS}?kind=slack&search=night")).await.expect_status(200);
        assert_eq!(list.body["total"], 1);
        assert_eq!(api.get(&format!("{CHANNELS}?kind=email")).await.expect_status(200).body["total"], 0);
        api.delete(&path(channel)).await.expect_status(204);
        api.get(&path(channel)).await.expect_status(404);
        let back = api.post(&format!("{}/restore", path(channel)), &json!({})).await.expect_status(200);
        assert_eq!(back.body["has_secret"], true);
        let audit = api.get("/audit?target_type=channel").await.expect_status(200);
        let mut actions: Vec<&str> =
            audit.body["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        actions.reverse();
        assert_eq!(actions, ["channel.created", "channel.updated", "channel.removed", "channel.restored"]);
        assert_eq!(audit.body["items"][0]["detail"]["kind"], "slack", "what the entry of the restore tells");
        for answer in [&made, &again, &shown, &changed, &list, &back, &audit] {
            assert!(!answer.text.contains("canary"), "{}", answer.text);
        }
    }
}

on_both! {
    async fn what_a_kind_needs_is_asked_for_by_name(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let cases = [
            (json!({ "kind": "email" }), "email"),
            (json!({ "kind": "email", "email": { "recipients": [] } }), "email.recipients"),
            (json!({ "kind": "email", "email": { "recipients": ["no address"] } }), "email.recipients[0]"),
            (json!({ "kind": "webhook" }), "webhook"),
            (json!({ "kind": "webhook", "webhook": { "url": "ftp://x" } }), "webhook.url"),
            (json!({ "kind": "webhook", "webhook": { "url": "https://x.example" }, "signing_secret": "" }), "signing_secret"),
            (json!({ "kind": "slack" }), "webhook_url"),
            (json!({ "kind": "teams", "webhook_url": "hooks.example" }), "webhook_url"),
            (json!({ "kind": "teams", "webhook_url": "https://x.example", "token": "t" }), "token"),
            (json!({ "kind": "ntfy", "ntfy": { "server_url": "https://ntfy.example", "topic": "a/b" } }), "ntfy.topic"),
            (json!({ "kind": "ntfy", "ntfy": { "server_url": "ntfy.example", "topic": "a" } }), "ntfy.server_url"),
            (json!({ "kind": "pager" }), "kind"),
        ];
        for (mut body, field) in cases {
            body["label"] = json!("l");
            let answer = api.post(CHANNELS, &body).await.expect_status(422);
            let details = answer.body["error"]["details"].as_array().unwrap();
            assert!(details.iter().any(|detail| detail["field"] == crate::support::at(field)), "{body}: {}", answer.text);
        }
        let ntfy = json!({
            "kind": "ntfy", "label": "n", "token": "tk_1", "ntfy": { "server_url": "https://ntfy.example", "topic": "a" },
        });
        let ntfy = create(&api, &ntfy).await;
        let moved = json!({ "ntfy": { "server_url": "https://evil.example", "topic": "a" } });
        let refused = api.patch(&path(&ntfy), &moved).await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["field"], "/token", "{}", refused.text);
        let other_topic = json!({ "ntfy": { "server_url": "https://ntfy.example", "topic": "b" } });
        api.patch(&path(&ntfy), &other_topic).await.expect_status(200);
        let cleared = json!({ "token": null, "ntfy": { "server_url": "https://other.example", "topic": "a" } });
        assert_eq!(api.patch(&path(&ntfy), &cleared).await.expect_status(200).body["has_secret"], false);
    }
}

on_both! {
    async fn each_service_gets_what_it_wants(database: Database) {
        let server = Server::start_with(database, options()).await;
        let api = server.set_up().await;
        let sink = Sink::start(StatusCode::OK, "ok").await;
        let at = |path: &str| format!("{}{path}", sink.url);
        let subject = "Test of a notification channel";

        let slack = create(&api, &json!({ "kind": "slack", "label": "s", "webhook_url": at("/services/T/B/x") })).await;
        let tested = test(&api, &slack).await;
        assert_eq!((&tested["is_delivered"], &tested["status"]), (&json!(true), &json!(200)), "{tested}");
        let got = sink.only();
        assert_eq!((got.method.as_str(), got.path.as_str()), ("POST", "/services/T/B/x"));
        assert_eq!(got.json()["text"], format!("[info] {subject}"));
        assert_eq!(got.json()["blocks"][0]["text"]["text"], subject);

        let teams = create(&api, &json!({ "kind": "teams", "label": "t", "webhook_url": at("/workflows/1") })).await;
        test(&api, &teams).await;
        let card = sink.only().json()["attachments"][0].clone();
        assert_eq!(card["contentType"], "application/vnd.microsoft.card.adaptive");
        assert_eq!(card["content"]["body"][0]["inlines"][0]["text"], subject);

        let ntfy = create(&api, &json!({
            "kind": "ntfy", "label": "n", "token": "tk_canary", "ntfy": { "server_url": format!("{}/", sink.url), "topic": "alerts" },
        })).await;
        test(&api, &ntfy).await;
        let got = sink.only();
        assert_eq!(got.path, "/alerts");
        assert_eq!((got.header("title"), got.header("priority")), (subject, "3"));
        assert_eq!(got.header("authorization"), "Bearer tk_canary");
        assert!(String::from_utf8(got.body).unwrap().contains("ada"));
        // Without a body its subject is the message; a long one is cut before it would become a file.
        for (body, said) in [("", "Line down".to_owned()), (&"€".repeat(2000), format!("{}…", "€".repeat(1364)))] {
            let params = json!({ "channel_id": ntfy["id"], "subject": "Line down", "body": body, "severity": "critical" });
            let action = json!({ "operation_id": "fabric.notify", "params": params });
            let run = api.post("/actions", &action).await.expect_status(201).body;
            assert_eq!(run["state"], "success", "{run}");
            let got = sink.only();
            assert_eq!((got.header("title"), got.header("priority")), (if body.is_empty() { "" } else { "Line down" }, "5"));
            assert!(got.body.len() < 4096 && String::from_utf8(got.body).unwrap() == said);
        }

        let hook = create(&api, &json!({
            "kind": "webhook", "label": "w", "signing_secret": "signed-canary", "webhook": { "url": at("/in?x=1") },
        })).await;
        test(&api, &hook).await;
        let got = sink.only();
        let said = got.json();
        assert_eq!((&said["subject"], &said["severity"], &said["channel_id"]), (&json!(subject), &json!("info"), &hook["id"]));
        let mut mac = Hmac::<Sha256>::new_from_slice(b"signed-canary").unwrap();
        mac.update(got.header("x-fabric-timestamp").as_bytes());
        mac.update(b".");
        mac.update(&got.body);
        assert_eq!(got.header("x-fabric-signature"), format!("sha256={}", hex::encode(mac.finalize().into_bytes())));

        // Its query is not shown, and stays where it is until another URL is given.
        assert_eq!((&got.path, &hook["webhook"]["url"]), (&"/in?x=1".to_owned(), &json!(at("/in?…"))));
        let kept = json!({ "webhook": hook["webhook"], "signing_secret": null });
        assert_eq!(api.patch(&path(&hook), &kept).await.expect_status(200).body["webhook"], hook["webhook"]);
        test(&api, &hook).await;
        let got = sink.only();
        assert_eq!((got.path.as_str(), got.headers.contains_key("x-fabric-signature")), ("/in?x=1", false));
        let other = json!({ "webhook": { "url": at("/other?…") } });
        api.patch(&path(&hook), &other).await.expect_status(422);
        let plain = json!({ "webhook": { "url": at("/plain") } });
        let moved = api.patch(&path(&hook), &plain).await.expect_status(200).body;
        assert_eq!((&moved["webhook"]["url"], &moved["has_secret"]), (&json!(at("/plain")), &json!(false)));
        test(&api, &hook).await;
        assert_eq!(sink.only().path, "/plain");
    }
}

on_both! {
    async fn what_went_wrong_is_said_without_the_address(database: Database) {
        let server = Server::start_with(database, options()).await;
        let api = server.set_up().await;
        let sink = Sink::start(StatusCode::FORBIDDEN, "invalid_token").await;
        let slack = json!({ "kind": "slack", "label": "s", "webhook_url": format!("{}/canary", sink.url) });
        let slack = create(&api, &slack).await;
        let tested = test(&api, &slack).await;
        assert_eq!((&tested["is_delivered"], &tested["status"]), (&json!(false), &json!(403)));
        assert_eq!(tested["message"], "the service answered 403: invalid_token");
        for url in ["http://169.254.169.254/canary", "http://[::1]:1/canary", "http://10.0.0.1/canary"] {
            api.patch(&path(&slack), &json!({ "webhook_url": url })).await.expect_status(200);
            let tested = test(&api, &slack).await;
            assert_eq!((&tested["is_delivered"], &tested["status"]), (&json!(false), &Value::Null), "{url}");
            let message = tested["message"].as_str().unwrap();
            assert!(message.starts_with("the destination is refused") && !message.contains("canary"), "{message}");
        }
        let closed = format!("http://127.0.0.1:{}/canary", crate::support::free_port());
        api.patch(&path(&slack), &json!({ "webhook_url": closed })).await.expect_status(200);
        let tested = test(&api, &slack).await;
        assert!(tested["is_delivered"] == false && !tested.to_string().contains("canary"), "{tested}");
        let mail = create(&api, &json!({ "kind": "email", "label": "m", "email": { "recipients": ["a@acme.test"] } })).await;
        let tested = test(&api, &mail).await;
        assert_eq!(tested["message"], "a mail was not sent: no mail server is set");
        let audit = api.get("/audit?target_type=channel").await.expect_status(200);
        assert!(!audit.text.contains("canary"), "{}", audit.text);
    }
}

on_both! {
    async fn mails_go_to_each_by_themself(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        let api = server.set_up().await;
        let body = json!({ "kind": "email", "label": "m", "email": { "recipients": ["a@acme.test", "b@acme.test"] } });
        let mail = create(&api, &body).await;
        assert_eq!(test(&api, &mail).await["is_delivered"], true);
        smtp.mail(2).await;
        let mut to = Vec::new();
        for mail in smtp.mails() {
            assert_eq!(mail.header("Subject"), "Test of a notification channel");
            assert!(mail.text().contains("ada"), "{}", mail.content);
            to.push(mail.to);
        }
        to.sort();
        assert_eq!(to, [["a@acme.test"], ["b@acme.test"]]);
    }
}
