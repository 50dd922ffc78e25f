//! What resolves differences: changes in the words of the model, and what is left to a person, with the reason. Pure.
//!
//! A limb gets the number and the name of a VLAN. Addresses, gateway and DHCP are the business of the device that routes it:
//! a second device with the same gateway's address would cut the first one off.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::vlan::VlanFault;
use serde_json::{Map, Value, json};

use super::Finding;
use crate::site::facts::{Carriage, DEFAULT_VLAN, Domain, End, Facts, Tagged, VlanRow, folded};

/// What a domain can be asked to change, by the fields that its vendor has something for. `None` where it cannot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writable {
    pub(crate) create_vlan: Option<BTreeSet<String>>,
    pub(crate) update_vlan: Option<BTreeSet<String>>,
    pub(crate) delete_vlan: bool,
    pub(crate) update_port: Option<BTreeSet<String>>,
}

/// How differences are to be resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// Nothing is written here: the domains of the brain.
    pub(crate) read_only: BTreeSet<usize>,
    /// Of a link, the end in one of these is right.
    pub(crate) right: BTreeSet<usize>,
    pub(crate) removes_extra: bool,
}

/// A change in the words of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) domain: usize,
    /// `vlan` or `port`.
    pub(crate) kind: &'static str,
    pub(crate) verb: &'static str,
    /// The VLANs that it is about.
    pub(crate) vlans: BTreeSet<u16>,
    pub(crate) payload: Value,
    /// The differences that it resolves.
    pub(crate) findings: Vec<Finding>,
}

/// A difference that no change resolves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Left {
    pub(crate) finding: Finding,
    pub(crate) reason: String,
}

/// What to do about differences.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Remedy {
    /// By domain; what is made comes before what is changed, and that before what is removed.
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) left: Vec<Left>,
}

/// The changes that resolve these differences. `writable` has an entry for each domain.
pub(crate) fn remedy(facts: &Facts, findings: &[Finding], writable: &[Writable], rules: &Rules) -> Remedy {
    let mut draft = Draft {
        facts,
        writable,
        rules,
        carriers: BTreeMap::new(),
        made: Vec::new(),
        changed: BTreeMap::new(),
        removed: Vec::new(),
    };
    let mut left = Vec::new();
    for finding in findings {
        if let Err(reason) = draft.resolve(finding) {
            left.push(Left { finding: finding.clone(), reason });
        }
    }
    Remedy { wanted: draft.wanted(), left }
}

/// An object that is changed: its domain, its kind and its key.
type Object = (usize, &'static str, String);

/// What is changed of an object.
#[derive(Default)]
struct Changed {
    vlans: BTreeSet<u16>,
    payload: Map<String, Value>,
    findings: Vec<Finding>,
}

struct Draft<'f> {
    facts: &'f Facts,
    writable: &'f [Writable],
    rules: &'f Rules,
    /// Of each domain, once.
    carriers: BTreeMap<usize, BTreeSet<String>>,
    made: Vec<Wanted>,
    /// Everything that is changed of one object is one change.
    changed: BTreeMap<Object, Changed>,
    removed: Vec<Wanted>,
}

impl<'f> Draft<'f> {
    fn wanted(self) -> Vec<Wanted> {
        let changed = self.changed.into_iter().map(|((domain, kind, key), changed)| {
            let Changed { vlans, mut payload, findings } = changed;
            payload.insert("key".to_owned(), json!(key));
            Wanted { domain, kind, verb: "update", vlans, payload: Value::Object(payload), findings }
        });
        let mut all: Vec<Wanted> = self.made.into_iter().chain(changed).chain(self.removed).collect();
        all.sort_by_key(|wanted| wanted.domain);
        all
    }

    fn resolve(&mut self, finding: &Finding) -> Result<(), String> {
        match finding.class {
            VlanFault::Missing => self.create(finding),
            VlanFault::Extra => self.remove(finding),
            VlanFault::NameDiffers => self.rename(finding),
            VlanFault::NativeMismatch => self.set_native(finding),
            VlanFault::TaggedOnOneEnd => self.tag(finding),
            VlanFault::SubnetOverlaps | VlanFault::Orphan => {
                Err("which VLAN is right is for a person to decide".to_owned())
            }
        }
    }

