//! How a credential is stored in the database: its secret fields, sealed together.
//!
//! The only place that knows their form. Their names are in `heddle_marketplace::credentials`.

use heddle_core::CredentialId;
use heddle_core::secret::Secret;
use heddle_kernel::keys::{Keys, Unsealable};
use heddle_marketplace::credentials::{OWN_FIELDS, OwnField};
use zeroize::Zeroizing;

/// A credential's fields, in the clear, by the names that manifests and components know them by.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fields(Vec<(String, Secret)>);

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
    pub(crate) fn get(&self, name: &str) -> Option<&Secret> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    pub(crate) fn has(&self, field: OwnField) -> bool {
        self.get(field.name).is_some()
    }

    /// Sets the field, or takes it out. Fields with a place of their own in the API come first, then the others in the
    /// order of their names.
    pub(crate) fn set(&mut self, name: &str, value: Option<Secret>) {
        self.0.retain(|(found, _)| found != name);
        let Some(value) = value else { return };
        let place = |name: &str| {
            (OWN_FIELDS.iter().position(|own| own.name == name).unwrap_or(usize::MAX), name.to_owned())
        };
        let at = self.0.partition_point(|(found, _)| place(found) < place(name));
        self.0.insert(at, (name.to_owned(), value));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of all fields.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The fields without a place of their own in the API.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&str, &Secret)> {
        let is_own = |name: &str| OWN_FIELDS.iter().any(|own| own.name == name);
        self.0.iter().filter(move |(name, _)| !is_own(name)).map(|(name, value)| (name.as_str(), value))
    }

    /// Sealed for the credential with this id, and readable only there.
    pub(crate) fn seal(&self, keys: &Keys, id: CredentialId) -> Vec<u8> {
        let present: Vec<(&str, &str)> =
            self.0.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        let plain = Zeroizing::new(serde_json::to_vec(&present).expect("pairs of texts are JSON"));
        keys.seal(&context(id), &plain)
    }

    pub(crate) fn open(keys: &Keys, id: CredentialId, sealed: &[u8]) -> Result<Self, Unreadable> {
        let plain = keys.open_sealed(&context(id), sealed)?;
        let present: Vec<(String, Secret)> = serde_json::from_slice(&plain).map_err(|_| Unreadable::Form)?;
        let mut fields = Self::default();
        for (name, value) in present {
            fields.set(&name, Some(value));
        }
        Ok(fields)
    }

    /// Returns the fields that are set, each with its name.
    pub(crate) fn into_named(self) -> Vec<(String, Secret)> {
        self.0
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
        let fields = || {
            let mut fields = Fields::default();
            for (name, value) in
                [("otp", "1234"), ("api-key", "k-1"), ("client-id", "c"), ("username", "root")]
            {
                fields.set(name, Some(Secret::new(value)));
            }
            fields.set("otp", None);
            fields
        };
        let sealed = fields().seal(&keys, id);
        assert_eq!(Fields::open(&keys, id, &sealed).unwrap(), fields());
        assert!(matches!(Fields::open(&keys, other, &sealed), Err(Unreadable::Unsealable(_))));
        let strange = keys.seal(&context(id), br#"{"pin": "1234"}"#);
        let error = Fields::open(&keys, id, &strange).unwrap_err();
        assert!(!error.to_string().contains("1234"));
        assert_eq!(fields().names(), ["username", "api-key", "client-id"]);
        assert_eq!(fields().others().map(|(name, _)| name).collect::<Vec<_>>(), ["client-id"]);
    }
}
