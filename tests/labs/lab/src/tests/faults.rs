//! Each fault, seen from a client.

use super::*;

#[tokio::test]
async fn a_hung_request_is_not_executed_and_ends_with_the_fault() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::hang().on("POST", "/count").times(1));
    let waited = tokio::time::timeout(Duration::from_millis(150), peer.send("POST", "/count")).await;
    assert!(waited.is_err());
    assert_eq!(peer.status("POST", "/count").await, Some(200), "the fault was for one request");
    peer.lab.fault(Fault::hang().for_ms(60));
    assert_eq!(peer.status("POST", "/count").await, None);
    assert_eq!(peer.status("POST", "/count").await, Some(200));
    assert_eq!(peer.count(), 2);
}

#[tokio::test]
async fn a_cut_path_serves_no_connection_and_comes_back() {
    let peer = Peer::new().await;
    assert_eq!(peer.status("GET", "/count").await, Some(200));
    peer.lab.fault(Fault::cut());
    assert_eq!(peer.status("POST", "/count").await, None);
    peer.lab.clear_faults();
    assert_eq!(peer.status("POST", "/count").await, Some(200));
    assert_eq!(peer.count(), 1);
}

#[tokio::test]
async fn a_lost_request_has_no_effect_and_a_lost_answer_has() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::lose_request().on_writes().times(1));
    assert_eq!((peer.status("POST", "/count").await, peer.count()), (None, 0));
    peer.lab.fault(Fault::lose_answer().on_writes().skip(1).times(1));
    assert_eq!((peer.status("POST", "/count").await, peer.count()), (Some(200), 1));
    assert_eq!((peer.status("POST", "/count").await, peer.count()), (None, 2));
    assert_eq!(peer.status("POST", "/count").await, Some(200));
}

#[tokio::test]
async fn a_controller_that_dies_loses_its_memory_and_boots() {
    let peer = Peer { lab: Lab::builder(Toy::default()).paused().start().await, http: http() };
    assert_eq!(peer.status("POST", "/task").await, Some(202));
    peer.lab.fault(Fault::lose_answer().on_writes().times(1).then(Then::Boot { for_ms: 5_000 }));
    assert_eq!((peer.status("POST", "/count").await, peer.count()), (None, 1));
    assert_eq!(peer.status("GET", "/count").await, None);
    peer.lab.advance(Duration::from_mins(1));
    assert_eq!(peer.status("GET", "/count").await, Some(200));
    assert_eq!(peer.count(), 1, "the task was lost");
}

#[tokio::test]
async fn the_path_can_be_cut_after_an_answer_was_lost() {
    let peer = Peer { lab: Lab::builder(Toy::default()).paused().start().await, http: http() };
    peer.lab.fault(Fault::lose_request().times(1).then(Then::Cut { for_ms: Some(100) }));
    assert_eq!(peer.status("POST", "/count").await, None);
    assert_eq!(peer.status("POST", "/count").await, None);
    peer.lab.advance(Duration::from_millis(100));
    assert_eq!(peer.status("POST", "/count").await, Some(200));
}

#[tokio::test]
async fn a_body_can_break_off_or_be_half() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::from(FaultKind::CutBody).times(1));
    let response = peer.send("POST", "/count").await.unwrap();
    assert_eq!(response.content_length(), Some(11));
    assert!(response.bytes().await.is_err());
    peer.lab.fault(Fault::from(FaultKind::Truncate).times(1));
    assert_eq!(peer.send("POST", "/count").await.unwrap().text().await.unwrap(), "{\"cou");
    assert_eq!(peer.count(), 2);
}

#[tokio::test]
async fn a_slow_answer_comes_late_and_what_it_did_is_done_at_once() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::slow(150));
    let began = Instant::now();
    let mut answer = Box::pin(peer.status("POST", "/count"));
    let done = async {
        while peer.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        () = done => {}
        status = &mut answer => panic!("{status:?} was answered before it was done"),
    }
    assert_eq!(answer.await, Some(200));
    assert!(began.elapsed() >= Duration::from_millis(150));
    // The second replaces the first, whose answer would come after the client has given up.
    peer.lab.fault(Fault::slow(3_600_000));
    peer.lab.fault(Fault::slow(0));
    assert_eq!(peer.status("POST", "/count").await, Some(200));
}

#[tokio::test]
async fn pages_limits_and_statuses_stand_in_for_the_execution() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::html(502).times(1));
    peer.lab.fault(Fault::rate_limit(7).times(1));
    let page = peer.send("POST", "/count").await.unwrap();
    assert_eq!(
        (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
        (502, "text/html")
    );
    let limited = peer.send("POST", "/count").await.unwrap();
    assert_eq!((limited.status().as_u16(), limited.headers()["retry-after"].to_str().unwrap()), (429, "7"));
    assert_eq!((peer.status("POST", "/count").await, peer.count()), (Some(200), 1));
}

#[tokio::test]
async fn sessions_can_end_before_a_request() {
    let peer = Peer::new().await;
    let login: Value = peer.send("POST", "/login").await.unwrap().json().await.unwrap();
    let read = || async {
        let cookie = format!("a=b; token={}", login["token"].as_str().unwrap());
        let request = peer.http.get(format!("{}/private", peer.lab.url())).header("cookie", cookie);
        request.send().await.unwrap().status().as_u16()
    };
    peer.lab.fault(Fault::from(FaultKind::EndSessions).skip(1).times(1));
    assert_eq!((read().await, read().await), (200, 401));
}

#[tokio::test]
async fn a_vendors_fault_counts_where_the_simulator_asks_for_it() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("no_task", json!(null)).times(1));
    assert_eq!(peer.status("POST", "/count").await, Some(200));
    assert_eq!(peer.status("POST", "/task").await, Some(500));
    assert_eq!(peer.status("POST", "/task").await, Some(202));
    assert_eq!(peer.lab.writes()[1].faults, ["no_task"]);
}

#[tokio::test]
async fn other_certificates_and_cuts_end_by_themselves() {
    let lab = Lab::builder(Toy::default()).tls().paused().start().await;
    lab.fault(Fault::from(FaultKind::Certificate { which: Certificate::Expired }).for_ms(1_000));
    lab.fault(Fault::cut().for_ms(2_000));
    let certificate = || lab.lock().context().certificate();
    assert_eq!((certificate(), lab.lock().is_reachable()), (Certificate::Expired, false));
    lab.advance(Duration::from_secs(1));
    assert_eq!((certificate(), lab.lock().is_reachable()), (Certificate::Good, false));
    lab.advance(Duration::from_secs(1));
    assert!(lab.lock().is_reachable());
}