    fn domain(&self, at: usize) -> Result<&'f Domain, String> {
        if self.rules.read_only.contains(&at) {
            return Err("the brain of the site is only read".to_owned());
        }
        Ok(&self.facts.domains[at])
    }

    fn create(&mut self, finding: &Finding) -> Result<(), String> {
        let domain = self.domain(finding.domain)?;
        let fields = self.writable[finding.domain]
            .create_vlan
            .as_ref()
            .ok_or_else(|| cannot(domain, "creates", "vlan"))?;
        let mut payload = Map::from_iter([("vlan_id".to_owned(), json!(finding.vlan))]);
        if let Some(name) = finding.expected.as_ref().filter(|_| fields.contains("name")) {
            payload.insert("name".to_owned(), json!(name));
        }
        if fields.contains("members") {
            let facts = self.facts;
            let at = finding.domain;
            let carriers = self.carriers.entry(at).or_insert_with(|| carriers(facts, at));
            let members: Vec<Value> =
                carriers.iter().map(|port| json!({ "port": port, "tagged": true })).collect();
            if !members.is_empty() {
                payload.insert("members".to_owned(), json!(members));
            }
        }
        let vlans = [finding.vlan].into();
        let payload = Value::Object(payload);
        let (domain, findings) = (finding.domain, vec![finding.clone()]);
        self.made.push(Wanted { domain, kind: "vlan", verb: "create", vlans, payload, findings });
        Ok(())
    }

    fn remove(&mut self, finding: &Finding) -> Result<(), String> {
        let domain = self.domain(finding.domain)?;
        if !self.rules.removes_extra {
            return Err("it is removed only where 'remove_extra' asks for it".to_owned());
        }
        if !self.writable[finding.domain].delete_vlan {
            return Err(cannot(domain, "deletes", "vlan"));
        }
        let removed = domain.own_rows(finding.vlan).map(|row| Wanted {
            domain: finding.domain,
            kind: "vlan",
            verb: "delete",
            vlans: [finding.vlan].into(),
            payload: json!({ "key": row.key }),
            findings: vec![finding.clone()],
        });
        let removed: Vec<Wanted> = removed.collect();
        self.removed.extend(removed);
        Ok(())
    }

    fn rename(&mut self, finding: &Finding) -> Result<(), String> {
        let domain = self.domain(finding.domain)?;
        let fields = self.writable[finding.domain].update_vlan.as_ref();
        if !fields.is_some_and(|fields| fields.contains("name")) {
            return Err(cannot(domain, "changes the name of", "vlan"));
        }
        let row = domain.own_rows(finding.vlan).find(|row| row.name.is_some());
        let key = row.map(|row| row.key.clone()).ok_or_else(|| "it has no name there".to_owned())?;
        let name = json!(finding.expected);
        self.change((finding.domain, "vlan", key), finding.vlan, finding).insert("name".to_owned(), name);
        Ok(())
    }

    /// What is changed of an object, so far.
    fn change(&mut self, object: Object, vlan: u16, finding: &Finding) -> &mut Map<String, Value> {
        let changed = self.changed.entry(object).or_default();
        changed.vlans.insert(vlan);
        changed.findings.push(finding.clone());
        &mut changed.payload
    }

    fn set_native(&mut self, finding: &Finding) -> Result<(), String> {
        let (link, _) = finding.link.ok_or("it is on no link")?;
        let ends = &self.facts.links[link].ends;
        let is_right = ends.each_ref().map(|end| self.rules.right.contains(&end.domain));
        let (wrong, right) = match is_right {
            [true, false] => (&ends[1], &ends[0]),
            [false, true] => (&ends[0], &ends[1]),
            _ => {
                return Err(
                    "which end is right is not known: align with the controller of one of them".to_owned()
                );
            }
        };
        let domain = self.domain(wrong.domain)?;
        let native = self.facts.native(right).ok_or("the VLAN of the right end is not known")?;
        let fields = self.writable[wrong.domain].update_port.as_ref();
        let port = wrong.port_at.map(|at| &domain.ports[at]);
        let Some(port) = port.filter(|_| fields.is_some_and(|fields| fields.contains("native_vlan"))) else {
            return Err(cannot(domain, "sets the VLAN without a tag of", "port"));
        };
        if port.tagged.has(native) {
            return Err(format!(
                "VLAN {native} has a tag at that port; a person decides which of both it is"
            ));
        }
        let key = port.key.clone();
        let payload = self.change((wrong.domain, "port", key), native, finding);
        payload.insert("native_vlan".to_owned(), json!(native));
        Ok(())
    }

    fn tag(&mut self, finding: &Finding) -> Result<(), String> {
        let (link, side) = finding.link.ok_or("it is on no link")?;
        let facts = self.facts;
        let end = &facts.links[link].ends[side];
        let domain = self.domain(end.domain)?;
        if facts.carriage(end, finding.vlan) == Carriage::Untagged {
            return Err(
                "the port has the VLAN without a tag; a person decides which of both it is".to_owned()
            );
        }
        let can = |fields: Option<&BTreeSet<String>>, field: &str| {
            fields.is_some_and(|fields| fields.contains(field))
        };
        let writable = &self.writable[end.domain];
        if can(writable.update_port.as_ref(), "tagged_vlans")
            && let Some(port) = facts.port_of(end)
            && let Tagged::List(list) = &port.tagged
        {
            let key = port.key.clone();
            self.add_to_port((end.domain, "port", key), list, finding);
            return Ok(());
        }
        if can(writable.update_vlan.as_ref(), "members") {
            return self.add_member(end, finding);
        }
        Err(cannot(domain, "sets the VLANs of", "port"))
    }

    fn add_to_port(&mut self, object: Object, list: &BTreeSet<u16>, finding: &Finding) {
        let payload = self.change(object, finding.vlan, finding);
        let known = payload.get("tagged_vlans").and_then(Value::as_array);
        let mut all: BTreeSet<u16> = known.map_or_else(|| list.clone(), |known| numbers(known));
        all.insert(finding.vlan);
        payload.insert("tagged_vlans".to_owned(), json!(all));
    }

    fn add_member(&mut self, end: &End, finding: &Finding) -> Result<(), String> {
        let domain = &self.facts.domains[end.domain];
        let is_of = |row: &&VlanRow| row.device == end.device && row.members.is_some();
        let row =
            domain.own_rows(finding.vlan).find(is_of).ok_or("the ports of the VLAN are not known there")?;
        let known: Option<Vec<Value>> = row
            .members
            .iter()
            .flatten()
            .map(|member| Some(json!({ "port": member.port, "tagged": member.is_tagged? })))
            .collect();
        let known = known.ok_or("which of its ports have a tag is not known there")?;
        let (key, port) = (row.key.clone(), end.port.clone());
        let payload = self.change((end.domain, "vlan", key), finding.vlan, finding);
        let members = payload.entry("members").or_insert_with(|| json!(known));
        if let Value::Array(members) = members
            && !members
                .iter()
                .any(|one| one["port"].as_str().is_some_and(|name| folded(name) == folded(&port)))
        {
            members.push(json!({ "port": port, "tagged": true }));
        }
        Ok(())
    }
}

