//! How a controller's certificate is judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

stored_words! {
    pub enum TlsMode {
        /// System roots, or `ca_pem` when it is given.
        Verify = "verify",
        /// Exactly the certificate with this fingerprint, whatever signed it.
        Pin = "pin",
        /// Any certificate. The connection is encrypted but not authenticated.
        Insecure = "insecure",
    }
}

/// Hex digits of a SHA-256.
pub const FINGERPRINT_DIGITS: usize = 64;
/// Most characters of a fingerprint: its digits, with a colon between the bytes.
pub const FINGERPRINT_CHARS_MAX: usize = FINGERPRINT_DIGITS + FINGERPRINT_DIGITS / 2 - 1;
/// Most bytes of certificates in PEM.
pub const CA_PEM_BYTES_MAX: usize = 65_536;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsPolicy {
    pub mode: TlsMode,
    /// SHA-256 of the certificate in DER, 64 hex digits; colons are accepted. Needed by `pin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = FINGERPRINT_DIGITS, max = FINGERPRINT_CHARS_MAX))]
    pub fingerprint: Option<String>,
    /// Certificates in PEM that sign the controller's; only with `verify`. At most 65536 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = CA_PEM_BYTES_MAX))]
    pub ca_pem: Option<String>,
}

impl Default for TlsPolicy {
    fn default() -> Self {
        Self { mode: TlsMode::Verify, fingerprint: None, ca_pem: None }
    }
}

impl TlsPolicy {
    /// The pinned fingerprint as lower-case hex without separators.
    pub fn pinned(&self) -> Option<String> {
        let text = self.fingerprint.as_ref()?;
        Some(text.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase())
    }
}
