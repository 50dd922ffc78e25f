//! The releases that can be selected.

use serde::{Deserialize, Serialize};

/// A release of the router's software.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
pub enum Release {
    /// 7.16.2: `is-responder` of `WireGuard` peers, one OVPN server, creates answer 200, deletes 200.
    #[value(name = "7.16")]
    #[serde(rename = "7.16")]
    V7_16,
    /// 7.22.3: `responder`, OVPN servers as a list, instances of BGP, creates answer 201, deletes 204.
    #[default]
    #[value(name = "7.22")]
    #[serde(rename = "7.22")]
    V7_22,
    /// 7.24: as 7.22, with the menus and fields that came since.
    #[value(name = "7.24")]
    #[serde(rename = "7.24")]
    V7_24,
}

impl Release {
    /// The second number, by which fields and menus come and go.
    pub(crate) fn minor(self) -> u32 {
        match self {
            Self::V7_16 => 16,
            Self::V7_22 => 22,
            Self::V7_24 => 24,
        }
    }

    /// As the router tells it, without the channel.
    pub fn version(self) -> &'static str {
        match self {
            Self::V7_16 => "7.16.2",
            Self::V7_22 => "7.22.3",
            Self::V7_24 => "7.24",
        }
    }

    /// What an update installs.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::V7_16 => Some(Self::V7_22),
            Self::V7_22 => Some(Self::V7_24),
            Self::V7_24 => None,
        }
    }

    /// What a downgrade installs.
    pub(crate) fn previous(self) -> Option<Self> {
        match self {
            Self::V7_16 => None,
            Self::V7_22 => Some(Self::V7_16),
            Self::V7_24 => Some(Self::V7_22),
        }
    }

    /// Whether a create answers 201 with the place of the object, and a delete 204.
    pub(crate) fn tells_created(self) -> bool {
        self >= Self::V7_22
    }
}
