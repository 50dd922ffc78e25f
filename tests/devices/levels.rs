//! A grant's level is a ceiling in addition to the role.
//!
//! The walk goes through all operations that the server declares, with the objects of `tests/fixtures` and the bodies that
//! the document shows. An operation that is added must refuse, or stands in one of the lists here with the reason.

use std::collections::BTreeSet;

use heddle_core::{Role, SiteLevel};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::routes::Mark;
use serde_json::{Value, json};

use super::{PHONE, device, id_of, member, read};
use crate::fixtures::{Ids, fill, text};
use crate::staging::Lab;
use crate::support::{Answer, Api, Contract, Database, Operation, Server, on_both};
use crate::surface::{ABSENT, admits, filled, with_ids};

/// Refusals that name a grant.
const LEVEL: &[&str] = &["site_level", "all_sites_required"];
/// Beginnings of paths where no grant decides, besides those without a caller or about how the caller signs in.
const OF_NO_SITE: &[(&str, &str)] = &[
    ("/access_control/", "answers 501 to everybody"),
    ("/actions", "an action has its caller's rights, and what it does at a site asks for the level"),
    ("/files", "callers that are limited to some sites have files of their own"),
    ("/notifications/{notice_id}/read", "who reads a notice notes it for themself"),
];
/// Operations that need neither an object nor a body, and do something that is the caller's own.
const NOT_SENT: &[(&str, &str)] = &[
    ("/auth/logout", "ends the session of the test"),
    ("/auth/logout-all", "ends the session of the test"),
    ("/auth/mfa/disable", "is about the second factor of the caller"),
    ("/auth/mfa/setup", "is about the second factor of the caller"),
    ("/notifications/read-all", "is about what the caller has read"),
];

/// Real objects of every kind, some of them removed.
struct World {
    lab: Lab,
    own: Ids,
    removed: Ids,
    /// Where these objects are.
    sites: [String; 3],
    /// Another change of the same controller, in no set either.
    other_change: String,
}

impl World {
    async fn start(database: Database) -> Self {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        read(&lab).await;
        let phone = device(api, PHONE).await;
        let controller = api.get(&format!("/controllers/{}", lab.controller)).await.expect_status(200).body;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let other_change = lab.stage_rule("Allow-SSH-mgmt").await;
        let members = [lab.stage_rule("Allow-NTP").await, lab.stage_rule("Allow-SNMP").await];
        let members = json!({ "change_ids": members.each_ref().map(id_of) });
        let set = api.post("/gateway-vpn/changes/sets", &members).await.expect_status(201).body;
        let me = api.get("/auth/me").await.expect_status(200).body;
        let (mut own, removed) = fill(&lab.server, api, &text(&me["organization_id"])).await;
        let sites = [text(&phone["site_id"]), own["site_id"].clone(), removed["site_id"].clone()];
        // Those at the router, where an operation that is not refused does something.
        for (name, id) in [
            ("site_id", &phone["site_id"]),
            ("controller_id", &controller["id"]),
            ("gateway_id", &controller["id"]),
            ("credential_id", &controller["credential_id"]),
            ("device_id", &phone["id"]),
            ("change_id", &change["id"]),
            ("set_id", &set["id"]),
        ] {
            own.insert(name, text(id));
        }
        Self { own, removed, sites, other_change: text(&other_change["id"]), lab }
    }

    /// A body that the operation accepts: the one that the document shows, unless the objects are to be others.
    fn body(&self, operation: &Operation) -> Value {
        match operation.path.as_str() {
            "/credentials/{credential_id}/test" => json!({ "controller_id": self.own["controller_id"] }),
            "/gateway-vpn/changes/sets" => {
                json!({ "change_ids": [self.own["change_id"], self.other_change] })
            }
            path if path.ends_with("/apply") => json!({ "force": true }),
            _ => {
                let body = &operation.definition["requestBody"]["content"]["application/json"];
                body.get("example").map_or(json!({}), |example| with_ids(example, "", &self.own))
            }
        }
    }

    /// Sends an operation with objects that fit it.
    async fn send(&self, api: &Api, operation: &Operation) -> Answer {
        let restores = operation.path.ends_with("/restore");
        let path = filled(operation, &|name| {
            let removed = self.removed.get(name).filter(|_| restores);
            let id = removed.or_else(|| self.own.get(name));
            id.unwrap_or_else(|| panic!("teach a fixture (tests/fixtures) to make {name}")).clone()
        });
        api.send(&operation.method, &path, Some(self.body(operation).to_string().into_bytes())).await
    }
}

