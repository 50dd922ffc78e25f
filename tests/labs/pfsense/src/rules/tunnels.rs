//! `WireGuard`, `OpenVPN` and `IPsec`.

use serde_json::{Value, json};

use super::{network, refusal, unless};
use crate::draft::Draft;
use crate::facts::Model;
use crate::interfaces;
use crate::net;
use crate::reply::Refusal;
use crate::store::{Object, text};
use crate::vpn;

pub(crate) fn field(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let model = draft.model.name.as_str();
    match (model, name) {
        ("WireGuardTunnel", "enabled") => {
            let is_used = draft.config().having(interfaces::INTERFACES, "if", draft.text("name")).is_some();
            let id = "WIREGUARD_TUNNEL_CANNOT_BE_DISABLED_WHILE_IN_USE_BY_INTERFACE";
            if is_used && !draft.is_true("enabled") { Err(refusal(409, id)) } else { Ok(()) }
        }
        ("WireGuardTunnel", "privatekey") => {
            let clamped = vpn::clamped(draft.text("privatekey"));
            let Some(clamped) = clamped else {
                return Err(refusal(400, "WIREGUARD_TUNNEL_INVALID_PRIVATE_KEY"));
            };
            draft.set("privatekey", json!(clamped));
            Ok(())
        }
        ("WireGuardPeer", "presharedkey") => {
            let key = draft.text("presharedkey");
            unless(key.is_empty() || vpn::is_key(key), "WIREGUARD_PEER_PRESHAREDKEY_INVALID")
        }
        ("WireGuardSettings", "enable") => {
            let mut assigned = draft.config().list(interfaces::INTERFACES).iter();
            let is_used = assigned.any(|own| text(own, "if").starts_with("tun_wg"));
            let id = "WIREGUARD_SETTINGS_CANNOT_DISABLE_WITH_ACTIVE_TUNNELS";
            if is_used && !draft.is_true("enable") { Err(refusal(409, id)) } else { Ok(()) }
        }
        ("IPsecPhase1", _) => phase1(draft, name),
        ("IPsecPhase2", _) => phase2(draft, name),
        ("IPsecPhase1Encryption", "encryption_algorithm_keylen") => {
            let is_known = has_length(draft.text("encryption_algorithm_name"), draft.number(name));
            unless(is_known, "IPSEC_PHASE_1_ENCRYPTION_ALGORITHM_KEYLEN_INVALID_CHOICE")
        }
        ("IPsecPhase2Encryption", "keylen") => {
            let length = draft.number("keylen");
            unless(length == Some(0) || has_length(draft.text("name"), length), "FIELD_INVALID_CHOICE")
        }
        ("OpenVPNServer" | "OpenVPNClient", _) => openvpn(draft, name),
        _ => Ok(()),
    }
}

/// Whether an algorithm knows a length of its key.
fn has_length(algorithm: &str, length: Option<i64>) -> bool {
    let known = if algorithm == "aes" { [128, 192, 256] } else { [64, 96, 128] };
    length.is_some_and(|length| known.contains(&length))
}

