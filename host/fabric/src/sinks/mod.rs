//! Steps that notify a receiver at once.

pub(super) mod log;
pub(super) mod notify;
pub(super) mod webhook;

#[cfg(test)]
mod tests;
