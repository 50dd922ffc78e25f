//! Clients: lists of any size, and what an administrator does to one.

use serde_json::{Value, json};

use super::Peer;
use crate::{Omada, Seed};

#[tokio::test]
async fn pages_hold_what_was_asked_and_tell_the_total() {
    let peer = Peer::new().await;
    let page = peer.get("v1 site insight/clients?page=2&pageSize=15").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 15);
    assert_eq!(
        (&page["totalRows"], &page["currentPage"], &page["currentSize"]),
        (&json!(40), &json!(2), &json!(15))
    );
}

#[tokio::test]
async fn a_list_without_its_page_is_refused() {
    let peer = Peer::new().await;
    assert_eq!(peer.code("GET", "v1 site clients", Value::Null).await, -1001);
    assert_eq!(peer.code("GET", "v1 site clients?page=1&pageSize=1001", Value::Null).await, -1001);
}

#[tokio::test]
async fn a_blocked_client_leaves_until_it_is_unblocked() {
    let peer = Peer::new().await;
    let mac = peer.rows("v1 site clients").await[0]["mac"].as_str().unwrap().to_owned();
    peer.ok("POST", &format!("v1 site clients/{mac}/block"), Value::Null).await;
    assert!(peer.named("v1 site clients", "mac", &mac).await.is_none());
    assert_eq!(peer.named("v1 site insight/clients", "mac", &mac).await.unwrap()["block"], true);
    peer.ok("POST", &format!("v1 site clients/{mac}/unblock"), Value::Null).await;
    peer.steps(1);
    assert!(peer.named("v1 site clients", "mac", &mac).await.is_some());
}

#[tokio::test]
async fn only_a_wireless_client_can_be_sent_away() {
    let peer = Peer::new().await;
    let clients = peer.rows("v1 site clients").await;
    let mac = |wireless: bool| {
        clients.iter().find(|row| row["wireless"] == wireless).unwrap()["mac"].as_str().unwrap()
    };
    assert_eq!(peer.code("POST", &format!("v1 site clients/{}/reconnect", mac(true)), Value::Null).await, 0);
    assert_ne!(peer.code("POST", &format!("v1 site clients/{}/reconnect", mac(false)), Value::Null).await, 0);
}

#[tokio::test]
async fn the_newer_list_filters_in_its_body() {
    let peer = Peer::new().await;
    let body = json!({"filters": {"wireless": true}, "sorts": {}, "scope": 1, "page": 1, "pageSize": 100});
    let result = peer.ok("POST", "v2 site clients", body).await;
    let rows = result["data"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["ssid"] == "Office"));
    assert_eq!(result["clientStat"]["wireless"], rows.len());
}

#[tokio::test]
async fn ten_thousand_clients_are_paged() {
    let mut omada = Omada::new(Seed { sites: 1, clients: 10_000, ..Seed::default() });
    omada.rate_limit = None;
    let peer = Peer::of(omada).await;
    let page = peer.get("v1 site insight/clients?page=10&pageSize=1000").await;
    assert_eq!((page["totalRows"].as_u64(), page["data"].as_array().unwrap().len()), (Some(10_000), 1000));
    let macs: std::collections::BTreeSet<&str> =
        page["data"].as_array().unwrap().iter().map(|row| row["mac"].as_str().unwrap()).collect();
    assert_eq!(macs.len(), 1000);
}
