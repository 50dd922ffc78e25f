//! The interfaces of a node: edits go to a pending file, which is applied or reverted as a whole.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, field, text_of};
use crate::cluster::Cluster;
use crate::store::{merge, written};
use crate::tasks::Order;

/// The file in force and the one that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) live: Vec<Object>,
    pub(crate) pending: Option<Vec<Object>>,
}

impl Network {
    /// What is edited: the pending file, else the one in force.
    fn edited(&self) -> &[Object] {
        self.pending.as_deref().unwrap_or(&self.live)
    }

    /// Whether an interface is in force.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.live.iter().any(|row| field(row, "iface") == name)
    }

    /// Brings the pending file into force.
    pub(crate) fn reload(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.live = pending;
        }
    }

    /// The difference between both files; empty when nothing is pending.
    fn changes(&self) -> String {
        let Some(pending) = &self.pending else { return String::new() };
        let (old, new) = (stanzas(&self.live), stanzas(pending));
        let gone = old.iter().filter(|stanza| !new.contains(stanza)).map(|stanza| ("-", stanza));
        let added = new.iter().filter(|stanza| !old.contains(stanza)).map(|stanza| ("+", stanza));
        let lines = gone
            .chain(added)
            .flat_map(|(sign, stanza)| stanza.lines().map(move |line| format!("{sign}{line}\n")));
        let lines: String = lines.collect();
        if lines.is_empty() {
            return lines;
        }
        format!("--- /etc/network/interfaces\n+++ /etc/network/interfaces.new\n@@ -1 +1 @@\n{lines}")
    }
}

/// Interfaces as the file writes them.
fn stanzas(rows: &[Object]) -> Vec<String> {
    let one = |row: &Object| {
        let mut text = String::new();
        if row.get("autostart") == Some(&Value::from(1)) {
            text.push_str(&format!("auto {}\n", field(row, "iface")));
        }
        text.push_str(&format!("iface {} inet {}\n", field(row, "iface"), field(row, "method")));
        let hidden =
            ["iface", "method", "method6", "type", "autostart", "active", "exists", "priority", "families"];
        for (name, value) in row.iter().filter(|(name, _)| !hidden.contains(&name.as_str())) {
            text.push_str(&format!("\t{} {}\n", name.replace('_', "-"), text_of(value)));
        }
        text
    };
    rows.iter().map(one).collect()
}

impl Cluster {
    pub(crate) fn network_call(&mut self, call: &Call) -> Option<Outcome> {
        let tail = call.route.path.strip_prefix("/nodes/{node}/network")?;
        Some(match (call.route.method.as_str(), tail) {
            ("GET", "") => self.list_interfaces(call),
            ("POST", "") => self.create_interface(call),
            ("PUT", "") => self.apply_network(call),
            ("DELETE", "") => self.node_mut(call.node()).map(|node| {
                node.network.pending = None;
                Value::Null
            }),
            ("GET", _) => self.find_interface(call).map(|(_, row)| Value::Object(row)),
            ("PUT", _) => self.update_interface(call),
            _ => self.delete_interface(call),
        })
    }

    fn list_interfaces(&mut self, call: &Call) -> Outcome {
        let node = self.node(call.node())?;
        let changes = node.network.changes();
        let wanted = |kind: &str| match call.find("type") {
            None => true,
            Some("include_sdn") => true,
            Some("any_bridge" | "any_local_bridge") => matches!(kind, "bridge" | "OVSBridge"),
            Some(only) => only == kind,
        };
        let rows = node.network.edited().iter().filter(|row| wanted(field(row, "type")));
        let rows: Value = rows.cloned().map(Value::Object).collect();
        if !changes.is_empty() {
            self.beside.insert("changes".to_owned(), Value::from(changes));
        }
        Ok(rows)
    }

    fn find_interface(&self, call: &Call) -> Outcome<(usize, Object)> {
        let rows = self.node(call.node())?.network.edited();
        let place = rows.iter().position(|row| field(row, "iface") == call.text("iface"));
        let place = place.ok_or_else(|| Failure::parameter("iface", "interface does not exist"))?;
        Ok((place, rows[place].clone()))
    }

    fn create_interface(&mut self, call: &Call) -> Outcome {
        let name = call.text("iface").to_owned();
        if self.find_interface(call).is_ok() {
            return Err(Failure::parameter("iface", "interface already exists"));
        }
        self.check_gateway(call)?;
        let mut row = Object::new();
        row.insert("iface".to_owned(), Value::from(name));
        change_interface(&mut row, call);
        self.edit_network(call, |rows| rows.push(row))
    }

