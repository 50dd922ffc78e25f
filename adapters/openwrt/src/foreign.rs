//! What others have on the device: remembered by label and digest, so that what they changed can be named.

use std::collections::{BTreeMap, BTreeSet};

use crate::identity::{Finder, label, rest_digest};
use crate::token::Theirs;
use crate::touch::{Configs, Order, Part};
use crate::uci::Config;

const FOREIGN_MAX: usize = 100;
/// Types in which the order decides.
const ORDERED: &[&str] = &["rule", "redirect"];

/// Sections of each file that no part of the plan is about.
pub(crate) fn theirs(files: &Configs, parts: &[Part]) -> BTreeMap<String, Theirs> {
    files.iter().map(|(name, config)| (name.clone(), of_file(config, parts))).collect()
}

fn of_file(config: &Config, parts: &[Part]) -> Theirs {
    let ours = ours(config, parts);
    let sections: Vec<(String, String)> = config
        .sections
        .iter()
        .filter(|section| !ours.contains(&section.uid))
        .map(|section| (label(&config.name, section), rest_digest(section, &BTreeSet::new())))
        .collect();
    // Without the order, which is compared by itself.
    let mut sorted = sections.clone();
    sorted.sort();
    let digest = crate::identity::short_digest(&serde_json::json!(sorted));
    Theirs { digest, sections }
}

fn ours(config: &Config, parts: &[Part]) -> BTreeSet<usize> {
    let mut finders: BTreeMap<&str, Finder<'_>> = BTreeMap::new();
    let mut ours = BTreeSet::new();
    for part in parts.iter().filter(|part| part.config == config.name) {
        let finder = finders.entry(&part.kind).or_insert_with(|| Finder::new(config, &part.kind));
        ours.extend(part.section(finder).map(|section| section.uid));
    }
    ours
}

/// What others changed since the plan, a sentence each.
pub(crate) fn changes(
    files: &Configs,
    (parts, orders): (&[Part], &[Order]),
    before: &BTreeMap<String, Theirs>,
) -> Vec<String> {
    let mut said = Vec::new();
    for (name, config) in files {
        let Some(before) = before.get(name) else { continue };
        beside_ours(config, parts, &mut said);
        let now = of_file(config, parts);
        let is_same = before.sections.is_empty() || before.sections == now.sections;
        if before.digest == now.digest && is_same {
            continue;
        }
        if before.sections.is_empty() && !now.sections.is_empty() {
            said.push(format!("configuration '{name}' was changed beside what this plan touches"));
            continue;
        }
        // The order that the plan itself writes is ours.
        let ordered: Vec<&str> =
            orders.iter().filter(|order| order.config == *name).map(|order| order.kind.as_str()).collect();
        compare((&before.sections, &now.sections), &ordered, &mut said);
    }
    said.truncate(FOREIGN_MAX);
    said
}

fn beside_ours(config: &Config, parts: &[Part], said: &mut Vec<String>) {
    let mut finders: BTreeMap<&str, Finder<'_>> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.config == config.name) {
        let finder = finders.entry(&part.kind).or_insert_with(|| Finder::new(config, &part.kind));
        if part.section(finder).is_some_and(|section| part.is_changed_beside(section)) {
            said.push(format!("{} was changed beside what this plan touches", part.label));
        }
    }
}

fn compare(
    (before, now): (&[(String, String)], &[(String, String)]),
    ordered: &[&str],
    said: &mut Vec<String>,
) {
    fn by_label(sections: &[(String, String)]) -> BTreeMap<&str, Vec<&str>> {
        let mut map: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (label, digest) in sections {
            map.entry(label).or_default().push(digest);
        }
        map.values_mut().for_each(|digests| digests.sort_unstable());
        map
    }
    let (old, new) = (by_label(before), by_label(now));
    let labels: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let count = said.len();
    for label in labels {
        let none = Vec::new();
        let (was, is) = (old.get(label).unwrap_or(&none), new.get(label).unwrap_or(&none));
        match was.len().cmp(&is.len()) {
            std::cmp::Ordering::Less => said.push(format!("{label} was added")),
            std::cmp::Ordering::Greater => said.push(format!("{label} was removed")),
            std::cmp::Ordering::Equal if was != is => said.push(format!("{label} was changed")),
            std::cmp::Ordering::Equal => {}
        }
    }
    if said.len() == count {
        // All are there and say the same: only their order is left, and among which types it matters is named.
        let kind = ORDERED.iter().filter(|kind| !ordered.contains(*kind)).find(|kind| {
            let of = |sections: &[(String, String)]| -> Vec<String> {
                let title = if **kind == "rule" { "firewall rule" } else { "port forward" };
                sections
                    .iter()
                    .map(|(label, _)| label)
                    .filter(|label| label.starts_with(title))
                    .cloned()
                    .collect()
            };
            of(before) != of(now)
        });
        match kind {
            Some(&"rule") => said.push("the order of firewall rules was changed".to_owned()),
            Some(_) => said.push("the order of port forwards was changed".to_owned()),
            None => {}
        }
    }
}
