//! Pages, filters and refusals of the official interface.

use super::*;

#[tokio::test]
async fn lists_come_in_pages() {
    let peer = Peer::new().await;
    let first = peer.get("~i/devices?limit=3").await;
    assert_eq!(
        (first["count"].as_u64(), first["totalCount"].as_u64(), first["offset"].as_u64()),
        (Some(3), Some(8), Some(0))
    );
    let last = peer.get("~i/devices?offset=6&limit=3").await;
    assert_eq!(last["count"], 2);
    assert_eq!(peer.get("~i/devices").await["limit"], 25);
    assert_eq!(peer.get("~i/devices?limit=1000").await["limit"], 200);
    assert_eq!(peer.get("~i/hotspot/vouchers").await["limit"], 100);
    assert_eq!(
        peer.refused("GET", "~i/devices?offset=x", Value::Null).await,
        "api.request.argument-type-mismatch"
    );
}

#[tokio::test]
async fn filters_choose_rows() {
    let peer = Peer::new().await;
    for (filter, count) in [
        ("model.eq('UDM Pro')", 1),
        ("model.ne('UDM Pro')", 7),
        ("and(features.contains('switching'),not(features.contains('accessPoint')))", 4),
        ("model.in('USW Flex','U7 Pro')", 2),
        ("name.like('*-ap')", 3),
        ("name.like('office%')", 0),
        ("or(features.containsAny('accessPoint'),model.eq('UDM Pro'))", 4),
        ("firmwareUpdatable.eq(true)", 3),
        ("not(state.eq('ONLINE'))", 0),
    ] {
        let answer = told(
            peer.request("GET", &peer.path("~i/devices")).query(&[("filter", filter)]).send().await.unwrap(),
        )
        .await;
        assert_eq!((answer.0, answer.1["totalCount"].as_u64()), (200, Some(count)), "{filter} {}", answer.1);
    }
}

#[tokio::test]
async fn a_filter_that_does_not_read_says_where() {
    let peer = Peer::new().await;
    for (filter, detail) in [
        ("model.like('UDM*')", "'like' is not allowed for 'model' at 1:7"),
        ("nonexistent.eq('foo')", "unknown filter property 'nonexistent' at 1:1"),
    ] {
        let request = peer.request("GET", &peer.path("~i/devices")).query(&[("filter", filter)]);
        let (status, body) = told(request.send().await.unwrap()).await;
        assert_eq!((status, body["code"].as_str()), (400, Some("api.request.invalid-filter")));
        assert_eq!(body["message"], format!("failed to parse filter expression: {detail}"));
    }
}

#[tokio::test]
async fn a_gateway_does_not_call_itself_one() {
    let peer = Peer::new().await;
    let row = peer.row("~i/devices", "model", "UDM Pro").await;
    assert_eq!(row["features"], json!(["switching"]));
    let detail = peer.get(&format!("~i/devices/{}", row["id"].as_str().unwrap())).await;
    assert!(detail["features"]["switching"].is_object() && detail.get("uplink").is_none());
    let core = peer.row("~i/devices", "name", "core").await;
    let detail = peer.get(&format!("~i/devices/{}", core["id"].as_str().unwrap())).await;
    assert_eq!(detail["uplink"]["deviceId"], row["id"]);
    assert_eq!(detail["interfaces"]["ports"][4]["poe"]["state"], "UP");
    assert!(detail["interfaces"]["ports"][24].get("poe").is_none());
    assert_eq!(detail["features"]["switching"]["lags"][0]["portIdxs"], json!([23, 24]));
}

#[tokio::test]
async fn refusals_have_the_form_of_the_interface() {
    let peer = Peer::new().await;
    let (status, body) = peer.ask("GET", "~i/clients/active", Value::Null).await;
    assert_eq!((status, body["code"].as_str()), (400, Some("api.request.argument-type-mismatch")));
    assert_eq!(body["message"], "'active' is not a valid 'clientId' value");
    assert_eq!(body["statusName"], "BAD_REQUEST");
    let (status, body) = peer.ask("GET", "/integration/v1/nothing", Value::Null).await;
    assert_eq!((status, body["code"].as_str()), (404, Some("api.request.error")));
    assert_eq!(body["message"], "No endpoint GET /integration/v1/nothing.");
    let code = peer.refused("GET", "/integration/v1/sites/default/devices", Value::Null).await;
    assert_eq!(code, "api.request.argument-type-mismatch");
    let other = peer.request("PATCH", &peer.path("~i/networks")).send().await.unwrap();
    assert_eq!(other.status(), 405);
    assert!(other.headers()["allow"].to_str().unwrap().contains("POST"));
}

