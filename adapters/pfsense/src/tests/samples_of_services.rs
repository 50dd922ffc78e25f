//! Payloads for the features of tunnels, services and the system, and what they need on the firewall before.

use heddle_sdk::Method;
use heddle_sdk::testing::conformance::Sample;
use serde_json::{Value, json};

use super::device::Device;
use super::samples::{item, settings};

#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn tunnels(device: &Device, id: &str) -> Option<Sample> {
    let text = json!({ "description": "changed" });
    let encrypted = json!({ "caref": "65a0c0ffee010", "data_ciphers": ["AES-256-GCM"], "data_ciphers_fallback": "AES-256-CBC",
        "digest": "SHA256", "dev_mode": "tun", "protocol": "UDP4", "interface": "WAN" });
    let with = |fields: Value| {
        let mut all = encrypted.clone();
        fields.as_object().unwrap().iter().for_each(|(name, value)| all[name.as_str()] = value.clone());
        all
    };
    match id {
        "vpn.ipsec.phase1" => item(
            &json!({ "descr": "sample" }),
            &json!({ "iketype": "ikev2", "protocol": "inet", "interface": "WAN", "remote_gateway": "203.0.113.7",
                "authentication_method": "pre_shared_key", "myid_type": "myaddress", "peerid_type": "peeraddress",
                "pre_shared_key": "shared-with-the-sample", "encryption": [{ "encryption_algorithm_name": "aes",
                "encryption_algorithm_keylen": 256, "hash_algorithm": "sha256", "dhgroup": 14 }] }),
            &json!({ "remote_gateway": "203.0.113.8" }),
            &json!({ "disabled": true }),
        ),
        "vpn.ipsec.phase2" => item(
            &json!({ "descr": "sample" }),
            &json!({ "ikeid": 1, "mode": "tunnel", "localid_type": "network", "localid_address": "192.168.20.0",
                "localid_netbits": 24, "remoteid_type": "network", "remoteid_address": "10.31.0.0", "remoteid_netbits": 24,
                "encryption_algorithm_option": [{ "name": "aes", "keylen": 256 }], "hash_algorithm_option": ["hmac_sha256"] }),
            &json!({ "encryption_algorithm_option": [{ "name": "aes", "keylen": 128 }] }),
            &json!({ "disabled": true }),
        ),
        "vpn.openvpn.client" => item(
            &json!({ "description": "sample" }),
            &with(json!({ "mode": "p2p_tls", "server_addr": "vpn.sample.example", "server_port": "1194" })),
            &json!({ "server_port": "1195" }),
            &json!({ "disable": true }),
        ),
        "vpn.openvpn.server" => item(
            &json!({ "description": "sample" }),
            &with(
                json!({ "mode": "server_tls", "certref": "65a0c0ffee011", "dh_length": "2048", "ecdh_curve": "none",
                "local_port": "1196", "tunnel_network": "10.8.1.0/24" }),
            ),
            &json!({ "maxclients": 10 }),
            &json!({ "disable": true }),
        ),
        "vpn.openvpn.override" => item(
            &json!({ "common_name": "sample" }),
            &json!({ "tunnel_network": "10.8.0.8/24" }),
            &text,
            &json!({ "block": true }),
        ),
        "vpn.openvpn.export-config" => {
            let server = &device.list("OpenVPNServer")[0]["vpnid"];
            let key = json!({ "server": server });
            item(
                &key,
                &json!({ "useaddr": "serveraddr" }),
                &json!({ "silent": true }),
                &json!({ "legacy": true }),
            )
        }
        "vpn.wireguard.peer" => item(
            &json!({ "publickey": "c2FtcGxlLXB1YmxpYy1rZXktb2YtMzItYnl0ZXMhIT0=" }),
            &json!({ "tun": "tun_wg0", "enabled": true, "descr": "sample", "allowedips": [{ "address": "10.9.0.7", "mask": 32 }] }),
            &json!({ "allowedips": [{ "address": "10.9.0.8", "mask": 32 }] }),
            &json!({ "descr": "changed" }),
        ),
        "vpn.wireguard.tunnel" => item(
            &json!({ "descr": "sample" }),
            &json!({ "enabled": true, "listenport": "51821", "privatekey": "CAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB0c=",
                "addresses": [{ "address": "10.10.0.1", "mask": 24 }] }),
            &json!({ "listenport": "51822" }),
            &json!({ "enabled": false }),
        ),
        "vpn.wireguard.settings" => settings(json!({ "hide_secrets": true }), json!({ "hide_peers": true })),
        _ => None,
    }
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn services(device: &Device, id: &str) -> Option<Sample> {
    let text = json!({ "descr": "changed" });
    match id {
        "services.acme.account" => item(
            &json!({ "name": "sample" }),
            &json!({ "acmeserver": "letsencrypt-staging-2" }),
            &text,
            &json!({ "email": "a@sample.example" }),
        ),
        "services.acme.certificate" => {
            let account = json!({ "name": "account", "acmeserver": "letsencrypt-staging-2" });
            device.person(Method::Post, "/services/acme/account_key", &account);
            item(
                &json!({ "name": "sample" }),
                &json!({ "acmeaccount": "account", "a_domainlist": [{ "name": "sample.example", "method": "standalone" }] }),
                &text,
                &json!({ "status": "disabled" }),
            )
        }
        "services.acme.settings" => settings(json!({ "enable": true }), json!({ "writecerts": true })),
        "services.cron" => item(
            &json!({ "who": "root", "command": "/usr/bin/true" }),
            &json!({ "minute": "5", "hour": "4", "mday": "*", "month": "*", "wday": "*" }),
            &json!({ "minute": "6" }),
            &json!({ "hour": "6" }),
        ),
        "services.freeradius.client" => item(
            &json!({ "addr": "192.0.2.7" }),
            &json!({ "shortname": "sample", "secret": "shared-with-the-sample" }),
            &json!({ "shortname": "changed" }),
            &json!({ "description": "changed" }),
        ),
        "services.freeradius.interface" => item(
            &json!({ "addr": "192.168.1.1", "port": "1812", "ip_version": "ipaddr" }),
            &json!({}),
            &json!({ "type": "acct" }),
            &json!({ "description": "changed" }),
        ),
        "services.freeradius.mac" => item(
            &json!({ "mac": "02:00:00:00:00:77" }),
            &json!({}),
            &json!({ "vlan_id": "20" }),
            &json!({ "description": "changed" }),
        ),
        "services.freeradius.user" => item(
            &json!({ "username": "sample" }),
            &json!({ "password": "password-of-the-sample", "motp_enable": false }),
            &json!({ "vlan_id": "20" }),
            &json!({ "description": "changed" }),
        ),
        "services.freeradius.eap" => {
            settings(json!({ "timer_expire": 90 }), json!({ "default_eap_type": "ttls" }))
        }
        "services.freeradius.ldap" => {
            settings(json!({ "failover_mode": "load-balance" }), json!({ "server1_base_dn": "o=sample" }))
        }
        "services.haproxy.backend" => item(
            &json!({ "name": "sample" }),
            &json!({ "servers": [{ "name": "first", "address": "192.0.2.7", "port": "80" }] }),
            &json!({ "servers": [{ "name": "first", "address": "192.0.2.8", "port": "80" }] }),
            &json!({ "balance": "roundrobin" }),
        ),
        "services.haproxy.file" => item(
            &json!({ "name": "sample" }),
            &json!({ "content": "LS0gZW1wdHkK" }),
            &json!({ "content": "LS0gbHVhCg==" }),
            &json!({ "type": "luascript" }),
        ),
        "services.haproxy.frontend" => item(
            &json!({ "name": "sample" }),
            &json!({ "type": "http", "a_extaddr": [{ "extaddr": "any_ipv4", "extaddr_port": "8080" }] }),
            &json!({ "a_extaddr": [{ "extaddr": "any_ipv4", "extaddr_port": "8081" }] }),
            &text,
        ),
        "services.haproxy.settings" => {
            settings(json!({ "maxconn": 500 }), json!({ "terminate_on_reload": true }))
        }
        "services.ntp" => settings(json!({ "logpeer": true }), json!({ "dnsresolv": "inet" })),
        "services.ntp.server" => item(
            &json!({ "timeserver": "time.sample.example" }),
            &json!({}),
            &json!({ "prefer": true }),
            &json!({ "noselect": true }),
        ),
        "services.ssh" => settings(json!({ "sshdagentforwarding": true }), json!({ "port": "2222" })),
        "services.watchdog" => {
            item(&json!({ "name": "unbound" }), &json!({}), &json!({ "notify": true }), &Value::Null)
        }
        _ => None,
    }
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn system(device: &Device, id: &str) -> Option<Sample> {
    let text = json!({ "descr": "changed" });
    // Certificates of the household serve for new objects of the same content.
    let held = |model: &str, field: &str| {
        let text = device.list(model)[0][field].as_str().unwrap_or_default().to_owned();
        json!(text)
    };
    match id {
        "system.certificate" => item(
            &json!({ "descr": "sample" }),
            &json!({ "crt": held("Certificate", "crt"), "prv": held("Certificate", "prv") }),
            &json!({ "type": "user" }),
            &Value::Null,
        ),
        "system.ca" => item(
            &json!({ "descr": "sample" }),
            &json!({ "crt": held("CertificateAuthority", "crt") }),
            &json!({ "trust": true }),
            &json!({ "randomserial": true }),
        ),
        "system.crl" => item(
            &json!({ "descr": "sample" }),
            &json!({ "caref": "65a0c0ffee010", "method": "internal" }),
            &json!({ "lifetime": 100 }),
            &json!({ "cert": [{ "certref": "65a0c0ffee011", "revoke_time": 1_760_000_000, "reason": 1 }] }),
        ),
        "system.api-access" => item(
            &json!({ "network": "192.0.2.0/24" }),
            &json!({ "weight": 5 }),
            &text,
            &json!({ "type": "deny" }),
        ),
        "system.tunable" => item(
            &json!({ "tunable": "net.inet.tcp.blackhole" }),
            &json!({ "value": "1" }),
            &json!({ "value": "2" }),
            &text,
        ),
        "system.user" => item(
            &json!({ "name": "sample" }),
            &json!({ "password": "password-of-the-sample", "priv": ["page-dashboard-all"] }),
            &text,
            &json!({ "disabled": true }),
        ),
        "system.auth-server" => item(
            &json!({ "name": "sample" }),
            &json!({ "type": "radius", "host": "192.0.2.7", "radius_secret": "shared-with-the-sample",
                "radius_nasip_attribute": "LAN", "radius_auth_port": "1812", "radius_acct_port": "1813" }),
            &json!({ "host": "192.0.2.8" }),
            &json!({ "radius_timeout": 7 }),
        ),
        "system.group" => item(
            &json!({ "name": "sample" }),
            &json!({ "scope": "local" }),
            &json!({ "description": "changed" }),
            &json!({ "priv": ["page-all"] }),
        ),
        "system.package" => {
            item(&json!({ "name": "pfSense-pkg-WireGuard" }), &json!({}), &Value::Null, &Value::Null)
        }
        "diagnostics.config-revision" => {
            device.person(Method::Patch, "/system/timezone", &json!({ "timezone": "Europe/Berlin" }));
            let all = device.person(Method::Get, "/diagnostics/config_history/revisions", &json!({}));
            let time = all.as_array().unwrap().last().unwrap()["time"].clone();
            Some(Sample::deletion(json!({ "time": time })))
        }
        "system.carp" => settings(json!({ "enable": true, "maintenance_mode": true }), Value::Null),
        "system.log-settings" => settings(json!({ "reverseorder": true }), json!({ "nentries": 100 })),
        "system.console" => settings(json!({ "passwd_protect_console": true }), Value::Null),
        "system.dns" => {
            settings(json!({ "dnsserver": ["192.0.2.53"] }), json!({ "dnsallowoverride": false }))
        }
        "system.ha" => settings(json!({ "pfhostid": "00000001" }), json!({ "synchronizeusers": true })),
        "system.hostname" => settings(json!({ "hostname": "sample" }), json!({ "domain": "sample.example" })),
        "system.mail" => settings(json!({ "ipaddress": "mail.sample.example" }), json!({ "timeout": 30 })),
        "system.api-settings" => {
            settings(json!({ "log_level": "LOG_INFO" }), json!({ "allow_pre_releases": true }))
        }
        "system.timezone" => {
            settings(json!({ "timezone": "Europe/Berlin" }), json!({ "timezone": "Etc/UTC" }))
        }
        "system.webgui" => settings(json!({ "port": "8443" }), json!({ "port": "9443" })),
        _ => None,
    }
}
