//! Status, services, packages, restarts and tools.

use super::*;

#[tokio::test]
async fn inventory_has_its_forms() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("/system/version").await["version"], "2.8.1-RELEASE");
    assert_eq!(peer.get("/system/restapi/version").await["current_version"], "v2.10");
    assert_eq!(
        peer.get("/system/hostname").await,
        json!({ "hostname": "pfsense", "domain": "home.example" })
    );
    let interfaces = peer.get("/status/interfaces").await;
    assert_eq!((&interfaces[1]["id"], &interfaces[1]["mtu"]), (&json!(1), &json!("1500")));
    assert_eq!(interfaces[1]["subnet"], "255.255.255.0");
    assert_eq!(peer.column("/interfaces", "id").await, [json!("wan"), json!("lan"), json!("opt1")]);
    let gateways = peer.column("/status/gateways", "name").await;
    assert_eq!(gateways, [json!("WANGW"), json!("LABGW"), json!("WAN_DHCP")]);
    assert_eq!(peer.get("/routing/gateways").await.as_array().unwrap().len(), 2);
    assert!(peer.get("/status/system").await["mem_usage"].is_f64());
}

#[tokio::test]
async fn told_version_is_told() {
    let peer = Peer::new().await;
    peer.lab.lock().tell_version("27.1-RELEASE");
    let version = peer.get("/system/version").await;
    assert_eq!((&version["version"], &version["base"]), (&json!("27.1-RELEASE"), &json!("27.1")));
    peer.lab.lock().tell_package("2.11.1");
    assert_eq!(peer.get("/system/restapi/version").await["current_version"], "v2.11.1");
}

#[tokio::test]
async fn service_is_named_by_its_place_and_its_name() {
    let peer = Peer::new().await;
    let services = peer.get("/status/services").await;
    let unbound = services.as_array().unwrap().iter().find(|own| own["name"] == "unbound").unwrap();
    let stop = json!({ "id": unbound["id"], "name": "unbound", "action": "stop" });
    assert_eq!(peer.post("/status/service", stop).await["status"], false);
    let start = json!({ "id": unbound["id"], "name": "unbound", "action": "restart" });
    assert_eq!(peer.post("/status/service", start).await["status"], true);
    let nothing = json!({ "name": "unbound", "action": "start" });
    assert_eq!(peer.refusal("POST", "/status/service", nothing).await, refused(400, "MODEL_REQUIRES_ID"));
}

#[tokio::test]
async fn reboot_answers_first_and_the_web_server_starts_with_a_page() {
    let peer = Peer::new().await;
    peer.post("/firewall/rule", rule("stored")).await;
    peer.post("/diagnostics/reboot", json!({})).await;
    peer.advance(600);
    peer.get("/system/version").await;
    peer.lab.advance(Duration::from_secs(16));
    assert!(peer.request("GET", "/system/version").send().await.is_err());
    peer.lab.advance(Duration::from_secs(20));
    let page = peer.request("GET", "/system/version").send().await.unwrap();
    assert_eq!(page.status(), 502);
    assert!(page.text().await.unwrap().contains("<html>"));
    peer.lab.advance(Duration::from_secs(6));
    peer.get("/system/version").await;
    assert!(peer.pending().is_empty(), "what is stored runs after a restart");
}

#[tokio::test]
async fn halted_firewall_is_gone() {
    let peer = Peer::new().await;
    peer.post("/diagnostics/halt_system", json!({ "async": false })).await;
    peer.lab.advance(Duration::from_secs(16));
    assert!(peer.request("GET", "/system/version").send().await.is_err());
}

#[tokio::test]
async fn update_leads_to_the_next_version() {
    let peer =
        Peer::of(Settings { update_to: Some("2.9.0-RELEASE".to_owned()), ..Settings::default() }).await;
    peer.post("/system/update", json!({})).await;
    assert_eq!(peer.refusal("POST", "/system/update", json!({})).await.0, 503);
    peer.advance(600);
    peer.lab.advance(Duration::from_secs(16));
    peer.lab.advance(Duration::from_secs(30));
    assert_eq!(peer.get("/system/version").await["version"], "2.9.0-RELEASE");
}

#[tokio::test]
async fn new_port_of_the_web_server_restarts_it() {
    let peer = Peer::new().await;
    peer.patch("/system/webgui/settings", json!({ "port": "8443" })).await;
    peer.get("/system/version").await;
    peer.lab.advance(Duration::from_secs(4));
    assert_eq!(peer.request("GET", "/system/version").send().await.unwrap().status(), 502);
    peer.lab.advance(Duration::from_secs(6));
    peer.get("/system/version").await;
}