/// Sends an operation with nothing that it could do.
async fn send_empty(api: &Api, operation: &Operation) -> Answer {
    let path: Vec<&str> =
        operation.path.split('/').map(|part| if part.starts_with('{') { ABSENT } else { part }).collect();
    api.send(&operation.method, &path.join("/"), Some(b"{}".to_vec())).await
}

/// Every operation that changes something, what brings objects to an end last.
fn writes(contract: &Contract) -> Vec<&Operation> {
    let writes = |operation: &&Operation| operation.method != "GET";
    let mut operations: Vec<&Operation> = contract.operations().iter().filter(writes).collect();
    operations.sort_by_key(|one| (one.method == "DELETE", one.path.ends_with("/discard"), one.path.clone()));
    operations
}

fn named(method: &str, path: &str) -> String {
    format!("{method} {path}")
}

/// Operations that nobody needs a right for: there is no caller, or they are about how the caller signs in.
fn of_everybody(server: &Server) -> BTreeSet<String> {
    let routes = heddle_kernel::http::routes(&server.running().app);
    let open = routes.iter().filter(|route| match route.access {
        Access::Public => true,
        Access::Authenticated(_) => route.doc.has(Mark::Personal),
        _ => false,
    });
    open.map(|route| named(route.method.as_str(), &route.path)).collect()
}

/// What refused the request, or each object of it; nothing where it was not refused.
fn refusals(answer: &Answer) -> Vec<&str> {
    if answer.status == 403 {
        return vec![answer.error_type()];
    }
    let results = answer.body["results"].as_array().filter(|_| answer.body["succeeded"] == 0);
    let kinds = results.into_iter().flatten().map(|result| result["error"]["type"].as_str());
    kinds.map(Option::unwrap_or_default).collect()
}

on_both! {
    async fn who_may_only_read_a_site_changes_nothing_there(database: Database) {
        let world = World::start(database).await;
        let server = &world.lab.server;
        let granted = world.sites.each_ref().map(|site| (site.as_str(), SiteLevel::Read));
        let reader = member(server, "rhea", Role::OrgAdmin, &granted).await;
        let keeper = member(server, "kim", Role::OrgAdmin, &[]).await;
        reader.get(&format!("/devices/{}", world.own["device_id"])).await.expect_status(200);
        world.lab.router.forget_calls();
        let (contract, of_everybody) = (server.contract(), of_everybody(server));
        let operations = writes(&contract);
        let mut refused = Vec::new();
        for operation in &operations {
            let name = named(&operation.method, &operation.path);
            if NOT_SENT.iter().any(|(path, _)| *path == operation.path) {
                continue;
            }
            let is_of_no_site = OF_NO_SITE.iter().any(|(beginning, _)| operation.path.starts_with(beginning));
            if is_of_no_site || of_everybody.contains(&name) {
                let answer = send_empty(&reader, operation).await;
                assert!(answer.status >= 400, "{name}: {} {}", answer.status, answer.text);
                continue;
            }
            let answer = world.send(&reader, operation).await;
            let told = format!("{name}: {} {}", answer.status, answer.text);
            if admits(&operation.access, Role::OrgAdmin) == Some(false) {
                assert_eq!((answer.status, answer.error_type()), (403, "permission_denied"), "{told}");
                continue;
            }
            let kinds = refusals(&answer);
            assert!(!kinds.is_empty() && kinds.iter().all(|kind| LEVEL.contains(kind)), "{told}");
            refused.push(operation);
        }
        assert!(refused.len() > 90, "{} operations were refused", refused.len());
        for (path, _) in OF_NO_SITE.iter().chain(NOT_SENT) {
            let is_known = operations.iter().any(|operation| operation.path.starts_with(path));
            assert!(is_known, "{path} is no operation: take it off the list");
        }
        assert!(world.lab.router.write_calls().iter().all(|call| call.object == "session"), "nothing was written");
        let change = format!("/gateway-vpn/changes/{}", world.own["change_id"]);
        assert_eq!(reader.get(&change).await.body["status"], "pending");

        // It was the grant: the same requests of an administrator without grants are not refused.
        for operation in refused {
            let answer = world.send(&keeper, operation).await;
            let is_refused = answer.status == 401 || refusals(&answer).iter().any(|kind| LEVEL.contains(kind));
            let told = format!("{} {}: {}", operation.method, operation.path, answer.text);
            assert!(answer.status != 403 && !is_refused, "{told}");
        }
    }
}

on_both! {
    async fn each_level_allows_what_it_includes(database: Database) {
        let lab = Lab::start(database).await;
        read(&lab).await;
        let phone = device(&lab.api, PHONE).await;
        let (site, device) = (phone["site_id"].as_str().unwrap(), format!("/devices/{}", id_of(&phone)));
        let controller = format!("/controllers/{}", lab.controller);
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
