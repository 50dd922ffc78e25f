//! A grant's level is a ceiling in addition to the role.

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{LAPTOP, PHONE, device, id_of, leave, member, read};
use crate::staging::Lab;
use crate::support::{Answer, Api, Database, on_both};

/// Operations that touch no site: the caller's own sessions, keys and notices, and what is public.
const OWN: &[&str] = &["/auth/", "/api-keys", "/setup/", "/notifications/read-all"];
/// Operations that answer per object: none of them may succeed.
const BULK: &[&str] = &["/devices/bulk", "/controllers/test", "/controllers/sync"];
/// Families whose every operation must say that the grant does not reach so far.
const OF_SITES: &[&str] = &["/sites", "/controllers", "/devices", "/credentials", "/gateway-"];

/// Real objects of every kind, some of them removed.
struct World {
    lab: Lab,
    site: String,
    removed_site: String,
    removed_controller: String,
    device: String,
    removed_device: String,
    credential: String,
    change: String,
    /// Another change of the same controller, in no set either.
    other_change: String,
    set: String,
}

impl World {
    async fn start(database: Database) -> Self {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        read(&lab).await;
        let (phone, laptop) = (device(api, PHONE).await, device(api, LAPTOP).await);
        leave(&lab, LAPTOP).await;
        api.delete(&format!("/devices/{}", id_of(&laptop))).await.expect_status(204);
        let site = phone["site_id"].as_str().unwrap().to_owned();
        let closed = api.post("/sites", &json!({ "name": "Closed" })).await.expect_status(201).body;
        api.delete(&format!("/sites/{}", id_of(&closed))).await.expect_status(204);
        let controller = crate::support::register(api, "http://127.0.0.1:9", "pw").await;
        api.delete(&format!("/controllers/{}", id_of(&controller))).await.expect_status(204);
        let own = api.get(&format!("/controllers/{}", lab.controller)).await.body;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let other_change = lab.stage_rule("Allow-SSH-mgmt").await;
        let members = [lab.stage_rule("Allow-NTP").await, lab.stage_rule("Allow-SNMP").await];
        let members = json!({ "change_ids": members.each_ref().map(id_of) });
        let set = api.post("/gateway-vpn/changes/sets", &members).await.expect_status(201).body;
        Self {
            site,
            removed_site: id_of(&closed).to_owned(),
            removed_controller: id_of(&controller).to_owned(),
            device: id_of(&phone).to_owned(),
            removed_device: id_of(&laptop).to_owned(),
            credential: own["credential_id"].as_str().unwrap().to_owned(),
            change: id_of(&change).to_owned(),
            other_change: id_of(&other_change).to_owned(),
            set: id_of(&set).to_owned(),
            lab,
        }
    }

    /// The path with the ids of objects that fit the operation.
    fn filled(&self, path: &str) -> String {
        let restores = path.ends_with("/restore");
        let either = |live: &str, removed: &str| if restores { removed.to_owned() } else { live.to_owned() };
        let fill = |part: &str| match part {
            "{site_id}" => either(&self.site, &self.removed_site),
            "{controller_id}" | "{gateway_id}" => either(&self.lab.controller, &self.removed_controller),
            "{device_id}" => either(&self.device, &self.removed_device),
            "{credential_id}" => self.credential.clone(),
            "{change_id}" => self.change.clone(),
            "{set_id}" => self.set.clone(),
            "{feature}" => "openwrt.firewall.rule".to_owned(),
            "{model_kind}" => "dhcp-reservation".to_owned(),
            part if part.starts_with('{') => "01900000-0000-7000-8000-000000000000".to_owned(),
            part => part.to_owned(),
        };
        let path = path.split('/').map(fill).collect::<Vec<_>>().join("/");
        match path.as_str() {
            path if path.ends_with("openwrt.firewall.rule") => format!("{path}?operation=create"),
            path if path.ends_with("/inventory/dhcp-reservation/changes") => format!("{path}?verb=create"),
            _ => path,
        }
    }

    /// A body that the operation accepts.
    fn body(&self, method: &str, path: &str) -> Value {
        match (method, path) {
            ("POST", "/sites") => json!({ "name": "Annex" }),
            ("POST", "/credentials") => json!({ "name": "new", "password": "hunter2" }),
            ("POST", "/controllers") => json!({
                "name": "x", "site_id": self.site, "vendor": "openwrt", "url": "http://127.0.0.1:9",
                "credential_id": self.credential,
            }),
            ("POST", "/controllers/test" | "/controllers/sync") => {
                json!({ "controller_ids": [self.lab.controller] })
            }
            ("POST", "/credentials/{credential_id}/test") => json!({ "controller_id": self.lab.controller }),
            ("POST", "/devices/bulk") => {
                json!({ "action": "update", "ids": [self.device], "update": { "tags_add": ["x"] } })
            }
            ("POST", "/gateway-vpn/changes/sets") => {
                json!({ "change_ids": [self.change, self.other_change] })
            }
            ("PATCH", "/devices/{device_id}") => json!({ "notes": "x" }),
            ("PATCH", _) => json!({ "name": "x" }),
            (_, path) if path.ends_with("/apply") => json!({ "force": true }),
            (_, path) if path.ends_with("/untested-release") => json!({ "version": "1.0" }),
            (_, path) if path.ends_with("/extend") => json!({ "secs": 60 }),
            (_, path) if path.ends_with("{feature}") => json!({ "payload": {
                "name": "Allow", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
            }}),
            (_, "/controllers/{controller_id}/inventory/{model_kind}/changes") => {
                json!({ "payload": { "mac": "aa:bb:cc:00:00:77", "address": "192.168.1.77" } })
            }
            _ => json!({}),
        }
    }