/// The ports that carry every VLAN of the domain with a tag; where it has none yet, those that lead to other devices.
fn carriers(facts: &Facts, at: usize) -> BTreeSet<String> {
    let domain = &facts.domains[at];
    let own = domain.vlans.iter().filter(|(vlan, _)| **vlan != DEFAULT_VLAN);
    let mut common: Option<BTreeSet<String>> = None;
    for (_, rows) in own {
        let members = rows.iter().flat_map(|row| row.members.iter().flatten());
        let tagged: BTreeSet<String> = members
            .filter(|member| member.is_tagged == Some(true))
            .map(|member| member.port.clone())
            .collect();
        common = Some(match common {
            Some(common) => common.intersection(&tagged).cloned().collect(),
            None => tagged,
        });
    }
    common.unwrap_or_else(|| {
        let ends = facts.links.iter().flat_map(|link| &link.ends);
        ends.filter(|end| end.domain == at).map(|end| end.port.clone()).collect()
    })
}

impl Tagged {
    fn has(&self, vlan: u16) -> bool {
        matches!(self, Tagged::List(list) if list.contains(&vlan)) || matches!(self, Tagged::All)
    }
}

fn numbers(list: &[Value]) -> BTreeSet<u16> {
    list.iter().filter_map(Value::as_u64).filter_map(|number| u16::try_from(number).ok()).collect()
}

fn cannot(domain: &Domain, does: &str, kind: &str) -> String {
    format!("'{}' {does} no {kind} in the words of the model; its own features may", domain.vendor)
}
