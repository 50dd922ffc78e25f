//! The stored form of a provider's secret and of a sign-in's proofs: sealed, each readable for its own row only.

use heddle_core::secret::Secret;
use heddle_kernel::http::error::Error;
use heddle_kernel::keys::Keys;
use heddle_store::sso::{IdentityProviderId, SsoAttemptId};
use serde::Deserialize;
use zeroize::Zeroizing;

pub(super) fn seal(keys: &Keys, id: IdentityProviderId, secret: &Secret) -> Vec<u8> {
    keys.seal(&format!("identity_provider:{id}"), secret.expose().as_bytes())
}

pub(super) fn open(keys: &Keys, id: IdentityProviderId, sealed: &[u8]) -> Result<Secret, Error> {
    let plain = keys.open_sealed(&format!("identity_provider:{id}"), sealed).map_err(Error::internal)?;
    let text = std::str::from_utf8(&plain).map_err(Error::internal)?;
    Ok(Secret::new(text))
}

/// Proves that an answer belongs to a sign-in that this service began.
#[derive(Debug, Deserialize)]
pub(super) struct Proofs {
    /// PKCE (RFC 7636).
    pub(super) verifier: Secret,
    pub(super) nonce: Secret,
}

impl Proofs {
    pub(super) fn seal(&self, keys: &Keys, id: SsoAttemptId) -> Vec<u8> {
        let pair = serde_json::json!({ "verifier": self.verifier.expose(), "nonce": self.nonce.expose() });
        let plain = Zeroizing::new(pair.to_string().into_bytes());
        keys.seal(&format!("sso_attempt:{id}"), &plain)
    }

    pub(super) fn open(keys: &Keys, id: SsoAttemptId, sealed: &[u8]) -> Result<Self, Error> {
        let plain = keys.open_sealed(&format!("sso_attempt:{id}"), sealed).map_err(Error::internal)?;
        // Without the parser's message: it can quote the sealed text.
        serde_json::from_slice(&plain).map_err(|_| Error::internal("sealed proofs are not in their form"))
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_secret_opens_for_its_own_row_only() {
        let (keys, clock) = (Keys::from_texts("one", "two"), Clock::default());
        let (id, other) = (clock.new_id(), clock.new_id());
        let sealed = seal(&keys, id, &Secret::new("peer-secret"));
        assert_eq!(open(&keys, id, &sealed).unwrap().expose(), "peer-secret");
        assert!(open(&keys, other, &sealed).is_err());
        let (id, other) = (clock.new_id(), clock.new_id());
        let sealed = Proofs { verifier: Secret::new("v"), nonce: Secret::new("n") }.seal(&keys, id);
        let opened = Proofs::open(&keys, id, &sealed).unwrap();
        assert_eq!((opened.verifier.expose(), opened.nonce.expose()), ("v", "n"));
        assert!(Proofs::open(&keys, other, &sealed).is_err());
    }
}