fn phase1(draft: &Draft, name: &str) -> Result<(), Refusal> {
    let gateway = draft.text("remote_gateway");
    let is_any = ["0.0.0.0", "::"].contains(&gateway);
    let identity = |kind: &str, data: &str, end: &str| {
        let (kind, data) = (draft.text(kind), draft.text(data));
        let id = |what: &str| format!("IPSEC_PHASE_1_{end}_DATA_MUST_BE_{what}");
        match kind {
            "address" => unless(net::is_ip(data), &id("IP_ADDRESS")),
            "fqdn" | "dyn_dns" => unless(net::is_fqdn(data), &id("FQDN")),
            "user_fqdn" => unless(net::is_email(data), &id("EMAIL_ADDRESS")),
            _ => Ok(()),
        }
    };
    match name {
        "remote_gateway" => {
            let protocol = draft.text("protocol");
            let is_v6 = protocol == "inet" && net::is_ipv6(gateway);
            unless(!is_v6, "IPSEC_PHASE_1_IPV6_REMOTE_GATEWAY_NOT_ALLOWED")?;
            let is_v4 = protocol == "inet6" && net::is_ipv4(gateway);
            unless(!is_v4, "IPSEC_PHASE_1_IPV4_REMOTE_GATEWAY_NOT_ALLOWED")?;
            let others = draft.siblings.iter().filter(|row| row.id != draft.id);
            let is_same = |row: &&crate::represent::Row| {
                text(&row.values, "remote_gateway") == gateway
                    && !crate::store::is_true(&row.values, "disabled")
                    && !(draft.is_true("gw_duplicates")
                        && crate::store::is_true(&row.values, "gw_duplicates"))
            };
            let is_taken = !is_any && { others }.any(|row| is_same(&row));
            unless(!is_taken, "IPSEC_PHASE_1_ILLEGAL_DUPLICATE_REMOTE_GATEWAY")
        }
        "myid_data" => identity("myid_type", "myid_data", "MYID"),
        "peerid_data" => identity("peerid_type", "peerid_data", "PEERID"),
        "peerid_type" => {
            let is_peer = draft.text("peerid_type") == "peeraddress";
            unless(!is_any || !is_peer, "IPSEC_PHASE_1_NO_INADDR_ANY_WITH_PEERADDRESS")
        }
        "rekey_time" | "reauth_time" => {
            let is_less = draft.number(name) < draft.number("lifetime");
            unless(is_less, &format!("IPSEC_PHASE_1_{}_GREATER_THAN_LIFETIME", name.to_uppercase()))
        }
        "startaction" => {
            let is_none = draft.text("startaction") == "none";
            unless(is_none || !is_any, "IPSEC_PHASE_1_NO_STARTACTION_WITH_INADDR_ANY_REMOTE_GATEWAY")
        }
        "nattport" => {
            let differs = draft.text("nattport") != draft.text("ikeport");
            unless(differs, "IPSEC_PHASE_1_NATTPORT_CANNOT_MATCH_IKEPORT")
        }
        _ => Ok(()),
    }
}

fn phase2(draft: &Draft, name: &str) -> Result<(), Refusal> {
    let end = name.split('_').next().unwrap_or_default();
    let upper = end.to_uppercase();
    let mode = draft.text("mode");
    match name {
        "localid_type" => {
            let is_word = ["address", "network"].contains(&draft.text(name));
            unless(mode != "vti" || is_word, "IPSEC_PHASE_2_LOCALID_TYPE_CANNOT_BE_INTERFACE_WITH_VTI_MODE")
        }
        "natlocalid_type" => {
            let (nat, local) = (draft.text("natlocalid_type"), draft.text("localid_type"));
            let is_crossed = matches!((nat, local), ("address", "network") | ("network", "address"));
            unless(!is_crossed, "IPSEC_PHASE_2_NATLOCALID_TYPE_MUST_MATCH_LOCALID_TYPE")
        }
        "localid_address" | "natlocalid_address" | "remoteid_address" => {
            let address = draft.text(name);
            let id = |what: &str| format!("IPSEC_PHASE_2_{upper}_ADDRESS_MUST_BE_{what}_MODE");
            unless(mode != "tunnel" || net::is_ipv4(address), &id("IPV4_WITH_TUNNEL"))?;
            unless(mode != "tunnel6" || net::is_ipv6(address), &id("IPV6_WITH_TUNNEL6"))
        }
        "localid_netbits" | "natlocalid_netbits" | "remoteid_netbits" => {
            let is_v4 = net::is_ipv4(draft.text(&format!("{end}_address")));
            let is_over = is_v4 && draft.number(name).is_some_and(|bits| bits > 32);
            unless(!is_over, &format!("IPSEC_PHASE_2_{upper}_NETBITS_EXCEEDS_IPV4_MAXIMUM"))
        }
        "rekey_time" => {
            let is_less = draft.number("rekey_time") < draft.number("lifetime");
            unless(is_less, "IPSEC_PHASE_2_REKEY_TIME_GREATER_THAN_LIFETIME")
        }
        _ => Ok(()),
    }
}

