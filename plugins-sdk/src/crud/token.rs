//! What a plan hands to later calls. The host keeps it and gives it back unread.

use serde::{Deserialize, Serialize};

use super::part::Part;
use super::{Place, Purpose};
use crate::{Fault, Stage, fault};

/// The most that the host keeps.
const BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Token {
    /// How many changes were planned together.
    pub(crate) items: usize,
    pub(crate) lists: Vec<ListMark>,
    pub(crate) parts: Vec<Part>,
    /// What each call of a stage is for.
    pub(crate) apply: Vec<Role>,
    pub(crate) restore: Vec<Role>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) abort: Vec<Role>,
    /// Nothing of what the plan does can be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unseen: bool,
}

/// The list of a kind in a place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ListMark {
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Place::is_empty")]
    pub(crate) place: Place,
    /// Marks of the objects that it had; empty where that is too much to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ids: Vec<String>,
}

/// What a call is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Role {
    purpose: Word,
    /// The part that it writes.
    pub(crate) part: Option<usize>,
    /// The parts whose ids it leaves open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ids: Vec<usize>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Create,
    Update,
    Delete,
    Activate,
    Act,
    Cancel,
}

impl Role {
    pub(crate) fn new(purpose: Purpose, part: Option<usize>, ids: Vec<usize>) -> Self {
        let purpose = match purpose {
            Purpose::Create => Word::Create,
            Purpose::Update => Word::Update,
            Purpose::Delete => Word::Delete,
            Purpose::Activate => Word::Activate,
            Purpose::Act => Word::Act,
            Purpose::Cancel => Word::Cancel,
        };
        Role { purpose, part, ids }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        match self.purpose {
            Word::Create => Purpose::Create,
            Word::Update => Purpose::Update,
            Word::Delete => Purpose::Delete,
            Word::Activate => Purpose::Activate,
            Word::Act => Purpose::Act,
            Word::Cancel => Purpose::Cancel,
        }
    }
}

impl Token {
    pub(crate) fn calls(&self, stage: Stage) -> &[Role] {
        match stage {
            Stage::Apply => &self.apply,
            Stage::Restore => &self.restore,
            Stage::Abort => &self.abort,
            Stage::Confirm | Stage::Undo => &[],
        }
    }

    /// The kind of a part.
    pub(crate) fn kind_of(&self, part: &Part) -> &str {
        self.lists.get(part.list).map_or("", |list| list.kind.as_str())
    }

    pub(crate) fn write(mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = serde_json::to_vec(&self).expect("a token has only string keys");
        if bytes.len() > BYTES_MAX {
            self.lists.iter_mut().for_each(|list| list.ids.clear());
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
        let token: Self = serde_json::from_slice(bytes).map_err(|_| {
            fault::invalid("the plan was made by another version of this adapter; plan again")
        })?;
        if token.parts.iter().all(|part| part.list < token.lists.len()) {
            Ok(token)
        } else {
            Err(fault::invalid("the plan names a list that it does not have; plan again"))
        }
    }
}
