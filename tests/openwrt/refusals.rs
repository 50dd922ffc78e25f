//! What cannot work is refused with the field, what may hurt is said, and what is missing is named.

use serde_json::{Value, json};

use super::{rule_names, warns};
use crate::staging::{Lab, ROUTER_PASSWORD};
use crate::support::{Database, Server, on_both, register};

on_both! {
    async fn rules_that_the_firewall_would_skip_are_refused_with_the_field(database: Database) {
        let lab = Lab::start(database).await;
        let cases = [
            ("/src_ip/0", json!({ "src_ip": ["300.1.1.1"] })),
            ("/src_ip/1", json!({ "src_ip": ["10.0.0.1", "10.0.0.0/33"] })),
            ("/dest_ip/0", json!({ "dest_ip": ["10.0.0.9-10.0.0.1"] })),
            ("/dest_port", json!({ "dest_port": "99999" })),
            ("/dest_port", json!({ "dest_port": "90-80" })),
            ("/src_port", json!({ "src_port": "80 70000" })),
            ("/proto/0", json!({ "proto": ["tpc"] })),
            ("/proto/0", json!({ "proto": ["256"] })),
            ("/weekdays", json!({ "weekdays": "Foo" })),
            ("/start_time", json!({ "start_time": "25:00" })),
            ("/src_ip", json!({ "family": "ipv6", "src_ip": ["10.0.0.1"] })),
            ("/dest_ip", json!({ "family": "ipv4", "dest_ip": ["fd00::/64"] })),
            ("/set_mark", json!({ "target": "MARK" })),
            ("/set_mark", json!({ "target": "MARK", "set_mark": "0xfffffffff" })),
            ("/limit", json!({ "limit": "10/fortnight" })),
            ("/dest_port", json!({ "proto": ["icmp"], "dest_port": "80" })),
            ("/icmp_type/0", json!({ "proto": ["icmp"], "icmp_type": ["echo-reqest"] })),
            ("/src_mac/0", json!({ "src_mac": ["00:11:22:33:44"] })),
            ("/src", json!({ "src": "moon" })),
        ];
        for (field, extra) in cases {
            let mut payload = json!({ "name": "Bad", "src": "wan", "proto": ["tcp"], "target": "ACCEPT" });
            payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let refused = lab.try_stage("firewall", "firewall.rule", "create", &payload).await;
            assert_eq!(refused.status, 422, "{payload}: {}", refused.text);
            assert!(refused.text.contains(field.split('/').nth(1).unwrap()), "{payload} wants {field}: {}", refused.text);
        }
        // What is accepted is not skipped.
        let good = json!({
            "name": "Good", "src": "wan", "proto": ["tcp", "17"], "src_ip": ["!10.0.0.0/8", "192.0.2.1-192.0.2.9"],
            "dest_port": "80 443-445", "weekdays": "Mon tuesday", "start_time": "08:30", "stop_time": "17:00:30",
            "limit": "10/min", "family": "ipv4", "target": "ACCEPT",
        });
        let change = lab.stage("firewall", "openwrt.firewall.rule", "create", &good).await;
        lab.apply(&change).await;
        assert!(lab.router.skipped_sections().is_empty(), "{:?}", lab.router.skipped_sections());
    }
}

async fn warned(lab: &Lab, area: &str, feature: &str, operation: &str, payload: Value, word: &str) -> Value {
    let change = lab.stage(area, &format!("openwrt.{feature}"), operation, &payload).await;
    assert!(warns(&change, word), "{payload} should warn of '{word}': {}", change["plan"]["warnings"]);
    change
}

