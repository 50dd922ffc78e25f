//! Every route of the facts answers.

use super::*;
use crate::facts::{Facts, Operation};

/// Routes that take the box down or wipe it.
const ENDS: [&str; 5] =
    ["core/system/", "core/defaults/", "core/firmware/reboot", "core/firmware/poweroff", "core/backup/"];

#[tokio::test]
async fn every_route_answers_with_json_or_a_file() {
    for release in [Release::V26_1, Release::V26_7] {
        let peer = Peer::of_release(release).await;
        for (path, controller) in &Facts::get().controllers {
            for (command, facts) in &controller.commands {
                let route = format!("{path}/{command}");
                if !facts.exists_in(release) || ENDS.iter().any(|start| route.starts_with(start)) {
                    continue;
                }
                let route = (0..facts.need).fold(route, |route, _| route + "/x");
                let response = if facts.post {
                    peer.send(&route, &json!({})).await
                } else {
                    peer.request("GET", &route).send().await.unwrap()
                };
                let status = response.status().as_u16();
                let is_delete = facts.op == Operation::Delete;
                assert!(status == 200 || (is_delete && status == 500), "{route} {status}");
                let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
                let body = response.bytes().await.unwrap();
                let is_json = serde_json::from_slice::<Value>(&body).is_ok();
                assert!(is_json == (kind == "application/json"), "{route} {kind}");
            }
        }
    }
}

#[test]
fn every_pattern_of_the_facts_compiles() {
    assert_eq!(Facts::get().broken_patterns(), Vec::<&str>::new());
}

#[tokio::test]
async fn every_list_answers_a_grid_to_post() {
    let peer = Peer::new().await;
    for (path, controller) in &Facts::get().controllers {
        for (command, facts) in &controller.commands {
            if facts.op != Operation::List || !facts.exists_in(Release::V26_7) || path == "core/backup" {
                continue;
            }
            let route = (0..facts.need).fold(format!("{path}/{command}"), |route, _| route + "/x");
            let grid = peer.post(&route, json!({ "current": 1, "rowCount": -1 })).await;
            let rows = grid["rows"].as_array().map(Vec::len);
            assert_eq!(grid["rowCount"].as_u64(), rows.map(|rows| rows as u64), "{route} {grid}");
        }
    }
}
