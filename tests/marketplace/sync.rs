//! Following a catalogue, and what is believed without one.

use serde_json::{Value, json};

use super::registry::Registry;
use super::web::{Mood, Web};
use super::{Lab, offered, options, sync, syncs};
use crate::plugins::{archive_of, entry, guest, manifest};
use crate::support::{Options, Server, on_both};

on_both! {
    async fn without_a_key_nothing_is_synced(database: Database) {
        let registry = Registry::new();
        let place = registry.served().display().to_string();
        let server = Server::start_with(database, Options::default().with("MARKETPLACE_URL", place)).await;
        let api = server.set_up().await;
        let refused = sync(&api).await.expect_status(403);
        assert_eq!(refused.body.as_object().unwrap().keys().collect::<Vec<_>>(), ["detail"], "{}", refused.text);
        assert!(refused.text.contains("MARKETPLACE_ALLOW_UNSIGNED"), "{}", refused.text);
        assert_eq!(offered(&api, "").await, Vec::<String>::new());
        api.get("/marketplace/plugins/scripted").await.expect_status(404);
        let status = api.get("/marketplace/plugins/sync").await.expect_status(200).body;
        assert_eq!((&status["assurance"], &status["unfit"]), (&Value::Null, &json!("there is no catalogue yet")));
    }
}

on_both! {
    async fn a_catalogue_is_followed_in_a_folder(database: Database) {
        let mut lab = Lab::start(database).await;
        let report = syncs(&lab.api, "updated").await;
        assert_eq!(report["catalog_version"], 1, "{report}");
        assert_eq!(offered(&lab.api, "").await, ["scripted"]);
        let noted = entry(&lab.api, "marketplace.synced").await;
        assert_eq!((&noted["actor_name"], &noted["detail"]["after"]["catalog_version"]), (&json!("ada"), &json!(1)));
        syncs(&lab.api, "unchanged").await;
        lab.registry.add(&lab.package("1.1.0"));
        assert_eq!(syncs(&lab.api, "updated").await["catalog_version"], 2);
        let events = lab.api.get("/events?event_type=marketplace.catalog_updated&sort=occurred_at").await.expect_status(200).body;
        let versions: Vec<&Value> = events["items"].as_array().unwrap().iter().map(|event| &event["payload"]["catalog_version"]).collect();
        assert_eq!(versions, [1, 2], "what stays as it was is no news");
        lab.restart().await;
        let status = lab.api.get("/marketplace/plugins/sync").await.expect_status(200).body;
        assert_eq!((&status["assurance"], &status["catalog_version"], &status["state"]), (&json!("full"), &json!(2), &json!("updated")));
        assert_eq!((&status["unfit"], &status["is_overdue"]), (&Value::Null, &json!(false)));
        assert_eq!(offered(&lab.api, "").await, ["scripted"]);
    }
}

on_both! {
    async fn a_pinned_key_is_enough_for_a_catalogue_of_lower_assurance(database: Database) {
        use ed25519_dalek::Signer as _;

        let registry = Registry::new();
        registry.add(&archive_of(&manifest("http://127.0.0.1:9"), guest(), &registry.acme));
        let catalog = registry.read("catalog.json");
        let pinned = heddle_marketplace::PublisherKey::load(&registry.path("catalog.key")).unwrap();
        registry.write("catalog.json.sig", &pinned.signing().sign(&catalog).to_bytes());
        let options = |key: &str| Options::default()
            .with("MARKETPLACE_URL", registry.served().display().to_string())
            .with("MARKETPLACE_SYNC_MINUTES", "0")
            .with("MARKETPLACE_PUBLISHER_PUBLIC_KEY", key);
        let server = Server::start_with(database, options(&registry.public("catalog"))).await;
        let api = server.set_up().await;
        syncs(&api, "updated").await;
        let status = api.get("/marketplace/plugins/sync").await.expect_status(200).body;
        assert_eq!((&status["assurance"], &status["timestamp_expires"]), (&json!("lower"), &Value::Null));
        api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
        registry.write("catalog.json", &[&catalog[..], b" "].concat());
        let refused = syncs(&api, "failed").await;
        assert_eq!(refused["step"], "catalog", "{refused}");
    }
}

on_both! {
    async fn what_nobody_signed_is_a_list_to_look_at(database: Database) {
        let registry = Registry::new();
        let archive = archive_of(&manifest("http://127.0.0.1:9"), guest(), &registry.acme);
        registry.add(&archive);
        std::fs::remove_file(registry.served().join("catalog.json.sig")).unwrap();
        let options = Options::default()
            .with("MARKETPLACE_URL", registry.served().display().to_string())
            .with("MARKETPLACE_SYNC_MINUTES", "0")
            .with("MARKETPLACE_ALLOW_UNSIGNED", "1");
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        syncs(&api, "updated").await;
        assert_eq!(offered(&api, "").await, ["scripted"]);
        let install = async || api.post("/marketplace/plugins/scripted/install", &json!({})).await;
        let refused = install().await.expect_status(400);
        assert_eq!(refused.error_type(), "package_refused", "no key of the catalogue counts: {}", refused.text);
        let key = registry.acme.trusted();
        let trust = json!({
            "publisher": "acme", "public_key": hex::encode(key.key), "fingerprint": key.key_id(), "ids": ["scripted"],
        });
        api.post("/plugins/trusted-keys", &trust).await.expect_status(201);
        install().await.expect_status(201);
    }
}

