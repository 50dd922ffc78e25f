//! Keys of tunnels, who uses them, their state, and files for their clients.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::ExpandedSecretKey;
use heddle_lab::Answer;
use serde_json::{Value, json};

use crate::call::Call;
use crate::device::Pfsense;
use crate::hooks::validated;
use crate::reply::{Refusal, success};
use crate::store::{Config, Object, is_true, text};
use crate::{api, crud, represent};

fn key_bytes(key: &str) -> Option<[u8; 32]> {
    STANDARD.decode(key).ok()?.try_into().ok()
}

/// Whether a text is a key of 32 bytes.
pub(crate) fn is_key(key: &str) -> bool {
    key_bytes(key).is_some()
}

/// A private key with the bits that the protocol fixes; `None` when it is no key.
pub(crate) fn clamped(key: &str) -> Option<String> {
    let mut bytes = key_bytes(key)?;
    bytes[0] &= 0xF8;
    bytes[31] = (bytes[31] & 0x7F) | 0x40;
    Some(STANDARD.encode(bytes))
}

/// The public key of a private one.
pub(crate) fn public_key(private: &str) -> String {
    let Some(bytes) = key_bytes(private) else { return String::new() };
    let mut expanded = [0; 64];
    expanded[..32].copy_from_slice(&bytes);
    let key = VerifyingKey::from(&ExpandedSecretKey::from_bytes(&expanded));
    STANDARD.encode(key.to_montgomery().to_bytes())
}

/// The key that a new server gets when the request brings none.
pub(crate) fn static_key() -> String {
    let line = "0123456789abcdef0123456789abcdef\n".repeat(16);
    format!("-----BEGIN OpenVPN Static key V1-----\n{line}-----END OpenVPN Static key V1-----\n")
}

pub(crate) fn private_key_pem() -> String {
    rcgen::KeyPair::generate().map(|key| key.serialize_pem()).unwrap_or_default()
}

/// Whether an interface stands on the device of an instance.
pub(crate) fn is_assigned(config: &Config, is_server: bool, values: &Object) -> bool {
    let prefix = if is_server { "ovpns" } else { "ovpnc" };
    let id = values.get("vpnid").and_then(Value::as_u64).unwrap_or_default();
    config.having(crate::interfaces::INTERFACES, "if", &format!("{prefix}{id}")).is_some()
}

/// State of what runs.
pub(crate) fn status(firewall: &Pfsense, model: &str) -> Vec<Value> {
    let config = &firewall.running;
    match model {
        "WireGuardTunnelStatus" => {
            let tunnels = config.list("WireGuardTunnel").iter().filter(|own| is_true(own, "enabled"));
            tunnels.map(|own| tunnel(firewall, own)).collect()
        }
        "WireGuardPeerStatus" => config.list("WireGuardPeer").iter().map(|own| peer(firewall, own)).collect(),
        "OpenVPNServerStatus" => {
            config.list("OpenVPNServer").iter().map(|own| server(firewall, own)).collect()
        }
        "OpenVPNClientStatus" => config.list("OpenVPNClient").iter().map(client).collect(),
        _ => {
            let phases = config.list("IPsecPhase1").iter().filter(|own| !is_true(own, "disabled"));
            phases.map(|own| association(firewall, own)).collect()
        }
    }
}

fn tunnel(firewall: &Pfsense, own: &Object) -> Value {
    let name = text(own, "name");
    let peers = firewall.running.list("WireGuardPeer").iter().filter(|peer| text(peer, "tun") == name);
    json!({ "name": name, "status": "up", "public_key": text(own, "publickey"), "listen_port": text(own, "listenport"),
        "mtu": 1420, "transfer_rx": 7168, "transfer_tx": 5120, "inpkts": 70, "outpkts": 50, "descr": text(own, "descr"),
        "@WireGuardPeerStatus": peers.map(|own| peer(firewall, own)).collect::<Vec<_>>() })
}

fn peer(firewall: &Pfsense, own: &Object) -> Value {
    let allowed = Config::children(own, "WireGuardPeerAllowedIP").into_iter().map(|network| {
        let bits = network.get("mask").and_then(Value::as_u64).unwrap_or_default();
        format!("{}/{bits}", text(&network, "address"))
    });
    let seen = firewall.time.as_secs().saturating_sub(40);
    json!({ "tunnel_device": text(own, "tun"), "public_key": text(own, "publickey"), "preshared_key": "(none)",
        "endpoint": "203.0.113.30:51820", "allowed_ips": allowed.collect::<Vec<_>>(), "latest_handshake": seen,
        "transfer_rx": 7168, "transfer_tx": 5120, "persistent_keepalive": "off", "descr": text(own, "descr") })
}