fn openvpn(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let is_server = draft.model.name == "OpenVPNServer";
    let kind = if is_server { "SERVER" } else { "CLIENT" };
    match name {
        "disable"
            if draft.is_true("disable") && vpn::is_assigned(draft.config(), is_server, &draft.values) =>
        {
            Err(refusal(409, &format!("OPENVPN_{kind}_CANNOT_BE_DISABLED_WHILE_IN_USE")))
        }
        "tls" => {
            let key = draft.text("tls");
            unless(
                key.is_empty() || key.contains("OpenVPN Static key V1"),
                &format!("OPENVPN_{kind}_TLS_INVALID_KEY"),
            )
        }
        // Networks are written without the bits of a host.
        "tunnel_network" | "tunnel_networkv6" => {
            let network = draft.text(name).to_owned();
            if let Some((address, bits)) = network.split_once('/')
                && let Some(base) = net::network_of(address, bits.parse().unwrap_or(0))
            {
                draft.set(name, json!(format!("{base}/{bits}")));
            }
            Ok(())
        }
        "serverbridge_dhcp" if draft.is_true(name) && !draft.text("tunnel_network").is_empty() => {
            Err(refusal(409, "OPENVPN_SERVER_BRIDGE_DHCP_CANNOT_BE_ENABLED_WITH_TUNNEL_NETWORK"))
        }
        "serverbridge_dhcp_end" => {
            let is_less = net::is_greater(draft.text("serverbridge_dhcp_start"), draft.text(name));
            unless(!is_less, "OPENVPN_SERVER_BRIDGE_DHCP_END_MUST_BE_IP_GREATER_THAN_DHCP_START")
        }
        _ => Ok(()),
    }
}

pub(crate) fn whole(draft: &mut Draft) -> Result<(), Refusal> {
    match draft.model.name.as_str() {
        "WireGuardTunnel" => {
            let public = vpn::public_key(draft.text("privatekey"));
            draft.set("publickey", json!(public));
            Ok(())
        }
        "WireGuardTunnelAddress" => {
            let bits = draft.number("mask").and_then(|bits| u32::try_from(bits).ok()).unwrap_or(32);
            let is_taken = network::is_configured(draft, "", draft.text("address"), bits);
            let id = "WIREGUARD_TUNNEL_ADDRESS_AND_MASK_ALREADY_IN_USE";
            if is_taken { Err(refusal(409, id)) } else { Ok(()) }
        }
        name => {
            let is_tap = name == "OpenVPNServer" && draft.text("dev_mode") == "tap";
            let has_network = ["tunnel_network", "tunnel_networkv6", "serverbridge_interface"]
                .iter()
                .any(|field| !draft.text(field).is_empty());
            unless(
                !is_tap || has_network,
                "OPENVPN_SERVER_TAP_MODE_REQUIRES_TUNNEL_NETWORK_OR_BRIDGE_INTERFACE",
            )?;
            let device = device(draft.model, &draft.values);
            draft.set("vpnif", json!(device));
            Ok(())
        }
    }
}

/// The device of an instance.
fn device(model: &Model, values: &Object) -> String {
    let prefix = if model.name == "OpenVPNServer" { "ovpns" } else { "ovpnc" };
    format!("{prefix}{}", values.get("vpnid").and_then(Value::as_u64).unwrap_or_default())
}

pub(crate) fn show(model: &Model, out: &mut Object) {
    let device = device(model, out);
    out.insert("vpnif".to_owned(), json!(device));
    if out.contains_key("use_tls") {
        let has_key = !text(out, "tls").is_empty();
        out.insert("use_tls".to_owned(), json!(has_key));
    }
}
