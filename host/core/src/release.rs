//! Releases of vendors' products: which of them have something, and what an adapter says of the one that a controller runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Releases of a vendor's product from one to another, with both; an end that is absent is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseSpan {
    /// Such as `26.1`, which is that series and all later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Such as `26.1`, which is that series and all earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

stored_words! {
    /// What the adapter says of the release that a controller runs.
    pub enum ReleaseState {
        /// The adapter was tested with it.
        Tested = "tested",
        /// The adapter was not tested with it: no change is applied until a person allows it.
        Untested = "untested",
        /// The adapter was not tested with it, and a person has allowed it.
        Allowed = "allowed",
        /// The adapter names no releases, or the controller was never read.
        Unknown = "unknown",
    }
}

impl ReleaseState {
    /// Whether changes are not applied at the controller.
    pub fn holds_back(self) -> bool {
        self == Self::Untested
    }
}