on_both! {
    async fn a_web_server_that_fails_changes_nothing_and_says_why(database: Database) {
        let registry = Registry::new();
        registry.add(&archive_of(&manifest("http://127.0.0.1:9"), guest(), &registry.acme));
        let web = Web::start(&registry).await;
        let server = Server::start_with(database, options(&registry, &web.url)).await;
        let api = server.set_up().await;
        assert_eq!(syncs(&api, "updated").await["catalog_version"], 1);
        api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
        for (mood, step, words) in [
            (Mood::Status(500), Value::Null, "the server answered 500"),
            // A store that lists nothing says so of the next root, too: then the timestamp is missed.
            (Mood::Status(403), json!("timestamp"), "'timestamp.json' is missing"),
            (Mood::Endless, json!("root"), "more than 65536 bytes"),
        ] {
            web.answers(mood);
            let report = syncs(&api, "failed").await;
            assert_eq!(report.get("step").cloned().unwrap_or_default(), step, "{mood:?}: {report}");
            assert!(report["reason"].as_str().unwrap().contains(words), "{mood:?}: {report}");
            assert_eq!((&report["catalog_version"], offered(&api, "").await), (&json!(1), vec!["scripted".to_owned()]));
        }
        let events = api.get("/events?event_type=marketplace.catalog_failed").await.expect_status(200).body;
        assert_eq!(events["total"], 3, "each is told once");
        assert!(!events.to_string().contains("127.0.0.1"), "no address of the operator: {events}");
        syncs(&api, "failed").await;
        let events = api.get("/events?event_type=marketplace.catalog_failed").await.expect_status(200).body;
        assert_eq!(events["total"], 3, "the same again is no news");
        web.answers(Mood::Well);
        syncs(&api, "unchanged").await;
    }
}

on_both! {
    async fn a_server_that_is_silent_holds_nobody_for_ever(database: Database) {
        let registry = Registry::new();
        let web = Web::start(&registry).await;
        let server = Server::start_with(database, options(&registry, &web.url)).await;
        let api = server.set_up().await;
        web.answers(Mood::Silent);
        let report = syncs(&api, "failed").await;
        assert!(report["reason"].as_str().unwrap().contains("no answer in 20000 ms"), "{report}");
    }
}

on_both! {
    async fn the_catalogue_is_followed_without_anybody_asking(database: Database) {
        let lab = Lab::start_with(database, |options| options.with("MARKETPLACE_SYNC_MINUTES", "1")).await;
        let began = std::time::Instant::now();
        while offered(&lab.api, "").await.is_empty() {
            assert!(began.elapsed() < crate::support::PATIENCE, "it is never synced");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(offered(&lab.api, "").await, ["scripted"]);
    }
}

/// A plugin that does nothing.
fn other(manifest: &mut Value) {
    manifest["id"] = json!("acme-z");
    manifest["name"] = json!("Another");
    for field in ["permissions", "event-types"] {
        manifest[field] = json!([]);
    }
    manifest["capabilities"] = json!({});
    manifest["actions"] = json!([]);
}

on_both! {
    async fn the_catalogue_is_searched_and_paged(database: Database) {
        let lab = Lab::start(database).await;
        // Releases are told apart by the second.
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        lab.registry.add(&lab.package_of("2.0.0", &lab.registry.acme, other));
        let future = |manifest: &mut Value| {
            other(manifest);
            manifest["id"] = json!("acme-future");
            manifest["name"] = json!("Zukunft");
            manifest["min-host"] = json!("999.0.0");
        };
        lab.registry.add(&lab.package_of("2.0.0", &lab.registry.acme, future));
        syncs(&lab.api, "updated").await;
        for (query, expected) in [
            ("", vec!["acme-z", "scripted", "acme-future"]),
            ("?sort=-name", vec!["acme-future", "scripted", "acme-z"]),
            // What cannot be installed here stands at the end in both directions.
            ("?sort=released", vec!["scripted", "acme-z", "acme-future"]),
            ("?sort=-released", vec!["acme-z", "scripted", "acme-future"]),
            ("?search=ANOTH", vec!["acme-z"]),
            ("?search=acme", vec!["acme-z", "scripted", "acme-future"]),
            ("?search=%25", vec![]),
            ("?category=testing&sort=name", vec!["acme-z", "scripted", "acme-future"]),
            ("?category=tickets", vec![]),
            ("?kind=adapter", vec![]),
            ("?installed=false&kind=plugin", vec!["acme-z", "scripted", "acme-future"]),
            ("?installed=true", vec![]),
            ("?per_page=1&page=2", vec!["scripted"]),
            ("?per_page=1&page=4294967295", vec![]),
        ] {
            assert_eq!(offered(&lab.api, query).await, expected, "{query}");
        }
        let page = lab.api.get("/marketplace/plugins?per_page=1").await.expect_status(200).body;
        assert_eq!((&page["total"], &page["pages"]), (&json!(3), &json!(3)));
        for query in ["?sort=stars", "?page=0", "?per_page=201", "?kind=module", "?unknown=1"] {
            lab.api.get(&format!("/marketplace/plugins{query}")).await.expect_status(422);
        }
    }
}
