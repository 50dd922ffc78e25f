//! The stored form of a subscription's secrets: the signing secret, the values of its headers, and its full URL are
//! sealed together. The URL next to them is the one that is shown, without its query.

use heddle_core::redact::HIDDEN_QUERY;
use heddle_core::secret::Secret;
use heddle_kernel::keys::Keys;
use heddle_store::webhooks::SubscriptionId;
use serde::Deserialize;
use zeroize::Zeroizing;

/// A subscription's secrets, in the clear.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Secrets {
    pub(super) signing: Secret,
    pub(super) headers: Vec<(String, Secret)>,
    /// The full URL. Absent when it equals the shown one.
    #[serde(default)]
    pub(super) url: Option<Secret>,
}

/// Why sealed secrets cannot be read. Without the parser's message: it can quote the sealed text.
#[derive(Debug, thiserror::Error)]
#[error(
    "the subscription's secrets cannot be opened: rotate its signing secret, and give its url and headers again"
)]
pub(super) struct Unreadable;

impl Secrets {
    /// Seals the secrets for the subscription with this id; they can only be read there.
    pub(super) fn seal(&self, keys: &Keys, id: SubscriptionId) -> Vec<u8> {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        let url = self.url.as_ref().map(Secret::expose);
        let plain = serde_json::json!({ "signing": self.signing.expose(), "headers": headers, "url": url });
        let plain = Zeroizing::new(plain.to_string());
        keys.seal(&context(id), plain.as_bytes())
    }

    pub(super) fn open(keys: &Keys, id: SubscriptionId, sealed: &[u8]) -> Result<Self, Unreadable> {
        let plain = keys.open_sealed(&context(id), sealed).map_err(|_| Unreadable)?;
        serde_json::from_slice(&plain).map_err(|_| Unreadable)
    }

    /// Returns the full URL of a subscription with this shown URL.
    pub(super) fn url(&self, shown: &str) -> Result<Secret, Unreadable> {
        match &self.url {
            Some(url) => Ok(url.clone()),
            None if shown.ends_with(HIDDEN_QUERY) => Err(Unreadable),
            None => Ok(Secret::new(shown)),
        }
    }

    pub(super) fn header_names(&self) -> Vec<String> {
        self.headers.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Returns the name of the row to which the secrets belong.
fn context(id: SubscriptionId) -> String {
    format!("webhook_subscription:{id}")
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn secrets_come_back_only_for_their_subscription() {
        let keys = Keys::from_texts("one", "two");
        let (id, other) = (Clock::default().new_id(), Clock::default().new_id());
        let secrets = Secrets {
            signing: Secret::new("s3cret"),
            headers: vec![("authorization".to_owned(), Secret::new("Bearer x"))],
            url: Some(Secret::new("https://hook.example/?token=x")),
        };
        let sealed = secrets.seal(&keys, id);
        assert_eq!(Secrets::open(&keys, id, &sealed).unwrap(), secrets);
        assert!(Secrets::open(&keys, other, &sealed).is_err());
        assert!(!format!("{secrets:?}").contains("s3cret"));
        assert_eq!(secrets.url("https://hook.example/?…").unwrap().expose(), "https://hook.example/?token=x");
        let lost = Secrets { url: None, ..secrets };
        assert_eq!(lost.url("https://hook.example/").unwrap().expose(), "https://hook.example/");
        assert!(lost.url("https://hook.example/?…").is_err());
    }
}
