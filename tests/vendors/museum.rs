//! Packages of every released version of the interface, as they were built then: they are loaded and used as ever.
//!
//! `tests/museum/<version>/<adapter>` is a package with the key that signed it beside it, and is never built again.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::{Lab, practice};
use crate::support::{Options, Server, on_both};

fn museum() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("museum")
}

/// The folders with packages, one for each released version.
fn versions() -> Vec<PathBuf> {
    let entries = fs::read_dir(museum()).expect("there is a museum");
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    folders.sort();
    folders
}

#[test]
fn every_released_version_has_a_package() {
    let names = |folder: &str| -> Vec<String> {
        let entries =
            fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("it is there");
        let names = entries
            .map(|entry| entry.expect("an entry can be read").file_name().into_string().expect("it is text"));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let mut released: Vec<String> =
        names("../wit").iter().filter_map(|name| name.strip_prefix("since-").map(str::to_owned)).collect();
    released.sort();
    assert_eq!(names("museum"), released);
}

on_both! {
    async fn a_package_of_every_released_version_reads_and_writes(database: Database) {
        for folder in versions() {
            let text = |path: PathBuf| path.to_str().expect("a path is text").to_owned();
            let options = Options::default()
                .with("ADAPTER_PACKAGES", text(folder.clone()))
                .with("ADAPTER_TRUSTED_KEYS", text(folder.join("trusted-keys.json")));
            for entry in fs::read_dir(&folder).expect("a folder can be read") {
                let path = entry.expect("an entry can be read").path();
                let Some(id) = path.is_dir().then(|| path.file_name()).flatten() else { continue };
                let vendor = practice::of(id.to_str().expect("an id is text"));
                let server = Server::start_with(database.another().await, options.clone()).await;
                let device = vendor.start().await;
                used(&Lab::on(server, vendor, device).await).await;
            }
        }
    }
}

/// Reads the device, makes a change in a window, confirms it and takes it back.
async fn used(lab: &Lab) {
    lab.api.post(&format!("/controllers/{}/test", lab.controller), &json!({})).await.expect_status(200);
    let (before, keys) = (lab.device.configuration(), lab.live().await);
    let change = lab.stage().await;
    let body = json!({ "force": true, "plan_hash": change["plan"]["hash"], "confirm_within_secs": 60 });
    lab.act(&change, "apply", &body).await.expect_status(200);
    let confirmed = lab.act(&change, "confirm", &json!({})).await.expect_status(200).body;
    assert_eq!(confirmed["outcome"]["state"], "applied", "{confirmed}");
    assert_eq!(lab.live().await.len(), keys.len() + 1);
    let inverse = lab.act(&change, "revert", &json!({})).await.expect_status(201).body;
    let reverted = lab.act(&inverse, "apply", &json!({ "force": true })).await.expect_status(200).body;
    assert_eq!(reverted["outcome"]["state"], "applied", "{reverted}");
    assert_eq!(lab.device.configuration(), before);
}
