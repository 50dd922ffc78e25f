//! Rules, which are named by their position.

use serde_json::Value;

use crate::answer::{Call, Failure, Object, Outcome, field, split_list, text_of};
use crate::cluster::{Cluster, check_digest};
use crate::firewall::Firewall;

/// Fields of a rule.
const RULE_FIELDS: [&str; 13] = [
    "type",
    "action",
    "enable",
    "macro",
    "proto",
    "source",
    "dest",
    "sport",
    "dport",
    "icmp-type",
    "iface",
    "log",
    "comment",
];

impl Cluster {
    pub(super) fn rule_call(&mut self, call: &Call, scope: &str, place: &str) -> Outcome {
        if let Some(group) = scope.strip_prefix("groups/")
            && !self.firewalls.contains_key(scope)
        {
            return Err(Failure::refused(format!("no such security group '{group}'")));
        }
        let pos = call.integer("pos").and_then(|pos| usize::try_from(pos).ok()).unwrap_or(0);
        let digest = self.file(scope).rules_digest();
        let count = self.file(scope).rules.len();
        if !place.is_empty() && pos >= count {
            return Err(Failure::refused(format!("no rule at position {pos}")));
        }
        let shown = |(pos, rule): (usize, &Object)| {
            let mut rule = rule.clone();
            rule.insert("pos".to_owned(), Value::from(pos));
            rule.insert("digest".to_owned(), Value::from(digest.clone()));
            Value::Object(rule)
        };
        match (call.route.method.as_str(), place) {
            ("GET", "") => Ok(self.file(scope).rules.iter().enumerate().map(shown).collect()),
            ("GET", _) => Ok(shown((pos, &self.file(scope).rules[pos]))),
            ("POST", _) => {
                let mut rule = Object::new();
                change_rule(&mut rule, call);
                rule.entry("enable".to_owned()).or_insert(Value::from(0));
                self.check_rule(&rule, scope)?;
                // A new rule goes to the top, wherever the caller wanted it.
                self.file(scope).rules.insert(0, rule);
                Ok(Value::Null)
            }
            ("PUT", _) => {
                check_digest(call, &digest)?;
                if let Some(to) = call.integer("moveto").and_then(|to| usize::try_from(to).ok()) {
                    move_rule(&mut self.file(scope).rules, pos, to);
                    return Ok(Value::Null);
                }
                let mut rule = self.file(scope).rules[pos].clone();
                change_rule(&mut rule, call);
                self.check_rule(&rule, scope)?;
                self.file(scope).rules[pos] = rule;
                Ok(Value::Null)
            }
            _ => {
                check_digest(call, &digest)?;
                self.file(scope).rules.remove(pos);
                Ok(Value::Null)
            }
        }
    }

    /// Refuses what the compiler of the rules could not read.
    pub(crate) fn check_rule(&self, rule: &Object, scope: &str) -> Outcome<()> {
        let mut errors = Vec::new();
        let mut error = |name: &str, text: String| errors.push((name.to_owned(), text));
        match field(rule, "type") {
            "group" if scope.starts_with("groups/") => {
                error("type", "security group not allowed inside a security group".to_owned());
            }
            "group" if !self.firewalls.contains_key(&format!("groups/{}", field(rule, "action"))) => {
                error("action", format!("unknown security group '{}'", field(rule, "action")));
            }
            "group" => {}
            _ if !matches!(field(rule, "action"), "ACCEPT" | "DROP" | "REJECT") => {
                error("action", format!("unknown action '{}'", field(rule, "action")));
            }
            _ => {}
        }
        for port in ["sport", "dport"] {
            if rule.contains_key(port) && !rule.contains_key("proto") && !rule.contains_key("macro") {
                error("proto", format!("missing property - '{port}' requires this property"));
            }
        }
        for side in ["source", "dest"] {
            for part in split_list(field(rule, side)) {
                let is_address = part.starts_with(|c: char| c.is_ascii_digit()) || part.contains(':');
                if let Some(set) = part.strip_prefix('+') {
                    let name = set.rsplit('/').next().unwrap_or(set);
                    if !set.starts_with("sdn/") && !self.knows(scope, |file| file.sets.contains_key(name)) {
                        error(side, format!("no such ipset '{name}'"));
                    }
                } else if !is_address {
                    let name = part.rsplit('/').next().unwrap_or(part).to_lowercase();
                    if !self.knows(scope, |file| file.aliases.contains_key(&name)) {
                        error(side, format!("no such alias '{part}'"));
                    }
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Failure::parameters(errors)) }
    }

    /// Whether a scope or the datacenter has something.
    pub(super) fn knows(&self, scope: &str, has: impl Fn(&Firewall) -> bool) -> bool {
        [scope, "cluster"].iter().any(|scope| self.firewalls.get(*scope).is_some_and(&has))
    }
}

/// Writes the given fields of a rule. An empty text and `-` remove a field.
fn change_rule(rule: &mut Object, call: &Call) {
    let mut changes = call.params.clone();
    changes.retain(|name, _| RULE_FIELDS.contains(&name.as_str()));
    rule.extend(changes);
    let removed = call.list("delete");
    rule.retain(|name, value| !removed.contains(name) && !matches!(text_of(value).as_str(), "" | "-"));
}

/// Moves a rule in front of the one that is now at `to`.
fn move_rule(rules: &mut Vec<Object>, from: usize, to: usize) {
    if from == to {
        return;
    }
    let rule = rules.remove(from);
    let place = if to > from { to - 1 } else { to };
    rules.insert(place.min(rules.len()), rule);
}
