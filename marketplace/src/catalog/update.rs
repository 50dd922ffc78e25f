//! One update of a catalogue, step by step. The caller fetches, and stores what comes out.
//!
//! ```text
//! let mut update = Update::begin(state, now)?;
//! while let Next::Fetch { name, bytes_max } = update.next() {
//!     update = update.give(fetch(&name, bytes_max + 1))?;
//! }
//! store(update.finish());
//! ```

use super::bounds::{CATALOG_BYTES_MAX, ROOT_BYTES_MAX, ROOT_STEPS_MAX, TIMESTAMP_BYTES_MAX};
use super::error::{Failure, Refusal, Step};
use super::listing::Catalog;
use super::root::Root;
use super::state::{State, Trust};
use super::time::Time;
use super::timestamp::CatalogRef;
use super::{CATALOG, TIMESTAMP, accept, catalog_name, root_name, signature_name};
use crate::verify::{SIGNATURE_BYTES_MAX, length};

/// An update under way.
#[derive(Debug)]
pub struct Update {
    /// What the update began with.
    old: State,
    pub(crate) new: State,
    /// Fixed when the update begins, so that no step sees another time.
    pub(crate) now: Time,
    pub(crate) trusted: Trusted,
    phase: Phase,
}

/// What the state trusts, parsed.
#[derive(Debug)]
pub(crate) enum Trusted {
    Root(Box<Root>),
    Key([u8; 32]),
    Anything,
}

/// What is waited for. A file is kept until its signatures are there.
#[derive(Debug)]
enum Phase {
    Root { steps: u32 },
    RootSignature { steps: u32, content: Vec<u8> },
    Timestamp,
    TimestampSignature { content: Vec<u8> },
    Catalog { source: Source },
    CatalogSignature { source: Source, content: Vec<u8> },
    Done { catalog: Option<FetchedCatalog> },
}

/// Where the catalogue is fetched, and what it has to be.
#[derive(Debug, Clone)]
enum Source {
    /// `N.catalog.json`, which is never replaced: no publication between two requests can break an update.
    Versioned(CatalogRef),
    /// `catalog.json`, where the other name is absent.
    Named(CatalogRef),
    /// `catalog.json`, of which nothing is known before.
    Plain,
}

impl Source {
    fn file(&self) -> String {
        match self {
            Self::Versioned(listed) => catalog_name(listed.version),
            Self::Named(_) | Self::Plain => CATALOG.to_owned(),
        }
    }

    fn bytes_max(&self) -> u64 {
        match self {
            Self::Versioned(listed) | Self::Named(listed) => listed.length,
            Self::Plain => CATALOG_BYTES_MAX,
        }
    }
}

/// What an update needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A file beside the catalogue's own address. Of a longer one, a byte more than `bytes_max` is enough to be given.
    Fetch { name: String, bytes_max: u64 },
    /// Nothing: [`Update::finish`] has the result.
    Done,
}

/// What an update brought, to be stored in one transaction.
#[derive(Debug)]
pub struct Updated {
    pub state: State,
    /// `None` when the known catalogue is still the current one.
    pub catalog: Option<FetchedCatalog>,
}

/// A catalogue that was believed.
#[derive(Debug)]
pub struct FetchedCatalog {
    /// To be stored as they are; [`State::open_catalog`] takes them back.
    pub bytes: Vec<u8>,
    pub catalog: Catalog,
}

impl Update {
    /// Begins an update at this time, which holds for all of its steps.
    pub fn begin(state: State, now: Time) -> Result<Self, Failure> {
        let (trusted, phase) = match &state.trust {
            Trust::Full { root } => {
                let root = Root::parse("the stored root", root.as_bytes())
                    .map_err(|refusal| early(Step::Root, refusal))?;
                (Trusted::Root(Box::new(root)), Phase::Root { steps: 0 })
            }
            Trust::Lower { key } => {
                let key = accept::pinned_key(key).map_err(|refusal| early(Step::Root, refusal))?;
                (Trusted::Key(key), Phase::Catalog { source: Source::Plain })
            }
            Trust::None => (Trusted::Anything, Phase::Catalog { source: Source::Plain }),
        };
        let update = Self { new: state.clone(), old: state, now, trusted, phase };
        update.check_clock().map_err(|refusal| early(Step::Clock, refusal))?;
        Ok(update)
    }

    /// What is needed next. Asking changes nothing.
    #[must_use]
    pub fn next(&self) -> Next {
        match self.awaited(&self.phase) {
            Some((name, bytes_max)) => Next::Fetch { name, bytes_max },
            None => Next::Done,
        }
    }

    /// Takes what [`Update::next`] asked for; `None` when the server has no such file. An error of the network is neither:
    /// the update is given up, and only [`Update::kept`] is left of it.
    pub fn give(mut self, answer: Option<Vec<u8>>) -> Result<Self, Failure> {
        let phase = std::mem::replace(&mut self.phase, Phase::Done { catalog: None });
        let Some((file, max)) = self.awaited(&phase) else { return Ok(Self { phase, ..self }) };
        let step = phase.step();
        let is_too_large = answer.as_ref().is_some_and(|content| length(content) > max);
        let result = if is_too_large {
            Err((step, Refusal::TooLarge { file, max }))
        } else {
            self.advance(phase, answer, file)
        };
        match result {
            Ok(phase) => Ok(Self { phase, ..self }),
            Err((step, refusal)) => Err(Failure { step, refusal, kept: self.kept() }),
        }
    }

