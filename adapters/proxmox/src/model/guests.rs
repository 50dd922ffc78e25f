//! Virtual machines and containers.

use serde_json::{Map, Value, json};

use super::{limited, mac, parts, text_of, vlan_id};

/// Most network interfaces of a guest.
const NICS_MAX: usize = 32;

/// The network interfaces of a guest's configuration, and what it is said to have of its own.
pub(super) fn guest(row: &Value, fields: &mut Map<String, Value>) {
    limited(fields, "cpu_percent");
    // A guest that sleeps on disk is stopped to the cluster.
    if fields.get("state") == Some(&json!("stopped")) && text_of(row, "lock") == "suspended" {
        fields.insert("state".to_owned(), json!("suspended"));
    }
    // The list of the cluster does not tell of them.
    if row.get("!").is_some() {
        return;
    }
    let texts = (0..NICS_MAX).map(|at| text_of(row, &format!("net{at}"))).filter(|text| !text.is_empty());
    let (mut nics, mut addresses) = (Vec::new(), Vec::new());
    for text in texts {
        nics.push(nic(&text));
        addresses.extend(fixed(&text));
    }
    fields.insert("nics".to_owned(), Value::Array(nics));
    if !addresses.is_empty() {
        fields.insert("addresses".to_owned(), json!(addresses));
    }
}

/// `virtio=BC:24:11:2E:C5:4A,bridge=vmbr0,tag=20` of a machine, `name=eth0,hwaddr=BC:24:...,bridge=vmbr0` of a container.
fn nic(text: &str) -> Value {
    let mut nic = Map::new();
    for (name, value) in parts(text).filter_map(|part| part.split_once('=')) {
        if name == "bridge" {
            nic.insert("network".to_owned(), json!(value));
        } else if name == "tag" {
            nic.extend(vlan_id(value).map(|id| ("vlan_id".to_owned(), json!(id))));
        } else if let Some(mac) = mac(value) {
            // The name is the model of the card.
            nic.insert("mac".to_owned(), json!(mac));
        }
    }
    Value::Object(nic)
}

/// The addresses that a container is given; those of others, and of DHCP, are not known here.
fn fixed(text: &str) -> Vec<String> {
    let pairs = parts(text).filter_map(|part| part.split_once('='));
    let addresses = pairs.filter(|(name, value)| matches!(*name, "ip" | "ip6") && value.contains('/'));
    addresses.filter_map(|(_, value)| Some(value.split_once('/')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_read_from_their_texts() {
        for (text, card) in [
            (
                "virtio=BC:24:11:2E:C5:4A,bridge=vmbr0,tag=20,firewall=1",
                json!({ "mac": "bc:24:11:2e:c5:4a", "network": "vmbr0", "vlan_id": 20 }),
            ),
            (
                "name=eth0,bridge=servers,hwaddr=BC:24:11:00:06:00,ip=dhcp,type=veth",
                json!({ "mac": "bc:24:11:00:06:00", "network": "servers" }),
            ),
            ("virtio,bridge=vmbr0,tag=5000", json!({ "network": "vmbr0" })),
            ("virtio=zz:24:11:2E:C5:4A,=,,x=é", json!({})),
        ] {
            assert_eq!(nic(text), card, "{text}");
        }
    }

    #[test]
    fn only_addresses_that_are_given_are_known() {
        assert_eq!(fixed("name=eth0,ip=10.20.0.53/24,ip6=2001:db8::5/64"), ["10.20.0.53", "2001:db8::5"]);
        assert!(fixed("name=eth0,ip=dhcp,ip6=auto").is_empty());
        assert!(fixed("name=eth0,ip=manual").is_empty());
    }
}
