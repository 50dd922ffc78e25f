//! The account of one call.

use std::collections::HashSet;

use heddle_core::secret::Secret;

use crate::api::{KeptFile, SecretBook};

/// What happened in one call so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) requests: u32,
    /// Requests that can change something, were handed to a connection and may have arrived.
    pub(crate) left: u32,
    /// What was refused because the component may not do it.
    pub(crate) denied: u32,
    /// What was refused to a plugin for its data: a path, a header, an address.
    pub(crate) denied_for_data: u32,
    /// Bytes that the server handed to a plugin: parameters, stored values, answers of operations.
    pub(crate) given_bytes: usize,
    /// Secrets that requests of the call read: an answer repeats none of them, whatever became of the credential since.
    pub(super) used: Vec<Secret>,
    /// The log says already that the credential cannot be read.
    pub(super) credential_failed: bool,
    /// An answer found no room, because other answers of its organization took it.
    pub(crate) overloaded: bool,
    /// Secrets that answers held, by reference.
    pub(crate) seen: SecretBook,
    /// The file that was kept last.
    pub(crate) kept: Option<KeptFile>,
    /// Sessions that were renewed in this call; once is enough.
    pub(super) renewed: HashSet<String>,
}

impl Ledger {
    /// Everything that was refused.
    pub(crate) fn refused(&self) -> u32 {
        self.denied + self.denied_for_data
    }

    /// Keeps these secrets beside those that were used before, and returns all of them.
    pub(super) fn used_with(&mut self, secrets: Vec<Secret>) -> Vec<Secret> {
        for secret in secrets {
            if !self.used.iter().any(|known| known.expose() == secret.expose()) {
                self.used.push(secret);
            }
        }
        self.used.clone()
    }
}