on_both! {
    async fn what_may_hurt_is_said_in_the_plan(database: Database) {
        let lab = Lab::start(database).await;
        let refuse = json!({ "name": "Drop-LAN", "src": "lan", "proto": ["all"], "target": "DROP" });
        let created = warned(&lab, "firewall", "firewall.rule", "create", refuse, "refuses traffic to the router").await;
        assert_eq!(created["plan"]["lockout_risk"], true);
        lab.apply(&created).await;
        let first = json!({ "name": "Drop-LAN", "before": "Allow-DHCP-Renew" });
        let moved = warned(&lab, "firewall", "firewall.rule-order", "update", first, "comes before rules").await;
        assert_eq!(moved["plan"]["lockout_risk"], true);
        lab.apply(&moved).await;
        assert_eq!(rule_names(&lab)[0], "Drop-LAN");

        let host = json!({ "mac": "02:00:00:00:00:99", "ip": "172.16.9.9" });
        warned(&lab, "dhcp", "dhcp.host", "create", host, "in no network of the router").await;
        let pool = json!({ "interface": "cellar", "start": 10, "limit": 5 });
        warned(&lab, "dhcp", "dhcp.pool", "create", pool, "no interface 'cellar'").await;
        let pool = json!({ "interface": "lan", "start": 200, "limit": 150 });
        warned(&lab, "dhcp", "dhcp.pool", "update", pool, "ends at offset 349").await;
        let interface = json!({ "name": "odd", "proto": "statik", "device": "eth9.5" });
        let odd = warned(&lab, "base", "network.interface", "create", interface, "protocol 'statik'").await;
        assert!(warns(&odd, "no device 'eth9.5'"), "{odd}");
        let forward = json!({ "name": "Twin", "src": "wan", "proto": ["tcp"], "src_dport": "8000-9000", "dest": "lan", "dest_ip": "192.168.1.9" });
        warned(&lab, "firewall", "firewall.redirect", "create", forward, "Web-to-NAS").await;
    }
}

on_both! {
    async fn what_the_device_cannot_do_is_refused_when_it_is_planned(database: Database) {
        let lab = Lab::start(database).await;
        lab.router.without_objects(&["rpc-sys"]);
        for (feature, payload) in [
            ("openwrt.system.factory-reset", json!({})),
            ("openwrt.system.firmware-upgrade", json!({ "url": "http://192.0.2.10/x.bin", "sha256": "ab".repeat(32) })),
        ] {
            let change = lab.stage("base", feature, "update", &payload).await;
            assert!(change["plan"].is_null(), "{change}");
            assert!(change["plan_error"]["message"].as_str().unwrap().contains("rpcd-mod-rpcsys"), "{change}");
            let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
            assert_eq!(refused.error_type(), "not_planned");
        }
    }
}

on_both! {
    async fn leases_come_from_the_file_and_their_absence_has_a_reason(database: Database) {
        let lab = Lab::start(database).await;
        assert!(lab.live("dhcp", "dhcp.lease").await.len() > 1);
        lab.router.without_objects(&["luci-rpc"]);
        let leases = lab.live("dhcp", "dhcp.lease").await;
        assert_eq!(leases.len(), 1, "{leases:?}");
        assert_eq!(leases[0]["body"]["hostname"], "phone");
        lab.router.without_objects(&["luci-rpc", "file", "dhcp"]);
        let none = lab.api.get(&format!("{}/dhcp.lease", lab.area("dhcp"))).await;
        assert_ne!(none.status, 200, "{}", none.text);
        assert!(none.message().contains("luci-rpc.getDHCPLeases"), "{}", none.message());
    }
}

on_both! {
    async fn a_missing_right_and_a_broken_file_are_named(database: Database) {
        let lab = started_with_rights(database).await;
        let leases = lab.api.get(&format!("{}/dhcp.lease", lab.area("dhcp"))).await;
        assert_ne!(leases.status, 200);
        assert!(leases.message().contains("may not call"), "{}", leases.message());
        lab.router.break_file("firewall", true);
        let broken = lab.api.get(&format!("{}/firewall.rule", lab.area("firewall"))).await;
        assert!(broken.message().contains("/etc/config/firewall"), "{}", broken.message());
    }
}

/// A controller whose user may call neither the lease sources nor read files.
async fn started_with_rights(database: Database) -> Lab {
    use heddle_lab_openwrt::{Access, Router};
    let denied = ["luci-rpc", "file", "dhcp"].map(str::to_owned).to_vec();
    let router =
        Router::builder().root_access(Access::Without(denied)).password(ROUTER_PASSWORD).start().await;
    let server = Server::start(database).await;
    let api = server.set_up().await;
    let controller = register(&api, &router.url(), ROUTER_PASSWORD).await;
    let controller = controller["id"].as_str().unwrap().to_owned();
    Lab { server, api, router, controller }
}
