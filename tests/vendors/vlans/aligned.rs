//! Layer 1: side by side, compared, and aligned with one of the controllers.

use serde_json::{Value, json};

use super::{Site, list, of, text};
use crate::support::on_both;

on_both! {
    async fn a_site_is_shown_side_by_side_without_a_request_to_a_device(database: Database) {
        let site = Site::start(database).await;
        site.devices.iter().for_each(|device| device.cut());
        let seen = site.get("/network/vlans?per_page=200").await;
        let names: Vec<String> = list(&seen["controllers"]).iter().map(|one| text(&one["name"])).collect();
        assert_eq!(names, ["omada", "openwrt", "opnsense"], "{seen}");
        assert!(list(&seen["controllers"]).iter().all(|one| one["is_known"] == true), "{seen}");
        let line = |vlan: u64| list(&seen["items"]).into_iter().find(|line| line["vlan_id"] == vlan);
        let states = |vlan: u64| -> Vec<String> {
            list(&line(vlan).expect("the VLAN has a line")["cells"]).iter().map(|cell| text(&cell["state"])).collect()
        };
        assert_eq!(states(10), ["absent", "absent", "present"]);
        assert_eq!(states(20), ["present", "absent", "present"]);
        assert_eq!(states(30), ["present", "absent", "absent"]);
        assert!(line(11).is_none());
        let guests = line(20).expect("the VLAN has a line");
        assert_eq!(guests["names"], json!(["Staff", "guests"]));
        let (switches, firewall) = (&guests["cells"][0], &guests["cells"][2]);
        assert_eq!((&switches["name"], &firewall["name"]), (&json!("Staff"), &json!("guests")));
        assert_eq!(firewall["subnets"], json!(["192.168.20.0/24"]), "{firewall}");
        assert_eq!(firewall["gateway"], "192.168.20.1");
        let object = format!("/inventory/vlan/{}", text(&firewall["object_id"]));
        assert_eq!(site.api.get(&object).await.expect_status(200).body["fields"]["vlan_id"], 20);
        // Page by page it is the same list.
        let total = seen["total"].as_u64().unwrap();
        let second = site.get("/network/vlans?per_page=1&page=2").await;
        assert_eq!((&second["items"][0], &second["pages"]), (&seen["items"][1], &json!(total)));

        for path in ["/network/vlans/compare", "/network/vlans/truth-map"] {
            assert_eq!(site.get(path).await["is_complete"], true, "{path}");
        }
        let with = format!("?controller_id={}", site.firewall());
        let compared = site.get(&format!("/network/vlans/compare{with}")).await;
        assert_eq!(compared["compared_with"], "controller");
        let findings = &compared["findings"];
        assert_eq!(of(findings, "missing", site.switches()), [10]);
        assert_eq!(of(findings, "extra", site.switches()), [30, 40]);
        assert_eq!(of(findings, "name_differs", site.switches()), [20]);
        let renamed = list(findings).into_iter().find(|one| one["class"] == "name_differs").unwrap();
        assert_eq!((&renamed["expected"], &renamed["found"]), (&json!("guests"), &json!("Staff")));
        assert!(text(&renamed["message"]).contains("'omada' calls VLAN 20 'Staff'"), "{renamed}");
        // The router has no VLANs at all, so it lacks none.
        assert!(list(findings).iter().all(|one| one["controller_id"] != site.router()), "{findings}");
        let majority = site.get("/network/vlans/compare").await;
        assert_eq!(majority["compared_with"], "majority");
        assert_eq!(of(&majority["findings"], "missing", site.firewall()), [30, 40], "{majority}");
    }
}

on_both! {
    async fn what_is_aligned_is_staged_once_and_ends_the_difference_when_it_is_applied(database: Database) {
        let site = Site::start(database).await;
        let before = site.configurations();
        let body = json!({ "controller_id": site.firewall(), "notes": "as the firewall has them" });
        let staged = site.post("/network/vlans/align", body.clone()).await;
        assert_eq!(site.configurations(), before, "staging writes nothing");
        let changes = list(&staged["changes"]);
        assert_eq!(changes.len(), 1, "{staged}");
        let change = &changes[0];
        assert_eq!((&change["controller_id"], &change["kind"]), (&json!(site.switches()), &json!("vlan")));
        assert_eq!((&change["verb"], &change["vlan_ids"]), (&json!("create"), &json!([10])));
        assert_eq!(staged["sets"], json!([]), "one change is no set");
        assert_eq!(of(&staged["left"], "extra", site.switches()), [30, 40], "nobody asked for their removal");
        assert_eq!(of(&staged["left"], "name_differs", site.switches()), [20], "the name names the network there");
        let id = text(&change["change_id"]);
        let seen = site.api.get(&format!("/gateway-vpn/changes/{id}")).await.expect_status(200).body;
        assert_eq!((&seen["feature"], &seen["notes"]), (&json!("network.vlan"), &json!("as the firewall has them")));
        assert_eq!(seen["payload"], json!({ "vlan_id": 10, "name": "things" }));

        let again = site.post("/network/vlans/align", body.clone()).await;
        assert_eq!((&again["changes"], &again["pending"]), (&json!([]), &json!([id])), "{again}");
        site.apply(&id).await;
        site.read().await;
        let with = format!("?controller_id={}", site.firewall());
        assert!(site.vlans_with(&with, "missing", site.switches()).await.is_empty());
        let last = site.post("/network/vlans/align", body).await;
        assert_eq!((&last["changes"], &last["pending"]), (&json!([]), &json!([])), "{last}");
    }
}

on_both! {
    async fn only_what_a_request_names_is_aligned(database: Database) {
        let site = Site::start(database).await;
        let asked = json!({
            "controller_id": site.firewall(), "controller_ids": [site.router(), site.switches()], "vlan_ids": [10],
        });
        let staged = site.post("/network/vlans/align", asked).await;
        let mut at: Vec<Value> = list(&staged["changes"]).iter().map(|one| one["controller_id"].clone()).collect();
        at.sort_by_key(ToString::to_string);
        let mut named = vec![json!(site.router()), json!(site.switches())];
        named.sort_by_key(ToString::to_string);
        assert_eq!(at, named, "a router that is named gets its first VLAN: {staged}");
        assert_eq!(staged["left"], json!([]), "{staged}");
        let extra = json!({
            "controller_id": site.firewall(), "controller_ids": [site.switches()], "vlan_ids": [30, 40], "remove_extra": true,
        });
        let removed = site.post("/network/vlans/align", extra).await;
        let verbs: Vec<String> = list(&removed["changes"]).iter().map(|one| text(&one["verb"])).collect();
        let reasons: Vec<String> = list(&removed["left"]).iter().map(|one| text(&one["reason"])).collect();
        // A network that clients or profiles use is not removed: the vendor says so.
        assert!(verbs.iter().all(|verb| verb == "delete") && verbs.len() + reasons.len() == 2, "{removed}");

        for (body, field) in [
            (json!({ "site_id": site.id, "controller_id": site.id }), "/controller_id"),
            (json!({ "site_id": site.id, "controller_ids": [site.id] }), "/controller_ids/0"),
            (json!({ "site_id": site.id, "vlan_ids": [0] }), "/vlan_ids/0"),
            (json!({ "site_id": site.id, "colour": 1 }), "/colour"),
        ] {
            let refused = site.api.post("/network/vlans/align", &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], field, "{}", refused.text);
        }
    }
}
