//! What the controller stores in place of what was sent, without a word.

use serde_json::{Value, json};

use crate::console::Console;
use crate::row::{Row, flag, put, text};

/// A preference that is automatic, and what the controller stores meanwhile.
struct Owned {
    table: &'static str,
    preference: &'static str,
    values: &'static [(&'static str, &'static str)],
}

/// Values are written as JSON.
const OWNED: [Owned; 9] = [
    Owned {
        table: "networkconf",
        preference: "setting_preference",
        values: &[
            ("dhcpd_dns_enabled", "false"),
            ("dhcpd_gateway_enabled", "false"),
            ("dhcpd_leasetime", "86400"),
            ("dhcpd_ntp_enabled", "false"),
            ("dhcpd_tftp_server", "\"\""),
            ("dhcpd_time_offset_enabled", "false"),
            ("dhcpd_unifi_controller", "\"\""),
            ("dhcpd_wins_enabled", "false"),
            ("dhcpguard_enabled", "false"),
            ("domain_name", "\"\""),
            ("igmp_snooping", "false"),
            ("upnp_lan_enabled", "false"),
        ],
    },
    Owned {
        table: "networkconf",
        preference: "ipv6_setting_preference",
        values: &[
            ("dhcpdv6_dns_auto", "true"),
            ("dhcpdv6_leasetime", "86400"),
            ("ipv6_ra_preferred_lifetime", "14400"),
        ],
    },
    Owned {
        table: "networkconf",
        preference: "wan_dns_preference",
        values: &[("wan_dns1", "\"\""), ("wan_dns2", "\"\"")],
    },
    Owned {
        table: "wlanconf",
        preference: "setting_preference",
        values: &[
            ("bc_filter_enabled", "false"),
            ("bss_transition", "true"),
            ("dtim_mode", "\"default\""),
            ("dtim_ng", "3"),
            ("fast_roaming_enabled", "false"),
            ("group_rekey", "0"),
            ("l2_isolation", "false"),
            ("mcastenhance_enabled", "false"),
            ("proxy_arp", "false"),
            ("uapsd_enabled", "false"),
        ],
    },
    Owned {
        table: "wlanconf",
        preference: "minrate_setting_preference",
        values: &[
            ("minrate_na_data_rate_kbps", "6000"),
            ("minrate_na_enabled", "true"),
            ("minrate_ng_data_rate_kbps", "1000"),
        ],
    },
    Owned {
        table: "portconf",
        preference: "setting_preference",
        values: &[
            ("autoneg", "true"),
            ("egress_rate_limit_kbps_enabled", "false"),
            ("isolation", "false"),
            ("lldpmed_enabled", "true"),
            ("lldpmed_notify_enabled", "false"),
            ("port_keepalive_enabled", "false"),
            ("stormctrl_bcast_enabled", "false"),
            ("stormctrl_mcast_enabled", "false"),
            ("stormctrl_ucast_enabled", "false"),
            ("stp_port_mode", "true"),
        ],
    },
    Owned {
        table: "firewallrule",
        preference: "setting_preference",
        values: &[("state_established", "false"), ("state_related", "false")],
    },
    Owned {
        table: "ntp",
        preference: "setting_preference",
        values: &[
            ("ntp_server_1", "\"0.ubnt.pool.ntp.org\""),
            ("ntp_server_2", "\"1.ubnt.pool.ntp.org\""),
            ("ntp_server_3", "\"2.ubnt.pool.ntp.org\""),
            ("ntp_server_4", "\"3.ubnt.pool.ntp.org\""),
        ],
    },
    Owned {
        table: "usg",
        preference: "timeout_setting_preference",
        values: &[
            ("icmp_timeout", "30"),
            ("tcp_close_timeout", "10"),
            ("tcp_close_wait_timeout", "60"),
            ("tcp_established_timeout", "7440"),
            ("tcp_fin_wait_timeout", "120"),
            ("tcp_last_ack_timeout", "30"),
            ("tcp_syn_recv_timeout", "60"),
            ("tcp_syn_sent_timeout", "120"),
            ("tcp_time_wait_timeout", "120"),
            ("udp_other_timeout", "30"),
            ("udp_stream_timeout", "180"),
        ],
    },
];

/// Rewrites a row, or the setting of a key, that is about to be stored.
pub(crate) fn apply(own: &Console, site: &str, table: &str, row: &mut Row) {
    for owned in OWNED.iter().filter(|owned| owned.table == table) {
        // A network of a line has its own preferences.
        let is_other = table == "networkconf"
            && owned.preference == "setting_preference"
            && !matches!(text(row, "purpose"), "corporate" | "guest");
        if text(row, owned.preference) == "auto" && !is_other {
            for (name, value) in owned.values {
                put(row, name, serde_json::from_str::<Value>(value).unwrap_or_default());
            }
        }
    }
    match table {
        "networkconf" => network(own, site, row),
        "wlanconf" => wlan(row),
        "super_mgmt" => retention(own, row),
        "dashboard" if text(row, "layout_preference") == "auto" => put(row, "widgets", json!([])),
        "radio_ai" => radio_ai(row),
        "usg" => verification(row),
        _ => {}
    }
}

fn network(own: &Console, site: &str, row: &mut Row) {
    if own.settings.is_unifi_os() && row.contains_key("mdns_enabled") {
        put(row, "mdns_enabled", false);
    }
    if text(row, "purpose") == "guest" && own.has_zones(site) {
        let zone = own.store.find(site, "firewall_zone", text(row, "firewall_zone_id"));
        if zone.is_some_and(|zone| text(zone, "zone_key") != "hotspot") {
            put(row, "purpose", "corporate");
        }
    }
    if text(row, "purpose") == "wan" {
        for name in ["wan_dns1", "wan_dns2"] {
            crate::row::put_default(row, name, json!(""));
        }
    }
    // One that is on needs no word of it.
    if text(row, "vpn_type") == "wireguard-server" && flag(row, "enabled") {
        row.remove("enabled");
    }
}

fn wlan(row: &mut Row) {
    if flag(row, "enhanced_iot") {
        put(row, "iapp_enabled", false);
        put(row, "wpa3_support", false);
        put(row, "wpa3_transition", false);
        put(row, "pmf_mode", "disabled");
        put(row, "dtim_ng", 1);
    }
}

/// How long counters are kept: the vendor's own host decides the two short scales in either mode.
fn retention(own: &Console, row: &mut Row) {
    let is_auto = text(row, "data_retention_setting_preference") == "auto";
    let scale = |name: &str| format!("data_retention_time_in_hours_for_{name}");
    if is_auto || own.settings.is_unifi_os() {
        put(row, &scale("5minutes_scale"), 24);
        put(row, &scale("hourly_scale"), 168);
    }
    if is_auto {
        put(row, &scale("others"), 2160);
    }
}

fn radio_ai(row: &mut Row) {
    if text(row, "setting_preference") == "auto" {
        put(row, "cron_expr", "0 3 * * *");
    }
    put(row, "channels_ng", json!([1, 6, 11]));
    put(row, "channels_na", json!([36, 40, 44, 48, 149, 153, 157, 161]));
    put(row, "radios", json!(["na", "ng"]));
}

fn verification(row: &mut Row) {
    let Some(inner) = row.get_mut("dns_verification").and_then(Value::as_object_mut) else { return };
    if text(inner, "setting_preference") == "auto" {
        put(inner, "domain", "ui.com");
        put(inner, "primary_dns_server", "1.1.1.1");
        put(inner, "secondary_dns_server", "8.8.8.8");
    }
}
