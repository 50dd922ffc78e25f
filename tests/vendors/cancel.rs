//! A long task at a simulated cluster is ended on request, and the record says what the cluster has then.

use std::time::Duration;

use serde_json::{Value, json};

use super::practice::proxmox::slow_cluster;
use super::{path, register};
use crate::support::{Adapters, Options, Server, on_both};

on_both! {
    async fn a_clone_that_is_cancelled_leaves_nothing(database: Database) {
        let device = slow_cluster().await;
        let serving = Adapters::Of(vec!["proxmox".to_owned()]);
        let server = Server::start_with(database, Options::default().serving(serving)).await;
        let api = server.set_up().await;
        let controller = register(&api, "proxmox", &*device).await;
        let before = device.configuration();
        let stage = format!("/gateway-proxmox-vm/{controller}/changes/proxmox.vm.clone?operation=create");
        let payload = json!({ "payload": { "vmid": 101, "newid": 9001, "name": "copy" } });
        let change = api.post(&stage, &payload).await.expect_status(201).body;
        let native = change["plan"]["native"].as_array().unwrap();
        let end: Vec<&Value> = native.iter().filter(|call| call["stage"] == "abort").collect();
        assert_eq!(end.len(), 1, "{change}");
        assert_eq!((&end[0]["method"], end[0]["path"].as_str()), (&json!("DELETE"), Some("/api2/json/nodes/pve1/tasks/{{hole.job_0}}")));

        let apply = path(&change, "apply");
        let force = json!({ "force": true });
        let applying = api.post(&apply, &force);
        let cancelling = async {
            while api.get(&path(&change, "")).await.expect_status(200).body["outcome"]["step"] != "polling" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_ne!(device.configuration(), before, "the copy has begun");
            api.post(&path(&change, "cancel"), &Value::Null).await.expect_status(202)
        };
        tokio::join!(applying, cancelling);
        let ended = api.get(&path(&change, "")).await.expect_status(200).body;
        assert_eq!((&ended["outcome"]["state"], &ended["outcome"]["step"]), (&json!("failed"), &json!("idle")), "{ended}");
        assert!(ended["outcome"]["message"].as_str().unwrap().contains("cancelled: the task failed"), "{ended}");
        assert_eq!(device.configuration(), before, "the copy is gone, and the guest is unlocked");
        let ends = device.executed().into_iter().filter(|call| call.starts_with("DELETE ")).count();
        assert_eq!(ends, 1);
    }
}
