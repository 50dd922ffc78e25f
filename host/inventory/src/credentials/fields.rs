//! The fields of a credential: what a request may give, and what an adapter asks for.

use std::collections::BTreeMap;

use heddle_core::CredentialId;
use heddle_core::secret::Secret;
use heddle_kernel::app::App;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_marketplace::credentials::{
    API_KEY, FIELD_BYTES_MAX, FIELD_NAME_CHARS_MAX, FIELDS_MAX, OWN_FIELDS, PASSWORD, USERNAME, is_field_name,
};
use heddle_marketplace::manifest::Manifest;
use heddle_store::credentials::{self, SealedSecret};
use heddle_store::{Credential, Tx};
use schemars::Schema;
use serde_json::{Value, json};

use super::sealed::Fields;

/// Most bytes of a field with a place of its own in the API.
pub(super) const SECRET_BYTES_MAX: usize = 16_384;

/// Adds to the document what [`take_others`] accepts.
pub(super) fn say_fields(schema: &mut Schema) {
    let name = format!("^[a-z][a-z0-9-]{{0,{}}}$", FIELD_NAME_CHARS_MAX - 1);
    schema.insert("maxProperties".to_owned(), json!(FIELDS_MAX));
    schema.insert("propertyNames".to_owned(), json!({ "pattern": name }));
    if let Some(Value::Object(value)) = schema.get_mut("additionalProperties") {
        value.insert("maxLength".to_owned(), json!(FIELD_BYTES_MAX));
    }
}

/// Sets the fields that have no place of their own in a request; they replace all that there were.
pub(super) fn take_others(fields: &mut Fields, given: BTreeMap<String, Secret>, checks: &mut Checks) {
    let before: Vec<String> = fields.others().map(|(name, _)| name.to_owned()).collect();
    before.iter().for_each(|name| fields.set(name, None));
    let fits = given.len() <= FIELDS_MAX;
    checks.require(fits, "fields", &format!("must not have more than {FIELDS_MAX} entries"));
    for (name, value) in given.into_iter().take(FIELDS_MAX) {
        match problem(&name, &value) {
            Some(why) => checks.require(false, "fields", &why),
            None => fields.set(&name, Some(value)),
        }
    }
}

fn problem(name: &str, value: &Secret) -> Option<String> {
    // What is refused for its length is not repeated in full.
    let shown: String = name.chars().take(FIELD_NAME_CHARS_MAX).collect();
    if let Some(own) = OWN_FIELDS.iter().find(|own| own.name == name || own.key == name) {
        return Some(format!(
            "'{shown}' is not one of the other fields: give it as '{}' beside 'fields'",
            own.key
        ));
    }
    if !is_field_name(name) {
        return Some(format!(
            "'{shown}' cannot name a field: write a-z, 0-9 and '-', begin with a letter, and use at most {FIELD_NAME_CHARS_MAX} characters"
        ));
    }
    let fits = (1..=FIELD_BYTES_MAX).contains(&value.expose().len());
    (!fits).then(|| format!("'{shown}' must have 1 to {FIELD_BYTES_MAX} bytes"))
}

/// Notes what is wrong with the fields that have a place of their own, and with a credential of no field.
pub(super) fn check_own(fields: &Fields, checks: &mut Checks) {
    let message = "give a username, a password, an api_key or other fields";
    checks.require(!fields.is_empty(), "password", message);
    for own in OWN_FIELDS {
        let fits = fields.get(own.name).is_none_or(|value| value.expose().len() <= SECRET_BYTES_MAX);
        checks.require(fits, own.key, &format!("must not exceed {SECRET_BYTES_MAX} bytes"));
    }
}

pub(super) fn sealed_secret(app: &App, id: CredentialId, fields: &Fields) -> SealedSecret {
    SealedSecret {
        username: fields.get(USERNAME.name).map(|name| name.expose().to_owned()),
        has_password: fields.has(PASSWORD),
        has_api_key: fields.has(API_KEY),
        field_names: fields.others().map(|(name, _)| name.to_owned()).collect(),
        key_id: app.keys.key_id(),
        secret: fields.seal(&app.keys, id),
    }
}

/// The names of the fields that a stored credential has.
fn names_of(credential: &Credential) -> Vec<&str> {
    let own = [
        (USERNAME, credential.username.is_some()),
        (PASSWORD, credential.has_password),
        (API_KEY, credential.has_api_key),
    ];
    let own = own.into_iter().filter_map(|(field, is_there)| is_there.then_some(field.name));
    own.chain(credential.field_names.iter().map(String::as_str)).collect()
}

/// Requires that a credential has all fields of a shape that the adapter takes.
pub(crate) fn require_shape(manifest: &Manifest, credential: &Credential) -> Result<(), Error> {
    let names = names_of(credential);
    if manifest.takes_credential(&names) {
        return Ok(());
    }
    Err(Error::field("credential_id", format!("credential {}", lacks(manifest, &names))))
}

/// Requires that controllers that use the credential can go on with its new fields. What they could not use before is
/// left to them.
pub(super) async fn require_uses(
    tx: &mut Tx,
    app: &App,
    credential: &Credential,
    fields: &Fields,
) -> Result<(), Error> {
    let (before, names) = (names_of(credential), fields.names());
    for vendor in credentials::vendors(tx, credential.id).await? {
        let Some(adapter) = app.runtime.adapter(&vendor) else { continue };
        let manifest = adapter.manifest();
        if manifest.takes_credential(&before) && !manifest.takes_credential(&names) {
            let why = lacks(manifest, &names);
            return Err(Error::field("fields", format!("controllers use the credential, which {why}")));
        }
    }
    Ok(())
}

/// What a credential has, and what the adapter takes.
fn lacks(manifest: &Manifest, names: &[&str]) -> String {
    let has = if names.is_empty() { "no fields".to_owned() } else { names.join(", ") };
    let shapes: Vec<String> =
        manifest.credentials.values().map(heddle_marketplace::manifest::Shape::in_words).collect();
    format!("has {has}; '{}' takes {}", manifest.id, shapes.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_fields_have_names_and_sizes_within_bounds() {
        let wrong = |name: &str, value: &str| problem(name, &Secret::new(value));
        assert_eq!(wrong("client-secret", "x"), None);
        assert_eq!(wrong("pin", &"x".repeat(FIELD_BYTES_MAX)), None);
        assert!(wrong("pin", "").unwrap().contains("must have 1 to 8192 bytes"));
        assert!(wrong("pin", &"x".repeat(FIELD_BYTES_MAX + 1)).is_some());
        for name in ["", "Client", "client_id", "1st", &"a".repeat(65)] {
            assert!(wrong(name, "x").unwrap().contains("cannot name a field"), "{name}");
        }
        for name in ["username", "password", "api-key", "api_key"] {
            assert!(wrong(name, "x").unwrap().contains("beside 'fields'"), "{name}");
        }
    }

    #[test]
    fn other_fields_replace_all_that_there_were() {
        let given =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), Secret::new("x"))).collect();
        let (mut fields, mut checks) = (Fields::default(), Checks::default());
        fields.set("password", Some(Secret::new("p")));
        take_others(&mut fields, given(&["one", "two"]), &mut checks);
        take_others(&mut fields, given(&["three"]), &mut checks);
        assert_eq!(fields.names(), ["password", "three"]);
        checks.done().unwrap();
        let many: BTreeMap<String, Secret> = (0..17).map(|n| (format!("f{n}"), Secret::new("x"))).collect();
        let mut checks = Checks::default();
        take_others(&mut fields, many, &mut checks);
        assert!(checks.done().is_err());
    }
}
