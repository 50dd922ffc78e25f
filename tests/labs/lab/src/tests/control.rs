//! The control port, and the record.

use super::*;

#[tokio::test]
async fn the_control_port_takes_the_same_orders() {
    let peer = Peer::new().await;
    let fault = json!({ "kind": "lose_answer", "methods": ["POST"], "path": "/c*", "times": 1,
        "then": { "boot": { "for_ms": 50 } } });
    assert_eq!(peer.order("POST", "/faults", fault.clone()).await.status(), 204);
    let mut shown = peer.ask("/faults").await[0].take();
    shown.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!((&shown["then"], &shown["skip"]), (&fault["then"], &json!(0)));
    assert_eq!((peer.status("POST", "/count").await, peer.count()), (None, 1));
    assert_eq!(peer.ask("/lab").await["booting"], json!(true));
    tokio::time::sleep(Duration::from_millis(70)).await;
    assert_eq!(peer.ask("/lab").await["reachable"], json!(true));
    assert_eq!(peer.order("POST", "/faults", json!({ "kind": "hang" })).await.status(), 204);
    assert_eq!(peer.order("DELETE", "/faults", json!(null)).await.status(), 204);
    assert_eq!(peer.ask("/faults").await, json!([]));
    let edited = peer.order("POST", "/edit", json!({ "count": 40 })).await;
    assert_eq!(edited.json::<Value>().await.unwrap(), json!({ "count": 40 }));
    assert_eq!(peer.ask("/state").await, json!({ "count": 40 }));
    for (path, body, status) in [
        ("/edit", json!({ "count": "x" }), 422),
        ("/faults", json!({ "kind": "nothing" }), 422),
        ("/faults", json!({ "kind": "cut", "times": 1 }), 422),
        ("/faults", json!({ "kind": "certificate", "which": "expired" }), 422),
        ("/faults", json!({ "kind": "vendor", "name": "nothing" }), 422),
        ("/sessions/expire", json!(null), 204),
        ("/connections/close", json!(null), 204),
        ("/nothing", json!(null), 404),
        ("/boot", json!({}), 204),
    ] {
        assert_eq!(peer.order("POST", path, body).await.status(), status, "{path}");
    }
}

#[tokio::test]
async fn the_record_has_every_request_and_is_bounded() {
    let peer = Peer { lab: Lab::builder(Toy::default()).record_max(2).start().await, http: http() };
    for _ in 0..2 {
        assert_eq!(peer.status("GET", "/count?a=1&b").await, Some(200));
    }
    peer.lab.fault(Fault::lose_answer());
    let login = json!({ "username": "root", "password": "hunter2" });
    let sent = peer.http.post(format!("{}/login", peer.lab.url())).json(&login).send().await;
    assert!(sent.is_err());
    let record = peer.ask("/record").await;
    let numbers: Vec<u64> =
        record.as_array().unwrap().iter().filter_map(|exchange| exchange["number"].as_u64()).collect();
    assert_eq!(numbers, [2, 3]);
    assert_eq!((&record[0]["query"], &record[0]["status"]), (&json!("a=1&b"), &json!(200)));
    assert_eq!(record[0]["answer"], json!("{\"count\":0}"));
    assert_eq!(record[1]["body"], json!("{\"username\":\"root\",\"password\":\"***\"}"));
    assert_eq!((&record[1]["status"], &record[1]["is_executed"]), (&json!(null), &json!(true)));
    assert_eq!(record[1]["faults"], json!(["lose_answer"]));
    assert!(record[1]["answer"].as_str().unwrap().contains("token"), "what was lost is known");
    assert_eq!(peer.ask("/record?after=2").await.as_array().unwrap().len(), 1);
    assert_eq!(peer.order("DELETE", "/record", json!(null)).await.status(), 204);
    assert!(peer.lab.record().is_empty());
}
