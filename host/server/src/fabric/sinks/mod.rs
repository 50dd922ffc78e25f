//! Steps that tell somebody at once.

pub(super) mod log;
pub(super) mod notify;

#[cfg(test)]
mod tests;
