//! What can be staged: tables of section types, and the further features.

pub(crate) mod check;
pub(crate) mod dhcp;
pub(crate) mod firewall;
pub(crate) mod naming;
pub(crate) mod network;
pub(crate) mod order;
pub(crate) mod schema;
pub(crate) mod section;
pub(crate) mod system;
pub(crate) mod values;

use heddle_sdk::Danger;

use crate::uci::{Config, Section};
use crate::world::World;
use check::Check;

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type {
    /// A text.
    Text(Check),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Stored as `1` or `0`.
    Flag,
    /// A whole number, both ends included.
    Number(u32, u32),
    /// A list of texts.
    List(Check),
    /// Written and never read back.
    Secret,
}

/// An option that a payload may give. Its name is the option's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) takes: Type,
    pub(crate) doc: &'static str,
}

pub(crate) const fn field(name: &'static str, takes: Type, doc: &'static str) -> Field {
    Field { name, takes, doc }
}

/// How a section that is created gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The only key field is the section's name.
    Key,
    /// A prefix and the key.
    Derived(&'static str),
    /// There is always exactly one; it is never created.
    Single,
}

/// What a person should know of a change before it is approved.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) warnings: Vec<String>,
    pub(crate) lockout_risk: bool,
    /// JSON pointers into the payload, and what is wrong there.
    pub(crate) errors: Vec<(String, String)>,
}

impl Notes {
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
    pub(crate) fn lockout(&mut self, why: impl Into<String>) {
        self.lockout_risk = true;
        self.warnings.push(why.into());
    }
    pub(crate) fn error(&mut self, pointer: &str, message: impl Into<String>) {
        self.errors.push((pointer.to_owned(), message.into()));
    }
}

/// A section before and after a change; absent when it is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edited<'a> {
    pub(crate) before: Option<&'a Section>,
    pub(crate) after: Option<&'a Section>,
    /// The file with the change in it.
    pub(crate) config: &'a Config,
    /// What else was read of the device.
    pub(crate) world: &'a World,
}

impl Edited<'_> {
    /// Whether the change touches this option.
    pub(crate) fn changes(&self, option: &str) -> bool {
        let of = |section: Option<&Section>| section.and_then(|section| section.options.get(option)).cloned();
        of(self.before) != of(self.after)
    }
}

/// A section type that can be edited.
pub(crate) struct SectionFeature {
    pub(crate) id: &'static str,
    pub(crate) area: &'static str,
    pub(crate) title: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) config: &'static str,
    pub(crate) section: &'static str,
    /// Payload fields that make the natural key.
    pub(crate) key: &'static [Field],
    pub(crate) naming: Naming,
    /// Options besides the key.
    pub(crate) fields: &'static [Field],
    /// Names of `fields` that a new section must have.
    pub(crate) required: &'static [&'static str],
    pub(crate) delete_danger: Danger,
    pub(crate) review: fn(&Edited<'_>, &mut Notes),
    /// The feature that brings the order back when one is deleted.
    pub(crate) order: Option<&'static str>,
}

impl SectionFeature {
    /// Whether `new_name` gives a section another name: nothing else may refer to it by its name.
    pub(crate) fn is_renamed_freely(&self) -> bool {
        self.order.is_some()
    }
}

/// All section features, in the order in which they are described.
pub(crate) const SECTIONS: &[&SectionFeature] = &[
    &firewall::RULE,
    &firewall::REDIRECT,
    &firewall::ZONE,
    &firewall::FORWARDING,
    &firewall::DEFAULTS,
    &dhcp::POOL,
    &dhcp::HOST,
    &network::INTERFACE,
    &network::VLAN,
    &network::DEVICE,
    &system::SETTINGS,
];

pub(crate) fn section_feature(id: &str) -> Option<&'static SectionFeature> {
    SECTIONS.iter().copied().find(|feature| feature.id == id)
}
