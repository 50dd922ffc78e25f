//! What this program is.

/// Version of the interface, as the `OpenAPI` document says it.
pub(crate) const API_VERSION: &str = "26.06.1";
/// Version of this server.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How this server names itself to others.
pub const USER_AGENT: &str = concat!("Heddle/", env!("CARGO_PKG_VERSION"));
