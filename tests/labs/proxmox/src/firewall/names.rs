//! What rules name: aliases, address sets and groups of rules.

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, field};
use crate::cluster::{Cluster, check_digest, hash};
use crate::firewall::{AddressSet, Firewall};

impl Cluster {
    pub(super) fn alias_call(&mut self, call: &Call, scope: &str) -> Outcome {
        let file = self.file(scope);
        let (digest, name) = (file.aliases_digest(), call.text("name").to_lowercase());
        let shown = |alias: &Object| {
            let mut alias = alias.clone();
            alias.insert("digest".to_owned(), Value::from(digest.clone()));
            Value::Object(alias)
        };
        let is_list = call.route.path.ends_with("/aliases");
        match call.route.method.as_str() {
            "GET" if is_list => return Ok(file.aliases.values().map(shown).collect()),
            "GET" => {
                let alias = file.aliases.get(&name);
                return alias.map(shown).ok_or_else(|| Failure::parameter("name", "no such alias"));
            }
            "POST" if file.aliases.contains_key(&name) => {
                return Err(Failure::parameter("name", format!("alias '{name}' already exists")));
            }
            "POST" => {}
            "PUT" => {
                check_digest(call, &digest)?;
                if !file.aliases.contains_key(&name) {
                    return Err(Failure::parameter("name", "no such alias"));
                }
                file.aliases.remove(&name);
            }
            _ => {
                check_digest(call, &digest)?;
                file.aliases.remove(&name);
                return Ok(Value::Null);
            }
        }
        let name = call.find("rename").map_or(name, str::to_lowercase);
        let cidr = call.text("cidr");
        let mut alias = crate::answer::object(json!({
            "name": name, "cidr": canonical(cidr), "ipversion": if cidr.contains(':') { 6 } else { 4 },
        }));
        if let Some(comment) = call.find("comment") {
            alias.insert("comment".to_owned(), Value::from(comment));
        }
        file.aliases.insert(name, alias);
        Ok(Value::Null)
    }

    pub(super) fn set_call(&mut self, call: &Call, scope: &str) -> Outcome {
        let file = self.file(scope);
        let (digest, name) = (file.sets_digest(), call.text("name").to_owned());
        let missing = || Failure::refused(format!("no such IPSet '{name}'"));
        let tail = call.route.path.rsplit("/ipset").next().unwrap_or_default();
        match (call.route.method.as_str(), tail) {
            ("GET", "") => {
                let sets = file.sets.iter().map(|(name, set)| {
                    let mut row = json!({ "name": name, "digest": digest });
                    if let Some(comment) = &set.comment {
                        row["comment"] = json!(comment);
                    }
                    row
                });
                Ok(sets.collect())
            }
            ("POST", "") => {
                let comment = call.find("comment").map(str::to_owned);
                let set = match call.find("rename") {
                    Some(old) => {
                        check_digest(call, &digest)?;
                        let gone = Failure::refused(format!("IPSet '{old}' does not exist"));
                        AddressSet { comment, ..file.sets.remove(old).ok_or(gone)? }
                    }
                    None if file.sets.contains_key(&name) => {
                        return Err(Failure::parameter("name", format!("IPSet '{name}' already exists")));
                    }
                    None => AddressSet { comment, ..AddressSet::default() },
                };
                file.sets.insert(name, set);
                Ok(Value::Null)
            }
            ("DELETE", "/{name}") => {
                let is_full = file.sets.get(&name).ok_or_else(missing)?.entries.is_empty();
                if !is_full && !call.flag("force") {
                    return Err(Failure::refused(format!("IPSet '{name}' is not empty")));
                }
                file.sets.remove(&name);
                Ok(Value::Null)
            }
            (method, _) => entry_call(file.sets.get_mut(&name).ok_or_else(missing)?, call, method, &digest),
        }
    }

