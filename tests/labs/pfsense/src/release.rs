//! The releases that can be selected: one of the REST API package each, all on the same pfSense.

use serde::{Deserialize, Serialize};

/// A release of the REST API package.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
pub enum Release {
    /// 2.7.1: no common `dry_run`, services of packages always told as off, tables without a name.
    #[value(name = "2.7")]
    #[serde(rename = "2.7")]
    V2_7,
    /// 2.8.4: `dry_run`, `POST /system/update`, lists of choices, `FreeRADIUS` EAP, LDAP and MAC.
    #[value(name = "2.8")]
    #[serde(rename = "2.8")]
    V2_8,
    /// 2.10.0: also high availability and the state of `WireGuard`.
    #[default]
    #[value(name = "2.10")]
    #[serde(rename = "2.10")]
    V2_10,
}

impl Release {
    /// The three numbers of the package's version.
    pub(crate) fn numbers(self) -> (u32, u32, u32) {
        match self {
            Self::V2_7 => (2, 7, 1),
            Self::V2_8 => (2, 8, 4),
            Self::V2_10 => (2, 10, 0),
        }
    }

    /// The version as the package tells it: the last number is left out where it is 0.
    pub(crate) fn version(self) -> String {
        match self.numbers() {
            (major, minor, 0) => format!("v{major}.{minor}"),
            (major, minor, patch) => format!("v{major}.{minor}.{patch}"),
        }
    }

    /// Whether this release is one of `from` or a later one.
    pub(crate) fn is_from(self, from: &str) -> bool {
        let mut parts = from.split('.').map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        self.numbers() >= (next(), next(), next())
    }
}
