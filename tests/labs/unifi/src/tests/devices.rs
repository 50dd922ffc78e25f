//! Devices: what a write changes, and how long things take.

use super::*;

#[tokio::test]
async fn a_list_of_a_device_is_replaced_whole() {
    let peer = Peer::new().await;
    let core = peer.device(CORE).await;
    let port = |device: &Value, idx: u64| {
        device["port_table"].as_array().unwrap().iter().find(|row| row["port_idx"] == idx).unwrap().clone()
    };
    assert_eq!(port(&core, 3)["name"], "Reception");
    let off = json!({ "port_overrides": [{ "port_idx": 7, "poe_mode": "off", "name": "Camera" }] });
    peer.change("device", &core["_id"], off).await;
    let read = peer.device(CORE).await;
    assert_eq!(port(&read, 3)["name"], "Port 3");
    assert_eq!(
        (port(&read, 7)["poe_mode"].as_str(), port(&read, 7)["poe_power"].as_str()),
        (Some("off"), Some("0.00"))
    );
    assert_eq!(read["port_overrides"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_write_provisions_the_device_and_shows_a_moment_later() {
    let peer = Peer::new().await;
    peer.lab.lock().settings.settle = Duration::from_millis(1500);
    let core = peer.device(CORE).await;
    let answer = peer.change("device", &core["_id"], json!({ "name": "renamed" })).await;
    assert_eq!(answer["name"], "renamed");
    let read = peer.device(CORE).await;
    assert_eq!((read["name"].as_str(), read["state"].as_i64()), (Some("core"), Some(5)));
    assert_ne!(read["cfgversion"], core["cfgversion"]);
    peer.lab.advance(Duration::from_millis(1600));
    assert_eq!(peer.device(CORE).await["name"], "renamed");
    peer.steps(1);
    assert_eq!(peer.device(CORE).await["state"], 1);
}

#[tokio::test]
async fn a_port_that_is_off_takes_its_client_along() {
    let peer = Peer::new().await;
    assert!(peer.rows("~/stat/sta").await.iter().any(|row| row["mac"] == ADA && row["vlan"] == 10));
    let core = peer.device(CORE).await;
    let disabled = peer.row("~/rest/portconf", "name", "Disabled").await;
    let mut overrides = core["port_overrides"].clone();
    for entry in overrides.as_array_mut().unwrap() {
        if entry["port_idx"] == 4 {
            *entry = json!({ "port_idx": 4, "portconf_id": disabled["_id"] });
        }
    }
    peer.change("device", &core["_id"], json!({ "port_overrides": overrides })).await;
    assert!(peer.rows("~/stat/sta").await.iter().all(|row| row["mac"] != ADA));
    let detail = peer.row("~i/devices", "name", "core").await;
    let detail = peer.get(&format!("~i/devices/{}", detail["id"].as_str().unwrap())).await;
    assert_eq!(detail["interfaces"]["ports"][3]["state"], "DOWN");
}

#[tokio::test]
async fn ports_and_radios_are_checked() {
    let peer = Peer::new().await;
    let core = peer.device(CORE).await;
    let path = format!("~/rest/device/{}", core["_id"].as_str().unwrap());
    let beyond = json!({ "port_overrides": [{ "port_idx": 40 }] });
    assert_eq!(peer.refused("PUT", &path, beyond).await, "api.err.InvalidPayload");
    let nowhere = json!({ "port_overrides": [{ "port_idx": 4, "portconf_id": "675100000000000000000000" }] });
    assert_eq!(peer.refused("PUT", &path, nowhere).await, "api.err.IdInvalid");
    assert_eq!(peer.refused("PUT", &path, json!({ "port_overrides": null })).await, "api.err.InvalidPayload");
    let point = peer.device(OFFICE_AP).await;
    let path = format!("~/rest/device/{}", point["_id"].as_str().unwrap());
    let wrong = json!({ "radio_table": [{ "radio": "ng", "channel": 36, "ht": 20 }] });
    assert_eq!(peer.refused("PUT", &path, wrong).await, "api.err.InvalidChannel");
    let mut table = point["radio_table"].clone();
    table[0]["channel"] = json!(11);
    peer.change("device", &point["_id"], json!({ "radio_table": table })).await;
    assert_eq!(peer.device(OFFICE_AP).await["radio_table_stats"][0]["channel"], 11);
    let gateway = peer.row("~/stat/device", "type", "udm").await;
    let path = format!("~/rest/device/{}", gateway["_id"].as_str().unwrap());
    assert_eq!(peer.refused("PUT", &path, json!({ "state": 0 })).await, "api.err.InvalidPayload");
}

#[tokio::test]
async fn adoption_passes_through_its_states() {
    let peer = Peer::new().await;
    let mac = "02:00:5e:00:01:21";
    assert_eq!(peer.rows("/integration/v1/pending-devices").await[0]["state"], "PENDING_ADOPTION");
    peer.command("devmgr", json!({ "cmd": "adopt", "mac": mac })).await;
    assert_eq!(peer.device(mac).await["state"], 7);
    assert_eq!(
        peer.refused("POST", "~/cmd/devmgr", json!({ "cmd": "adopt", "mac": mac })).await,
        "api.err.CannotAdopt"
    );
    peer.steps(2);
    assert_eq!(
        (peer.device(mac).await["state"].as_i64(), peer.device(mac).await["adopted"].as_bool()),
        (Some(5), Some(true))
    );
    peer.steps(2);
    assert_eq!(peer.device(mac).await["state"], 1);
    assert_eq!(peer.rows("~i/devices").await.len(), 9);
    let unknown = json!({ "cmd": "adopt", "mac": "02:00:5e:00:09:99" });
    assert_eq!(peer.refused("POST", "~/cmd/devmgr", unknown).await, "api.err.CanNotAdoptUnknownDevice");
}

#[tokio::test]
async fn a_device_that_reported_just_now_is_not_ready() {
    let peer = Peer::new().await;
    let mac = "02:00:5e:00:01:22";
    peer.lab.edit(&json!({ "do": "pending", "mac": mac, "model": "USF5P" })).unwrap();
    assert_eq!(
        peer.refused("POST", "~/cmd/devmgr", json!({ "cmd": "adopt", "mac": mac })).await,
        "api.err.CannotAdopt"
    );
    peer.steps(2);
    let body = json!({ "macAddress": mac, "ignoreDeviceLimit": false });
    let (status, answer) = peer.ask("POST", "~i/devices", body).await;
    assert_eq!((status, answer["state"].as_str()), (200, Some("ADOPTING")));
}

#[tokio::test]
async fn a_forgotten_device_waits_anew() {
    let peer = Peer::new().await;
    let attic = peer.row("~i/devices", "name", "attic").await;
    let path = format!("~i/devices/{}", attic["id"].as_str().unwrap());
    peer.ok("DELETE", &path, Value::Null).await;
    assert_eq!(peer.get(&path).await["state"], "DELETING");
    peer.steps(1);
    assert_eq!(peer.ask("GET", &path, Value::Null).await.0, 404);
    peer.row("/integration/v1/pending-devices", "macAddress", "02:00:5e:00:01:04").await;
}

#[tokio::test]
async fn an_upgrade_takes_its_time() {
    let peer = Peer::new().await;
    let mac = "02:00:5e:00:01:03";
    assert_eq!(peer.device(mac).await["upgradable"], true);
    peer.command("devmgr", json!({ "cmd": "upgrade", "mac": mac })).await;
    assert_eq!(peer.device(mac).await["state"], 4);
    assert_eq!(
        peer.refused("POST", "~/cmd/devmgr", json!({ "cmd": "upgrade", "mac": mac })).await,
        "api.err.DeviceBusy"
    );
    peer.steps(12);
    let read = peer.device(mac).await;
    assert_eq!((read["state"].as_i64(), read["version"].as_str()), (Some(1), Some("7.3.83.17042")));
    assert_eq!(read["upgradable"], false);
    let code = peer.refused("POST", "~/cmd/devmgr", json!({ "cmd": "upgrade", "mac": mac })).await;
    assert_eq!(code, "api.err.NoUpgradeAvailable");
}

#[tokio::test]
async fn a_power_cycle_restarts_what_hangs_on_the_port() {
    let peer = Peer::new().await;
    let core = peer.row("~i/devices", "name", "core").await;
    let path =
        |port: u32| format!("~i/devices/{}/interfaces/ports/{port}/actions", core["id"].as_str().unwrap());
    peer.ok("POST", &path(5), json!({ "action": "POWER_CYCLE" })).await;
    assert_eq!(peer.device(OFFICE_AP).await["state"], 0);
    peer.steps(5);
    assert_eq!(peer.device(OFFICE_AP).await["state"], 1);
    assert_eq!(peer.ask("POST", &path(25), json!({ "action": "POWER_CYCLE" })).await.0, 400);
    assert_eq!(peer.ask("POST", &path(5), json!({ "action": "OTHER" })).await.0, 400);
}

#[tokio::test]
async fn the_gateway_takes_the_application_along() {
    let peer = Peer::new().await;
    let gateway = peer.row("~i/devices", "model", "UDM Pro").await;
    let path = format!("~i/devices/{}/actions", gateway["id"].as_str().unwrap());
    peer.ok("POST", &path, json!({ "action": "RESTART" })).await;
    assert!(peer.request("GET", "/integration/v1/info").send().await.is_err());
    peer.lab.advance(Duration::from_secs(21));
    let early = peer.request("GET", "/integration/v1/info").send().await.unwrap();
    assert_eq!(
        (early.status().as_u16(), early.headers()["content-type"].to_str().unwrap()),
        (200, "text/html")
    );
    peer.lab.advance(Duration::from_secs(5));
    assert_eq!(peer.get("/integration/v1/info").await["applicationVersion"], "10.4.57");
}

#[tokio::test]
async fn a_device_below_one_that_is_gone_is_not_reached() {
    let peer = Peer::new().await;
    let count = peer.rows("~/stat/sta").await.len();
    peer.lab.edit(&json!({ "do": "device", "mac": CORE, "online": false })).unwrap();
    assert_eq!(peer.device(CORE).await["state"], 0);
    assert!(peer.rows("~/stat/sta").await.len() < count);
    let health = peer.row("~/stat/health", "subsystem", "lan").await;
    assert_eq!((health["status"].as_str(), health["num_disconnected"].as_u64()), (Some("warning"), Some(1)));
}

#[tokio::test]
async fn links_are_told_from_both_ends() {
    let peer = Peer::new().await;
    let core = peer.device(CORE).await;
    let neighbours = core["lldp_table"].as_array().unwrap();
    assert!(neighbours.iter().any(|row| row["chassis_id"] == OFFICE_AP && row["local_port_idx"] == 5));
    assert_eq!(peer.device(OFFICE_AP).await["uplink"]["uplink_remote_port"], 5);
    let topology = peer.get("~2/topology").await;
    let edge = topology["edges"]
        .as_array()
        .unwrap()
        .iter()
        .find(|edge| edge["downlinkMac"] == OFFICE_AP)
        .unwrap()
        .clone();
    assert_eq!((edge["uplinkMac"].as_str(), edge["uplinkPortNumber"].as_u64()), (Some(CORE), Some(5)));
    assert_eq!(core["port_table"][23]["aggregated_by"], 23);
}