#[tokio::test]
async fn missing_package_refuses_writes_with_404_and_reads_nothing() {
    let peer = Peer::of(Settings { packages: Some(Vec::new()), ..Settings::default() }).await;
    let backend = json!({ "name": "web" });
    assert_eq!(
        peer.refusal("POST", "/services/haproxy/backend", backend.clone()).await,
        refused(404, "MODEL_MISSING_REQUIRED_PACKAGE")
    );
    assert_eq!(peer.get("/services/haproxy/backends").await, json!([]));
    assert_eq!(peer.refusal("GET", "/status/wireguard/tunnels", Value::Null).await.0, 500);
    peer.post("/system/package", json!({ "name": "pfSense-pkg-haproxy" })).await;
    peer.post("/services/haproxy/backend", backend).await;
}

#[tokio::test]
async fn removing_the_package_of_the_api_takes_the_api_away() {
    let peer = Peer::new().await;
    let own = peer.get("/system/packages?name=pfSense-pkg-RESTAPI").await;
    peer.delete(&format!("/system/package?id={}", own[0]["id"])).await;
    assert_eq!(peer.request("GET", "/system/version").send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn shell_gives_the_configuration() {
    let peer = Peer::new().await;
    let answer = peer.post("/diagnostics/command_prompt", json!({ "command": "cat /conf/config.xml" })).await;
    assert!(answer["output"].as_str().unwrap().starts_with("<?xml"));
    assert_eq!(answer["result_code"], 0);
    let answer = peer.post("/diagnostics/command_prompt", json!({ "command": "nothing" })).await;
    assert_eq!(answer["result_code"], 127);
}

#[tokio::test]
async fn ping_states_and_neighbours() {
    let peer = Peer::new().await;
    let answer = peer.post("/diagnostics/ping", json!({ "host": "192.0.2.1", "count": 2 })).await;
    assert_eq!(answer["result_code"], 0);
    assert!(answer["output"].as_str().unwrap().contains("2 packets received"));
    assert_eq!(peer.get("/firewall/states").await.as_array().unwrap().len(), 2);
    peer.delete("/firewall/states?source__startswith=192.168.1.101").await;
    assert_eq!(peer.get("/firewall/states").await.as_array().unwrap().len(), 1);
    assert_eq!(peer.delete("/firewall/states?all=true").await, json!([]));
    peer.advance(600);
    assert_eq!(peer.get("/firewall/states").await, json!([]));
    peer.delete("/diagnostics/arp_table/entry?id=0").await;
    assert_eq!(peer.get("/diagnostics/arp_table").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn table_is_emptied_until_the_next_reload() {
    let peer = Peer::new().await;
    let entries = async |peer: &Peer| peer.get("/diagnostics/table?id=web_servers").await["entries"].clone();
    assert_eq!(entries(&peer).await.as_array().unwrap().len(), 2);
    peer.delete("/diagnostics/table?id=web_servers").await;
    assert_eq!(entries(&peer).await, json!([]));
    peer.post("/firewall/apply", json!({ "async": false })).await;
    assert_eq!(entries(&peer).await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn sessions_of_a_server_are_its_children() {
    let peer = Peer::new().await;
    let servers = peer.get("/status/openvpn/servers").await;
    assert_eq!(servers[0]["conns"][0]["common_name"], "laptop");
    peer.delete("/status/openvpn/server/connection?parent_id=0&id=0").await;
    assert_eq!(peer.get("/status/openvpn/server/connections").await, json!([]));
}

#[tokio::test]
async fn choices_of_a_field_can_be_asked_for() {
    let peer = Peer::new().await;
    let ask = |model: &str, field: &str| json!({ "model_name": model, "model_field": field });
    let protocols = peer.post("/system/enum", ask("FirewallRule", "protocol")).await;
    assert_eq!(protocols["choices"]["tcp"], "tcp");
    let gateways = peer.post("/system/enum", ask("StaticRoute", "gateway")).await;
    assert_eq!(gateways["choices"]["LABGW"], "LABGW");
    assert_eq!(
        peer.refusal("POST", "/system/enum", ask("FirewallRule", "descr")).await,
        refused(409, "ENUM_MODEL_FIELD_DOES_NOT_SUPPORT_CHOICES")
    );
    assert_eq!(
        peer.refusal("POST", "/system/enum", ask("Nothing", "descr")).await,
        refused(404, "ENUM_MODEL_DOES_NOT_EXIST")
    );
}

#[tokio::test]
async fn control_port_shows_stored_and_running() {
    let peer = Peer::new().await;
    peer.post("/firewall/rule", rule("new")).await;
    let ask = async |path: &str| {
        let url = format!("{}{path}", peer.lab.control_url());
        peer.http.get(url).send().await.unwrap().json::<Value>().await.unwrap()
    };
    assert_eq!(ask("/pending").await, json!(["FirewallRule"]));
    assert_eq!(ask("/stored/FirewallRule").await.as_array().unwrap().len(), 5);
    assert_eq!(ask("/running/FirewallRule").await.as_array().unwrap().len(), 4);
    assert_eq!(ask("/state").await["stored"]["FirewallRule"].as_array().unwrap().len(), 5);
}