    async fn send(&self, api: &Api, method: &str, path: &str) -> Answer {
        let body = self.body(method, path).to_string().into_bytes();
        api.send(method, &self.filled(path), Some(body)).await
    }

    /// Every operation of the document that changes something, what brings objects to an end last; not those of vendors of
    /// which there is no controller.
    async fn operations(&self) -> Vec<(String, String)> {
        let document = self.lab.api.get("/openapi.json").await.expect_status(200).body;
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().expect("the document has paths") {
            for method in item.as_object().expect("a path has methods").keys() {
                let path = path.strip_prefix("/api/v1").expect("every path is below the prefix");
                if matches!(method.as_str(), "post" | "put" | "patch" | "delete")
                    && !is_of_another_vendor(path)
                {
                    operations.push((method.to_uppercase(), path.to_owned()));
                }
            }
        }
        operations
            .sort_by_key(|(method, path)| (method == "DELETE", path.ends_with("/discard"), path.clone()));
        operations
    }
}

/// Whether the path is of a vendor, and not of the one of the lab.
fn is_of_another_vendor(path: &str) -> bool {
    let family = path.strip_prefix("/gateway-").and_then(|rest| rest.split_once("/{controller_id}"));
    family.is_some_and(|(family, rest)| !family.starts_with("openwrt-") && !rest.starts_with("/sites/"))
}

fn is_of(path: &str, families: &[&str]) -> bool {
    families.iter().any(|family| path.starts_with(family))
}

on_both! {
    async fn who_may_only_read_a_site_changes_nothing_there(database: Database) {
        let world = World::start(database).await;
        let granted =
            [(world.site.as_str(), SiteLevel::Read), (world.removed_site.as_str(), SiteLevel::Read)];
        let reader = member(&world.lab.server, "rhea", Role::OrgAdmin, &granted).await;
        let keeper = member(&world.lab.server, "kim", Role::OrgAdmin, &[]).await;
        reader.get(&format!("/devices/{}", world.device)).await.expect_status(200);
        world.lab.router.forget_calls();
        let operations = world.operations().await;
        let mut refused = 0;
        for (method, path) in &operations {
            if is_of(path, OWN) {
                continue;
            }
            let answer = world.send(&reader, method, path).await;
            if BULK.contains(&path.as_str()) {
                assert_eq!(answer.body["succeeded"], 0, "{method} {path}: {}", answer.text);
                assert_eq!(answer.body["results"][0]["error"]["type"], "site_level", "{method} {path}: {}", answer.text);
                continue;
            }
            assert!(answer.status >= 400, "{method} {path}: {}", answer.text);
            if is_of(path, OF_SITES) {
                let kind = answer.error_type();
                assert!(matches!(kind, "site_level" | "all_sites_required"), "{method} {path}: {}", answer.text);
                assert_eq!(answer.status, 403, "{method} {path}");
                refused += 1;
            }
        }
        assert!(refused > 25, "{refused} operations were refused: {operations:?}");
        assert!(world.lab.router.write_calls().iter().all(|call| call.object == "session"), "nothing was written");
        let change = format!("/gateway-vpn/changes/{}", world.change);
        assert_eq!(reader.get(&change).await.body["status"], "pending");

        // It was the grant: the same requests of an administrator without grants are not refused.
        for (method, path) in operations.iter().filter(|(_, path)| is_of(path, OF_SITES)) {
            let answer = world.send(&keeper, method, path).await;
            assert_ne!(answer.status, 403, "{method} {path}: {}", answer.text);
        }
    }
}

on_both! {
    async fn each_level_allows_what_it_includes(database: Database) {
        let world = World::start(database).await;
        let (lab, site) = (&world.lab, world.site.as_str());
        let controller = format!("/controllers/{}", lab.controller);
        let device = format!("/devices/{}", world.device);
        let stage = format!("{}/changes/openwrt.firewall.rule?operation=create", lab.area("firewall"));
        let rule = json!({ "payload": { "name": "Allow", "src": "wan", "proto": ["tcp"], "dest_port": "22", "target": "ACCEPT" } });
        for (name, level) in [("wim", SiteLevel::Write), ("ann", SiteLevel::Admin), ("flo", SiteLevel::Full)] {
            let api = member(&lab.server, name, Role::OrgAdmin, &[(site, level)]).await;
            assert_eq!(api.post(&format!("{controller}/test"), &json!({})).await.expect_status(200).body["ok"], true);
            api.post(&format!("{controller}/sync"), &json!({})).await.expect_status(202);
            api.patch(&device, &json!({ "notes": name })).await.expect_status(200);
            let change = api.post(&stage, &rule).await.expect_status(201).body;
            api.post(&Lab::path(&change, "plan"), &json!({})).await.expect_status(200);
            api.post(&Lab::path(&change, "verify"), &json!({})).await.expect_status(200);
            api.post(&Lab::path(&change, "discard"), &json!({})).await.expect_status(200);
            for path in [&controller, &format!("/sites/{site}")] {
                let answer = api.patch(path, &json!({ "name": name })).await;
                if level == SiteLevel::Write {
                    assert_eq!(answer.expect_status(403).error_type(), "site_level", "{path}");
                } else {
                    assert_eq!(answer.expect_status(200).body["name"], name);
                }
            }
        }
        // A grant gives nothing that the role does not.
        let viewer = member(&lab.server, "vic", Role::Viewer, &[(site, SiteLevel::Full)]).await;
        assert_eq!(viewer.patch(&device, &json!({ "notes": "x" })).await.expect_status(403).error_type(), "permission_denied");
        assert_eq!(viewer.post(&stage, &rule).await.expect_status(403).error_type(), "permission_denied");
    }
}
