//! How a credential is stored in the database: its secret fields, sealed together.
//!
//! The only place that knows their names and their form.

use heddle_core::CredentialId;
use heddle_core::secret::Secret;
use heddle_kernel::keys::{Keys, Unsealable};
use zeroize::Zeroizing;

/// Names that manifests and components know the fields by.
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
const API_KEY: &str = "api-key";

/// A credential's secret fields, in the clear.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) username: Option<Secret>,
    pub(crate) password: Option<Secret>,
    pub(crate) api_key: Option<Secret>,
}

/// Why sealed fields cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Unsealable(#[from] Unsealable),
    /// Without the parser's words: they can quote what was sealed.
    #[error("sealed fields are not in their form")]
    Form,
}

impl Fields {
    /// Sealed for the credential with this id, and readable only there.
    pub(crate) fn seal(&self, keys: &Keys, id: CredentialId) -> Vec<u8> {
        let named = [(USERNAME, &self.username), (PASSWORD, &self.password), (API_KEY, &self.api_key)];
        let present: Vec<(&str, &str)> =
            named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?.expose()))).collect();
        let plain = Zeroizing::new(serde_json::to_vec(&present).expect("pairs of texts are JSON"));
        keys.seal(&context(id), &plain)
    }

    pub(crate) fn open(keys: &Keys, id: CredentialId, sealed: &[u8]) -> Result<Self, Unreadable> {
        let plain = keys.open_sealed(&context(id), sealed)?;
        let present: Vec<(String, Secret)> = serde_json::from_slice(&plain).map_err(|_| Unreadable::Form)?;
        let mut fields = Self::default();
        for (name, value) in present {
            match name.as_str() {
                USERNAME => fields.username = Some(value),
                PASSWORD => fields.password = Some(value),
                API_KEY => fields.api_key = Some(value),
                _ => return Err(Unreadable::Form),
            }
        }
        Ok(fields)
    }

    /// Returns the fields that are set, each with its name.
    pub(crate) fn into_named(self) -> Vec<(String, Secret)> {
        let named = [(USERNAME, self.username), (PASSWORD, self.password), (API_KEY, self.api_key)];
        named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Names the row that the sealed fields belong to.
fn context(id: CredentialId) -> String {
    format!("credential:{id}")
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn fields_come_back_under_their_names_and_only_for_their_credential() {
        let keys = Keys::from_texts("one", "two");
        let (id, other) = (Clock::default().new_id(), Clock::default().new_id());
        let fields = || Fields {
            username: Some(Secret::new("root")),
            password: None,
            api_key: Some(Secret::new("k-1")),
        };
        let sealed = fields().seal(&keys, id);
        assert_eq!(Fields::open(&keys, id, &sealed).unwrap(), fields());
        assert!(matches!(Fields::open(&keys, other, &sealed), Err(Unreadable::Unsealable(_))));
        let strange = keys.seal(&context(id), br#"[["pin", "1234"]]"#);
        let error = Fields::open(&keys, id, &strange).unwrap_err();
        assert!(!error.to_string().contains("1234"));
        let named: Vec<String> = fields().into_named().into_iter().map(|(name, _)| name).collect();
        assert_eq!(named, ["username", "api-key"]);
    }
}
