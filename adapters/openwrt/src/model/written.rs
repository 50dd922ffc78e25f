//! Changes in the words of the model, as changes of the router's own features.

use heddle_sdk::crud::refused;
use heddle_sdk::{Change, Fault, FaultExt, Host, ModelChange, Operation, fault};
use serde_json::{Map, Value, json};

use super::read;

/// What each change is.
pub(crate) fn express(host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
    changes.iter().map(|change| Asked::read(host, change)?.expressed(change)).collect()
}

/// What is asked for, and the object that it is about.
struct Asked {
    fields: Map<String, Value>,
    /// None of a create.
    known: Option<Known>,
}

struct Known {
    /// Natural key of the vendor's object.
    key: String,
    fields: Map<String, Value>,
}

/// The texts of a list; numbers are ports.
fn texts(value: Option<&Value>) -> Vec<String> {
    let one = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    value.and_then(Value::as_array).into_iter().flatten().map(one).collect()
}

impl Asked {
    fn read(host: &dyn Host, change: &ModelChange) -> Result<Self, Fault> {
        let mut fields: Map<String, Value> = serde_json::from_str(&change.payload)
            .map_err(|_| fault::invalid("the payload is not an object"))?;
        let Some(key) = fields.remove("key") else { return Ok(Self { fields, known: None }) };
        let key = key.as_str().unwrap_or_default();
        let (objects, _) = read(host, &change.kind)?;
        let object = objects.into_iter().find(|object| object.key == key).ok_or_else(|| {
            let message = format!("there is no {} with the key '{key}'", change.kind);
            fault::not_found(message).with_field("/key", "names no object")
        })?;
        let known = Known {
            key: object.native.map(|native| native.key).unwrap_or_default(),
            fields: serde_json::from_str(&object.fields).unwrap_or_default(),
        };
        Ok(Self { fields, known: Some(known) })
    }

