//! Objects at sites of the vendor's own.

use serde_json::{Value, json};

use super::{Device, Lab, each, id_of};
use crate::support::on_both;

fn vlan(key: &str, label: &str) -> Value {
    json!({ "objects": [{ "key": key, "label": label, "fields": { "vlan_id": 20 } }] })
}

on_both! {
    async fn objects_belong_to_the_site_that_a_vendors_site_is(database: Database) {
        let device = Device::start().await;
        device.script().sites = vec!["a", "b"];
        device.tell_page("vlan", ("a", ""), vlan("v", "Of a"));
        device.tell_page("vlan", ("b", ""), vlan("v", "Of b"));
        let lab = Lab::start(database, device).await;
        let all = lab.objects("vlan", "").await;
        assert_eq!((each(&all, "label"), each(&all, "site_ref")), (vec![&json!("Of a"), &json!("Of b")], vec![&json!("a"), &json!("b")]));
        let branch = id_of(&lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body);
        let of_b = format!("/controllers/{}/vendor-sites/b", lab.controller);
        lab.api.post(&of_b, &json!({ "site_id": branch })).await.expect_status(200);
        assert_eq!(each(&lab.objects("vlan", &format!("site_id={branch}")).await, "label"), ["Of b"]);
        lab.read().await;
        assert_eq!(each(&lab.objects("vlan", &format!("site_id={branch}")).await, "label"), ["Of b"]);

        lab.device.tell_page("vlan", ("b", ""), vlan("v", "Changed"));
        lab.read().await;
        let told = lab.events().await;
        assert_eq!((told.len(), &told[0]["payload"]["site_id"]), (1, &json!(branch)));
        let of_branch = lab.api.get(&format!("/events?event_type=device.object_changed&site_id={branch}")).await.expect_status(200);
        assert_eq!(of_branch.body["total"], 1);

        lab.api.post(&of_b, &json!({ "is_ignored": true })).await.expect_status(200);
        assert_eq!(each(&lab.objects("vlan", "").await, "label"), ["Of a"]);
        lab.read().await;
        assert_eq!(each(&lab.objects("vlan", "").await, "label"), ["Of a"]);
        assert_eq!(lab.events().await.len(), 1, "what is ignored is no news");

        lab.device.script().sites = vec!["b"];
        lab.api.post(&of_b, &json!({ "is_ignored": false })).await.expect_status(200);
        lab.read().await;
        assert_eq!(each(&lab.objects("vlan", "").await, "label"), ["Changed"], "a site that is gone has no objects");
        let told = lab.events().await;
        assert_eq!((told.len(), &told[1]["payload"]["change"], &told[1]["payload"]["label"]), (2, &json!("removed"), &json!("Of a")));
    }
}
