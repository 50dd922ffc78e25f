//! Where the interface begins.

/// Prefix of the versioned interface.
pub const PREFIX: &str = "/api/v1";
