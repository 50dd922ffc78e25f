//! Why an update of a catalogue was refused, and at which step.

use std::fmt;

use serde::Serialize;

use super::state::State;
use super::time::{Time, to_text};

/// The part of an update that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The clock of this machine is behind a signed time.
    Clock,
    /// A root, its chain or its expiry.
    Root,
    /// The timestamp, or the catalogue that it names.
    Timestamp,
    /// The list of what is revoked.
    Revocations,
    /// The catalogue itself.
    Catalog,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "clock",
            Self::Root => "root",
            Self::Timestamp => "timestamp",
            Self::Revocations => "revocations",
            Self::Catalog => "catalog",
        })
    }
}

/// An update that was refused. The catalogue that was known stays in force.
#[derive(Debug, thiserror::Error)]
#[error("the catalogue was not updated, step '{step}': {refusal}")]
pub struct Failure {
    pub step: Step,
    #[source]
    pub refusal: Refusal,
    /// What is to be stored of the update although it failed: see [`Update::kept`](super::Update::kept). `None` where that
    /// is the state that the update began with.
    pub kept: Option<Box<State>>,
}

/// What was wrong. Every variant leaves the old state in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The server of the catalogue has no such file.
    #[error("'{0}' is missing")]
    Missing(String),
    /// More bytes came than were asked for.
    #[error("'{file}' has more than {max} bytes, the most that is accepted")]
    TooLarge { file: String, max: u64 },
    /// The signatures are not of their form.
    #[error("'{file}' is not a signature file: {problem}")]
    SignatureFormat { file: String, problem: String },
    /// Fewer keys of the role signed these bytes than it takes. Each key counts once.
    #[error(
        "'{file}' is signed by {found} of the keys for it, and {needed} are needed; it was changed, or signed by others"
    )]
    Threshold { file: String, needed: usize, found: usize },
    /// It was signed, but is not JSON of its format or beyond a bound.
    #[error("'{file}' does not follow the format: {problem}")]
    Format { file: String, problem: String },
    /// It has another version than the one that was asked for or promised.
    #[error("'{file}' has the version {found} instead of {expected}")]
    Version { file: String, expected: u64, found: u64 },
    /// It is older than what is known.
    #[error("'{file}' has the version {found}, which is older than the known version {known}")]
    Rollback { file: String, known: u64, found: u64 },
    /// It was signed before the last good one, under whichever keys that was.
    #[error("'{file}' was signed at {}, before the last good one of {}", to_text(.found), to_text(.known))]
    Earlier { file: String, known: Time, found: Time },
    /// It has the known version, and other bytes.
    #[error(
        "'{file}' has the known version {version} with another content; a changed file gets a higher version"
    )]
    Replaced { file: String, version: u64 },
    /// Its time is over: it is an old file that is shown again, or its owner is late.
    #[error("'{file}' expired at {}; it is {} now", to_text(.at), to_text(.now))]
    Expired { file: String, at: Time, now: Time },
    /// This machine's clock is behind the moment at which the timestamp was signed.
    #[error("the clock shows {}, but the timestamp was signed at {}; set the clock of this machine", to_text(.now), to_text(.signed))]
    Clock { now: Time, signed: Time },
    /// It has another length than the timestamp says.
    #[error("'{file}' has {found} bytes; the timestamp says {listed}")]
    Length { file: String, listed: u64, found: u64 },
    /// It is not the file that the timestamp names.
    #[error("'{0}' is not the file that the timestamp names: its SHA-256 differs")]
    Hash(String),
    /// A known entry is not in the list any more. Entries are only ever added.
    #[error("the list of revocations lacks the known entry for the {kind} '{value}'")]
    RevocationLost { kind: String, value: String },
}
