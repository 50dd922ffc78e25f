//! A controller whose vendor has sites: each is one of ours, for reading, for rights and for changes.

use serde_json::{Value, json};

use super::path;
use super::practice::{self, Practice};
use crate::support::{Adapters, Api, Database, Options, PASSWORD, Server, on_both};

/// A controller with the sites Main and Branch, which are the first site of the organization and a second one.
struct World {
    server: Server,
    root: Api,
    device: Box<dyn Practice>,
    org: String,
    controller: String,
    /// Our sites.
    head: String,
    branch: String,
    /// The vendor's.
    main_ref: String,
    branch_ref: String,
}

const RATE: &str = "omada.profiles.rate-limit";

fn payload(name: &str) -> Value {
    json!({ "payload": { "name": name, "downLimitEnable": false, "upLimitEnable": false } })
}

impl World {
    async fn start(database: Database) -> Self {
        let device = practice::of("omada").start().await;
        let serving = Adapters::Of(vec!["omada".to_owned()]);
        let server = Server::start_with(database, Options::default().serving(serving)).await;
        let root = server.set_up().await;
        let mut credential = device.credential();
        credential["name"] = json!("key");
        let credential = root.post("/credentials", &credential).await.expect_status(201).body;
        let head = root.get("/sites").await.expect_status(200).body["items"][0].clone();
        let branch = root.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let body = json!({
            "name": "controller", "site_id": head["id"], "vendor": "omada", "url": device.url(),
            "credential_id": credential["id"], "sync_interval_secs": 3600,
        });
        let controller = root.post("/controllers", &body).await.expect_status(201).body;
        let mut world = Self {
            server,
            device,
            org: text(&head["organization_id"]),
            controller: text(&controller["id"]),
            head: text(&head["id"]),
            branch: text(&branch["id"]),
            main_ref: String::new(),
            branch_ref: String::new(),
            root,
        };
        world.synced().await;
        let sites = world.vendor_sites().await;
        let named = |name: &str| {
            let site = sites.iter().find(|site| site["name"] == name).expect("the lab has this site");
            text(&site["site_ref"])
        };
        (world.main_ref, world.branch_ref) = (named("Main"), named("Branch"));
        world
    }