    pub(super) fn group_call(&mut self, call: &Call) -> Outcome {
        let (name, scope) = (call.text("group").to_owned(), format!("groups/{}", call.text("group")));
        let groups: Vec<(String, Option<String>)> = self
            .firewalls
            .iter()
            .filter_map(|(scope, file)| {
                Some((scope.strip_prefix("groups/")?.to_owned(), file.comment.clone()))
            })
            .collect();
        let digest = hash(&json!(groups).to_string(), 40);
        match call.route.method.as_str() {
            "GET" => Ok(groups
                .into_iter()
                .map(|(group, comment)| match comment {
                    Some(comment) => json!({ "group": group, "comment": comment, "digest": digest }),
                    None => json!({ "group": group, "digest": digest }),
                })
                .collect()),
            "POST" => {
                let comment = call.find("comment").map(str::to_owned);
                let file = match call.find("rename") {
                    Some(old) => {
                        check_digest(call, &digest)?;
                        let gone = Failure::refused(format!("Security group '{old}' does not exist"));
                        let file = self.firewalls.remove(&format!("groups/{old}")).ok_or(gone)?;
                        self.rename_group(old, &name);
                        Firewall { comment, ..file }
                    }
                    None if self.firewalls.contains_key(&scope) => {
                        return Err(Failure::parameter(
                            "group",
                            format!("Security group '{name}' already exists"),
                        ));
                    }
                    None => Firewall { comment, ..Firewall::default() },
                };
                self.firewalls.insert(scope, file);
                Ok(Value::Null)
            }
            _ => {
                let gone = || Failure::refused(format!("Security group '{name}' does not exist"));
                if !self.firewalls.get(&scope).ok_or_else(gone)?.rules.is_empty() {
                    return Err(Failure::refused(format!("Security group '{name}' is not empty")));
                }
                self.firewalls.remove(&scope);
                Ok(Value::Null)
            }
        }
    }

    /// A renamed group stays in the rules that call it, but for those of SDN networks.
    pub(super) fn rename_group(&mut self, old: &str, new: &str) {
        for (_, file) in self.firewalls.iter_mut().filter(|(scope, _)| !scope.starts_with("vnets/")) {
            for rule in &mut file.rules {
                if field(rule, "type") == "group" && field(rule, "action") == old {
                    rule.insert("action".to_owned(), Value::from(new));
                }
            }
        }
    }

    pub(super) fn references(&mut self, call: &Call, scope: &str) -> Value {
        let mut rows: Vec<Value> = Vec::new();
        for (scope, label) in [("cluster", "dc"), (scope, "guest")] {
            if label == "guest" && scope == "cluster" {
                continue;
            }
            let file = self.file(scope);
            for name in file.aliases.keys() {
                let full = format!("{label}/{name}");
                rows.push(json!({ "type": "alias", "name": name, "ref": full, "scope": label }));
            }
            for name in file.sets.keys() {
                let full = format!("+{label}/{name}");
                rows.push(json!({ "type": "ipset", "name": name, "ref": full, "scope": label }));
            }
        }
        rows.retain(|row| call.find("type").is_none_or(|kind| row["type"] == kind));
        Value::Array(rows)
    }
}

/// The entries of a set. Each is named by its address.
fn entry_call(set: &mut AddressSet, call: &Call, method: &str, digest: &str) -> Outcome {
    let cidr = canonical(call.text("cidr"));
    let place = set.entries.iter().position(|entry| field(entry, "cidr") == cidr);
    let shown = |entry: &Object| {
        let mut entry = entry.clone();
        entry.insert("digest".to_owned(), Value::from(digest));
        Value::Object(entry)
    };
    let is_list = call.route.path.ends_with("/{name}");
    match method {
        "GET" if is_list => return Ok(set.entries.iter().map(shown).collect()),
        "GET" => {
            let entry = place.map(|place| shown(&set.entries[place]));
            return entry.ok_or_else(|| Failure::parameter("cidr", "no such IP/Network"));
        }
        "POST" if place.is_some() => {
            return Err(Failure::parameter("cidr", format!("address '{cidr}' already exists")));
        }
        "POST" if cidr.ends_with("/0") => {
            return Err(Failure::parameter("cidr", "a zero prefix is not allowed in ipset entries"));
        }
        "POST" => {}
        "PUT" if place.is_none() => return Err(Failure::parameter("cidr", "no such IP/Network")),
        _ => check_digest(call, digest)?,
    }
    if method == "DELETE" {
        set.entries.retain(|entry| field(entry, "cidr") != cidr);
        return Ok(Value::Null);
    }
    let mut entry = crate::answer::object(json!({ "cidr": cidr }));
    for name in ["nomatch", "comment"] {
        if let Some(value) = call.params.get(name) {
            entry.insert(name.to_owned(), value.clone());
        }
    }
    match place {
        Some(place) => set.entries[place] = entry,
        None => set.entries.push(entry),
    }
    Ok(Value::Null)
}

/// An address as it is stored: without host bits, and without the prefix of a single address.
fn canonical(text: &str) -> String {
    let Ok(net) = text.parse::<IpNet>() else { return text.to_owned() };
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.trunc().to_string() }
}
