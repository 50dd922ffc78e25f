//! Documents of a site with a controller of any vendor: an export that is planned unchanged stages nothing, what is edited is
//! staged, and after the apply the same document stages nothing again.

use serde_json::{Value, json};

use super::Lab;
use super::drift::{create, look, named};
use super::practice::Vendor;
use crate::support::{Answer, Database};

async fn site(lab: &Lab) -> String {
    let controller = lab.api.get(&format!("/controllers/{}", lab.controller)).await.expect_status(200).body;
    controller["site_id"].as_str().unwrap().to_owned()
}

async fn export(lab: &Lab, site: &str) -> Value {
    lab.api.get(&format!("/sites/{site}/intent?format=json")).await.expect_status(200).body
}

async fn plan(lab: &Lab, site: &str, document: &Value, query: &str) -> Answer {
    lab.api.post(&format!("/sites/{site}/intent/plan?{query}"), document).await
}

/// The objects of a kind in a document, wherever the vendor has them.
fn objects<'d>(document: &'d mut Value, lab: &Lab, kind: &str) -> &'d mut Value {
    let controller = &mut document["controllers"][&lab.controller];
    if !controller["objects"][kind].is_object() {
        let sites = controller["sites"].as_object_mut().expect("the objects are at a site of the vendor's");
        let site = sites.values_mut().find(|site| site[kind].is_object()).expect("it is there");
        return &mut site[kind];
    }
    &mut controller["objects"][kind]
}

async fn a_document_is_planned_until_nothing_differs(vendor: &'static dyn Vendor) {
    let lab = Lab::start(Database::sqlite(), vendor).await;
    let asked = vendor.asked();
    look(&lab).await;
    create(&lab.api, &lab.controller, &asked).await;
    look(&lab).await;
    let site = site(&lab).await;
    let first = export(&lab, &site).await;
    assert_eq!(first, export(&lab, &site).await, "the order is always the same");
    let yaml = lab
        .api
        .with("accept", "application/yaml")
        .get(&format!("/sites/{site}/intent"))
        .await
        .expect_status(200)
        .text;
    let path = format!("/sites/{site}/intent/plan");
    let of_yaml =
        lab.api.with("content-type", "application/yaml").send("POST", &path, Some(yaml.into_bytes())).await;
    for unchanged in [of_yaml, plan(&lab, &site, &first, "").await] {
        let unchanged = unchanged.expect_status(201).body;
        assert_eq!(
            (&unchanged["differences"], &unchanged["staged"]),
            (&json!([]), &json!([])),
            "{unchanged}"
        );
        let lists = unchanged["compared_with"].as_array().unwrap();
        assert!(!lists.is_empty() && lists.iter().all(|list| list["read_at"].is_string()), "{unchanged}");
    }

    // An edit of one object, first only compared.
    let object = named(&lab.api, asked.kind, asked.label).await;
    let key = object["key"].as_str().unwrap();
    let mut edited = first.clone();
    for (field, value) in asked.update.as_object().unwrap() {
        objects(&mut edited, &lab, asked.kind)[key][field] = value.clone();
    }
    let before = lab.device.configuration();
    let dry = plan(&lab, &site, &edited, "dry_run=true").await.expect_status(201).body;
    let difference = &dry["differences"][0];
    assert_eq!((&difference["action"], &difference["key"]), (&json!("update"), &json!(key)), "{dry}");
    assert!(difference["change_id"].is_null() && dry["staged"] == json!([]), "{dry}");
    let pending = lab.api.get("/gateway-vpn/changes?status=pending").await.expect_status(200).body;
    assert_eq!(pending["total"], 0, "{pending}");
    let staged = plan(&lab, &site, &edited, "").await.expect_status(201).body;
    assert_eq!(lab.device.configuration(), before, "staging writes nothing");
    is_not_staged_twice(&staged, &plan(&lab, &site, &edited, "").await.expect_status(201).body);
    apply(&lab, &staged).await;
    look(&lab).await;
    let again = plan(&lab, &site, &edited, "").await.expect_status(201).body;
    assert_eq!(again["differences"], json!([]), "a second plan stages nothing: {again}");

    // What is taken out of the document goes, unless it is to be kept; what is put in comes.
    let taken = objects(&mut edited, &lab, asked.kind).as_object_mut().unwrap().shift_remove(key).unwrap();
    let kept = plan(&lab, &site, &edited, "keep_unlisted=true").await.expect_status(201).body;
    assert_eq!(kept["differences"], json!([]), "{kept}");
    let gone = plan(&lab, &site, &edited, "").await.expect_status(201).body;
    assert_eq!(
        (&gone["differences"][0]["action"], &gone["differences"][0]["key"]),
        (&json!("delete"), &json!(key)),
        "{gone}"
    );
    apply(&lab, &gone).await;
    look(&lab).await;
    objects(&mut edited, &lab, asked.kind)["by another name"] = taken;
    let back = plan(&lab, &site, &edited, "").await.expect_status(201).body;
    assert_eq!(back["differences"][0]["action"], "create", "{back}");
    apply(&lab, &back).await;
    look(&lab).await;
    let again = plan(&lab, &site, &edited, "").await.expect_status(201).body;
    assert_eq!(again["differences"], json!([]), "it is found under the vendor's key: {again}");
}

/// Compares what the same document came to before and while its change waits.
fn is_not_staged_twice(staged: &Value, twice: &Value) {
    let (one, other) = (&staged["differences"][0], &twice["differences"][0]);
    assert_eq!((&one["is_pending"], &other["is_pending"]), (&json!(false), &json!(true)), "{twice}");
    assert_eq!((&one["change_id"], &twice["staged"]), (&other["change_id"], &json!([])), "{twice}");
}

/// Applies all that a plan staged.
async fn apply(lab: &Lab, planned: &Value) {
    let staged = planned["staged"].as_array().unwrap();
    assert!(!staged.is_empty(), "{planned}");
    for group in staged {
        let path = match group["change_set_id"].as_str() {
            Some(set) => format!("/gateway-vpn/changes/sets/{set}/apply"),
            None => format!("/gateway-vpn/changes/{}/apply", group["change_ids"][0].as_str().unwrap()),
        };
        let done = lab.api.post(&path, &json!({ "force": true })).await.expect_status(200).body;
        let state = if done["parts"].is_array() { "committed" } else { "applied" };
        assert_eq!(done["outcome"]["state"], state, "{done}");
    }
}

test_each_vendor!(a_document_is_planned_until_nothing_differs);
