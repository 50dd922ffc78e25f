//! Documents that are refused: each problem names its place, and nothing is staged.

use serde_json::{Value, json};

use crate::inventory::{Device, Lab, two_ports};
use crate::support::{Answer, on_both};

async fn send(lab: &Lab, media: &str, text: &str) -> Answer {
    let path = format!("/sites/{}/intent/plan", lab.site);
    lab.api.with("content-type", media).send("POST", &path, Some(text.as_bytes().to_vec())).await
}

/// Place and kind of the first problem.
fn problem(answer: &Answer) -> (&str, &str) {
    let detail = &answer.body["error"]["details"][0];
    (detail["field"].as_str().unwrap_or_default(), detail["type"].as_str().unwrap_or_default())
}

on_both! {
    async fn what_is_no_document_is_refused_at_its_place(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        let at = format!("/controllers/{}", lab.controller);
        let of = |objects: Value| json!({ "heddle_intent": 1, "controllers": { &lab.controller: { "objects": objects } } });
        let bomb = "a: &a [x, x]\nb: [*a, *a]\n";
        for (media, text, place, kind) in [
            ("application/yaml", bomb.to_owned(), "/a".to_owned(), "yaml_refused"),
            ("application/yaml", "heddle_intent: 1\nheddle_intent: 1\n".to_owned(), "/heddle_intent".to_owned(), "duplicate_key"),
            ("application/yaml", format!("heddle_intent: 1\nx: {}1{}\n", "[".repeat(30), "]".repeat(30)), "/x/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0".to_owned(), "too_deep"),
            ("application/json", "{\"heddle_intent\": 1, \"heddle_intent\": 1}".to_owned(), "/heddle_intent".to_owned(), "duplicate_key"),
            ("application/json", "{".to_owned(), String::new(), "json_invalid"),
            ("text/plain", "{}".to_owned(), "/content-type".to_owned(), "content_type"),
            ("application/json", json!({ "heddle_intent": 1, "sites": {} }).to_string(), "/sites".to_owned(), "unknown_field"),
            ("application/json", json!({ "heddle_intent": 1, "site": { "id": lab.controller } }).to_string(), "/site/id".to_owned(), "value_error"),
            ("application/json", of(json!({ "ports": {} })).to_string(), format!("{at}/objects/ports"), "unknown_field"),
            ("application/json", of(json!({ "port": { "p1": { "enabled": true } } })).to_string(), format!("{at}/objects/port"), "not_writable"),
            ("application/json", json!({ "heddle_intent": 1, "controllers": { &lab.site: {} } }).to_string(), String::new(), ""),
            ("application/json", json!({ "heddle_intent": 1, "controllers": { &lab.site: { "objects": {} } } }).to_string(), format!("/controllers/{}", lab.site), "not_found"),
        ] {
            let answer = send(&lab, media, &text).await;
            if kind.is_empty() {
                assert_eq!(answer.status, 201, "a controller of which nothing is said: {}", answer.text);
                continue;
            }
            assert_eq!(answer.status, 422, "{text}: {}", answer.text);
            assert_eq!(problem(&answer), (place.as_str(), kind), "{text}: {}", answer.text);
        }
        let large = format!("# {}\nheddle_intent: 1\n", "x".repeat(1 << 20));
        assert_eq!(send(&lab, "application/yaml", &large).await.status, 413);
        let pending = lab.api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(pending["total"], 0, "{pending}");
    }
}

on_both! {
    async fn a_site_without_anything_to_set_has_an_empty_document(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        let path = format!("/sites/{}/intent", lab.site);
        let json = lab.api.get(&path).await.expect_status(200);
        assert_eq!(json.header("content-type"), "application/json");
        assert_eq!(json.body["controllers"][&lab.controller], json!({ "name": "first", "vendor": "hostile" }));
        let yaml = lab.api.with("accept", "application/yaml").get(&path).await.expect_status(200);
        assert_eq!(yaml.header("content-type"), "application/yaml");
        assert_eq!(yaml.text, lab.api.get(&format!("{path}?format=yaml")).await.expect_status(200).text);
        let planned = send(&lab, "application/yaml", &yaml.text).await.expect_status(201).body;
        assert_eq!((&planned["differences"], &planned["staged"]), (&json!([]), &json!([])), "{planned}");
        lab.api.get("/sites/01981a7e-5c00-7000-8000-00000000000a/intent").await.expect_status(404);
        let unknown = lab.api.get(&format!("{path}?kind=vlam")).await.expect_status(404);
        assert!(unknown.text.contains("nearest is 'vlan'"), "{}", unknown.text);
    }
}