    /// The result; `None` while something is still to be fetched.
    #[must_use]
    pub fn finish(self) -> Option<Updated> {
        match self.phase {
            Phase::Done { catalog } => Some(Updated { state: self.new, catalog }),
            _ => None,
        }
    }

    /// What stays of an update that does not end well: the newest root that was proven so far, and the last timestamp that was
    /// accepted, always together with its revocations. The known catalogue and the time of the last good update are those that
    /// the update began with. `None` where nothing differs from that.
    ///
    /// A server that stores it never goes back to keys that were replaced, or to a list without a revocation that it has seen.
    /// What is revoked thus does not depend on the catalogue, which another key signs. A server that gives an update up,
    /// because nothing more can be fetched, stores it in the same way as that of a [`Failure`].
    #[must_use]
    pub fn kept(&self) -> Option<Box<State>> {
        let kept = State { good_at: self.old.good_at, ..self.new.clone() };
        (kept != self.old).then(|| Box::new(kept))
    }

    /// The file that a phase waits for, and its most bytes.
    fn awaited(&self, phase: &Phase) -> Option<(String, u64)> {
        let signature = |name: &str| (signature_name(name), SIGNATURE_BYTES_MAX);
        Some(match phase {
            Phase::Root { .. } => (self.next_root(), ROOT_BYTES_MAX),
            Phase::RootSignature { .. } => signature(&self.next_root()),
            Phase::Timestamp => (TIMESTAMP.to_owned(), TIMESTAMP_BYTES_MAX),
            Phase::TimestampSignature { .. } => signature(TIMESTAMP),
            Phase::Catalog { source } => (source.file(), source.bytes_max()),
            Phase::CatalogSignature { source, .. } => signature(&source.file()),
            Phase::Done { .. } => return None,
        })
    }

    fn next_root(&self) -> String {
        match &self.trusted {
            Trusted::Root(root) => root_name(root.version.saturating_add(1)),
            Trusted::Key(_) | Trusted::Anything => String::new(),
        }
    }

    /// Goes on to the next phase with the answer about `file`, which is not too large.
    fn advance(
        &mut self,
        phase: Phase,
        answer: Option<Vec<u8>>,
        file: String,
    ) -> Result<Phase, (Step, Refusal)> {
        let step = phase.step();
        let at_step = |refusal| (step, refusal);
        match (phase, answer) {
            (Phase::Root { .. }, None) => self.after_roots().map_err(at_step),
            (Phase::Root { steps }, Some(content)) => Ok(Phase::RootSignature { steps, content }),
            (Phase::RootSignature { steps, content }, Some(signatures)) => {
                self.accept_root(content, &signatures).map_err(at_step)?;
                let steps = steps + 1;
                if steps < ROOT_STEPS_MAX {
                    Ok(Phase::Root { steps })
                } else {
                    self.after_roots().map_err(at_step)
                }
            }
            (Phase::Timestamp, Some(content)) => Ok(Phase::TimestampSignature { content }),
            (Phase::TimestampSignature { content }, Some(signatures)) => {
                let listed = self.accept_timestamp(&content, &signatures)?;
                if self.is_known(&listed).map_err(|refusal| (Step::Catalog, refusal))? {
                    return Ok(self.done(None));
                }
                Ok(Phase::Catalog { source: Source::Versioned(listed) })
            }
            (Phase::Catalog { source: Source::Versioned(listed) }, None) => {
                Ok(Phase::Catalog { source: Source::Named(listed) })
            }
            (Phase::Catalog { source }, Some(content)) => {
                if let Source::Versioned(listed) | Source::Named(listed) = &source {
                    accept::check_listed(&source.file(), listed, &content).map_err(at_step)?;
                }
                if matches!(self.trusted, Trusted::Anything) {
                    let catalog = self.accept_unsigned(&content).map_err(at_step)?;
                    return Ok(self.fetched(content, catalog));
                }
                Ok(Phase::CatalogSignature { source, content })
            }
            (Phase::CatalogSignature { source, content }, Some(signatures)) => {
                let catalog = match &source {
                    Source::Versioned(listed) | Source::Named(listed) => {
                        self.accept_catalog(&source.file(), listed, &content, &signatures)
                    }
                    Source::Plain => self.accept_plain(&content, &signatures),
                };
                Ok(self.fetched(content, catalog.map_err(at_step)?))
            }
            (phase @ Phase::Done { .. }, _) => Ok(phase),
            (_, None) => Err(at_step(Refusal::Missing(file))),
        }
    }

    fn fetched(&mut self, bytes: Vec<u8>, catalog: Catalog) -> Phase {
        let is_new = self.new.catalog_sha256() != self.old.catalog_sha256();
        self.done(is_new.then_some(FetchedCatalog { bytes, catalog }))
    }

    fn done(&mut self, catalog: Option<FetchedCatalog>) -> Phase {
        self.new.good_at = Some(self.now);
        Phase::Done { catalog }
    }

    /// The chain ends here: only its last root has to be in force.
    fn after_roots(&mut self) -> Result<Phase, Refusal> {
        self.check_root_expiry()?;
        Ok(Phase::Timestamp)
    }
}

impl Phase {
    fn step(&self) -> Step {
        match self {
            Self::Root { .. } | Self::RootSignature { .. } => Step::Root,
            Self::Timestamp | Self::TimestampSignature { .. } => Step::Timestamp,
            Self::Catalog { .. } | Self::CatalogSignature { .. } | Self::Done { .. } => Step::Catalog,
        }
    }
}

fn early(step: Step, refusal: Refusal) -> Failure {
    Failure { step, refusal, kept: None }
}
