//! Fields of credentials: which a credential can have, and which shapes a package asks for.

use std::collections::BTreeSet;

use crate::error::PackageError;
use crate::manifest::{Apply, ApplyTo, FieldKind, LoginStep, Manifest, Request, Session, Shape};
use crate::places;
use crate::template::Source;

/// A field that every credential can have, and that has a place of its own in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnField {
    /// Its name in manifests, for components, and where it is stored.
    pub name: &'static str,
    /// Its name in the API.
    pub key: &'static str,
}

/// The name of a user.
pub const USERNAME: OwnField = OwnField { name: "username", key: "username" };
pub const PASSWORD: OwnField = OwnField { name: "password", key: "password" };
pub const API_KEY: OwnField = OwnField { name: "api-key", key: "api_key" };
/// The fields that have a place of their own in the API; all others are in its `fields`.
pub const OWN_FIELDS: [OwnField; 3] = [USERNAME, PASSWORD, API_KEY];

/// The fields that no shape can call a text.
const ALWAYS_SECRET: [OwnField; 2] = [PASSWORD, API_KEY];

/// Most fields of a credential beside [`OWN_FIELDS`], and of a shape.
pub const FIELDS_MAX: usize = 16;
/// Most bytes of one of them.
pub const FIELD_BYTES_MAX: usize = 8_192;
/// Most characters of a field's name, all of them ASCII.
pub const FIELD_NAME_CHARS_MAX: usize = 64;

const SHAPES_MAX: usize = 8;
const TITLE_CHARS_MAX: usize = 80;

/// Whether a field of a credential can have this name: `a-z` first, then `a-z`, `0-9` and `-`.
#[must_use]
pub fn is_field_name(name: &str) -> bool {
    name.len() <= FIELD_NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

impl Shape {
    /// Whether a credential with these fields has all that the shape asks for.
    #[must_use]
    pub fn is_completed_by(&self, fields: &[&str]) -> bool {
        self.fields.keys().all(|name| fields.contains(&name.as_str()))
    }

    /// The shape in words: its title and its fields.
    #[must_use]
    pub fn in_words(&self) -> String {
        let names: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        format!("{} ({})", self.title, names.join(", "))
    }
}

impl Manifest {
    /// Whether a credential with these fields completes one of the shapes, where there are some.
    #[must_use]
    pub fn takes_credential(&self, fields: &[&str]) -> bool {
        self.credentials.is_empty() || self.credentials.values().any(|shape| shape.is_completed_by(fields))
    }

    /// Whether a field of a credential must not be seen in an answer: where a plugin lists it or a shape calls it a secret. Password and API
    /// key always are. One that no shape names is a secret unless it is the user name, which devices repeat in the names
    /// of tasks, in owners and in logs.
    #[must_use]
    pub fn hides_field(&self, name: &str) -> bool {
        let is_of_plugin = self.capabilities.secrets.rules().iter().any(|rule| rule.name == name);
        if is_of_plugin || ALWAYS_SECRET.iter().any(|own| own.name == name) {
            return true;
        }
        let mut kinds = self.credentials.values().filter_map(|shape| shape.fields.get(name)).peekable();
        if kinds.peek().is_none() {
            return name != USERNAME.name;
        }
        kinds.any(|kind| *kind == FieldKind::Secret)
    }
}

/// Checks the shapes, and that each session uses only fields of the shape that it needs.
pub(crate) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    if manifest.credentials.len() > SHAPES_MAX {
        let found = format!("{} entries", manifest.credentials.len());
        let expected = format!("{SHAPES_MAX} entries are the most");
        return Err(PackageError::Field { field: "credentials".to_owned(), value: found, expected });
    }
    for (name, shape) in &manifest.credentials {
        if let Some(problem) = problem_of(name, shape) {
            return Err(PackageError::Credential { shape: name.clone(), problem });
        }
    }
    for (name, session) in &manifest.auth {
        check_session(manifest, session)
            .map_err(|problem| PackageError::Session { session: name.clone(), problem })?;
    }
    Ok(())
}

