//! What the vendor's whole-object writes do to stored rows, and how creates answer.

use serde_json::{Value, json};

use super::Peer;

fn route(name: &str) -> Value {
    json!({
        "name": name, "status": true, "destinations": ["192.168.80.0/24"], "routeType": 0,
        "nextHopIp": "10.4.20.9",
        "metric": 3,
    })
}

const ROUTES: &str = "v1 site routing/static-routings";

#[tokio::test]
async fn a_create_that_answers_no_id_is_found_by_its_name() {
    let peer = Peer::new().await;
    let answer = peer.call("POST", ROUTES, route("storage")).await;
    assert!(answer.get("result").is_none());
    assert_eq!(peer.named(ROUTES, "name", "storage").await.unwrap()["metric"], 3);
}

#[tokio::test]
async fn a_name_is_taken_until_its_row_is_deleted() {
    let peer = Peer::new().await;
    peer.ok("POST", ROUTES, route("storage")).await;
    assert_eq!(peer.code("POST", ROUTES, route("storage")).await, -33006);
    let id = peer.named(ROUTES, "name", "storage").await.unwrap()["id"].as_str().unwrap().to_owned();
    peer.ok("DELETE", &format!("{ROUTES}/{id}"), Value::Null).await;
    peer.ok("POST", ROUTES, route("storage")).await;
}

#[tokio::test]
async fn a_put_resets_what_it_does_not_name_and_replaces_lists() {
    let peer = Peer::new().await;
    peer.ok("POST", ROUTES, route("storage")).await;
    let id = peer.named(ROUTES, "name", "storage").await.unwrap()["id"].as_str().unwrap().to_owned();
    let mut body = route("storage");
    body["destinations"] = json!(["192.168.81.0/24"]);
    body.as_object_mut().unwrap().remove("nextHopIp");
    peer.ok("PUT", &format!("{ROUTES}/{id}"), body).await;
    let row = peer.named(ROUTES, "name", "storage").await.unwrap();
    assert!(row.get("nextHopIp").is_none());
    assert_eq!((&row["id"], &row["destinations"]), (&json!(id), &json!(["192.168.81.0/24"])));
}

#[tokio::test]
async fn a_body_must_have_the_vendors_fields_types_and_limits() {
    let peer = Peer::new().await;
    let changed = |name: &str, value: Value| {
        let mut body = route("checked");
        body[name] = value;
        body
    };
    for body in [
        changed("metric", json!(16)),
        changed("metric", json!("3")),
        changed("routeType", json!(9)),
        changed("status", Value::Null),
        changed("destinations", json!("192.168.80.0/24")),
    ] {
        assert_eq!(peer.code("POST", ROUTES, body.clone()).await, -1001, "{body}");
    }
    assert!(peer.named(ROUTES, "name", "checked").await.is_none());
}

#[tokio::test]
async fn a_document_is_read_back_as_it_was_written_on_either_surface() {
    let peer = Peer::new().await;
    let before = peer.get("v1 site upnp").await;
    assert!(before.is_object());
    peer.ok("PUT", "web site setting/upnp", json!({"enable": true, "interface": ["1_wan"]})).await;
    assert_eq!(peer.get("v1 site upnp").await["enable"], true);
}

#[tokio::test]
async fn rules_are_ordered_and_an_overlapping_rule_vanishes() {
    let peer = Peer::new().await;
    let networks = peer.rows("v2 site lan-networks").await;
    let (first, second) = (&networks[0]["id"], &networks[1]["id"]);
    let rule = |name: &str, from: &Value, to: &Value| {
        json!({
            "description": name, "status": true, "policy": 0, "protocols": [256], "sourceType": 0,
            "sourceIds": [from],
            "destinationType": 0, "destinationIds": [to], "stateMode": 0, "syslog": false,
            "direction": {"lanToWan": false, "lanToLan": true, "wanInIds": [], "vpnInIds": []},
        })
    };
    let acls = "v1 site acls/osg-acls";
    peer.ok("POST", acls, rule("kept", first, second)).await;
    peer.ok("POST", acls, rule("vanished", first, first)).await;
    let rows = peer.rows(acls).await;
    let names: Vec<&str> = rows.iter().map(|row| row["description"].as_str().unwrap()).collect();
    assert_eq!(names, ["things-to-servers", "kept"]);
    let indexes = json!({rows[0]["id"].as_str().unwrap(): 2, rows[1]["id"].as_str().unwrap(): 1});
    peer.ok("POST", "v1 site acls/modifyIndex", json!({"type": "gateway", "indexes": indexes})).await;
    assert_eq!(peer.rows(acls).await[0]["description"], "kept");
    let web = peer.get("web site setting/firewall/acls?type=0&currentPage=1&currentPageSize=10").await;
    assert_eq!((&web["data"][0]["name"], &web["aclDisable"]), (&json!("kept"), &json!(false)));
}
