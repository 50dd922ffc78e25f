//! A simulated week: edits of others, upgrades and changes of ours, compared reading by reading. No difference is told that
//! is none, none is missed, and each has the label that the simulation knows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use heddle_core::Clock;
use heddle_core::adapter::ObjectRef;
use heddle_core::change::{ChangeStatus, Operation, OutcomeState};
use heddle_core::drift::{DriftLabel, FieldDrift};
use heddle_marketplace::model;
use heddle_store::changes::ChangeRow;
use serde_json::{Value, json};

use super::judge::{self, Compared, Evidence};
use super::label;
use super::own::Subject;
use super::testing::{own, row};
use crate::settable::Content;

/// Readings of a week, one every five minutes.
const READINGS: usize = 7 * 24 * 12;

/// Numbers that are the same in every run with the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        // A step of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(limit).unwrap()).unwrap()
    }

    fn comes(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A device, what the ledger holds of it, and what is true.
struct World {
    dice: Dice,
    clock: Clock,
    made: usize,
    device: BTreeMap<String, Content>,
    seen: BTreeMap<String, Content>,
    wanted: BTreeMap<String, Content>,
    open: BTreeMap<String, Vec<FieldDrift>>,
    rewrites: HashSet<(String, String)>,
    /// What was sent since the last reading.
    changes: Vec<ChangeRow>,
    is_upgraded: bool,
    /// What ought to be wanted, and who last moved a field away from it.
    truth: BTreeMap<String, Content>,
    moved_by: HashMap<(String, String), DriftLabel>,
    told: HashMap<DriftLabel, usize>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: Dice(seed),
            clock: Clock::default(),
            made: 0,
            device: BTreeMap::new(),
            seen: BTreeMap::new(),
            wanted: BTreeMap::new(),
            open: BTreeMap::new(),
            rewrites: HashSet::new(),
            changes: Vec::new(),
            is_upgraded: false,
            truth: BTreeMap::new(),
            moved_by: HashMap::new(),
            told: HashMap::new(),
        };
        for number in 0..12 {
            let fields = json!({ "vlan_id": 100 + number, "name": format!("net-{number}"), "dhcp": "none" });
            world.device.insert(format!("k{}", 100 + number), Content::from_value(&fields));
        }
        world.seen = world.device.clone();
        world.wanted = world.device.clone();
        world.truth = world.device.clone();
        world
    }

    fn unique(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}{}", self.made)
    }

    /// An object that is there and that nothing was done with since the last reading.
    fn quiet(&mut self, busy: &mut BTreeSet<String>) -> Option<String> {
        let quiet: Vec<String> = self.device.keys().filter(|key| !busy.contains(*key)).cloned().collect();
        if quiet.is_empty() {
            return None;
        }
        let key = quiet[self.dice.below(quiet.len())].clone();
        busy.insert(key.clone());
        Some(key)
    }

    fn change(&mut self, feature: &str, operation: Operation, payload: Value) -> &mut ChangeRow {
        self.changes.push(row(&self.clock, feature, operation, payload));
        self.changes.last_mut().unwrap()
    }

    fn put(&mut self, key: &str, field: &str, value: &Value, by: DriftLabel) {
        self.device.get_mut(key).unwrap().set(field, Some(value.clone()));
        self.moved_by.insert((key.to_owned(), field.to_owned()), by);
    }

    /// Something that happens between two readings.
    fn happens(&mut self, busy: &mut BTreeSet<String>) {
        match self.dice.below(9) {
            0 => self.we_update(busy),
            1 => self.we_create(busy),
            2 => self.we_delete(busy),
            3 => self.we_update_a_part(busy),
            4 | 5 => self.others_edit(busy),
            6 => self.others_create(busy),
            7 => self.others_delete(busy),
            _ => self.we_update_natively(busy),
        }
    }

    fn we_update(&mut self, busy: &mut BTreeSet<String>) {
        let Some(key) = self.quiet(busy).filter(|key| self.truth.contains_key(key)) else { return };
        let is_rewritten = self.dice.comes(30);
        let asked = self.unique(if is_rewritten { "OWN-" } else { "own-" });
        let stored = json!(asked.to_lowercase());
        let payload = json!({ "key": key, "name": asked });
        let change = self.change("acme.model.vlan", Operation::Update, payload);
        if is_rewritten {
            change.outcome_detail = Some(json!({ "difference": [{ "object": "vlan" }] }));
        }
        self.put(&key, "name", &stored, DriftLabel::Ours);
        self.truth.get_mut(&key).unwrap().set("name", Some(stored));
    }

    /// A change that the device took a part of: what it wrote is not what is wanted.
    fn we_update_a_part(&mut self, busy: &mut BTreeSet<String>) {
        let Some(key) = self.quiet(busy).filter(|key| self.truth.contains_key(key)) else { return };
        let gateway = json!(self.unique("10.1.0."));
        let change =
            self.change("acme.model.vlan", Operation::Update, json!({ "key": key, "gateway": gateway }));
        (change.status, change.outcome_state) = (ChangeStatus::Pending, OutcomeState::Partial);
        self.put(&key, "gateway", &gateway, DriftLabel::Ours);
    }

    fn we_update_natively(&mut self, busy: &mut BTreeSet<String>) {
        let Some(key) = self.quiet(busy).filter(|key| self.truth.contains_key(key)) else { return };
        let interface = json!(self.unique("br-"));
        self.change(
            "acme.lan.vlan",
            Operation::Update,
            json!({ "tag": key[1..].to_owned(), "port": interface }),
        );
        self.put(&key, "interface", &interface, DriftLabel::Ours);
        self.truth.get_mut(&key).unwrap().set("interface", Some(interface));
    }

    /// What others add to an object before it was read once is not told from what the vendor gives a new one.
    fn we_create(&mut self, busy: &mut BTreeSet<String>) {
        self.made += 1;
        let id = 1000 + self.made;
        let fields = json!({ "vlan_id": id, "name": format!("own-{id}"), "dhcp": "none" });
        self.change("acme.model.vlan", Operation::Create, fields.clone());
        let content = Content::from_value(&fields);
        busy.insert(format!("k{id}"));
        self.device.insert(format!("k{id}"), content.clone());
        self.truth.insert(format!("k{id}"), content);
    }

    fn we_delete(&mut self, busy: &mut BTreeSet<String>) {
        if self.device.len() < 10 {
            return;
        }
        let Some(key) = self.quiet(busy).filter(|key| self.truth.contains_key(key)) else { return };
        self.change("acme.model.vlan", Operation::Delete, json!({ "key": key }));
        self.device.remove(&key);
        self.truth.remove(&key);
    }

    fn others_edit(&mut self, busy: &mut BTreeSet<String>) {
        let Some(key) = self.quiet(busy) else { return };
        let field = if self.dice.comes(50) { "name" } else { "gateway" };
        let value = json!(self.unique("foreign-"));
        self.put(&key, field, &value, DriftLabel::Unknown);
    }

    fn others_create(&mut self, busy: &mut BTreeSet<String>) {
        self.made += 1;
        let id = 2000 + self.made;
        let key = format!("k{id}");
        let fields = json!({ "vlan_id": id, "name": format!("foreign-{id}") });
        for field in ["vlan_id", "name"] {
            self.moved_by.insert((key.clone(), field.to_owned()), DriftLabel::Unknown);
        }
        busy.insert(key.clone());
        self.device.insert(key, Content::from_value(&fields));
    }

    fn others_delete(&mut self, busy: &mut BTreeSet<String>) {
        if self.device.len() < 10 {
            return;
        }
        let Some(key) = self.quiet(busy) else { return };
        let gone = self.device.remove(&key).unwrap();
        let wanted = self.truth.get(&key).cloned().unwrap_or_default();
        for field in gone.0.keys().chain(wanted.0.keys()) {
            self.moved_by.insert((key.clone(), field.clone()), DriftLabel::Unknown);
        }
    }

    /// A new version writes one value of all objects in another way.
    fn upgrade(&mut self) {
        self.is_upgraded = true;
        let of_before: Vec<(String, Value)> = self
            .device
            .iter()
            .filter_map(|(key, content)| Some((key.clone(), content.get("dhcp")?.clone())))
            .collect();
        let mut pairs: HashMap<(Option<Value>, Value), usize> = HashMap::new();
        let flipped = |value: &Value| if value == "none" { json!("relay") } else { json!("none") };
        let wanted =
            |world: &Self, key: &str| world.truth.get(key).and_then(|content| content.get("dhcp")).cloned();
        for (key, value) in &of_before {
            *pairs.entry((wanted(self, key), flipped(value))).or_default() += 1;
        }
        for (key, value) in of_before {
            let count = pairs[&(wanted(self, &key), flipped(&value))];
            let label = if count > 1 { DriftLabel::Vendor } else { DriftLabel::Unknown };
            self.put(&key, "dhcp", &flipped(&value), label);
        }
    }

    /// A reading, and its comparison.
    fn read(&mut self) {
        let changes = self.changes.drain(..).map(|change| own(&change)).collect();
        let moving: Vec<&String> =
            self.device.keys().filter(|key| self.seen.get(*key) != self.device.get(*key)).collect();
        let kept =
            self.wanted.iter().filter(|(key, _)| self.device.contains_key(*key) && !moving.contains(key));
        let fields = ["vlan_id", "name", "dhcp", "gateway", "interface"];
        let kept: HashSet<(String, String)> = kept
            .flat_map(|(_, content)| fields.map(|field| label::value_key(field, content.get(field))))
            .collect();
        let pairs = moving.iter().filter_map(|key| Some((self.wanted.get(*key)?, &self.device[*key])));
        let common = if self.is_upgraded { label::common(pairs, &kept) } else { HashSet::new() };
        let evidence = Evidence { changes, rewrites: self.rewrites.clone(), is_read_anew: false, common };
        let keys: BTreeSet<String> =
            self.device.keys().chain(self.wanted.keys()).chain(self.open.keys()).cloned().collect();
        for key in keys {
            self.compare(&key, &evidence);
        }
        self.seen = self.device.clone();
        self.is_upgraded = false;
    }

    fn compare(&mut self, key: &str, evidence: &Evidence) {
        let observed = self.device.get(key).cloned();
        let fields = observed.as_ref().map(Content::to_value);
        let label = observed.as_ref().or(self.wanted.get(key)).and_then(|content| content.get("name"));
        let label = label.and_then(Value::as_str).unwrap_or(key).to_owned();
        let native = ObjectRef {
            kind: "lan.vlan".to_owned(),
            site: None,
            key: key[1..].to_owned(),
            locators: Vec::new(),
        };
        let known = self.open.remove(key).unwrap_or_default();
        let compared = Compared {
            subject: Subject {
                kind: model::find("vlan").unwrap(),
                key,
                label: &label,
                native: Some(&native),
                fields: fields.as_ref(),
            },
            wanted: self.wanted.get(key).cloned(),
            observed,
            upgrade: self.is_upgraded.then(|| ("1".to_owned(), "2".to_owned())),
            known: &known,
        };
        let judged = judge::judge(&compared, evidence);
        match judged.wanted {
            Some(wanted) => self.wanted.insert(key.to_owned(), wanted),
            None => self.wanted.remove(key),
        };
        self.rewrites.extend(judged.learned.into_iter().map(|learned| (learned.field, learned.digest)));
        if let Some(found) = judged.drift {
            if known.is_empty() {
                *self.told.entry(found.label).or_default() += 1;
            }
            self.open.insert(key.to_owned(), found.differences);
        }
    }

    /// What is open is exactly what differs, with the labels that the simulation knows.
    fn check(&self, reading: usize) {
        let mut expected = BTreeMap::new();
        let nothing = Content::default();
        for key in self.device.keys().chain(self.truth.keys()) {
            let (wanted, is) = (self.truth.get(key), self.device.get(key));
            for field in wanted.unwrap_or(&nothing).differing(is.unwrap_or(&nothing)) {
                let by = self.moved_by.get(&(key.clone(), field.clone())).copied();
                expected.insert((key.clone(), field), by);
            }
        }
        let found: BTreeMap<(String, String), Option<DriftLabel>> = self
            .open
            .iter()
            .flat_map(|(key, all)| {
                all.iter().map(move |one| ((key.clone(), one.field.clone()), Some(one.label)))
            })
            .collect();
        assert_eq!(found, expected, "reading {reading}");
        assert_eq!(self.wanted, self.truth, "reading {reading}");
    }

    /// A person adopts a difference, or puts back what is wanted.
    fn settle(&mut self, busy: &mut BTreeSet<String>) {
        let keys: Vec<String> = self.open.keys().filter(|key| !busy.contains(*key)).cloned().collect();
        if keys.is_empty() {
            return;
        }
        let key = keys[self.dice.below(keys.len())].clone();
        busy.insert(key.clone());
        let is_there = self.device.contains_key(&key);
        if is_there && self.truth.contains_key(&key) && self.dice.comes(50) {
            let mut payload = json!({ "key": key });
            for one in &self.open[&key] {
                payload[&one.field] = one.wanted.clone().unwrap_or_default();
            }
            self.change("acme.model.vlan", Operation::Update, payload);
            self.device.insert(key.clone(), self.truth[&key].clone());
        } else if let Some(is) = self.device.get(&key).cloned() {
            self.wanted.insert(key.clone(), is.clone());
            self.truth.insert(key.clone(), is);
            self.open.remove(&key);
        } else {
            self.wanted.remove(&key);
            self.truth.remove(&key);
            self.open.remove(&key);
        }
    }
}

#[test]
fn a_week_of_edits_upgrades_and_changes_has_no_false_difference_and_right_labels() {
    for seed in 1..=8 {
        let mut world = World::new(seed);
        for reading in 0..READINGS {
            let mut busy = BTreeSet::new();
            // Twice a week or so. Others edit meanwhile, too.
            if reading % 900 == 450 {
                world.others_edit(&mut busy);
                world.we_update(&mut busy);
                world.upgrade();
            } else {
                if world.dice.comes(20) {
                    world.settle(&mut busy);
                }
                for _ in 0..world.dice.below(3) {
                    if world.dice.comes(20) {
                        world.happens(&mut busy);
                    }
                }
            }
            world.read();
            world.check(reading);
        }
        for label in [DriftLabel::Unknown, DriftLabel::Ours, DriftLabel::Vendor] {
            assert!(
                world.told.get(&label).copied().unwrap_or_default() > 0,
                "seed {seed} told of no {label}"
            );
        }
        assert!(!world.rewrites.is_empty(), "seed {seed} learned what the vendor writes");
    }
}
