//! Filters, pages and order of lists, and deleting by a filter.

use super::*;

#[tokio::test]
async fn filters_compare_by_their_names() {
    let peer = Peer::new().await;
    for (query, count) in [
        ("type=pass", 3),
        ("type__except=pass", 1),
        ("descr__contains=guests", 2),
        ("descr__startswith=guests%20stay", 1),
        ("descr__endswith=web", 1),
        ("interface__contains=GUEST", 2),
        ("type__in[]=pass&type__in[]=block", 4),
        ("tracker__gt=1767000001", 2),
        ("tracker__lte=1767000001", 2),
        ("descr__regex=/^Default/", 1),
        ("descr__regex=/^default/i", 1),
        ("source__format=ipv4", 0),
        ("destination__format=alias", 1),
        ("id=2", 1),
        ("protocol=null", 3),
        ("type=pass&interface__contains=WAN", 1),
    ] {
        let found = peer.get(&format!("/firewall/rules?{query}")).await;
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn unknown_field_does_not_filter_and_unknown_filter_is_404() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("/firewall/rules?nmae=x").await.as_array().unwrap().len(), 4);
    assert_eq!(
        peer.refusal("GET", "/firewall/rules?descr__like=x", Value::Null).await,
        refused(404, "QUERY_FILTER_NOT_FOUND")
    );
}

#[tokio::test]
async fn text_of_digits_arrives_as_a_number_and_still_matches_a_text() {
    let peer = Peer::new().await;
    assert_eq!(
        peer.get("/firewall/nat/port_forwards?destination_port=8443").await.as_array().unwrap().len(),
        1
    );
    // The word of a truth does not.
    peer.patch("/firewall/rule", json!({ "id": 0, "descr": "true" })).await;
    let found = peer.get("/firewall/rules?descr__contains=true").await;
    assert_eq!(found.as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn pages_have_no_total_and_an_offset_alone_renumbers() {
    let peer = Peer::new().await;
    assert_eq!(peer.column("/firewall/rules?limit=2&offset=1", "id").await, [json!(1), json!(2)]);
    assert_eq!(peer.column("/firewall/rules?limit=2&reverse=true", "id").await, [json!(3), json!(2)]);
    assert_eq!(peer.get("/firewall/rules?offset=9").await, json!([]));
    // Without a limit and a filter the ids are those of the page, not those of the list.
    assert_eq!(peer.column("/firewall/rules?offset=2", "id").await, [json!(0), json!(1)]);
    assert_eq!(peer.column("/firewall/rules?offset=2&id__gte=0", "id").await, [json!(2), json!(3)]);
    assert_eq!(
        peer.refusal("GET", "/firewall/rules?limit=x", Value::Null).await,
        refused(400, "ENDPOINT_LIMIT_FIELD_INVALID_TYPE")
    );
}

#[tokio::test]
async fn sorting_a_read_keeps_the_stored_order_and_sorting_a_write_does_not() {
    let peer = Peer::new().await;
    let sorted = peer.column("/firewall/aliases?sort_by=name&sort_order=SORT_DESC", "name").await;
    assert_eq!(sorted, [json!("web_servers"), json!("web_ports"), json!("partners")]);
    assert_eq!(peer.column("/firewall/aliases", "name").await[0], "web_servers");
    peer.patch("/firewall/alias", json!({ "id": 0, "descr": "x", "sort_by": "name" })).await;
    assert_eq!(peer.column("/firewall/aliases", "name").await[0], "partners");
    assert_eq!(
        peer.refusal("GET", "/firewall/aliases?sort_by=nothing", Value::Null).await,
        refused(400, "ENDPOINT_SORT_BY_FIELD_NON_EXISTENT_FIELD")
    );
}

#[tokio::test]
async fn delete_with_a_mistyped_field_deletes_everything() {
    let peer = Peer::new().await;
    assert_eq!(
        peer.refusal("DELETE", "/firewall/aliases", Value::Null).await,
        refused(400, "MODEL_DELETE_MANY_REQUIRES_QUERY_PARAMS")
    );
    let deleted = peer.delete("/firewall/aliases?nmae=web_ports").await;
    assert_eq!(deleted.as_array().unwrap().len(), 3);
    assert_eq!(peer.get("/firewall/aliases").await, json!([]));
}

#[tokio::test]
async fn deleting_all_stops_at_the_minimum_and_keeps_what_it_has_done() {
    let peer = Peer::new().await;
    assert_eq!(
        peer.refusal("DELETE", "/firewall/rules?all=true", Value::Null).await,
        refused(403, "MODEL_MANY_MINIMUM_REACHED")
    );
    assert_eq!(peer.column("/firewall/rules", "descr").await, [json!("Default allow LAN to any rule")]);
}

#[tokio::test]
async fn put_replaces_everything_and_takes_no_object() {
    let peer = Peer::new().await;
    let alias = json!({ "name": "only", "type": "host", "address": ["192.0.2.1"], "apply": true });
    peer.data("PUT", "/firewall/aliases", json!([alias])).await;
    assert_eq!(peer.column("/firewall/aliases", "name").await, [json!("only")]);
    peer.advance(5000);
    assert!(peer.pending().contains(&"FirewallAlias".to_owned()), "an apply of a list is not looked at");
    assert_eq!(
        peer.refusal("PUT", "/firewall/aliases", json!({ "name": "x" })).await,
        refused(400, "ENDPOINT_REQUEST_DATA_MUST_BE_INDEXED_ARRAY")
    );
}

#[tokio::test]
async fn put_of_groups_keeps_those_of_the_system() {
    let peer = Peer::new().await;
    peer.data("PUT", "/user/groups", json!([{ "name": "ops", "member": ["reader"] }])).await;
    assert_eq!(peer.column("/user/groups", "name").await, [json!("admins"), json!("all"), json!("ops")]);
    let group = peer.get("/user/groups?name=ops").await;
    assert_eq!(group[0]["member"], json!(["reader"]));
    let stored = peer.lab.lock().stored_rows("UserGroup");
    assert_eq!(stored[2]["member"], json!([2000]));
}
