//! The registration of this process: its present term.

use std::sync::{Mutex, PoisonError};

use heddle_core::ProcessId;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::http::error::Error;

/// The time in which this process is known under one id.
#[derive(Debug, Clone)]
pub struct Term {
    pub id: ProcessId,
    over: CancellationToken,
}

impl Term {
    /// Fires when other processes may take over this process's work.
    pub fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Returns whether other processes may take over the work of this term, which never begins again. It is
    /// asked before new work begins; [`Term::over`] ends work that is running.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }
}

/// This process's membership in the set of processes.
#[derive(Debug, Default)]
pub struct Membership {
    term: Mutex<Option<Term>>,
    pub(super) watch: Mutex<Option<JoinHandle<()>>>,
    pub(super) leaving: CancellationToken,
}

impl Membership {
    /// Returns the current term. Without one, work that only one process may do must not begin.
    pub fn term(&self) -> Result<Term, Error> {
        let term = self.term.lock().unwrap_or_else(PoisonError::into_inner).clone();
        term.ok_or_else(|| {
            Error::Unavailable(
                "this process has lost its place among those that serve the database; try again".to_owned(),
            )
        })
    }

    pub(super) fn begin(&self, id: ProcessId) {
        let term = Term { id, over: CancellationToken::new() };
        *self.term.lock().unwrap_or_else(PoisonError::into_inner) = Some(term);
    }

    pub(super) fn end(&self) -> Option<Term> {
        let term = self.term.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(term) = &term {
            term.over.cancel();
        }
        term
    }
}
