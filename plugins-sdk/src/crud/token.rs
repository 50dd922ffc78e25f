//! What a plan hands to later calls. The host keeps it and gives it back unread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Purpose;
use super::part::Part;
use crate::{Fault, Stage, fault};

/// The most that the host keeps.
const BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Token {
    /// How many changes were planned together.
    pub(crate) items: usize,
    pub(crate) parts: Vec<Part>,
    /// What each call of a stage is for.
    pub(crate) apply: Vec<Role>,
    pub(crate) restore: Vec<Role>,
    /// Marks of the ids that each kind had; empty where that is too much to keep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ids: BTreeMap<String, Vec<String>>,
}

/// What a call is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Role {
    purpose: Word,
    /// The part that it writes.
    pub(crate) part: Option<usize>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Create,
    Update,
    Delete,
    Activate,
}

impl Role {
    pub(crate) fn new(purpose: Purpose, part: Option<usize>) -> Self {
        let purpose = match purpose {
            Purpose::Create => Word::Create,
            Purpose::Update => Word::Update,
            Purpose::Delete => Word::Delete,
            Purpose::Activate => Word::Activate,
        };
        Role { purpose, part }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        match self.purpose {
            Word::Create => Purpose::Create,
            Word::Update => Purpose::Update,
            Word::Delete => Purpose::Delete,
            Word::Activate => Purpose::Activate,
        }
    }
}

impl Token {
    pub(crate) fn calls(&self, stage: Stage) -> &[Role] {
        match stage {
            Stage::Apply => &self.apply,
            Stage::Restore => &self.restore,
            Stage::Confirm | Stage::Undo => &[],
        }
    }

    pub(crate) fn write(mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = serde_json::to_vec(&self).expect("a token has only string keys");
        if bytes.len() > BYTES_MAX {
            self.ids.clear();
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
