//! The releases of the Network application that can be selected.

use serde::{Deserialize, Serialize};

/// A release of the application.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
pub enum Release {
    /// 9.5.21: the official interface only reads, and events and alarms have their own lists.
    #[value(name = "9.5")]
    #[serde(rename = "9.5")]
    V9_5,
    /// 10.1.78: the official interface writes; events are in the system log.
    #[value(name = "10.1")]
    #[serde(rename = "10.1")]
    V10_1,
    /// 10.2.97: power supervisors, and switch stacks in the official interface.
    #[value(name = "10.2")]
    #[serde(rename = "10.2")]
    V10_2,
    /// 10.3.58: enhanced open networks, snooping of IGMP as a setting.
    #[value(name = "10.3")]
    #[serde(rename = "10.3")]
    V10_3,
    /// 10.4.57: floor plans and tags are gone, the roaming assistant stands in the WLAN.
    #[default]
    #[value(name = "10.4")]
    #[serde(rename = "10.4")]
    V10_4,
}

impl Release {
    /// As the application tells it.
    pub fn version(self) -> &'static str {
        match self {
            Self::V9_5 => "9.5.21",
            Self::V10_1 => "10.1.78",
            Self::V10_2 => "10.2.97",
            Self::V10_3 => "10.3.58",
            Self::V10_4 => "10.4.57",
        }
    }

    fn number(self) -> (u32, u32) {
        match self {
            Self::V9_5 => (9, 5),
            Self::V10_1 => (10, 1),
            Self::V10_2 => (10, 2),
            Self::V10_3 => (10, 3),
            Self::V10_4 => (10, 4),
        }
    }

    /// Whether it is this release, such as `10.4`, or a later one.
    pub(crate) fn is_from(self, release: &str) -> bool {
        let (major, minor) = release.split_once('.').unwrap_or((release, "0"));
        self.number() >= (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
    }

    /// Whether a thing that came and went with these releases is there.
    pub(crate) fn has(self, since: Option<&str>, until: Option<&str>) -> bool {
        since.is_none_or(|release| self.is_from(release))
            && until.is_none_or(|release| !self.is_from(release))
    }

    /// Whether events and alarms have lists of their own.
    pub(crate) fn lists_events(self) -> bool {
        !self.is_from("10.1")
    }
}
