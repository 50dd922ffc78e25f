//! Tunnels with their keys and certificates.

use serde_json::json;

use super::{add, children, set};
use crate::store::Config;

pub(super) fn add_all(config: &mut Config) {
    // Two fixed keys of the simulation.
    let private = "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICEg=";
    let address = vec![json!({ "address": "10.9.0.1", "mask": 24, "descr": "" })];
    add(
        config,
        "WireGuardTunnel",
        json!({ "name": "tun_wg0", "enabled": true, "descr": "road warriors",
        "listenport": "51820", "privatekey": private, "publickey": crate::vpn::public_key(private),
        "@WireGuardTunnelAddress": children("WireGuardTunnelAddress", address) }),
    );
    let allowed = vec![json!({ "address": "10.9.0.5", "mask": 32, "descr": "" })];
    add(
        config,
        "WireGuardPeer",
        json!({ "enabled": true, "tun": "tun_wg0", "descr": "laptop",
        "publickey": crate::vpn::public_key("GBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGFg="),
        "@WireGuardPeerAllowedIP": children("WireGuardPeerAllowedIP", allowed) }),
    );
    set(config, "WireGuardSettings", json!({ "enable": true }));
    let encryption =
        vec![json!({ "encryption_algorithm_name": "aes256gcm", "encryption_algorithm_keylen": 128,
        "hash_algorithm": "sha256", "dhgroup": 14 })];
    add(
        config,
        "IPsecPhase1",
        json!({ "ikeid": 1, "iketype": "ikev2", "protocol": "inet", "interface": "wan",
        "remote_gateway": "203.0.113.1", "authentication_method": "pre_shared_key", "myid_type": "myaddress",
        "peerid_type": "peeraddress", "pre_shared_key": "shared-with-the-branch", "descr": "branch",
        "@IPsecPhase1Encryption": children("IPsecPhase1Encryption", encryption) }),
    );
    let encryption = vec![json!({ "name": "aes256gcm", "keylen": 128 })];
    add(
        config,
        "IPsecPhase2",
        json!({ "uniqid": "65a0c0ffee003", "reqid": 1, "ikeid": 1, "mode": "tunnel",
        "localid_type": "network", "localid_address": "192.168.1.0", "localid_netbits": 24,
        "remoteid_type": "network", "remoteid_address": "10.30.0.0", "remoteid_netbits": 24,
        "hash_algorithm_option": ["hmac_sha256"], "descr": "branch network",
        "@IPsecPhase2Encryption": children("IPsecPhase2Encryption", encryption) }),
    );
    authority(config);
    add(
        config,
        "OpenVPNServer",
        json!({ "vpnid": 1, "mode": "server_tls", "dev_mode": "tun", "protocol": "UDP4",
        "interface": "wan", "local_port": "1194", "caref": "65a0c0ffee010", "certref": "65a0c0ffee011",
        "dh_length": "2048", "ecdh_curve": "none", "data_ciphers": ["AES-256-GCM"],
        "data_ciphers_fallback": "AES-256-CBC", "digest": "SHA256", "tunnel_network": "10.8.0.0/24",
        "tls": crate::vpn::static_key(), "tls_type": "auth", "use_tls": true, "description": "remote access" }),
    );
}

/// An authority and a certificate of the web interface.
fn authority(config: &mut Config) {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
    let made = || -> Result<[String; 4], rcgen::Error> {
        let (ca_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "lab authority");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let (ca_key_pem, key_pem) = (ca_key.serialize_pem(), key.serialize_pem());
        let mut own = CertificateParams::new(vec!["pfsense.home.example".to_owned()])?;
        own.distinguished_name.push(DnType::CommonName, "pfsense.home.example");
        let pem = own.signed_by(&key, &rcgen::Issuer::new(ca, ca_key))?.pem();
        Ok([ca_pem, ca_key_pem, pem, key_pem])
    };
    let [ca_pem, ca_key, pem, key] = made().expect("keys and certificates of fixed names can be made");
    add(
        config,
        "CertificateAuthority",
        json!({ "refid": "65a0c0ffee010", "descr": "lab authority", "crt": ca_pem,
        "prv": ca_key }),
    );
    add(
        config,
        "Certificate",
        json!({ "refid": "65a0c0ffee011", "caref": "65a0c0ffee010", "descr": "webConfigurator",
        "type": "server", "crt": pem, "prv": key }),
    );
}
