//! What must not be installed or must not run any more, and how urgent that is.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use semver::Version;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bounds::{RANGE_BYTES_MAX, SUMMARY_BYTES_MAX};
use super::strict;
use crate::{rules, signature};

/// What the value of a revocation names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevokedKind {
    /// SHA-256 of an archive, or of the manifest in it: packing the same files anew does not evade the revocation.
    Package,
    /// SHA-256 of a component.
    Component,
    /// Id of a publisher's key.
    Key,
    /// Id of a plugin.
    Plugin,
}

impl fmt::Display for RevokedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Package => "package",
            Self::Component => "component",
            Self::Key => "key",
            Self::Plugin => "plugin",
        })
    }
}

/// What a server does with what is revoked. The later one is the graver one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It is not installed any more; where it is installed, it goes on.
    Block,
    /// It takes no more calls; its data stay.
    Disable,
    /// Running calls are cut, it is quarantined, and an alert is raised.
    Kill,
}

/// One entry of the list of a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Revocation {
    pub kind: RevokedKind,
    /// Lower-case hex of a SHA-256; for a plugin its id.
    pub value: String,
    /// Which versions of a plugin; all of them when absent. Other kinds have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<VersionRange>,
    pub action: Action,
    /// One line for people.
    pub reason: String,
}

/// A package that is asked about. What is not known is left out and matches nothing.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub plugin: &'a str,
    pub version: &'a Version,
    /// SHA-256 of the archive, lower-case hex.
    pub package_sha256: Option<&'a str>,
    /// SHA-256 of the manifest.
    pub manifest_sha256: Option<&'a str>,
    /// SHA-256 of the component.
    pub component_sha256: Option<&'a str>,
    /// Ids of the keys that signed it. One revoked key among them is enough.
    pub key_ids: &'a [String],
}

impl Revocation {
    /// Whether this entry is about the package.
    #[must_use]
    pub fn concerns(&self, subject: &Subject<'_>) -> bool {
        let is = |hash: Option<&str>| hash == Some(self.value.as_str());
        match self.kind {
            RevokedKind::Package => is(subject.package_sha256) || is(subject.manifest_sha256),
            RevokedKind::Component => is(subject.component_sha256),
            RevokedKind::Key => subject.key_ids.contains(&self.value),
            RevokedKind::Plugin => {
                self.value == subject.plugin
                    && self.versions.as_ref().is_none_or(|range| range.has(subject.version))
            }
        }
    }

    /// Whether both revoke the same thing in the same way. The reason may be worded anew.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.value, &self.versions, self.action)
            == (other.kind, &other.value, &other.versions, other.action)
    }

    /// Says what is wrong with the entry.
    pub fn check(&self) -> Result<(), String> {
        let value = strict::shown(&self.value);
        match self.kind {
            RevokedKind::Plugin if !rules::is_id(&self.value) => {
                return Err(format!("'{value}' is revoked as a plugin, and is no id of one"));
            }
            RevokedKind::Plugin => {}
            kind if !signature::is_sha256(&self.value) => {
                return Err(format!("'{value}' is revoked as a {kind}, and is no SHA-256 in lower-case hex"));
            }
            kind if self.versions.is_some() => {
                return Err(format!("the revocation of a {kind} has no 'versions'"));
            }
            _ => {}
        }
        strict::line("the reason of a revocation", &self.reason, SUMMARY_BYTES_MAX)
    }
}

/// The gravest of the revocations of a package; of equal ones the first.
#[must_use]
pub fn gravest<'a>(revocations: &'a [Revocation], subject: &Subject<'_>) -> Option<&'a Revocation> {
    let concerning = revocations.iter().filter(|one| one.concerns(subject));
    concerning.reduce(|gravest, one| if one.action > gravest.action { one } else { gravest })
}

/// Versions of a plugin, as comparisons that must all hold: `<1.4.1`, `>=1.2.0, <1.3.0`, `=1.0.0`.
///
/// Versions are compared by precedence alone: `1.4.1-rc.1` is below `1.4.1`. Build metadata does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange(Vec<(Comparison, Version)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// From the longest to the shortest, so that none is read as the beginning of another.
const SIGNS: [(&str, Comparison); 5] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

impl VersionRange {
    /// Whether the version is one of them.
    #[must_use]
    pub fn has(&self, version: &Version) -> bool {
        self.0.iter().all(|(comparison, bound)| {
            let found = version.cmp_precedence(bound);
            match comparison {
                Comparison::Less => found == Ordering::Less,
                Comparison::LessOrEqual => found != Ordering::Greater,
                Comparison::Equal => found == Ordering::Equal,
                Comparison::GreaterOrEqual => found != Ordering::Less,
                Comparison::Greater => found == Ordering::Greater,
            }
        })
    }
}

impl FromStr for VersionRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "'{}' is no range of versions; write it as '<1.4.1' or '>=1.2.0, <1.3.0'",
                strict::shown(text)
            )
        };
        if text.len() > RANGE_BYTES_MAX {
            return Err(refused());
        }
        let parts = text.split(',').map(|part| {
            let part = part.trim();
            let (sign, comparison) = SIGNS.iter().find(|(sign, _)| part.starts_with(sign))?;
            Some((*comparison, Version::parse(part[sign.len()..].trim()).ok()?))
        });
        parts.collect::<Option<_>>().map(Self).ok_or_else(refused)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (comparison, version)) in self.0.iter().enumerate() {
            let sign = SIGNS.iter().find(|(_, known)| known == comparison).map_or("", |(sign, _)| sign);
            write!(f, "{}{sign}{version}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Serialize for VersionRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for VersionRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