    fn update_interface(&mut self, call: &Call) -> Outcome {
        let (place, mut row) = self.find_interface(call)?;
        self.check_gateway(call)?;
        // An address that is not sent again is gone.
        for name in ["cidr", "address", "netmask", "cidr6", "address6", "netmask6"] {
            row.shift_remove(name);
        }
        change_interface(&mut row, call);
        self.edit_network(call, |rows| rows[place] = row)
    }

    fn delete_interface(&mut self, call: &Call) -> Outcome {
        let (place, row) = self.find_interface(call)?;
        self.edit_network(call, |rows| {
            if field(&row, "type") == "eth" {
                // The hardware is still there, without a configuration.
                rows[place] = plain_card(field(&row, "iface"));
            } else {
                rows.remove(place);
            }
        })
    }

    fn edit_network(&mut self, call: &Call, edit: impl FnOnce(&mut Vec<Object>)) -> Outcome {
        let network = &mut self.node_mut(call.node())?.network;
        let mut rows = network.edited().to_vec();
        edit(&mut rows);
        network.pending = Some(rows);
        Ok(Value::Null)
    }

    /// There is one default gateway for each IP version.
    fn check_gateway(&self, call: &Call) -> Outcome<()> {
        for name in ["gateway", "gateway6"] {
            if !call.params.contains_key(name) {
                continue;
            }
            let mut others = self.node(call.node())?.network.edited().iter();
            if let Some(other) =
                others.find(|row| row.contains_key(name) && field(row, "iface") != call.text("iface"))
            {
                let text =
                    format!("Default gateway already exists on interface '{}'.", field(other, "iface"));
                return Err(Failure::parameter(name, text));
            }
        }
        Ok(())
    }

    fn apply_network(&mut self, call: &Call) -> Outcome {
        self.node(call.node())?;
        let node = call.node().to_owned();
        Ok(self.start(&call.caller, Order::new(call.node(), "srvreload", "networking"), move |cluster| {
            if let Ok(node) = cluster.node_mut(&node) {
                node.network.reload();
            }
            Ok(())
        }))
    }
}

/// Writes the given settings, in the forms that the file gives back.
fn change_interface(row: &mut Object, call: &Call) {
    let mut changes = written(call);
    changes.shift_remove("iface");
    // The file knows text only, but for the flags.
    for (name, value) in &mut changes {
        if !matches!(name.as_str(), "autostart" | "bridge_vlan_aware") {
            *value = Value::from(text_of(value));
        }
    }
    merge(row, changes, &call.list("delete"));
    for (cidr, address, netmask, method) in
        [("cidr", "address", "netmask", "method"), ("cidr6", "address6", "netmask6", "method6")]
    {
        if let Some((ip, prefix)) =
            field(row, cidr).split_once('/').map(|(ip, prefix)| (ip.to_owned(), prefix.to_owned()))
        {
            row.insert(address.to_owned(), Value::from(ip));
            row.insert(netmask.to_owned(), Value::from(prefix));
        } else if row.contains_key(address) {
            let prefix = prefix_of(field(row, netmask));
            row.insert(cidr.to_owned(), Value::from(format!("{}/{prefix}", field(row, address))));
        }
        let found = if row.contains_key(address) { "static" } else { "manual" };
        row.insert(method.to_owned(), Value::from(found));
    }
    if let Some(vids) = row.get("bridge_vids").map(text_of) {
        let vids: Vec<&str> = crate::answer::split_list(&vids).collect();
        row.insert("bridge_vids".to_owned(), Value::from(vids.join(" ")));
    }
    for name in ["comments", "comments6"] {
        if let Some(text) = row.get(name).map(text_of) {
            row.insert(name.to_owned(), Value::from(format!("{}\n", text.trim_end())));
        }
    }
    if let (Some((raw, tag)), "vlan") = (call.text("iface").rsplit_once('.'), field(row, "type")) {
        row.entry("vlan-raw-device".to_owned()).or_insert_with(|| Value::from(raw));
        row.entry("vlan-id".to_owned()).or_insert_with(|| Value::from(tag));
    }
    row.entry("families".to_owned()).or_insert_with(|| json!(["inet"]));
    row.entry("priority".to_owned()).or_insert_with(|| Value::from(9));
    row.insert("active".to_owned(), Value::from(1));
}

/// The prefix length of a mask in either form.
fn prefix_of(mask: &str) -> String {
    let octets: Vec<u8> = mask.split('.').filter_map(|octet| octet.parse().ok()).collect();
    if octets.len() == 4 {
        octets.iter().map(|octet| octet.count_ones()).sum::<u32>().to_string()
    } else {
        mask.to_owned()
    }
}

/// A network card without addresses.
pub(crate) fn plain_card(name: &str) -> Object {
    crate::answer::object(json!({
        "iface": name, "type": "eth", "method": "manual", "method6": "manual", "families": ["inet"],
        "priority": 3, "exists": 1, "active": 1,
    }))
}
