//! Tunnels and their peers: keys of `WireGuard`, secrets and sessions of PPP, peers of `IPsec`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::ExpandedSecretKey;
use sha2::{Digest, Sha256};

use crate::address::Prefix;
use crate::call::{Answered, Call, Done};
use crate::device::Router;
use crate::duration;
use crate::refusal::Refusal;
use crate::store::{Record, Row};

pub(crate) const PEERS: &str = "interface/wireguard/peers";

/// 32 bytes in base64.
fn key_bytes(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// A private key that is always the same for the same name.
pub(crate) fn private_key(seed: &str) -> String {
    let mut scalar: [u8; 32] = Sha256::digest(seed).into();
    scalar[0] &= 0xF8;
    scalar[31] = (scalar[31] & 0x7F) | 0x40;
    STANDARD.encode(scalar)
}

/// The public key of Curve25519 that belongs to a private one.
pub(crate) fn public_key(private: &str) -> Option<String> {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&key_bytes(private)?);
    let key = VerifyingKey::from(&ExpandedSecretKey::from_bytes(&bytes));
    Some(STANDARD.encode(key.to_montgomery().to_bytes()))
}

pub(crate) fn wireguard(
    router: &mut Router,
    path: &str,
    row: &mut Row,
    old: Option<&Row>,
) -> Result<(), Refusal> {
    if path == PEERS {
        return peer(router, row);
    }
    let private = row.text("private-key").to_owned();
    if private.is_empty() {
        let kept = old.map(|old| old.text("private-key").to_owned()).filter(|kept| !kept.is_empty());
        let serial = router.next_serial();
        let private = kept.unwrap_or_else(|| private_key(&format!("wireguard {serial}")));
        row.values.insert("private-key".to_owned(), private.into());
    } else if key_bytes(&private).is_none() {
        return Err(Refusal::invalid("private-key"));
    }
    let public = public_key(row.text("private-key")).ok_or_else(|| Refusal::invalid("private-key"))?;
    row.values.insert("public-key".to_owned(), public.into());
    if row.text("listen-port").is_empty() {
        let taken = |port: &u32| {
            let port = port.to_string();
            router.store.rows("interface/wireguard").iter().any(|other| other.text("listen-port") == port)
        };
        let free = (13_231..65_535).find(|port| !taken(port)).unwrap_or(13_231);
        row.values.insert("listen-port".to_owned(), free.to_string().into());
    }
    if row.text("listen-port").parse::<u32>().is_ok_and(|port| !(1..=65_535).contains(&port)) {
        return Err(Refusal::unclear("value of listen-port out of range (1..65535)"));
    }
    Ok(())
}

fn peer(router: &mut Router, row: &mut Row) -> Result<(), Refusal> {
    for field in ["private-key", "preshared-key"] {
        if row.text(field) == "auto" {
            let serial = router.next_serial();
            row.values.insert(field.to_owned(), private_key(&format!("{field} {serial}")).into());
        }
        let text = row.text(field);
        if !["", "none"].contains(&text) && key_bytes(text).is_none() {
            return Err(Refusal::invalid(field));
        }
    }
    if let Some(public) = public_key(row.text("private-key")) {
        row.values.insert("public-key".to_owned(), public.into());
    }
    let public = row.text("public-key");
    if public.is_empty() {
        return Err(Refusal::missing("public-key"));
    }
    if key_bytes(public).is_none() {
        return Err(Refusal::invalid("public-key"));
    }
    let allowed = row.text("allowed-address").to_owned();
    let shown = allowed
        .split(',')
        .map(|part| Prefix::parse(part).map(Prefix::show_network))
        .collect::<Option<Vec<_>>>();
    let shown = shown.ok_or_else(|| Refusal::invalid("allowed-address"))?;
    row.values.insert("allowed-address".to_owned(), shown.join(",").into());
    Ok(())
}

/// What a peer tells of its last handshake; those with an end point have had one.
pub(crate) fn fill_peer(router: &Router, row: &Row, out: &mut Record) {
    let is_met = !row.is_disabled() && !row.text("endpoint-address").is_empty();
    let secs = if is_met { router.counted_secs(PEERS, row.id) } else { 0 };
    let mut put = |name: &str, value: String| drop(out.insert(name.to_owned(), value));
    put("rx", (secs * 310).to_string());
    put("tx", (secs * 270).to_string());
    put(
        "current-endpoint-address",
        if is_met { row.text("endpoint-address").to_owned() } else { String::new() },
    );
    let port = row.text("endpoint-port");
    put("current-endpoint-port", if is_met && !port.is_empty() { port } else { "0" }.to_owned());
    if is_met {
        put("last-handshake", duration::show_secs(secs % 120 + 1));
    }
    if router.release.minor() < 17 {
        out.remove("responder");
    }
}

pub(crate) fn secret(router: &Router, row: &mut Row) -> Result<(), Refusal> {
    if row.text("name").is_empty() {
        return Err(Refusal::missing("name"));
    }
    let same = |other: &Row| {
        other.text("name") == row.text("name") && (other.text("service") == row.text("service"))
    };
    let mut others = router.store.rows("ppp/secret").iter().filter(|other| other.id != row.id);
    if others.any(|other| same(other)) {
        return Err(Refusal::failure("secret with the same name already exists"));
    }
    Ok(())
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("interface/wireguard/peers", "show-client-config") => call.id(router).and_then(|id| {
            let row = router.store.find(PEERS, id).ok_or(Refusal::NoSuchItem)?;
            let private = if call.has("show-sensitive") && call.who.may("sensitive") { row.text("private-key") } else { "" };
            let config = format!(
                "[Interface]\nPrivateKey = {private}\nAddress = {}\n\n[Peer]\nPublicKey = {}\nAllowedIPs = 0.0.0.0/0\n",
                row.text("client-address"),
                row.text("public-key"),
            );
            Ok(Done::rows(vec![[("conf".to_owned(), config)].into()]))
        }),
        ("ip/ipsec/active-peers", "kill-connections") => {
            router.store.retain("ip/ipsec/active-peers", |_| false);
            Ok(Done::nothing())
        }
        ("ip/ipsec/installed-sa", "flush") => {
            router.store.retain("ip/ipsec/installed-sa", |_| false);
            Ok(Done::nothing())
        }
        ("ip/ipsec/key/psk", "generate") => {
            let serial = router.next_serial();
            Ok(Done::value(private_key(&format!("psk {serial}"))))
        }
        _ => return None,
    })
}
