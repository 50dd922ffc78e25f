//! The stored form of a channel's secrets. For kind `webhook`, the signing secret and the full URL, where it has a
//! query, are sealed together; the URL in the settings is the one that is shown. Every other kind has one secret, which
//! is sealed as it is.

use heddle_core::redact::HIDDEN_QUERY;
use heddle_core::secret::Secret;
use heddle_store::Set;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookSecrets {
    pub(super) signing: Option<Secret>,
    url: Option<Secret>,
}

impl WebhookSecrets {
    /// An older version stored the signing secret alone.
    pub(super) fn read(plain: &Secret) -> Self {
        serde_json::from_str(plain.expose())
            .unwrap_or_else(|_| Self { signing: Some(plain.clone()), url: None })
    }

    pub(super) fn with(mut self, signing: Set<Secret>, url: Set<Secret>) -> Self {
        for (field, change) in [(&mut self.signing, signing), (&mut self.url, url)] {
            match change {
                Set::Keep => {}
                Set::Clear => *field = None,
                Set::To(secret) => *field = Some(secret),
            }
        }
        self
    }

    /// Returns the text that is to be sealed, when there is any secret.
    pub(super) fn plain(&self) -> Option<Secret> {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let (signing, url) = (text(&self.signing), text(&self.url));
        let is_empty = signing.is_none() && url.is_none();
        (!is_empty).then(|| Secret::new(json!({ "signing": signing, "url": url }).to_string()))
    }

    /// Returns the full URL of a channel with this shown URL; `None` when its query is lost.
    pub(super) fn url(&self, shown: String) -> Option<String> {
        match &self.url {
            Some(url) => Some(url.expose().to_owned()),
            None => (!shown.ends_with(HIDDEN_QUERY)).then_some(shown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_and_those_of_an_older_version_are_what_signs() {
        let old = WebhookSecrets::read(&Secret::new("whsec"));
        assert_eq!(old.signing, Some(Secret::new("whsec")));
        assert_eq!(old.url("https://x.example/".to_owned()).as_deref(), Some("https://x.example/"));
        let full = old.with(Set::Keep, Set::To(Secret::new("https://x.example/?t=1")));
        let again = WebhookSecrets::read(&full.plain().unwrap());
        assert_eq!(again, full);
        assert_eq!(again.url("https://x.example/?…".to_owned()).as_deref(), Some("https://x.example/?t=1"));
        let none = again.with(Set::Clear, Set::Clear);
        assert_eq!((none.plain(), none.url("https://x.example/?…".to_owned())), (None, None));
    }
}
