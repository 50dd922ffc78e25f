//! The firewall of the datacenter, of nodes, of guests and of SDN networks: rules by position, options, aliases,
//! address sets and groups.

mod names;
mod rules;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Call, Object, Outcome};
use crate::cluster::{Cluster, check_digest, hash};
use crate::store::{merge, written};

/// A set of addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressSet {
    comment: Option<String>,
    entries: Vec<Object>,
}

/// One firewall file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firewall {
    pub(crate) rules: Vec<Object>,
    pub(crate) options: Object,
    pub(crate) aliases: BTreeMap<String, Object>,
    pub(crate) sets: BTreeMap<String, AddressSet>,
    /// Of a group.
    pub(crate) comment: Option<String>,
}

impl Firewall {
    /// Whether nothing stands in the file.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.options.is_empty() && self.aliases.is_empty() && self.sets.is_empty()
    }

    fn rules_digest(&self) -> String {
        hash(&json!(self.rules).to_string(), 40)
    }

    fn aliases_digest(&self) -> String {
        hash(&json!(self.aliases).to_string(), 40)
    }

    fn sets_digest(&self) -> String {
        let sets: Vec<Value> =
            self.sets.iter().map(|(name, set)| json!([name, set.comment, set.entries])).collect();
        hash(&json!(sets).to_string(), 40)
    }
}

impl Cluster {
    pub(crate) fn firewall_call(&mut self, call: &Call) -> Option<Outcome> {
        let (prefix, tail) = call.route.path.split_once("/firewall")?;
        let scope = match self.firewall_scope(call, prefix, tail) {
            Ok(scope) => scope,
            Err(failure) => return Some(Err(failure)),
        };
        let method = call.route.method.as_str();
        let rules = tail.strip_prefix("/rules").or_else(|| tail.strip_prefix("/groups/{group}"));
        if let Some(place) = rules.filter(|place| matches!(*place, "" | "/{pos}"))
            && !(method == "DELETE" && place.is_empty())
        {
            return Some(self.rule_call(call, &scope, place));
        }
        Some(match (method, tail) {
            ("GET", "/options") => Ok(self.firewall_options(&scope)),
            ("PUT", "/options") => self.write_options(call, &scope),
            (_, tail) if tail.starts_with("/aliases") => self.alias_call(call, &scope),
            (_, tail) if tail.starts_with("/ipset") => self.set_call(call, &scope),
            (_, tail) if tail.starts_with("/groups") => self.group_call(call),
            ("GET", "/refs") => Ok(self.references(call, &scope)),
            ("GET", "/macros") => Ok(json!([
                { "macro": "DNS", "descr": "Domain Name System traffic (upd and tcp)" },
                { "macro": "HTTP", "descr": "Hypertext Transfer Protocol (WWW)" },
                { "macro": "HTTPS", "descr": "Hypertext Transfer Protocol (WWW) over SSL" },
                { "macro": "Ping", "descr": "ICMP echo request" },
                { "macro": "SSH", "descr": "Secure shell traffic" },
            ])),
            ("GET", "/log") => Ok(json!([{ "n": 1, "t": "no content" }])),
            _ => return None,
        })
    }

    fn firewall_scope(&self, call: &Call, prefix: &str, tail: &str) -> Outcome<String> {
        if tail.starts_with("/groups/{group}") {
            return Ok(format!("groups/{}", call.text("group")));
        }
        Ok(match prefix {
            "/cluster" => "cluster".to_owned(),
            "/cluster/sdn/vnets/{vnet}" => format!("vnets/{}", call.text("vnet")),
            "/nodes/{node}" => format!("nodes/{}", call.node()),
            _ => format!("guests/{}", self.guest(call)?.vmid),
        })
    }

    fn file(&mut self, scope: &str) -> &mut Firewall {
        self.firewalls.entry(scope.to_owned()).or_default()
    }

    fn firewall_options(&mut self, scope: &str) -> Value {
        let mut options = self.file(scope).options.clone();
        let digest = hash(&json!(options).to_string(), 40);
        options.insert("digest".to_owned(), Value::from(digest));
        Value::Object(options)
    }

    fn write_options(&mut self, call: &Call, scope: &str) -> Outcome {
        let now_secs = self.now_secs();
        let options = &mut self.file(scope).options;
        check_digest(call, &hash(&json!(options).to_string(), 40))?;
        let mut changes = written(call);
        // A number above 1 is a trial: it counts for a minute.
        if scope == "cluster"
            && changes.get("enable").and_then(Value::as_u64).is_some_and(|number| number > 1)
        {
            changes.insert("enable".to_owned(), Value::from(now_secs));
        }
        merge(options, changes, &call.list("delete"));
        Ok(Value::Null)
    }

    /// Whether the datacenter's firewall acts. A trial is over after a minute.
    pub(crate) fn is_firewall_on(&self) -> bool {
        let enable = self.firewalls.get("cluster").and_then(|file| file.options.get("enable"));
        match enable.and_then(Value::as_u64) {
            None | Some(0) => false,
            Some(1) => true,
            Some(since) => self.now_secs() < since + 60,
        }
    }
}