    fn expressed(&self, change: &ModelChange) -> Result<Vec<Change>, Fault> {
        let (feature, payload) = match (change.kind.as_str(), change.verb.as_str()) {
            ("system", "reboot") => ("openwrt.system.reboot", Map::new()),
            ("vlan", _) => ("openwrt.network.vlan", self.vlan()?),
            ("dhcp-pool", _) => ("openwrt.dhcp.pool", self.pool()?),
            ("dhcp-reservation", _) => ("openwrt.dhcp.host", self.reservation()?),
            ("firewall-rule", _) => ("openwrt.firewall.rule", self.rule()?),
            ("nat-rule", _) => ("openwrt.firewall.redirect", self.port_forward()?),
            (kind, verb) => return Err(fault::unsupported(format!("a {kind} has no '{verb}' there"))),
        };
        let operation = match change.verb.as_str() {
            "create" => Operation::Create,
            "delete" => Operation::Delete,
            // Also of what is done, such as a reboot.
            _ => Operation::Update,
        };
        let payload = Value::Object(payload).to_string();
        Ok(vec![Change { feature: feature.to_owned(), operation, site: change.site.clone(), payload }])
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    /// Refuses every field but these; reasons say why the router has nothing for one.
    fn only(&self, known: &[&str], cannot: &[(&str, &str)]) -> Result<(), Fault> {
        let Some(other) = self.fields.keys().find(|field| !known.contains(&field.as_str())) else {
            return Ok(());
        };
        let reason = cannot.iter().find(|(field, _)| field == other).map(|(_, reason)| *reason);
        Err(refused(other, reason.unwrap_or("has no counterpart there")))
    }

    /// What names the object in its payload: from the key of an object that is there, else from a field of the model.
    fn named(&self, field: &str, own: &str) -> Result<Map<String, Value>, Fault> {
        let asked = self.text(field);
        let name = match (&self.known, asked) {
            (None, Some(asked)) => asked,
            (None, None) => return Err(refused(field, "is needed: it names the object there")),
            (Some(known), Some(asked)) if asked != known.key => {
                return Err(refused(field, "names the object there; make a new one and delete this one"));
            }
            (Some(known), _) => &known.key,
        };
        Ok(Map::from_iter([(own.to_owned(), json!(name))]))
    }

    /// Copies a field where it is asked for; `null` empties it.
    fn copy(&self, payload: &mut Map<String, Value>, field: &str, own: &str) {
        if let Some(value) = self.fields.get(field) {
            payload.insert(own.to_owned(), value.clone());
        }
    }

    fn vlan(&self) -> Result<Map<String, Value>, Fault> {
        let of_interface = "belongs to the interface on it: openwrt.network.interface";
        self.only(
            &["vlan_id", "members"],
            &[
                ("name", of_interface),
                ("subnets", of_interface),
                ("gateway", of_interface),
                ("interface", of_interface),
            ],
        )?;
        let mut payload = if let Some(known) = &self.known {
            let (bridge, id) = known.key.rsplit_once(':').unwrap_or_default();
            let id: u64 = id.parse().unwrap_or_default();
            if self.fields.get("vlan_id").is_some_and(|asked| asked.as_u64() != Some(id)) {
                return Err(refused("vlan_id", "names the VLAN there; make a new one and delete this one"));
            }
            Map::from_iter([("device".to_owned(), json!(bridge)), ("vlan".to_owned(), json!(id))])
        } else {
            let id = self.fields.get("vlan_id").cloned().unwrap_or_default();
            Map::from_iter([("device".to_owned(), json!("br-lan")), ("vlan".to_owned(), id)])
        };
        if let Some(members) = self.fields.get("members").and_then(Value::as_array) {
            let member = |member: &Value| {
                let port = member.get("port").and_then(Value::as_str).unwrap_or_default();
                let sign = if member.get("tagged") == Some(&json!(true)) { "t" } else { "u*" };
                format!("{port}:{sign}")
            };
            payload.insert("ports".to_owned(), members.iter().map(member).collect());
        }
        Ok(payload)
    }

    fn pool(&self) -> Result<Map<String, Value>, Fault> {
        self.only(
            &["interface", "enabled", "lease_seconds", "gateway", "dns_servers", "options"],
            &[
                ("ranges", "are told by distances from the first address there: openwrt.dhcp.pool"),
                ("domain", "is one for all pools there"),
            ],
        )?;
        let mut payload = self.named("interface", "interface")?;
        if let Some(enabled) = self.fields.get("enabled") {
            payload.insert("ignore".to_owned(), json!(enabled == false));
        }
        if let Some(seconds) = self.fields.get("lease_seconds") {
            payload.insert(
                "leasetime".to_owned(),
                seconds.as_u64().map_or(Value::Null, |all| json!(format!("{all}s"))),
            );
        }
        let options = ["gateway", "dns_servers", "options"];
        if options.iter().any(|field| self.fields.contains_key(*field)) {
            payload.insert("dhcp_option".to_owned(), json!(self.options()));
        }
        Ok(payload)
    }

    /// All options of a pool: they are one list, so that those which are not asked for stay.
    fn options(&self) -> Vec<String> {
        let value = |field: &str| {
            let known = self.known.as_ref().and_then(|known| known.fields.get(field));
            self.fields.get(field).or(known).filter(|value| !value.is_null())
        };
        let gateway = value("gateway").and_then(Value::as_str).map(|address| format!("3,{address}"));
        let servers = texts(value("dns_servers"));
        let servers = (!servers.is_empty()).then(|| format!("6,{}", servers.join(",")));
        let others = value("options").and_then(Value::as_array).into_iter().flatten();
        let others = others
            .map(|option| format!("{},{}", option["code"], option["value"].as_str().unwrap_or_default()));
        gateway.into_iter().chain(servers).chain(others).collect()
    }

    fn reservation(&self) -> Result<Map<String, Value>, Fault> {
        self.only(&["mac", "address", "hostname"], &[("scope", "follows from the address there")])?;
        let mac = self.text("mac");
        let mut payload = match &self.known {
            None => self.named("mac", "mac")?,
            Some(known) => {
                if mac.is_some() && known.fields.get("mac").and_then(Value::as_str) != mac {
                    return Err(refused(
                        "mac",
                        "names the reservation there; make a new one and delete this one",
                    ));
                }
                Map::from_iter([("mac".to_owned(), json!(known.key))])
            }
        };
        self.copy(&mut payload, "address", "ip");
        self.copy(&mut payload, "hostname", "name");
        Ok(payload)
    }

    fn rule(&self) -> Result<Map<String, Value>, Fault> {
        self.only(
            &[
                "name",
                "enabled",
                "action",
                "ip_version",
                "from",
                "to",
                "source",
                "destination",
                "protocol",
                "source_ports",
                "destination_ports",
                "log",
            ],
            &[
                ("scope", "follows from the zones there: from and to"),
                ("direction", "follows from the zones there: from and to"),
                ("position", "is set by openwrt.firewall.rule-order"),
                ("final", "follows from the action there"),
            ],
        )?;
        let mut payload = self.named("name", "name")?;
        self.copy(&mut payload, "enabled", "enabled");
        self.copy(&mut payload, "log", "log");
        if let Some(action) = self.text("action") {
            payload.insert("target".to_owned(), json!(action.to_uppercase()));
        }
        if let Some(version) = self.text("ip_version") {
            let family = match version {
                "4" => "ipv4",
                "6" => "ipv6",
                _ => "any",
            };
            payload.insert("family".to_owned(), json!(family));
        }
        for (field, own) in [("from", "src"), ("to", "dest")] {
            if self.fields.contains_key(field) {
                payload.insert(own.to_owned(), self.single(field)?);
            }
        }
        for (field, own) in [("source", "src_ip"), ("destination", "dest_ip")] {
            if let Some(side) = self.fields.get(field) {
                payload.insert(own.to_owned(), addresses(field, side)?);
            }
        }
        self.protocol(&mut payload);
        for (field, own) in [("source_ports", "src_port"), ("destination_ports", "dest_port")] {
            if self.fields.contains_key(field) {
                payload.insert(own.to_owned(), text_or_null(&texts(self.fields.get(field))));
            }
        }
        Ok(payload)
    }

    /// The only zone of a list; none where it is empty.
    fn single(&self, field: &str) -> Result<Value, Fault> {
        match texts(self.fields.get(field)).as_slice() {
            [] => Ok(Value::Null),
            [only] => Ok(json!(only)),
            _ => Err(refused(field, "is one zone there, or * for all")),
        }
    }

    fn protocol(&self, payload: &mut Map<String, Value>) {
        if let Some(protocol) = self.text("protocol") {
            let words: Vec<&str> = protocol.split_whitespace().collect();
            payload.insert("proto".to_owned(), json!(words));
        }
    }

    fn port_forward(&self) -> Result<Map<String, Value>, Fault> {
        self.only(
            &["name", "type", "interface", "protocol", "source", "external", "internal", "passes", "enabled"],
            &[("position", "is set by openwrt.firewall.redirect-order")],
        )?;
        let known = self.known.as_ref().and_then(|known| known.fields.get("type")).and_then(Value::as_str);
        if self.text("type").or(known).is_some_and(|kind| kind != "port-forward") {
            return Err(refused("type", "can be port-forward; for others stage openwrt.firewall.redirect"));
        }
        if self.fields.get("passes") == Some(&json!(false)) {
            return Err(refused("passes", "is always true there"));
        }
        let mut payload = self.named("name", "name")?;
        self.copy(&mut payload, "enabled", "enabled");
        self.copy(&mut payload, "interface", "src");
        self.protocol(&mut payload);
        if let Some(source) = self.fields.get("source") {
            payload.insert("src_ip".to_owned(), one_of("source", &texts(Some(source)))?);
        }
        for (field, address, port) in
            [("external", "src_dip", "src_dport"), ("internal", "dest_ip", "dest_port")]
        {
            if let Some(side) = self.fields.get(field) {
                let own = texts(side.get("addresses"));
                payload.insert(address.to_owned(), one_of(&format!("{field}/addresses"), &own)?);
                payload.insert(port.to_owned(), text_or_null(&texts(side.get("ports"))));
            }
        }
        Ok(payload)
    }
}

/// Addresses of one side of a rule; an exclamation mark turns one around.
fn addresses(field: &str, side: &Value) -> Result<Value, Fault> {
    for part in ["groups", "networks"] {
        if !texts(side.get(part)).is_empty() {
            return Err(refused(&format!("{field}/{part}"), "are addresses there"));
        }
    }
    let sign = if side.get("negated") == Some(&json!(true)) { "!" } else { "" };
    let all: Vec<String> =
        texts(side.get("addresses")).iter().map(|address| format!("{sign}{address}")).collect();
    Ok(if all.is_empty() { Value::Null } else { json!(all) })
}

fn one_of(field: &str, all: &[String]) -> Result<Value, Fault> {
    match all {
        [] => Ok(Value::Null),
        [only] => Ok(json!(only)),
        _ => Err(refused(field, "is one address there")),
    }
}

/// The words of an option, with a space between them.
fn text_or_null(words: &[String]) -> Value {
    if words.is_empty() { Value::Null } else { json!(words.join(" ")) }
}
