//! Who may see the VLANs of a site, and who may have changes staged.

use heddle_core::{Role, SiteLevel};
use serde_json::json;

use super::Site;
use crate::support::on_both;

on_both! {
    async fn a_grant_to_read_a_site_shows_its_vlans_and_stages_nothing(database: Database) {
        let site = Site::start(database).await;
        let reader = site.member("rhea", Role::OrgAdmin, SiteLevel::Read).await;
        let viewer = site.member("vic", Role::Viewer, SiteLevel::Full).await;
        let seen = format!("/network/vlans/compare?site_id={}", site.id);
        reader.get(&seen).await.expect_status(200);
        viewer.get(&seen).await.expect_status(200);
        let brain = format!("/sites/{}/brain", site.id);
        let body = json!({ "site_id": site.id });
        let vlans = json!({ "site_id": site.id, "vlans": [{ "vlan_id": 50 }] });
        for (path, body) in [
            ("/network/vlans/align", &body),
            ("/network/vlans/distribute", &vlans),
            ("/network/canonical-vlans/read", &body),
            ("/network/canonical-vlans/distribute", &body),
        ] {
            assert_eq!(reader.post(path, body).await.expect_status(403).error_type(), "site_level", "{path}");
            assert_eq!(viewer.post(path, body).await.expect_status(403).error_type(), "permission_denied", "{path}");
        }
        let of_firewall = json!({ "controller_id": site.firewall() });
        assert_eq!(reader.put(&brain, &of_firewall).await.expect_status(403).error_type(), "site_level");
        assert_eq!(viewer.put(&brain, &of_firewall).await.expect_status(403).error_type(), "permission_denied");
        assert_eq!(reader.delete(&brain).await.expect_status(403).error_type(), "site_level");
        assert!(site.pending().await.is_empty());
    }
}

on_both! {
    async fn a_site_that_a_caller_does_not_see_is_not_there(database: Database) {
        let site = Site::start(database).await;
        let other = site.api.post("/sites", &json!({ "name": "Depot" })).await.expect_status(201).body;
        let granted = [(other["id"].as_str().unwrap(), SiteLevel::Full)];
        let stranger = crate::devices::member(&site.server, "sam", Role::OrgAdmin, &granted).await;
        for view in ["vlans", "vlans/compare", "vlans/truth-map"] {
            stranger.get(&format!("/network/{view}?site_id={}", site.id)).await.expect_status(404);
        }
        let body = json!({ "site_id": site.id });
        stranger.post("/network/vlans/align", &body).await.expect_status(404);
        stranger.post("/network/canonical-vlans/read", &body).await.expect_status(404);
        stranger.get(&format!("/sites/{}/brain", site.id)).await.expect_status(404);
        let listed = stranger.get("/network/canonical-vlans").await.expect_status(200).body;
        assert_eq!(listed["total"], 0);
        // An empty site of theirs is an empty page.
        let own = stranger.get(&format!("/network/vlans?site_id={}", other["id"].as_str().unwrap())).await;
        assert_eq!(own.expect_status(200).body["total"], 0);
    }
}

on_both! {
    async fn a_policy_that_stages_is_set_only_with_all_rights_that_it_acts_with(database: Database) {
        let site = Site::start(database).await;
        let path = format!("/sites/{}/brain", site.id);
        let key = json!({ "name": "k", "scopes": ["controller:read", "controller:write", "network:write"] });
        let key = site.api.post("/api-keys", &key).await.expect_status(201).body;
        let scoped = site.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        let stages = json!({ "controller_id": site.firewall(), "on_drift": "stage" });
        assert_eq!(scoped.put(&path, &stages).await.expect_status(403).error_type(), "scope_ceiling");
        site.api.get(&path).await.expect_status(404);
        let reports = json!({ "controller_id": site.firewall(), "on_drift": "report" });
        scoped.put(&path, &reports).await.expect_status(200);
        assert_eq!(scoped.put(&path, &stages).await.expect_status(403).error_type(), "scope_ceiling");
        let brain = site.api.put(&path, &stages).await.expect_status(200).body;
        assert_eq!(brain["on_drift"], "stage", "{brain}");
    }
}
