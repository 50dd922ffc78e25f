//! What a plan hands to later calls. The host keeps it and gives it back unread.

use std::collections::BTreeMap;

use heddle_sdk::{Fault, Stage, fault};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::touch::{Order, Part};

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
    /// How many changes were planned together.
    pub(crate) items: usize,
    pub(crate) parts: Vec<Part>,
    pub(crate) orders: Vec<Order>,
    /// Files by name: what others have in them.
    pub(crate) files: BTreeMap<String, Theirs>,
    pub(crate) apply: Calls,
    pub(crate) restore: Calls,
}

/// What a file said besides what the plan touches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Theirs {
    pub(crate) digest: String,
    /// Label and short digest of each section; empty where that is too much to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sections: Vec<(String, String)>,
}

/// The calls of a stage, and what the numbers in them stand for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the calls, with what belongs to them")]
pub(crate) struct Calls {
    pub(crate) calls: Vec<Value>,
    /// File, id and mark of each unnamed section that the calls name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<(String, String, String)>,
    /// Files that get an unnamed section, and how many sections they must have for its number to be right.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) counts: BTreeMap<String, usize>,
}

impl ConfigToken {
    /// The calls of a stage, in order.
    pub(crate) fn calls(&self, stage: Stage) -> Vec<Value> {
        match stage {
            Stage::Apply => self.apply.calls.clone(),
            Stage::Restore => self.restore.calls.clone(),
            Stage::Confirm if !self.apply.calls.is_empty() => vec![crate::stages::confirm_call()],
            Stage::Undo if !self.apply.calls.is_empty() => vec![crate::stages::rollback_call()],
            Stage::Confirm | Stage::Undo | Stage::Abort => Vec::new(),
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
    /// What others have in the files is named section by section while there is room for it.
    pub(crate) fn write(mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = serde_json::to_vec(&self).expect("a token has only string keys");
        if let Token::Config(token) = &mut self
            && bytes.len() > BYTES_MAX
        {
            token.files.values_mut().for_each(|theirs| theirs.sections.clear());
            bytes = serde_json::to_vec(&self).expect("a token has only string keys");
        }
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