#[tokio::test]
async fn bodies_are_those_of_their_variant() {
    let peer = Peer::new().await;
    let record = json!({
        "type": "A_RECORD", "enabled": true, "domain": "a.lan", "ipv4Address": "10.0.0.1", "ttlSeconds": 60,
    });
    let made = peer.ok("POST", "~i/dns/policies", record.clone()).await;
    let path = format!("~i/dns/policies/{}", made["id"].as_str().unwrap());
    let (status, body) = peer.ask("PUT", &path, made.clone()).await;
    assert_eq!((status, body["code"].as_str()), (400, Some("api.request.unknown-property")));
    let mut mx = json!({
        "type": "MX_RECORD", "enabled": true, "domain": "a.lan", "mailServerDomain": "m.lan",
        "priority": 10,
    });
    peer.ok("POST", "~i/dns/policies", mx.clone()).await;
    mx["ttlSeconds"] = json!(60);
    let (_, body) = peer.ask("POST", "~i/dns/policies", mx).await;
    assert_eq!(body["message"], "Unknown request body property '$.ttlSeconds'");
    let mut wrong = record.clone();
    wrong["type"] = json!("NS_RECORD");
    assert_eq!(peer.refused("POST", "~i/dns/policies", wrong).await, "api.request.unknown-type-id");
    assert_eq!(peer.refused("POST", "~i/dns/policies", json!({})).await, "api.request.missing-type-id");
    let mut wrong = record.clone();
    wrong["ipv4Address"] = json!("not-an-ip");
    let (_, body) = peer.ask("POST", "~i/dns/policies", wrong).await;
    assert_eq!(body["message"], "ipv4Address must be valid IP format");
    let mut missing = record;
    missing.as_object_mut().unwrap().remove("ttlSeconds");
    assert_eq!(peer.ask("POST", "~i/dns/policies", missing).await.0, 400);
}

#[tokio::test]
async fn records_are_the_same_on_both_interfaces() {
    let peer = Peer::new().await;
    let older = json!({
        "key": "_sip._tcp.lab.example", "record_type": "SRV", "value": "sip.lab.example", "port": 5060,
        "priority": 1, "weight": 2,
    });
    // The port of a record is a number of any size in spite of what clients make of its pattern.
    peer.ok("POST", "~2/static-dns", older).await;
    let read = peer.row("~i/dns/policies", "type", "SRV_RECORD").await;
    assert_eq!(
        (read["service"].as_str(), read["protocol"].as_str(), read["domain"].as_str()),
        (Some("_sip"), Some("_tcp"), Some("lab.example"))
    );
    let wildcard = json!({
        "type": "CNAME_RECORD", "enabled": true, "domain": "*.a.lan", "targetDomain": "b.lan",
        "ttlSeconds": 0,
    });
    assert_eq!(
        peer.ask("POST", "~i/dns/policies", wildcard).await.1["message"],
        "domain must be valid domain"
    );
    let wildcard = json!({
        "type": "A_RECORD", "enabled": true, "domain": "*.a.lan", "ipv4Address": "10.0.0.2",
        "ttlSeconds": 0,
    });
    peer.ok("POST", "~i/dns/policies", wildcard).await;
    assert_eq!(peer.row("~2/static-dns", "key", "*.a.lan").await["value"], "10.0.0.2");
}

#[tokio::test]
async fn lists_of_what_to_match_do_not_mix() {
    let peer = Peer::new().await;
    let ports = json!({
        "type": "PORTS", "name": "web",
        "items": [{ "type": "PORT_NUMBER", "value": 80 }, { "type": "PORT_NUMBER_RANGE", "start": 8000, "stop": 8010 }],
    });
    let made = peer.ok("POST", "~i/traffic-matching-lists", ports).await;
    let path = format!("~i/traffic-matching-lists/{}", made["id"].as_str().unwrap());
    let mixed =
        json!({ "type": "PORTS", "name": "web", "items": [{ "type": "IP_ADDRESS", "value": "10.0.0.1" }] });
    assert_eq!(peer.ask("PUT", &path, mixed).await.0, 400);
    let range = json!({
        "type": "IPV4_ADDRESSES", "name": "hosts", "items": [{ "type": "SUBNET", "value": "10.0.0.0/33" }],
    });
    assert_eq!(peer.ask("POST", "~i/traffic-matching-lists", range).await.0, 400);
    assert_eq!(peer.ask("DELETE", &path, Value::Null).await.0, 200);
}

#[tokio::test]
async fn vouchers_are_made_and_removed_by_filter() {
    let peer = Peer::new().await;
    let body = json!({ "count": 3, "name": "event", "timeLimitMinutes": 60, "authorizedGuestLimit": 2 });
    let made = peer.ok("POST", "~i/hotspot/vouchers", body).await;
    assert_eq!(made["vouchers"].as_array().unwrap().len(), 3);
    assert_eq!(made["vouchers"][0]["code"].as_str().unwrap().len(), 10);
    assert_eq!(peer.ask("DELETE", "~i/hotspot/vouchers", Value::Null).await.0, 400);
    let request =
        peer.request("DELETE", &peer.path("~i/hotspot/vouchers")).query(&[("filter", "name.eq('event')")]);
    assert_eq!(told(request.send().await.unwrap()).await, (200, json!({ "vouchersDeleted": 3 })));
    let older = peer
        .command("hotspot", json!({ "cmd": "create-voucher", "n": 2, "expire": 30, "note": "old" }))
        .await;
    let read = peer.ok("POST", "~/stat/voucher", json!({ "create_time": older[0]["create_time"] })).await;
    assert_eq!(read["data"].as_array().unwrap().len(), 2);
}
