//! Valid objects of each model, made from the facts.

use serde_json::{Value, json};

use crate::choices;
use crate::device::Pfsense;
use crate::facts::{Facts, Field, Kind, Model};
use crate::represent::are_conditions_met;
use crate::store::Object;

/// Values that only code tells.
fn given(model: &str) -> Value {
    match model {
        "NetworkInterface" => json!({ "if": "igb2", "descr": "WALK", "typev4": "none" }),
        "InterfaceVLAN" => json!({ "if": "igb2", "tag": 77 }),
        "InterfaceLAGG" => json!({ "members": ["igb2", "igb3"], "proto": "lacp" }),
        "InterfaceGRE" => json!({ "tunnel_local_addr": "10.44.0.1", "tunnel_remote_addr": "10.44.0.2" }),
        "RoutingGateway" => json!({ "gateway": "192.168.1.253", "ipprotocol": "inet", "interface": "LAN" }),
        "StaticRoute" => json!({ "network": "10.77.0.0/16", "gateway": "LABGW" }),
        "DHCPServer" => {
            json!({ "interface": "WAN", "range_from": "198.51.100.100", "range_to": "198.51.100.110" })
        }
        "DHCPServerAddressPool" => json!({ "range_from": "192.168.1.210", "range_to": "192.168.1.220" }),
        "DHCPServerStaticMapping" => json!({ "mac": "02:00:00:00:77:01", "ipaddr": "192.168.1.77" }),
        "DHCPServerCustomOption" => json!({ "type": "text", "value": "text" }),
        "FirewallScheduleTimeRange" => json!({ "hour": "8:00-9:00", "position": [1] }),
        "VirtualIP" => {
            json!({ "mode": "ipalias", "subnet": "192.168.1.9", "subnet_bits": 32, "interface": "LAN" })
        }
        "OutboundNATMapping" => json!({ "target": "192.0.2.9" }),
        "TrafficShaperLimiterQueue" => json!({ "name": "walk_queue" }),
        "ACMECertificate" => json!({ "a_domainlist": [{ "name": "first.example.com", "method": "walk" }] }),
        // A password depends on a switch that has no value yet when it is looked at.
        "FreeRADIUSUser" => json!({ "motp_enable": false }),
        "TrafficShaperQueue" => json!({ "bandwidth": 1 }),
        "TrafficShaperLimiter" => json!({ "bandwidth": [{ "bw": 10, "bwscale": "Mb" }] }),
        "RoutingGatewayGroup" => json!({ "priorities": [{ "gateway": "WANGW", "tier": 1 }] }),
        "RoutingGatewayGroupPriority" => json!({ "gateway": "LABGW", "tier": 2 }),
        "Certificate" => pair(rcgen::IsCa::NoCa),
        "CertificateAuthority" => pair(rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained)),
        "OneToOneNATMapping" => json!({ "external": "192.0.2.9", "source": "192.168.1.9" }),
        "User" => json!({ "name": "walker", "password": "x" }),
        "WireGuardTunnel" => json!({ "privatekey": "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=",
            "listenport": "51899" }),
        "WireGuardPeer" => {
            json!({ "tun": "tun_wg0", "publickey": "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=" })
        }
        "WireGuardTunnelAddress" => json!({ "address": "10.99.0.1", "mask": 24 }),
        "IPsecPhase1" => json!({ "iketype": "ikev2", "protocol": "inet", "interface": "WAN",
            "remote_gateway": "203.0.113.99", "authentication_method": "pre_shared_key",
            "myid_type": "myaddress", "peerid_type": "peeraddress" }),
        "IPsecPhase1Encryption" => {
            json!({ "encryption_algorithm_name": "aes256gcm", "encryption_algorithm_keylen": 128 })
        }
        "IPsecPhase2" => {
            json!({ "mode": "tunnel", "localid_type": "network", "localid_address": "192.168.1.0",
            "localid_netbits": 24, "remoteid_type": "network", "remoteid_address": "10.31.0.0",
            "remoteid_netbits": 24 })
        }
        "IPsecPhase2Encryption" => json!({ "name": "aes256gcm", "keylen": 128 }),
        "OpenVPNServer" => json!({ "mode": "server_tls", "dev_mode": "tun", "interface": "WAN",
            "local_port": "1199" }),
        "OpenVPNClient" => json!({ "interface": "WAN" }),
        "RESTAPIAccessListEntry" => json!({ "network": "192.0.2.0/24", "weight": 50 }),
        "FreeRADIUSInterface" => json!({ "addr": "*", "port": "1899" }),
        "FirewallAlias" => json!({ "name": "walk", "type": "host" }),
        "CertificateRevocationList" => json!({ "method": "internal" }),
        _ => json!({}),
    }
}

