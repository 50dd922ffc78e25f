//! Drift: what is wanted of an object of the model, and what was observed of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

stored_words! {
    /// How an object differs from what is wanted.
    pub enum DriftChange {
        /// It is there and is not wanted.
        Created = "created",
        Changed = "changed",
        /// It is wanted and is not there.
        Removed = "removed",
    }
}

stored_words! {
    /// Originator of a difference.
    pub enum DriftLabel {
        /// A person at the device, as a person said.
        Person = "person",
        /// A tool other than this service, as a person said.
        OtherTool = "other_tool",
        /// The vendor's software by itself, such as an upgrade.
        Vendor = "vendor",
        /// A change of this service whose outcome is in doubt.
        Ours = "ours",
        /// The evidence does not tell.
        Unknown = "unknown",
    }
}

stored_words! {
    /// Where what is wanted of an object comes from.
    pub enum WantedBasis {
        /// It was observed when the object was seen first.
        Observed = "observed",
        /// A change of this service was applied.
        Applied = "applied",
        /// A person adopted what was observed.
        Adopted = "adopted",
    }
}

stored_words! {
    pub enum DriftStatus {
        Open = "open",
        /// What was observed is wanted since.
        Adopted = "adopted",
        /// The change that brings back what is wanted was applied.
        PutBack = "put_back",
        /// A later reading found the object as wanted, or Heddle no longer follows it.
        Resolved = "resolved",
    }
}

/// A field that is not as it is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldDrift {
    /// Name of the field; a field of a field is dotted, as in `poe.enabled`.
    pub field: String,
    /// Value that is wanted; null where there is none.
    pub wanted: Option<Value>,
    /// Value that was observed; null where there is none.
    pub observed: Option<Value>,
    pub label: DriftLabel,
    /// The evidence, a sentence each.
    pub reasons: Vec<String>,
}
