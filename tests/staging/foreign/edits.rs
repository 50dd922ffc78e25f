//! What other people save at a router, and how it is found again.

use heddle_lab_openwrt::{Change, Router};
use serde_json::json;

use crate::staging::subject::times;
use crate::support::Random;

/// An edit that another person saved at the router.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::staging) enum Edit {
    /// A rule of this name was added, in a section of this name.
    Added { section: String, rule: String },
    /// An option was set.
    Set { config: &'static str, section: &'static str, option: &'static str, value: String },
}

impl Edit {
    /// One of the edits that people make, which differs from those of other rounds and numbers.
    pub(super) fn some(random: &mut Random, round: u32, n: u64) -> Self {
        match random.next(10) {
            0..6 => Self::added(&format!("f{round}x{n}"), &format!("Foreign-{round}-{n}")),
            6..8 => Self::Set {
                config: "firewall",
                section: "@defaults[0]",
                option: "synflood_rate",
                value: format!("{}/s", 10 + round % 50),
            },
            _ => Self::Set {
                config: "system",
                section: "@system[0]",
                option: "hostname",
                value: format!("edge-{round}-{n}"),
            },
        }
    }

    pub(in crate::staging) fn added(section: &str, rule: &str) -> Self {
        Self::Added { section: section.to_owned(), rule: rule.to_owned() }
    }

    pub(in crate::staging) fn save(&self, router: &Router) {
        let done = match self {
            Self::Added { section, rule } => {
                let add = Change::Create { section: section.clone(), kind: "rule".to_owned() };
                let named = |option, value| Change::set(section, option, value);
                router.edit(
                    "firewall",
                    &[add, named("name", rule), named("src", "wan"), named("target", "ACCEPT")],
                )
            }
            Self::Set { config, section, option, value } => {
                router.edit(config, &[Change::set(section, option, value)])
            }
        };
        assert!(done, "{self:?} can be saved");
    }

    pub(in crate::staging) fn is_there(&self, router: &Router) -> bool {
        match self {
            Self::Added { rule, .. } => times(router, rule) == 1,
            Self::Set { config, section, option, value } => {
                router.option(config, section, option) == Some(json!(value))
            }
        }
    }

    /// Removes what was added, so that the router does not grow.
    pub(in crate::staging) fn clean(&self, router: &Router) {
        if let Self::Added { section, .. } = self {
            router.edit("firewall", &[Change::remove(section)]);
        }
    }

    /// Whether `later` replaces this one.
    fn is_replaced_by(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Set { option, .. }, Self::Set { option: other, .. }) => option == other,
            _ => false,
        }
    }
}

/// An edit, and whether the device could still take it back by itself after it was saved.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) edit: Edit,
    pub(super) is_at_risk: bool,
}

/// Those that no later edit replaced.
pub(super) fn standing(edits: &[Saved]) -> impl Iterator<Item = &Saved> {
    edits.iter().enumerate().filter_map(move |(at, saved)| {
        let is_replaced = edits[at + 1..].iter().any(|later| saved.edit.is_replaced_by(&later.edit));
        (!is_replaced).then_some(saved)
    })
}
