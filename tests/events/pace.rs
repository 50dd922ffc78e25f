//! How fast a peer may speak: counted when its frames come, whatever the service is busy with.

use std::time::Duration;

use heddle_core::OrgId;
use heddle_core::event::NewEvent;
use serde_json::json;

use crate::support::{Api, Server, Socket, event_type, on_both};

/// Events of more bytes than the buffers between two sockets hold.
const EVENTS: usize = 5_000;

async fn fill(server: &Server, api: &Api) {
    let me = api.get("/auth/me").await.expect_status(200).body;
    let org: OrgId = me["organization_id"].as_str().unwrap().parse().unwrap();
    let app = &server.running().app;
    let event = NewEvent {
        event_type: event_type("ingest.external"),
        org_id: org,
        site_id: None,
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: json!({ "name": "n", "data": { "x": "y".repeat(6_000) } }),
    };
    for _ in 0..EVENTS / 500 {
        let mut tx = app.db.write().await.unwrap();
        heddle_store::events::append_all(&mut tx, org, &vec![event.clone(); 500], &app.clock).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Asks for all events and takes none of them.
async fn busy(server: &Server, api: &Api) -> Socket {
    fill(server, api).await;
    // Until the last of them is no longer new.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut socket = Socket::subscribe(api, &["*"]).await;
    socket.send(&json!({ "type": "resume", "after_seq": 0 })).await;
    socket
}

/// Frames that are no events, up to the end of what was resumed, and then so many pongs.
async fn pongs(socket: &mut Socket, count: usize) {
    let mut has_resumed = false;
    let mut heard = 0;
    while heard < count {
        let frame = socket.next().await;
        match frame["type"].as_str().unwrap() {
            "event" => {}
            "resumed" => {
                assert_eq!(heard, 0, "it was busy while they came");
                has_resumed = true;
            }
            "pong" => heard += 1,
            _ => panic!("{frame}"),
        }
    }
    assert!(has_resumed);
}

on_both! {
    async fn who_keeps_to_the_limit_is_taken_for_no_flood_however_long_an_answer_takes(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let mut socket = busy(&server, &api).await;
        for _ in 0..14 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            socket.send(&json!({ "type": "ping" })).await;
        }
        pongs(&mut socket, 14).await;
    }
}

on_both! {
    async fn a_flood_is_one_also_while_the_service_is_busy(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let mut socket = busy(&server, &api).await;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        for _ in 0..6 {
            socket.send(&json!({ "type": "ping" })).await;
        }
        // They came at once; that they are answered later makes them no slower.
        tokio::time::sleep(Duration::from_secs(2)).await;
        pongs(&mut socket, 5).await;
        assert_eq!(socket.close_reason().await, (1008, "more than 5 frames per second".to_owned()));
    }
}
