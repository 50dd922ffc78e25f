//! How the firewall names its interfaces: by id (`lan`), description (`LAN`) or port (`igb1`).

use heddle_sdk::{Fault, Host, ModelObject, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::answer::read;
use crate::devices;

/// Kinds that belong to the firewall as a device.
const OF_FIREWALL: [&str; 7] =
    ["system", "interface", "route", "gateway", "service", "certificate", "firmware"];
/// Fields that name interfaces, by the kind.
const REFERENCES: [(&str, &[&str]); 9] = [
    ("interface", &["lower", "master"]),
    ("vlan", &["interface"]),
    ("route", &["interface"]),
    ("gateway", &["interface"]),
    ("dhcp-pool", &["interface"]),
    ("dhcp-lease", &["scope"]),
    ("vpn-tunnel", &["interface"]),
    ("nat-rule", &["interface"]),
    ("firewall-rule", &["from", "to"]),
];
/// Behind the name of an interface: its address, and not its network.
pub(super) const ADDRESS: &str = ":ip";

/// The interfaces, and the identity of the firewall.
pub(super) struct Names {
    identity: String,
    rows: Vec<Value>,
}

impl Names {
    pub(super) fn are_needed(kind: &str) -> bool {
        OF_FIREWALL.contains(&kind) || REFERENCES.iter().any(|(known, _)| *known == kind)
    }

    pub(super) fn read(host: &dyn Host) -> Result<Self, Fault> {
        let rows = devices::interfaces(host)?;
        Ok(Self { identity: devices::identity(host, &rows)?, rows })
    }

    /// Whether a MAC address is one of the firewall's.
    pub(super) fn is_own(&self, mac: &str) -> bool {
        self.rows.iter().filter_map(devices::mac_of).any(|own| own == mac)
    }

    fn find(&self, name: &str) -> Option<&Value> {
        let is = |row: &&Value, at: &str| sdk_json::text(row, at) == Some(name);
        let by = |at: &str| self.rows.iter().find(|row| is(row, at));
        by("/name").or_else(|| by("/descr")).or_else(|| by("/hwif"))
    }

    /// The id of an interface, or the name where nothing is assigned to it.
    pub(super) fn key<'n>(&'n self, name: &'n str) -> &'n str {
        self.find(name).and_then(|row| sdk_json::text(row, "/name")).unwrap_or(name)
    }

    /// The port of an interface.
    pub(super) fn port<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        self.find(name).and_then(|row| sdk_json::text(row, "/hwif"))
    }

    /// The interface as the firewall wants it written; `as_told` is its setting.
    pub(super) fn written<'n>(&'n self, name: &'n str, as_told: &str) -> &'n str {
        let at = match as_told {
            "id" => "/name",
            "if" => "/hwif",
            _ => "/descr",
        };
        self.find(name).and_then(|row| sdk_json::text(row, at)).unwrap_or(name)
    }

    pub(super) fn complete(&self, kind: &str, item: &mut ModelObject) {
        if OF_FIREWALL.contains(&kind) {
            item.device = Some(self.identity.clone());
        }
        let Ok(Value::Object(mut fields)) = serde_json::from_str(&item.fields) else { return };
        for (_, names) in REFERENCES.iter().filter(|(known, _)| *known == kind) {
            for name in *names {
                if let Some(field) = fields.get_mut(*name) {
                    self.translate(field);
                }
            }
        }
        match kind {
            "firewall-rule" => self.rule(&mut fields),
            "nat-rule" => {
                let sides = ["external", "internal"].into_iter().filter_map(|side| {
                    fields
                        .get(side)
                        .and_then(|side| side.get("addresses"))
                        .map(|all| (side, self.addresses(all)))
                });
                let sides: Vec<_> = sides.collect();
                for (side, all) in sides {
                    fields[side]["addresses"] = all;
                }
                if let Some(source) = fields.get_mut("source") {
                    *source = self.addresses(source);
                }
            }
            "vlan" => fields.get_mut("members").and_then(Value::as_array_mut).into_iter().flatten().for_each(
                |member| {
                    self.translate(&mut member["port"]);
                },
            ),
            _ => {}
        }
        item.fields = Value::Object(fields).to_string();
    }

    fn translate(&self, field: &mut Value) {
        match field {
            Value::String(name) => *field = json!(self.key(name)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.translate(item)),
            _ => {}
        }
    }

    /// Addresses among which names of interfaces stand.
    fn addresses(&self, all: &Value) -> Value {
        let one = |name: &str| {
            let (own, part) = name.strip_suffix(ADDRESS).map_or((name, ""), |own| (own, ADDRESS));
            format!("{}{part}", self.key(own))
        };
        all.as_array().into_iter().flatten().filter_map(Value::as_str).map(one).collect()
    }

    /// What a rule names is a network where an interface has the name, and else an alias.
    fn rule(&self, fields: &mut Map<String, Value>) {
        if let Some(key) = fields.get_mut("scope").and_then(|scope| scope.get_mut("key")) {
            self.translate(key);
        }
        for side in ["source", "destination"] {
            let Some(endpoint) = fields.get_mut(side).and_then(Value::as_object_mut) else { continue };
            let Some(name) = endpoint.get("groups").and_then(|groups| groups[0].as_str()).map(str::to_owned)
            else {
                continue;
            };
            let (own, part) = name.strip_suffix(ADDRESS).map_or((name.as_str(), ""), |own| (own, ADDRESS));
            let is_word = ["(self)", "l2tp", "pppoe"].contains(&own);
            if is_word || self.find(own).is_some() {
                endpoint.remove("groups");
                endpoint.insert("networks".to_owned(), json!([format!("{}{part}", self.key(own))]));
            }
        }
    }
}

/// How the firewall wants interfaces written; its usual way where the user may not read the setting.
pub(super) fn as_told(host: &dyn Host) -> Result<String, Fault> {
    let told = |settings: &Value| sdk_json::text(settings, "/represent_interfaces_as").map(str::to_owned);
    match read(host, "/system/restapi/settings") {
        Ok(settings) => Ok(told(&settings).unwrap_or_else(|| "descr".to_owned())),
        Err(Fault::Denied(_)) => Ok("descr".to_owned()),
        Err(other) => Err(other),
    }
}
