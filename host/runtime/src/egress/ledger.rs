//! The account of one call.

use std::collections::HashSet;

use crate::api::{KeptFile, SecretBook};

/// What happened in one call so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) requests: u32,
    /// The reviewed call was handed to the connection, and may have arrived.
    pub(crate) left: bool,
    /// Requests that were refused as not allowed.
    pub(crate) denied: u32,
    /// An answer found no room, because other answers of its organization took it.
    pub(crate) overloaded: bool,
    /// Secrets that answers held, by reference.
    pub(crate) seen: SecretBook,
    /// The file that was kept last.
    pub(crate) kept: Option<KeptFile>,
    /// Sessions that were renewed in this call; once is enough.
    pub(super) renewed: HashSet<String>,
}
