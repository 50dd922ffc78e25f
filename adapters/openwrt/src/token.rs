//! What a plan hands to later calls. The host keeps it and gives it back unread.

use std::collections::BTreeMap;

use heddle_sdk::{Fault, Stage, fault};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most that the host keeps.
const BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Token {
    Config(ConfigToken),
    Power(PowerToken),
}

/// A change of configuration files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ConfigToken {
    /// Digests by the name of the file.
    pub(crate) before: BTreeMap<String, String>,
    pub(crate) after: BTreeMap<String, String>,
    pub(crate) apply: Vec<Value>,
    pub(crate) restore: Vec<Value>,
}

impl ConfigToken {
    /// The calls of a stage, in order.
    pub(crate) fn calls(&self, stage: Stage) -> Vec<Value> {
        match stage {
            Stage::Apply => self.apply.clone(),
            Stage::Restore => self.restore.clone(),
            Stage::Confirm if !self.apply.is_empty() => vec![crate::run::confirm_call()],
            Stage::Undo if !self.apply.is_empty() => vec![crate::run::rollback_call()],
            Stage::Confirm | Stage::Undo => Vec::new(),
        }
    }
}

/// A restart, an upgrade or a reset.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PowerToken {
    pub(crate) feature: String,
    pub(crate) calls: Vec<Value>,
    /// What the device was: model and version.
    pub(crate) base: Value,
    /// Seconds that it had been up, and when that was read (host time).
    pub(crate) uptime_s: u64,
    pub(crate) read_at_ms: u64,
    /// For an upgrade: what the image must hash to.
    #[serde(default)]
    pub(crate) sha256: Option<String>,
}

impl Token {
    pub(crate) fn write(&self) -> Result<Vec<u8>, Fault> {
        let bytes = serde_json::to_vec(self).expect("a token has only string keys");
        if bytes.len() > BYTES_MAX {
            return Err(fault::invalid(format!(
                "the plan takes {} bytes and at most {BYTES_MAX} are kept; split the change",
                bytes.len()
            )));
        }
        Ok(bytes)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(bytes)
            .map_err(|_| fault::invalid("the plan was made by another version of this adapter; plan again"))
    }
}
