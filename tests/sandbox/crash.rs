//! A server that is killed while a package of an adapter is installed or put back.
//!
//! One package serves then, and the record says which.

use serde_json::{Value, json};

use super::install::{Store, serving};
use super::uploads::{archive, send};
use crate::plugins::kills::{Kills, Request, Rig, Step, Subject};
use crate::plugins::standing::check_chain;
use crate::support::{Api, Database};

/// The adapter `hostile`, whose packages are installed over the API.
struct Installed;

impl Subject for Installed {
    /// Such as `1.1.0 serves kept, 1.0.0 kept, 2 more installed than rolled back`.
    async fn look(&self, rig: &Rig) -> String {
        let api = rig.api();
        let packages = api.get("/adapters/hostile/packages").await.expect_status(200).body;
        let packages = packages["items"].as_array().unwrap();
        let (version, refused) = serving(api).await;
        assert_eq!(refused, "[]");
        let serve: Vec<&Value> =
            packages.iter().filter(|one| one["serves"] == true).map(|one| &one["version"]).collect();
        assert_eq!(serve, [&version]);
        let shown = api.get("/adapters/hostile").await.expect_status(200).body;
        assert_eq!((&shown["version"], &shown["behind"]), (&version, &Value::Null), "{shown}");
        check_chain(api).await;
        let difference = entries(api, "adapter.installed").await - entries(api, "adapter.rolled_back").await;
        let packages: Vec<String> = packages.iter().map(line).collect();
        format!("{}, {difference} more installed than rolled back", packages.join(", "))
    }
}

fn line(package: &Value) -> String {
    let mut line = package["version"].as_str().unwrap().to_owned();
    for flag in ["serves", "pinned", "kept"] {
        if package[flag] == true {
            line = format!("{line} {flag}");
        }
    }
    line
}

async fn entries(api: &Api, action: &str) -> i64 {
    let entries = api.get(&format!("/audit?action={action}")).await.expect_status(200).body;
    entries["total"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_an_installation_or_a_rollback_leaves_one_of_both_packages() {
    let store = Store::new();
    let mut rig = Rig::start(Database::sqlite(), store.options()).await;
    let two = archive("1.1.0", "two", &store.acme);
    // Both are judged once before anything is measured.
    send(rig.api(), &archive("1.0.0", "one", &store.acme)).await.expect_status(201);
    send(rig.api(), &two).await.expect_status(201);
    let back = "/adapters/hostile/rollback";
    rig.api().post(back, &json!({})).await.expect_status(200);
    let steps = Step::around(&[
        (
            Request::package("/adapters/packages", two),
            "1.1.0 serves kept, 1.0.0 kept, 2 more installed than rolled back",
        ),
        (Request::post(back), "1.1.0 kept, 1.0.0 serves pinned kept, 1 more installed than rolled back"),
    ]);
    rig.kill_around(&Installed, &steps, Kills::of(8)).await;
}