/// A certificate of its own issuer, with its key.
fn pair(is_ca: rcgen::IsCa) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = is_ca;
    let certificate = params.self_signed(&key).unwrap();
    json!({ "descr": "own", "crt": certificate.pem(), "prv": key.serialize_pem() })
}

/// The fields that a create needs.
pub(super) fn sample(firewall: &Pfsense, model: &'static Model) -> Object {
    let mut out = given(&model.name).as_object().cloned().unwrap_or_default();
    let mut values = Object::new();
    for field in model.fields(firewall.release) {
        let default = field.default.clone().unwrap_or(Value::Null);
        values.insert(field.name.clone(), out.get(&field.name).cloned().unwrap_or(default));
    }
    for field in model.fields(firewall.release) {
        let is_asked = field.required && are_conditions_met(field, &values, None);
        if is_asked && !out.contains_key(&field.name) {
            let value = value(firewall, model, field);
            values.insert(field.name.clone(), value.clone());
            out.insert(field.name.clone(), value);
        }
    }
    out
}

fn value(firewall: &Pfsense, model: &'static Model, field: &Field) -> Value {
    if let Some(child) = field.nested.as_deref().and_then(|name| Facts::get().model(name)) {
        return json!([sample(firewall, child)]);
    }
    let one = one(firewall, model, field);
    if field.many { json!([one]) } else { one }
}

fn one(firewall: &Pfsense, model: &'static Model, field: &Field) -> Value {
    if let Some(refers) = &field.refers {
        let found = choices::referred(firewall, refers).into_iter().next();
        return found.unwrap_or_else(|| json!(refers.words.first()));
    }
    let options = choices::of(firewall, model, field).unwrap_or_default();
    if field.kind == Kind::Interface {
        return json!("LAN");
    }
    if let Some(option) = options.iter().find(|option| **option != json!("")) {
        return option.clone();
    }
    match field.kind {
        Kind::Boolean => json!(true),
        Kind::Integer => json!(least(field)),
        Kind::Number => json!(1.5),
        Kind::UnixTime => json!(1_767_225_600),
        Kind::Port => json!("8080"),
        Kind::FilterAddress => json!("any"),
        Kind::SpecialNetwork => json!("192.0.2.9"),
        Kind::Datetime => json!("01/01/2030"),
        _ => json!(text(field)),
    }
}

/// The least number of a range, and not 0.
fn least(field: &Field) -> u32 {
    (1..=5000).find(|number| field.min.is_none_or(|min| f64::from(*number) >= min)).unwrap_or(1)
}

fn text(field: &Field) -> &'static str {
    let Some(check) = field.checks.first() else { return "walk" };
    let takes = |what: &str| check.takes.iter().any(|own| own == what);
    match check.kind.as_str() {
        "ip" if takes("4") => "192.0.2.9",
        "ip" if takes("6") => "2001:db8::9",
        "ip" => "host.example.com",
        "subnet" => "10.88.0.0/16",
        "host" if takes("host") || takes("domain") => "walk",
        "host" => "host.example.com",
        "mac" => "02:00:00:00:88:01",
        "email" => "walk@example.com",
        "url" => "https://example.com/walk",
        "regex" if check.pattern.contains("\\d+,") => "5",
        _ => "walk",
    }
}