fn problem_of(name: &str, shape: &Shape) -> Option<String> {
    if !is_field_name(name) {
        return Some("its name has a-z, 0-9 and '-', and begins with a letter".to_owned());
    }
    let title = shape.title.trim();
    if title.is_empty() || title.chars().count() > TITLE_CHARS_MAX || title.chars().any(char::is_control) {
        return Some(format!("'title' has 1 to {TITLE_CHARS_MAX} characters without control characters"));
    }
    if shape.fields.is_empty() || shape.fields.len() > FIELDS_MAX {
        return Some(format!("it has {} fields; 1 to {FIELDS_MAX} are accepted", shape.fields.len()));
    }
    let is_text = |own: &&OwnField| shape.fields.get(own.name) == Some(&FieldKind::Text);
    if let Some(shown) = ALWAYS_SECRET.iter().find(is_text) {
        return Some(format!("field '{}' is always a secret, and it is called a text", shown.name));
    }
    let unfit = shape.fields.keys().find(|field| !is_field_name(field))?;
    Some(match OWN_FIELDS.iter().find(|own| own.key == unfit) {
        Some(own) => format!("field '{unfit}' is called '{}' in a manifest", own.name),
        None => format!("'{unfit}' cannot name a field; write a-z, 0-9 and '-', and begin with a letter"),
    })
}

fn check_session(manifest: &Manifest, session: &Session) -> Result<(), String> {
    let named: Vec<&Shape> = match &session.credential {
        None => manifest.credentials.values().collect(),
        Some(name) => vec![manifest.credentials.get(name).ok_or_else(|| {
            let declared: Vec<&str> = manifest.credentials.keys().map(String::as_str).collect();
            format!(
                "'credential' names '{name}', which 'credentials' does not declare; it declares [{}]",
                declared.join(", ")
            )
        })?],
    };
    if manifest.credentials.is_empty() {
        return Ok(());
    }
    let has = |shapes: &[&Shape], field: &str| shapes.iter().any(|shape| shape.fields.contains_key(field));
    let all: Vec<&Shape> = manifest.credentials.values().collect();
    for step in &session.login {
        let condition = step.when.as_ref().and_then(|when| when.secret.as_deref());
        if let Some(field) = condition.filter(|field| !has(&all, field)) {
            return Err(format!("'when' names the field '{field}', which no shape in 'credentials' has"));
        }
        // What a step asks for in its condition it may use, too.
        let strange = secrets_of_step(step)
            .into_iter()
            .find(|field| !has(&named, field) && condition != Some(field.as_str()));
        strange.map_or(Ok(()), |field| Err(unnamed(&field)))?;
    }
    let strange = secrets_beside_login(session).into_iter().find(|field| !has(&named, field));
    strange.map_or(Ok(()), |field| Err(unnamed(&field)))
}

/// Checks that requests which carry a session in another way name only fields of the shape that it needs.
pub(crate) fn check_applied(manifest: &Manifest, session: &Session, applied: &[Apply]) -> Result<(), String> {
    let mut secrets = BTreeSet::new();
    in_applied(applied, &mut secrets);
    let named = session.credential.as_ref().and_then(|name| manifest.credentials.get(name));
    let has = |field: &String| match named {
        Some(shape) => shape.fields.contains_key(field),
        None => manifest.credentials.values().any(|shape| shape.fields.contains_key(field)),
    };
    let strange = secrets.iter().find(|field| !manifest.credentials.is_empty() && !has(field));
    strange.map_or(Ok(()), |field| Err(unnamed(field)))
}

fn unnamed(field: &str) -> String {
    format!(
        "'{{{{secret.{field}}}}}' is used, and the shape of credential that the session needs has no '{field}'"
    )
}

fn secrets_of_step(step: &LoginStep) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    in_request(&step.request, &mut found);
    found
}

fn secrets_beside_login(session: &Session) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let renewal = session.renew.iter().map(|renewal| &renewal.request);
    renewal.chain(&session.logout).for_each(|request| in_request(request, &mut found));
    in_applied(&session.apply, &mut found);
    found
}

fn in_applied(applied: &[Apply], found: &mut BTreeSet<String>) {
    for apply in applied {
        places::in_text(Source::Secret, &apply.value, found);
        if let ApplyTo::Basic(username) = &apply.to {
            places::in_text(Source::Secret, username, found);
        }
    }
}

fn in_request(request: &Request, found: &mut BTreeSet<String>) {
    places::in_text(Source::Secret, &request.path, found);
    places::in_request(Source::Secret, request, found);
}

#[cfg(test)]
mod tests;
