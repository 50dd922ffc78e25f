//! What a new row has beside what is sent.

use serde_json::{Value, json};

use crate::console::Console;
use crate::row::{Row, put_default, text};
use crate::wlans;

/// Fills in what a create leaves open.
pub(crate) fn fill(own: &Console, site: &str, table: &str, row: &mut Row) {
    let values: Value = match table {
        "networkconf" => return network(own, site, row),
        "wlanconf" => return wlans::defaults(own, site, row),
        "portconf" => json!({
            "forward": "customize", "op_mode": "switch", "poe_mode": "auto", "autoneg": true,
            "isolation": false,
            "setting_preference": "auto", "tagged_vlan_mgmt": "auto", "excluded_networkconf_ids": [],
            "stormctrl_bcast_enabled": false, "stormctrl_mcast_enabled": false,
            "stormctrl_ucast_enabled": false,
            "egress_rate_limit_kbps_enabled": false, "port_security_enabled": false, "lldpmed_enabled": true,
            "stp_port_mode": true, "dot1x_ctrl": "force_authorized", "dot1x_idle_timeout": 300,
            "full_duplex": true,
        }),
        "firewallrule" => json!({
            "enabled": true, "logging": false, "protocol": "all", "protocol_match_excepted": false,
            "setting_preference": "manual",
            "state_established": false, "state_invalid": false, "state_new": false, "state_related": false,
            "ipsec": "",
            "src_firewallgroup_ids": [], "dst_firewallgroup_ids": [], "src_address": "", "dst_address": "",
            "src_networkconf_id": "", "dst_networkconf_id": "", "src_networkconf_type": "NETv4",
            "dst_networkconf_type": "NETv4",
            "src_mac_address": "",
        }),
        "firewallgroup" => json!({ "group_members": [] }),
        "portforward" => json!({
            "enabled": true, "log": false, "proto": "tcp_udp", "src": "any", "pfwd_interface": "wan",
            "destination_ip": "any",
            "destination_ips": [], "src_limiting_enabled": false,
        }),
        "routing" => {
            json!({
                "enabled": true, "type": "static-route", "gateway_type": "default",
                "static-route_distance": 1,
            })
        }
        "usergroup" => json!({ "qos_rate_max_up": -1, "qos_rate_max_down": -1 }),
        "radiusprofile" => json!({
            "use_usg_auth_server": false, "use_usg_acct_server": false, "vlan_enabled": false,
            "vlan_wlan_mode": "disabled",
            "accounting_enabled": false, "interim_update_enabled": false, "interim_update_interval": 3600,
            "acct_servers": [],
        }),
        "user" => json!({ "blocked": false, "use_fixedip": false, "noted": false }),
        "dhcpoption" => json!({ "width": 8, "signed": false, "type": "text" }),
        "dpiapp" => json!({ "enabled": true, "log": false, "blocked": false }),
        "dpigroup" => json!({ "enabled": true, "dpiapp_ids": [] }),
        _ => return,
    };
    for (name, value) in values.as_object().into_iter().flatten() {
        put_default(row, name, value.clone());
    }
}

fn network(own: &Console, site: &str, row: &mut Row) {
    let zone =
        |key: &str| own.store.having(site, "firewall_zone", "zone_key", key).map(|zone| zone["_id"].clone());
    let purpose = text(row, "purpose").to_owned();
    let values = match purpose.as_str() {
        "corporate" | "guest" => json!({
            "enabled": true, "networkgroup": "LAN", "vlan_enabled": false, "dhcpd_enabled": false,
            "dhcpd_leasetime": 86_400,
            "dhcpd_dns_enabled": false, "dhcpd_gateway_enabled": false, "dhcpd_ntp_enabled": false,
            "dhcpd_boot_enabled": false,
            "dhcpd_conflict_checking": true, "dhcpguard_enabled": false, "dhcp_relay_enabled": false,
            "igmp_snooping": false,
            "internet_access_enabled": true, "network_isolation_enabled": false, "is_nat": true,
            "ipv6_interface_type": "none",
            "ipv6_setting_preference": "auto", "setting_preference": "manual", "gateway_type": "default",
            "lte_lan_enabled": true,
            "mdns_enabled": false, "upnp_lan_enabled": false, "auto_scale_enabled": false,
            "nat_outbound_ip_addresses": [],
        }),
        "vlan-only" => {
            json!({
                "enabled": true, "networkgroup": "LAN", "vlan_enabled": false, "igmp_snooping": false,
                "dhcpguard_enabled": false,
            })
        }
        "wan" => json!({
            "enabled": true, "wan_networkgroup": "WAN", "wan_type": "dhcp", "wan_type_v6": "disabled",
            "wan_dns_preference": "auto",
            "wan_load_balance_type": "failover-only", "wan_load_balance_weight": 50,
            "wan_smartq_enabled": false,
            "wan_dslite_remote_host_auto": true, "wan_vlan_enabled": false, "report_wan_event": false,
        }),
        "remote-user-vpn" => {
            json!({ "setting_preference": "manual", "dhcpd_dns_enabled": false, "l2tp_interface": "wan" })
        }
        "site-vpn" => json!({
            "enabled": true, "ipsec_key_exchange": "ikev2", "ipsec_encryption": "aes256",
            "ipsec_hash": "sha256", "ipsec_dh_group": 14,
            "ipsec_pfs": true, "ipsec_dynamic_routing": false, "ipsec_interface": "wan",
            "ipsec_profile": "customized",
        }),
        _ => json!({ "enabled": true }),
    };
    for (name, value) in values.as_object().into_iter().flatten() {
        put_default(row, name, value.clone());
    }
    let key = match purpose.as_str() {
        "corporate" => "internal",
        "guest" => "hotspot",
        "wan" => "external",
        "remote-user-vpn" | "site-vpn" | "vpn-client" => "vpn",
        _ => return,
    };
    if own.has_zones(site)
        && let Some(id) = zone(key)
    {
        put_default(row, "firewall_zone_id", id);
    }
}
