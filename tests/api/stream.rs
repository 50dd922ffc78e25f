//! The event stream: filters, resuming, and its limits.

use serde_json::json;

use crate::support::{Server, Socket, on_both};

on_both! {
    async fn filters_keep_readable_sites_and_an_empty_list_lifts_them(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let site = api.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        let mut socket = Socket::subscribe(&api, &["*"]).await;
        let unknown = "01900000-0000-7000-8000-000000000000";
        socket.send(&json!({ "type": "set_filters", "site_ids": [site, unknown] })).await;
        assert_eq!(socket.next().await, json!({ "type": "filters_set", "site_ids": [site] }));
        socket.send(&json!({ "type": "set_filters", "site_ids": [] })).await;
        assert_eq!(socket.next().await, json!({ "type": "filters_set", "site_ids": [] }));
        socket.send(&json!({ "type": "resume", "after_seq": 1_000_000 })).await;
        let org = api.get("/auth/me").await.expect_status(200).body["organization_id"].clone();
        let resumed = json!({ "type": "resumed", "organization_id": org, "last_seq": 1_000_000, "truncated": false });
        assert_eq!(socket.next().await, resumed);
    }
}

on_both! {
    async fn a_flood_of_frames_ends_the_connection_and_gives_its_place_back(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let mut socket = Socket::subscribe(&api, &["device.*"]).await;
        assert_eq!(api.get("/ws/stats").await.expect_status(200).body["active_connections"], 1);
        for _ in 0..6 {
            socket.send(&json!({ "type": "ping" })).await;
        }
        assert_eq!(socket.close_code().await, 1008);
        drop(socket);
        for _ in 0..300 {
            if api.get("/ws/stats").await.body["active_connections"] == 0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("the place is not given back");
    }
}