fn server(firewall: &Pfsense, own: &Object) -> Value {
    let id = own.get("vpnid").and_then(Value::as_u64).unwrap_or_default();
    let sessions = firewall.live.sessions.iter().filter(|session| session.vpnid == id);
    let (mut conns, mut routes) = (Vec::new(), Vec::new());
    for (at, session) in sessions.enumerate() {
        conns.push(json!({ "common_name": session.common_name, "remote_host": session.remote_host,
            "virtual_addr": session.virtual_addr, "virtual_addr6": "", "bytes_recv": 4096, "bytes_sent": 8192,
            "connect_time": "2026-01-01 00:00:00", "connect_time_unix": 1_767_225_600,
            "user_name": session.common_name, "client_id": at, "peer_id": at, "cipher": "AES-256-GCM" }));
        routes.push(json!({ "common_name": session.common_name, "remote_host": session.remote_host,
            "virtual_addr": session.virtual_addr, "last_time": "2026-01-01 00:01:00" }));
    }
    json!({ "name": format!("{} {}:{}", text(own, "description"), text(own, "protocol"), text(own, "local_port")),
        "port": text(own, "local_port"), "vpnid": id, "mgmt": format!("server{id}"), "mode": text(own, "mode"),
        "@OpenVPNServerConnectionStatus": conns, "@OpenVPNServerRouteStatus": routes })
}

fn client(own: &Object) -> Value {
    let id = own.get("vpnid").and_then(Value::as_u64).unwrap_or_default();
    json!({ "name": text(own, "description"), "port": text(own, "server_port"), "vpnid": id,
        "mgmt": format!("client{id}"), "status": "up", "state": "CONNECTED", "state_detail": "SUCCESS",
        "connect_time": "Thu Jan  1 00:00:00 2026", "remote_host": text(own, "server_addr"),
        "remote_port": text(own, "server_port"), "local_host": "198.51.100.20", "local_port": "41194",
        "virtual_addr": "10.9.0.2", "virtual_addr6": "" })
}

fn association(firewall: &Pfsense, own: &Object) -> Value {
    let id = own.get("ikeid").and_then(Value::as_u64).unwrap_or_default();
    let phases = firewall.running.list("IPsecPhase2").iter();
    let children = phases.filter(|phase| phase.get("ikeid") == Some(&json!(id))).map(|phase| {
        let reqid = phase.get("reqid").and_then(Value::as_u64).unwrap_or_default();
        json!({ "name": format!("con{id}_{reqid}"), "uniqueid": reqid, "reqid": reqid, "state": "INSTALLED",
            "mode": "TUNNEL", "protocol": "ESP", "encap": false, "spi_in": "c1000001", "spi_out": "c2000002",
            "encr_alg": "AES_GCM_16", "encr_keysize": 256, "bytes_in": 1024, "bytes_out": 2048, "packets_in": 8,
            "packets_out": 16, "rekey_time": 3000, "life_time": 3600, "install_time": 120,
            "local_ts": [text(phase, "localid_address")], "remote_ts": [text(phase, "remoteid_address")] })
    });
    json!({ "con_id": format!("con{id}"), "uniqueid": id, "version": 2, "state": "ESTABLISHED",
        "local_host": "198.51.100.20", "local_port": "500", "local_id": "198.51.100.20",
        "remote_host": text(own, "remote_gateway"), "remote_port": "500", "remote_id": text(own, "remote_gateway"),
        "initiator_spi": "0011223344556677", "responder_spi": "8899aabbccddeeff", "nat_remote": false,
        "nat_any": false, "encr_alg": "AES_GCM_16", "encr_keysize": 256, "integ_alg": "", "prf_alg": "PRF_HMAC_SHA2_256",
        "dh_group": "MODP_2048", "established": 1200, "rekey_time": 24_000,
        "@IPsecChildSAStatus": children.collect::<Vec<_>>() })
}

/// A configuration for a client of a server, as text in JSON or as a file.
pub(crate) fn export(firewall: &Pfsense, call: &Call, wants_bytes: bool) -> Result<Answer, Refusal> {
    let Some(id) = call.data.get("id").filter(|id| !id.is_null()) else {
        return Err(Refusal::invalid("MODEL_REQUIRES_ID", "Field 'id' is required."));
    };
    crud::check_packages(firewall, call.model)?;
    let known = firewall.stored.list("OpenVPNClientExportConfig");
    let at = id.as_u64().and_then(|at| usize::try_from(at).ok()).filter(|at| *at < known.len());
    let Some(own) = at.map(|at| known[at].clone()) else {
        return Err(Refusal::not_found("MODEL_OBJECT_NOT_FOUND", "The export does not exist."));
    };
    let mut sent = own;
    sent.extend(call.data.clone());
    let whole = Call { data: sent, ..clone(call) };
    let mut values = validated(firewall, &whole)?;
    let file = format!("pfSense-{}.ovpn", text(&values, "type"));
    let body = "client\nremote 198.51.100.20 1194 udp4\ndev tun\n".to_owned();
    if wants_bytes {
        let name = format!("attachment; filename=\"{file}\"");
        return Ok(Answer::body(200, api::BINARY, body).with_header("content-disposition", &name));
    }
    values.insert("filename".to_owned(), json!(file));
    values.insert("binary_data".to_owned(), json!(body));
    let row = represent::Row { id: Some(id.clone()), parent: None, values };
    Ok(success(represent::shown(firewall, call.model, &row), None))
}

/// The same request with other data to come.
fn clone(call: &Call) -> Call {
    Call {
        method: call.method.clone(),
        path: call.path.clone(),
        user: call.user.clone(),
        client: call.client.clone(),
        data: Object::new(),
        items: Vec::new(),
        placement: None,
        sort_by: None,
        sort_flags: None,
        ..*call
    }
}