    async fn synced(&self) {
        let sync = self.root.post(&self.at("/sync"), &json!({})).await.expect_status(202).body;
        let path = self.at(&format!("/syncs/{}", text(&sync["id"])));
        for _ in 0..1_500 {
            let sync = self.root.get(&path).await.expect_status(200).body;
            if !sync["ended_at"].is_null() {
                assert!(sync["error"].is_null(), "{sync}");
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("the sync does not end");
    }

    fn at(&self, rest: &str) -> String {
        format!("/controllers/{}{rest}", self.controller)
    }

    async fn vendor_sites(&self) -> Vec<Value> {
        let sites = self.root.get(&self.at("/vendor-sites")).await.expect_status(200).body;
        sites.as_array().expect("a list").clone()
    }

    async fn map(&self, site_ref: &str, body: &Value) -> Value {
        let path = self.at(&format!("/vendor-sites/{site_ref}"));
        self.root.post(&path, body).await.expect_status(200).body
    }

    /// Somebody who may write at one site of ours.
    async fn operator_at(&self, name: &str, site: &str) -> Api {
        let user = json!({
            "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": "site_admin",
        });
        let user = self.root.post("/users", &user).await.expect_status(201).body;
        let grant = json!({ "user_id": user["id"], "site_id": site, "level": "write" });
        self.root.post(&format!("/organizations/{}/site-access", self.org), &grant).await.expect_status(201);
        self.server.log_in(name).await
    }

    fn profiles(&self, site: &str) -> String {
        format!("/gateway-profiles/{}/sites/{site}", self.controller)
    }

    /// How many devices a caller sees, by our site.
    async fn devices(&self, api: &Api, site: &str) -> u64 {
        let page = api.get(&format!("/devices?site_id={site}&per_page=1")).await.expect_status(200).body;
        page["total"].as_u64().expect("a page has a total")
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn keys(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("a page has items").iter();
    items.map(|item| text(&item["reference"]["key"])).collect()
}

on_both! {
    async fn devices_objects_and_changes_of_a_vendors_site_are_at_the_site_that_was_chosen_for_it(database: Database) {
        let world = World::start(database).await;
        let (root, head, branch) = (&world.root, &world.head, &world.branch);
        let all = world.devices(root, head).await;
        assert!(all > 2 && world.devices(root, branch).await == 0, "at first all are at the controller's own site");
        let mapped = world.map(&world.branch_ref, &json!({ "site_id": branch })).await;
        assert_eq!((&mapped["site_id"], &mapped["is_mapped"]), (&json!(branch), &json!(true)));
        let moved = world.devices(root, branch).await;
        assert_eq!((moved, world.devices(root, head).await), (all / 2, all - all / 2), "they go along at once");
        world.synced().await;
        assert_eq!(world.devices(root, branch).await, moved, "and stay with the next reading");
        let sites = root.get(&world.at("/sites")).await.expect_status(200).body;
        assert_eq!(sites["total"], 2);

        // Whoever has a right at the branch alone sees and changes what is there, and nothing else.
        let bo = world.operator_at("bo", branch).await;
        assert_eq!(world.devices(&bo, head).await, 0);
        bo.get(&world.at("")).await.expect_status(404);
        bo.get(&format!("{}/profiles.rate-limit", world.profiles(head))).await.expect_status(404);
        let staged = bo
            .post(&format!("{}/changes/{RATE}?operation=create", world.profiles(branch)), &payload("guests"))
            .await
            .expect_status(201)
            .body;
        assert_eq!((&staged["site_id"], &staged["site_ref"]), (&json!(branch), &json!(world.branch_ref)));
        bo.post(&path(&staged, "apply"), &json!({ "force": true })).await.expect_status(200);
        let list = format!("{}/profiles.rate-limit?limit=1000", world.profiles(branch));
        assert!(keys(&bo.get(&list).await.expect_status(200).body).contains(&"guests".to_owned()));
        let list = format!("{}/profiles.rate-limit?limit=1000", world.profiles(head));
        assert!(!keys(&root.get(&list).await.expect_status(200).body).contains(&"guests".to_owned()));
        let named = format!("/gateway-omada-profiles/{}/profiles.rate-limit", world.controller);
        root.get(&format!("{named}/guests?site_ref=Branch")).await.expect_status(200);
        root.get(&format!("{named}/guests?site_ref={}", world.main_ref)).await.expect_status(404);
        bo.get(&format!("{named}/guests")).await.expect_status(200);
        let refused = root.get(&format!("{named}/guests")).await.expect_status(422).body;
        assert!(refused.to_string().contains("the sites 'Branch', 'Main'"), "{refused}");
        let refused = bo.get(&format!("{named}?site_ref=Main")).await.expect_status(422).body;
        assert!(!refused.to_string().contains(&world.main_ref), "{refused}");

        // Taken back at the same site.
        let back = bo.post(&path(&staged, "revert"), &json!({})).await.expect_status(201).body;
        assert_eq!(back["site_ref"], json!(world.branch_ref));
        bo.post(&path(&back, "apply"), &json!({ "force": true })).await.expect_status(200);
        root.get(&format!("{named}/guests?site_ref=Branch")).await.expect_status(404);
        drop(world.device);
    }
}

on_both! {
    async fn equal_names_at_two_sites_are_two_objects(database: Database) {
        let world = World::start(database).await;
        let root = &world.root;
        let area = format!("/gateway-omada-profiles/{}/changes/{RATE}?operation=create", world.controller);
        let at_none = root.post(&area, &payload("guests")).await.expect_status(422).body;
        assert!(at_none.to_string().contains("site_ref"), "{at_none}");
        let mut staged = Vec::new();
        for site in [&world.main_ref, &world.branch_ref] {
            let path = format!("{area}&site_ref={site}");
            staged.push(root.post(&path, &payload("guests")).await.expect_status(201).body);
        }
        assert_eq!(staged[1]["conflicts_with"], json!([]));
        let ids: Vec<&Value> = staged.iter().map(|change| &change["id"]).collect();
        let refused = root.post("/gateway-vpn/changes/sets", &json!({ "change_ids": ids })).await.expect_status(422);
        assert!(refused.body.to_string().contains("one site"), "{}", refused.body);
        for change in &staged {
            root.post(&path(change, "apply"), &json!({ "force": true })).await.expect_status(200);
        }
        let one = |site: &str| {
            let path = format!("/gateway-omada-profiles/{}/profiles.rate-limit/guests?site_ref={site}", world.controller);
            async move { root.get(&path).await.expect_status(200).body }
        };
        let (main, branch) = (one(&world.main_ref).await, one(&world.branch_ref).await);
        assert_ne!(main["reference"]["locators"], branch["reference"]["locators"]);
        // A pending change goes along with its site.
        let path = format!("{area}&site_ref={}", world.branch_ref);
        let pending = root.post(&path, &payload("others")).await.expect_status(201).body;
        assert_eq!(pending["site_id"], json!(world.head));
        world.map(&world.branch_ref, &json!({ "site_id": world.branch })).await;
        let seen = root.get(&super::path(&pending, "")).await.expect_status(200).body;
        assert_eq!(seen["site_id"], json!(world.branch));
        world.map(&world.branch_ref, &json!({ "site_id": null })).await;
        let seen = root.get(&super::path(&pending, "")).await.expect_status(200).body;
        assert_eq!(seen["site_id"], json!(world.head));
        drop(world.device);
    }
}

on_both! {
    async fn an_ignored_site_is_not_read_and_comes_back_as_it_was(database: Database) {
        let world = World::start(database).await;
        let root = &world.root;
        world.map(&world.branch_ref, &json!({ "site_id": world.branch })).await;
        let there = world.devices(root, &world.branch).await;
        let first = root.get(&format!("/devices?site_id={}&sort=name", world.branch)).await.expect_status(200).body;
        let area = format!("/gateway-omada-profiles/{}/changes/{RATE}?operation=create&site_ref=Branch", world.controller);
        let applied = root.post(&area, &payload("guests")).await.expect_status(201).body;
        root.post(&path(&applied, "apply"), &json!({ "force": true })).await.expect_status(200);
        let ignored = world.map(&world.branch_ref, &json!({ "is_ignored": true })).await;
        assert_eq!((&ignored["site_id"], &ignored["is_ignored"]), (&json!(world.branch), &json!(true)));
        assert_eq!(world.devices(root, &world.branch).await, 0);
        world.synced().await;
        assert_eq!(world.devices(root, &world.branch).await, 0);
        let named = format!("/gateway-omada-profiles/{}/profiles.rate-limit", world.controller);
        root.get(&named).await.expect_status(200);
        let refused = root.get(&format!("{named}?site_ref=Branch")).await.expect_status(422).body;
        assert!(refused.to_string().contains("ignored"), "{refused}");
        let refused = root.post(&path(&applied, "revert"), &json!({})).await.expect_status(409).body;
        assert!(refused.to_string().contains("site 'Branch' of the controller is ignored"), "{refused}");
        world.map(&world.branch_ref, &json!({ "is_ignored": false })).await;
        world.synced().await;
        assert_eq!(world.devices(root, &world.branch).await, there);
        let again = root.get(&format!("/devices?site_id={}&sort=name", world.branch)).await.expect_status(200).body;
        assert_eq!(again["items"][0]["id"], first["items"][0]["id"]);
        drop(world.device);
    }
}

on_both! {
    async fn only_who_decides_at_both_sites_maps_one_to_the_other(database: Database) {
        let world = World::start(database).await;
        let bo = world.operator_at("bo", &world.head).await;
        let path = world.at(&format!("/vendor-sites/{}", world.branch_ref));
        bo.post(&path, &json!({ "is_ignored": true })).await.expect_status(403);
        let root = &world.root;
        root.post(&path, &json!({ "site_id": "00000000-0000-7000-8000-000000000000" })).await.expect_status(422);
        let wrong = root.post(&world.at("/vendor-sites/nowhere"), &json!({})).await.expect_status(404).body;
        assert!(wrong.to_string().contains("vendor site not found"), "{wrong}");
        world.map(&world.branch_ref, &json!({ "site_id": world.branch })).await;
        let seen = bo.get(&world.at("/vendor-sites")).await.expect_status(200).body;
        assert_eq!(seen.as_array().map(Vec::len), Some(1), "the site elsewhere is not shown");
        // A site that a vendor's site belongs to is not removed: its changes would be at none.
        let branch = format!("/sites/{}", world.branch);
        let refused = root.delete(&branch).await.expect_status(409).body;
        assert!(refused.to_string().contains("'controller'"), "{refused}");
        world.map(&world.branch_ref, &json!({ "site_id": null })).await;
        root.delete(&branch).await.expect_status(204);
        let sites = world.vendor_sites().await;
        assert!(sites.iter().all(|site| site["site_id"] == json!(world.head)), "{sites:?}");
        drop(world.device);
    }
}
