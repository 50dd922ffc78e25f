//! The two releases that can be selected.

use serde::{Deserialize, Serialize};

/// A release of the firewall's software.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Release {
    /// 26.1.6: filter savepoints with a rollback timer, `disabled` in static routes, assignments not in the API.
    #[value(name = "26.1")]
    #[serde(rename = "26.1")]
    V26_1,
    /// 26.7.2: no savepoints, `enabled` in static routes, interface assignments and gateway groups.
    #[default]
    #[value(name = "26.7")]
    #[serde(rename = "26.7")]
    V26_7,
}

impl Release {
    /// The series, for example `26.7`.
    pub fn series(self) -> &'static str {
        match self {
            Self::V26_1 => "26.1",
            Self::V26_7 => "26.7",
        }
    }

    /// The number of the last part with which the firewall starts.
    pub(crate) fn patch(self) -> u32 {
        match self {
            Self::V26_1 => 6,
            Self::V26_7 => 2,
        }
    }
}
