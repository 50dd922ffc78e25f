//! Changes in the words of the model: staged the same way for every vendor, carried out in its own, and read back.

use serde_json::{Value, json};

use super::Lab;
use super::practice::{self, Asked};
use crate::support::on_both;

/// The objects of the case's kind, after a reading.
pub(super) async fn read(lab: &Lab, kind: &str) -> Vec<Value> {
    let at = format!("/controllers/{}", lab.controller);
    let sync = lab.api.post(&format!("{at}/sync"), &json!({})).await.expect_status(202).body;
    let path = format!("{at}/syncs/{}", sync["id"].as_str().expect("a sync has an id"));
    for _ in 0..1_500 {
        let sync = lab.api.get(&path).await.expect_status(200).body;
        if !sync["ended_at"].is_null() {
            assert!(sync["error"].is_null(), "{sync}");
            let page = lab.api.get(&format!("/inventory/{kind}?per_page=200")).await.expect_status(200).body;
            return page["items"].as_array().expect("a page has items").clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{}: the sync does not end", lab.vendor.id());
}

fn named(objects: &[Value], label: &str) -> Option<Value> {
    objects.iter().find(|object| object["label"] == label).cloned()
}

/// Checks that a staged change shows what it is in the vendor's words, and applies it.
async fn applied(lab: &Lab, change: &Value, feature: &str) {
    assert_eq!(change["feature"], feature, "{change}");
    let own = format!("{}.", lab.vendor.id());
    let expressed = change["expressed_as"].as_array().unwrap_or_else(|| panic!("{change}"));
    let is_own = |part: &Value| part["feature"].as_str().is_some_and(|feature| feature.starts_with(&own));
    assert!(!expressed.is_empty() && expressed.iter().all(is_own), "{change}");
    let body = json!({ "force": true, "plan_hash": change["plan"]["hash"] });
    let done = lab.act(change, "apply", &body).await.expect_status(200).body;
    assert_eq!(done["outcome"]["state"], "applied", "{done}");
}

on_both! {
    async fn what_is_asked_in_the_words_of_the_model_is_carried_out_and_read_back(database: Database) {
        for practised in practice::all() {
            let vendor = practised.id();
            eprintln!("vendor {vendor}");
            let lab = Lab::start(database.another().await, practised).await;
            let Asked { kind, create, label, update } = practised.asked();
            // A change is staged for one of the vendor's sites where a reading has found some.
            read(&lab, kind).await;
            let before = lab.device.configuration();
            let at = format!("/controllers/{}/inventory/{kind}/changes", lab.controller);

            let change = lab.api.post(&format!("{at}?verb=create"), &json!({ "payload": create })).await;
            let change = change.expect_status(201).body;
            assert_eq!(lab.device.configuration(), before, "{vendor}: staging writes nothing");
            let feature = change["feature"].as_str().unwrap().to_owned();
            applied(&lab, &change, &feature).await;
            let object = named(&read(&lab, kind).await, label).unwrap_or_else(|| panic!("{vendor}: it is there"));

            let of_object = format!("/inventory/{kind}/{}/changes", object["id"].as_str().unwrap());
            let change = lab.api.post(&format!("{of_object}?verb=update"), &json!({ "payload": update })).await;
            let change = change.expect_status(201).body;
            assert_eq!(change["payload"]["key"], object["key"], "{change}");
            applied(&lab, &change, &feature).await;
            let seen = read(&lab, kind).await;
            let object = seen.iter().find(|one| one["id"] == object["id"]).expect("it kept its id").clone();
            for (field, value) in update.as_object().unwrap() {
                assert_eq!(object["fields"][field], *value, "{vendor}: {object}");
            }

            let change = lab.api.post(&format!("{of_object}?verb=delete"), &json!({ "payload": {} })).await;
            let change = change.expect_status(201).body;
            applied(&lab, &change, &feature).await;
            assert!(!read(&lab, kind).await.iter().any(|one| one["id"] == object["id"]), "{vendor}: it is gone");

            // Taken back by changes of the vendor's own features, where the plan has a way back.
            let inverse = lab.act(&change, "revert", &json!({})).await;
            if inverse.status == 409 {
                assert_eq!(inverse.body["error"]["type"], "not_invertible", "{vendor}: {}", inverse.text);
                continue;
            }
            let inverse = inverse.expect_status(201).body;
            assert!(inverse["expressed_as"].is_null() && inverse["reverts"] == change["id"], "{inverse}");
        }
    }
}

on_both! {
    async fn what_cannot_be_asked_names_what_can(database: Database) {
        let lab = Lab::start(database, practice::of("opnsense")).await;
        let at = |kind: &str, verb: &str| format!("/controllers/{}/inventory/{kind}/changes?verb={verb}", lab.controller);
        for (kind, verb, payload, status, said) in [
            ("vlam", "create", json!({}), 404, "nearest is 'vlan'"),
            ("neighbour", "create", json!({}), 422, "changes no neighbour"),
            ("vlan", "creat", json!({ "vlan_id": 5 }), 422, "nearest is 'create'"),
            ("vlan", "create", json!({ "vlan_id": 5000 }), 422, "/payload/vlan_id"),
            ("vlan", "create", json!({ "vlan_id": 5, "colour": "red" }), 422, "colour"),
            ("vlan", "create", json!({ "vlan_id": 5, "dhcp": "server" }), 422, "is set by ranges"),
            ("vlan", "create", json!({ "vlan_id": 5 }), 422, "/expressed_as/0/payload"),
            ("vlan", "update", json!({ "key": "none", "name": "x" }), 404, "no vlan with the key 'none'"),
        ] {
            let answer = lab.api.post(&at(kind, verb), &json!({ "payload": payload })).await;
            assert_eq!(answer.status, status, "{kind} {verb} {payload}: {}", answer.text);
            assert!(answer.text.contains(said), "{kind} {verb} {payload}: {}", answer.text);
        }
        let pending = lab.api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(pending["total"], 0, "{pending}");
    }
}

on_both! {
    async fn the_rights_of_the_vendors_features_are_needed_too(database: Database) {
        let lab = Lab::start(database, practice::of("opnsense")).await;
        let path = format!("/controllers/{}/inventory/vlan/changes?verb=create", lab.controller);
        let body = json!({ "payload": lab.vendor.asked().create });
        let with = async |scopes: Value| {
            let key = json!({ "name": "vlans", "scopes": scopes });
            let key = lab.api.post("/api-keys", &key).await.expect_status(201).body;
            let key = key["api_key"].as_str().expect("the key is shown once");
            lab.server.nobody().with("x-api-key", key).post(&path, &body).await
        };
        // A VLAN needs the right to change networks, and at a firewall that to change firewalls.
        for scopes in [json!(["controller:read", "network:write"]), json!(["controller:read", "firewall:write"])] {
            with(scopes).await.expect_status(403);
        }
        let pending = lab.api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(pending["total"], 0, "{pending}");
        with(json!(["controller:read", "network:write", "firewall:write"])).await.expect_status(201);
    }
}

on_both! {
    async fn what_is_not_said_in_the_vendors_words_yet_joins_no_set(database: Database) {
        let lab = Lab::start(database, practice::of("opnsense")).await;
        let path = format!("/controllers/{}/inventory/vlan/changes?verb=create", lab.controller);
        let stage = async |vlan_id: u32| {
            let mut payload = lab.vendor.asked().create;
            payload["vlan_id"] = json!(vlan_id);
            payload["name"] = json!(format!("cameras-{vlan_id}"));
            lab.api.post(&path, &json!({ "payload": payload })).await.expect_status(201).body
        };
        let join = async |members: &[&Value]| {
            let ids: Vec<&Value> = members.iter().map(|member| &member["id"]).collect();
            lab.api.post("/gateway-vpn/changes/sets", &json!({ "change_ids": ids })).await
        };
        let one = stage(77).await;
        lab.device.cut();
        let two = stage(78).await;
        assert!(two["plan"].is_null() && two["expressed_as"].is_null(), "{two}");
        lab.device.mend();
        let refused = join(&[&one, &two]).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_planned", "{}", refused.text);
        assert!(refused.text.contains(two["id"].as_str().unwrap()), "{}", refused.text);
        let two = lab.act(&two, "plan", &json!({})).await.expect_status(200).body;
        let set = join(&[&one, &two]).await.expect_status(201).body;
        let body = json!({ "force": true });
        let apply = format!("/gateway-vpn/changes/sets/{}/apply", set["id"].as_str().unwrap());
        let done = lab.api.post(&apply, &body).await.expect_status(200).body;
        let states: Vec<&Value> = done["changes"].as_array().unwrap().iter().map(|member| &member["outcome"]["state"]).collect();
        assert_eq!(states, [&json!("applied"), &json!("applied")], "{done}");
        let seen = read(&lab, "vlan").await;
        assert!(named(&seen, "cameras-77").is_some() && named(&seen, "cameras-78").is_some(), "{seen:?}");
    }
}
