//! VLANs that a request or the brain of a site says, brought to its controllers.

use serde_json::json;

use super::{Site, list, of, text};
use crate::support::on_both;

on_both! {
    async fn vlans_of_a_request_are_staged_where_they_are_not(database: Database) {
        let site = Site::start(database).await;
        let before = site.configurations();
        let body = json!({ "vlans": [{ "vlan_id": 50, "name": "Cameras" }] });
        let staged = site.post("/network/vlans/distribute", body).await;
        assert_eq!(site.configurations(), before, "staging writes nothing");
        let changes = list(&staged["changes"]);
        let at: Vec<_> = changes.iter().map(|change| text(&change["controller_id"])).collect();
        assert!(at.contains(&site.switches().to_owned()), "{staged}");
        // The first VLAN of a router is only made where it is named.
        assert_eq!(of(&staged["left"], "missing", site.router()), [50], "{staged}");
        let named = json!({ "vlans": [{ "vlan_id": 50 }, { "vlan_id": 60 }], "controller_ids": [site.router()] });
        let named = site.post("/network/vlans/distribute", named).await;
        assert_eq!(list(&named["changes"]).len(), 2, "{named}");
        let set = &named["sets"][0];
        assert_eq!((&set["controller_ids"], list(&set["change_ids"]).len()), (&json!([site.router()]), 2), "{named}");
        let path = format!("/gateway-vpn/changes/sets/{}", text(&set["set_id"]));
        let set = site.api.get(&path).await.expect_status(200).body;
        assert!(set["plan"].is_object(), "both are reviewed as one: {set}");
        // Changes at several controllers are one set, too.
        let at = json!([site.switches(), site.router()]);
        let both = json!({ "vlans": [{ "vlan_id": 70, "name": "Doors" }], "controller_ids": at });
        let both = site.post("/network/vlans/distribute", both).await;
        assert_eq!((list(&both["changes"]).len(), list(&both["sets"]).len()), (2, 1), "{both}");
        let path = format!("/gateway-vpn/changes/sets/{}", text(&both["sets"][0]["set_id"]));
        let set = site.api.get(&path).await.expect_status(200).body;
        assert_eq!((list(&set["parts"]).len(), set["plan"].is_object()), (2, true), "{set}");
    }
}

on_both! {
    async fn limbs_follow_the_brain_which_is_only_read(database: Database) {
        let site = Site::start(database).await;
        let at = format!("/sites/{}/brain", site.id);
        site.api.get(&at).await.expect_status(404);
        let read = json!({ "site_id": site.id });
        let refused = site.api.post("/network/canonical-vlans/read", &read).await.expect_status(409);
        assert_eq!(refused.error_type(), "no_brain");
        for (body, field) in [
            (json!({ "controller_id": site.id }), "/controller_id"),
            (json!({ "controller_id": site.firewall(), "limb_ids": [site.firewall()] }), "/limb_ids/0"),
            (json!({ "controller_id": site.firewall(), "limb_ids": [site.router(), site.router()] }), "/limb_ids/1"),
            (json!({ "controller_id": site.firewall(), "limb_ids": [site.id] }), "/limb_ids/0"),
        ] {
            let refused = site.api.put(&at, &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], field, "{}", refused.text);
        }
        let brain = site.api.put(&at, &json!({ "controller_id": site.firewall() })).await.expect_status(200);
        assert_eq!((&brain.body["on_drift"], &brain.body["limb_ids"]), (&json!("report"), &json!(null)));
        let stale = site.api.with("if-match", "\"none\"").put(&at, &json!({ "controller_id": site.router() })).await;
        stale.expect_status(412);
        let held = site.api.delete(&format!("/controllers/{}", site.firewall())).await.expect_status(409);
        assert_eq!(held.error_type(), "in_use");

        let before = site.configurations();
        let read = site.post("/network/canonical-vlans/read", json!({})).await;
        assert_eq!((&read["total"], &read["removed"]), (&json!(2), &json!(0)), "{read}");
        let listed = site.get("/network/canonical-vlans").await;
        let names: Vec<String> = list(&listed["items"]).iter().map(|vlan| text(&vlan["name"])).collect();
        assert_eq!(names, ["things", "guests"]);
        assert_eq!(listed["items"][0]["subnets"], json!(["192.168.10.0/24"]));

        let staged = site.post("/network/canonical-vlans/distribute", json!({})).await;
        assert_eq!(site.configurations(), before, "staging writes nothing");
        let changes = list(&staged["changes"]);
        assert!(changes.iter().all(|change| change["controller_id"] == site.switches()), "{staged}");
        for change in &changes {
            site.apply(&text(&change["change_id"])).await;
        }
        site.read().await;
        let last = site.post("/network/canonical-vlans/distribute", json!({})).await;
        assert_eq!((&last["changes"], &last["pending"]), (&json!([]), &json!([])), "a second run stages nothing: {last}");
        assert_eq!(site.devices[0].configuration(), before[0], "nothing was written to the brain");

        // Also when somebody asks for it by name.
        let asked = json!({ "controller_ids": [site.firewall()], "vlans": [{ "vlan_id": 70 }] });
        let none = site.post("/network/vlans/distribute", asked).await;
        assert_eq!(none["changes"], json!([]), "{none}");
        site.api.delete(&at).await.expect_status(204);
        site.api.get(&at).await.expect_status(404);
        assert_eq!(site.get("/network/canonical-vlans").await["total"], 0);
    }
}

on_both! {
    async fn steps_compare_and_distribute_as_the_routes_do(database: Database) {
        let site = Site::start(database).await;
        let action = |operation: &str| json!({ "operation_id": operation, "params": { "site_id": site.id } });
        let done = site.api.post("/actions", &action("network.vlans.compare")).await.expect_status(201).body;
        let output = &done["steps"][0]["output"];
        assert_eq!(output["compared_with"], "majority", "{done}");
        let failed = site.api.post("/actions", &action("network.vlans.distribute")).await.expect_status(201).body;
        assert_eq!(failed["steps"][0]["error_code"], "INVALID_PARAMS", "there is no brain: {failed}");
        let brain = json!({ "controller_id": site.firewall() });
        site.api.put(&format!("/sites/{}/brain", site.id), &brain).await.expect_status(200);
        site.post("/network/canonical-vlans/read", json!({})).await;
        let done = site.api.post("/actions", &action("network.vlans.distribute")).await.expect_status(201).body;
        let changes = list(&done["steps"][0]["output"]["changes"]);
        assert_eq!(changes.len(), 1, "{done}");
        let path = format!("/gateway-vpn/changes/{}", text(&changes[0]["change_id"]));
        let change = site.api.get(&path).await.expect_status(200).body;
        assert_eq!(change["staged_via"]["run_id"], done["id"], "{change}");
        let listed = site.api.post("/actions", &action("canonical-vlans.list")).await.expect_status(201).body;
        assert_eq!(listed["steps"][0]["output"]["total"], 2, "{listed}");
    }
}
