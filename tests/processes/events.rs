//! Listeners of every process hear the events of all processes, once and in order.

use serde_json::Value;

use super::{Pair, quick};
use crate::support::{Options, Server, Socket, event_type, on_both};

/// The numbers of the next events.
async fn numbers(stream: &mut Socket, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let frame = stream.next().await;
        assert_eq!(frame["type"], "event", "{frame}");
        numbers.push(frame["event"]["seq"].as_i64().expect("a number"));
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_publishes_every_event_once_and_in_order() {
    let Some(pair) = Pair::start(quick()).await else { return };
    // The first reading is over, so that only these events come.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let mut of_a = Socket::subscribe(&pair.a.api, &["controller.change.*"]).await;
    let mut of_b = Socket::subscribe(&pair.b.api, &["controller.change.*"]).await;
    let staging = |name: &'static str, n: usize| {
        let pair = &pair;
        async move {
            for i in 0..n {
                let api = if name == "A" { &pair.a.api } else { &pair.b.api };
                pair.stage(api, &format!("{name}-{i}")).await;
            }
        }
    };
    tokio::join!(staging("A", 10), staging("B", 10));
    let (heard_a, heard_b) = (numbers(&mut of_a, 20).await, numbers(&mut of_b, 20).await);
    assert_eq!(heard_a, heard_b);
    assert!(heard_a.windows(2).all(|pair| pair[1] == pair[0] + 1), "in order, without a gap: {heard_a:?}");
    // Nothing comes twice.
    for stream in [&mut of_a, &mut of_b] {
        stream.send(&serde_json::json!({ "type": "ping" })).await;
        assert_eq!(stream.next().await["type"], "pong");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logout_in_one_process_ends_the_stream_of_another() {
    let Some(pair) = Pair::start(quick()).await else { return };
    let mut stream = Socket::authenticated(&pair.b.api).await;
    stream.send(&serde_json::json!({ "type": "ping" })).await;
    assert_eq!(stream.next().await["type"], "pong");
    // The connection reads its caller every five minutes in any case. The test waits for a fraction of that.
    pair.a.api.post("/auth/logout-all", &serde_json::json!({})).await.expect_status(204);
    assert_eq!(stream.next().await["type"], "session_revoked");
    assert_eq!(stream.close_code().await, 1008);
}

on_both! {
    async fn an_event_of_an_unknown_type_does_not_stop_the_stream(database: Database) {
        let server = Server::start_with(database, Options::default()).await;
        let api = server.set_up().await;
        let me = api.get("/auth/me").await.expect_status(200).body;
        let org: heddle_core::OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
        let mut stream = Socket::subscribe(&api, &["*"]).await;
        let app = &server.running().app;
        let event = |event_type| heddle_core::event::NewEvent {
            event_type,
            org_id: org,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: serde_json::json!({}),
        };
        let mut tx = app.db.write().await.unwrap();
        let offline = event(event_type("device.offline"));
        for _ in 0..3 {
            heddle_store::events::append(&mut tx, &offline, &app.clock).await.unwrap();
        }
        let unknown = "UPDATE event SET event_type = 'device.abducted' WHERE seq = 2";
        match &mut tx {
            heddle_store::Tx::Sqlite(tx) => { sqlx::query(unknown).execute(&mut **tx).await.unwrap(); }
            heddle_store::Tx::Postgres(tx) => { sqlx::query(unknown).execute(&mut **tx).await.unwrap(); }
        }
        tx.commit().await.unwrap();
        assert_eq!(numbers(&mut stream, 2).await, [1, 3]);
        stream.send(&serde_json::json!({ "type": "resume", "after_seq": 0 })).await;
        assert_eq!(numbers(&mut stream, 2).await, [1, 3]);
        let resumed: Value = stream.next().await;
        assert_eq!((&resumed["type"], &resumed["last_seq"]), (&"resumed".into(), &3.into()), "{resumed}");
    }
}
