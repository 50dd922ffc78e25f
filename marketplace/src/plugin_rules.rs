//! Rules for what only plugins declare, and for what a package of the other kind has no use for.

pub(crate) mod occasions;
mod templates;

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

use crate::credentials::is_field_name;
use crate::error::PackageError;
use crate::manifest::{Kind, Manifest};
use crate::plugin::{Action, ActionEffect, HttpTarget, KV_BYTES_MAX, Origin, SecretRule, Secrets};
use crate::rules::{check_count, check_text, field_error};
use crate::schema::Schema;
use crate::session_rules::path_fault;

const TARGETS_MAX: usize = 8;
const TARGET_NAME_BYTES_MAX: usize = 32;
const PATHS_MAX: usize = 64;
const PATH_BYTES_MAX: usize = 256;
const SECRETS_MAX: usize = 16;
const PLACES_MAX: usize = 8;
const EVENT_TYPES_MAX: usize = 64;
const CALLS_MAX: usize = 64;
const OPERATION_BYTES_MAX: usize = 160;
const PERMISSIONS_MAX: usize = 64;
const ACTIONS_MAX: usize = 50;
pub(crate) const WORD_BYTES_MAX: usize = 41;
const TITLE_BYTES_MAX: usize = 120;
const DESCRIPTION_BYTES_MAX: usize = 1_000;
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// Checks what the kind of the package adds, and refuses what belongs to the other kind.
pub(crate) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    match manifest.kind {
        Kind::Adapter => check_adapter(manifest),
        Kind::Plugin => check_plugin(manifest),
    }
}

fn check_adapter(manifest: &Manifest) -> Result<(), PackageError> {
    let has = &manifest.capabilities;
    let keys = [
        ("capabilities.http", !has.http.is_empty()),
        ("capabilities.events", has.events.is_some()),
        ("capabilities.fabric", has.fabric.is_some()),
        ("capabilities.kv", has.kv.is_some()),
        ("capabilities.schedule", has.schedule.is_some()),
        ("permissions", !manifest.permissions.is_empty()),
        ("event-types", !manifest.event_types.is_empty()),
        ("actions", !manifest.actions.is_empty()),
        ("triggers", !manifest.triggers.is_empty()),
        ("tools", !manifest.tools.is_empty()),
        ("hooks", !manifest.hooks.is_empty()),
        ("templates", !manifest.templates.is_empty()),
    ];
    refuse_other(keys, Kind::Adapter, "leave it out, or write the kind 'plugin'")?;
    if matches!(has.secrets, Secrets::Declared(_)) {
        let expected =
            "an adapter writes true or false; its secrets are those of the controller's credential";
        return Err(field_error("capabilities.secrets", "a list", expected));
    }
    Ok(())
}

fn check_plugin(manifest: &Manifest) -> Result<(), PackageError> {
    let has = &manifest.capabilities;
    let keys = [
        ("capabilities.controller-http", has.controller_http),
        ("auth", !manifest.auth.is_empty()),
        ("credentials", !manifest.credentials.is_empty()),
        ("reads", !manifest.reads.is_empty()),
        ("secret-fields", !manifest.secret_fields.is_empty()),
        ("pace", manifest.pace.is_some()),
        ("push", !manifest.push.is_empty()),
    ];
    let advice = "leave it out: it is about a controller; a plugin declares 'capabilities.http' and 'capabilities.secrets'";
    refuse_other(keys, Kind::Plugin, advice)?;
    check_targets(manifest)?;
    check_secrets(manifest)?;
    check_events(manifest)?;
    check_calls(manifest)?;
    check_kv(manifest)?;
    check_permissions(manifest)?;
    check_actions(manifest)?;
    occasions::check(manifest)?;
    templates::check(manifest)
}

fn refuse_other<const N: usize>(
    keys: [(&str, bool); N],
    kind: Kind,
    advice: &'static str,
) -> Result<(), PackageError> {
    match keys.into_iter().find(|(_, is_there)| *is_there) {
        None => Ok(()),
        Some((key, _)) => Err(PackageError::OtherKind { key: key.to_owned(), kind: kind.as_str(), advice }),
    }
}

fn refused(part: &'static str, name: &str, problem: impl Into<String>) -> PackageError {
    let name = name.chars().take(120).collect();
    PackageError::Plugin { part, name, problem: problem.into() }
}

/// Refuses the first name that comes twice.
fn check_unique<'a>(
    part: &'static str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), PackageError> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(refused(part, name, "it is there twice; each entry stands once")),
    }
}

/// `a-z` first, then `a-z`, `0-9` and `-`.
pub(crate) fn is_word(text: &str, bytes_max: usize) -> bool {
    text.len() <= bytes_max
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn check_targets(manifest: &Manifest) -> Result<(), PackageError> {
    let targets = &manifest.capabilities.http;
    check_count("capabilities.http", targets.len(), TARGETS_MAX)?;
    check_unique("target", targets.iter().map(|target| target.name.as_str()))?;
    for target in targets {
        let problem = target_problem(manifest, target);
        problem.map_or(Ok(()), |problem| Err(refused("target", &target.name, problem)))?;
    }
    Ok(())
}

fn target_problem(manifest: &Manifest, target: &HttpTarget) -> Option<String> {
    if !is_word(&target.name, TARGET_NAME_BYTES_MAX) {
        return Some(
            "a name has 1 to 32 characters of a-z, 0-9 and '-', and begins with a letter".to_owned(),
        );
    }
    let origin = match &target.origin {
        Origin::Fixed(text) => parse_origin(text, target.private).err(),
        Origin::Setting(from) => setting_problem(manifest, &from.setting),
    };
    origin.or_else(|| methods_problem(&target.methods)).or_else(|| paths_problem(&target.paths))
}

/// Parses the origin of a target: scheme, host and port. An address without encryption is for private networks only.
///
/// # Errors
/// Says what would be accepted.
pub fn parse_origin(text: &str, private: bool) -> Result<Url, String> {
    let shown: String = text.chars().take(200).filter(|c| !c.is_control()).collect();
    let refused = |expected: &str| Err(format!("origin '{shown}' is not accepted; {expected}"));
    if text.contains('*') {
        return refused("name one host: a wildcard is not accepted");
    }
    let Ok(url) = Url::parse(text) else {
        return refused("write it as https://host or https://host:port");
    };
    match url.scheme() {
        "https" => {}
        "http" if private => {}
        "http" => return refused("write https; http is for targets with \"private\": true"),
        _ => return refused("its scheme is https"),
    }
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if !is_bare || url.host_str().is_none_or(str::is_empty) {
        return refused("write scheme, host and perhaps a port, without user, path or query");
    }
    Ok(url)
}

fn setting_problem(manifest: &Manifest, setting: &str) -> Option<String> {
    let properties = manifest.config_schema.as_ref().and_then(|schema| schema.get("properties"));
    let declared = properties.and_then(|properties| properties.get(setting));
    let is_uri = |schema: &Value| schema["type"] == "string" && schema["format"] == "uri";
    if declared.is_some_and(is_uri) {
        return None;
    }
    Some(format!(
        "its origin is in the setting '{setting}', and 'config-schema' has no property '{setting}' of the type string and the format uri"
    ))
}

fn methods_problem(methods: &[String]) -> Option<String> {
    if methods.is_empty() {
        return Some("it has no methods; list those that are used".to_owned());
    }
    if let Some(other) = methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        return Some(format!("'{other}' is no method; accepted: {}", METHODS.join(", ")));
    }
    let distinct: HashSet<&String> = methods.iter().collect();
    (distinct.len() != methods.len()).then(|| "a method is there twice".to_owned())
}

fn paths_problem(paths: &[String]) -> Option<String> {
    if paths.is_empty() {
        return Some("it has no paths; list those that are used, such as \"/v1/*\"".to_owned());
    }
    if paths.len() > PATHS_MAX {
        return Some(format!("it has {} paths; {PATHS_MAX} are the most", paths.len()));
    }
    paths.iter().find_map(|path| pattern_problem(path).map(|problem| format!("path '{path}': {problem}")))
}

fn pattern_problem(path: &str) -> Option<&'static str> {
    if path.len() > PATH_BYTES_MAX {
        return Some("it has more than 256 bytes");
    }
    if let Some(problem) = path_fault(path) {
        return Some(problem);
    }
    if path.contains(['?', '{', '}']) {
        return Some("it has no query and no template");
    }
    let segments = path.strip_suffix("/**").unwrap_or(path);
    if segments.split('/').any(|segment| segment.contains('*') && segment != "*") {
        return Some("'*' stands for one whole segment, and '**' for any number of them at the end");
    }
    None
}

fn check_secrets(manifest: &Manifest) -> Result<(), PackageError> {
    let rules = match &manifest.capabilities.secrets {
        // Said or left out: there are none.
        Secrets::OfController(false) => return Ok(()),
        Secrets::OfController(true) => {
            let expected = "a plugin lists each secret with \"name\", \"target\" and \"places\"";
            return Err(field_error("capabilities.secrets", "true", expected));
        }
        Secrets::Declared(rules) => rules,
    };
    check_count("capabilities.secrets", rules.len(), SECRETS_MAX)?;
    check_unique("secret", rules.iter().map(|rule| rule.name.as_str()))?;
    for rule in rules {
        let problem = secret_problem(manifest, rule);
        problem.map_or(Ok(()), |problem| Err(refused("secret", &rule.name, problem)))?;
    }
    Ok(())
}

fn secret_problem(manifest: &Manifest, rule: &SecretRule) -> Option<String> {
    if !is_field_name(&rule.name) {
        return Some(
            "a name has 1 to 64 characters of a-z, 0-9 and '-', and begins with a letter".to_owned(),
        );
    }
    if manifest.capabilities.target(&rule.target).is_none() {
        let declared: Vec<&str> =
            manifest.capabilities.http.iter().map(|known| known.name.as_str()).collect();
        return Some(format!(
            "its target '{}' is not in 'capabilities.http', which has [{}]",
            rule.target,
            declared.join(", ")
        ));
    }
    if rule.places.is_empty() || rule.places.len() > PLACES_MAX {
        return Some(format!("it has {} places; 1 to {PLACES_MAX} are accepted", rule.places.len()));
    }
    let distinct: HashSet<String> = rule.places.iter().map(ToString::to_string).collect();
    (distinct.len() != rule.places.len()).then(|| "a place is there twice".to_owned())
}

/// Whether a name is `plugin.<id>.<word>`.
fn is_own(manifest: &Manifest, name: &str) -> bool {
    let rest = name.strip_prefix("plugin.").and_then(|rest| rest.strip_prefix(manifest.id.as_str()));
    rest.and_then(|rest| rest.strip_prefix('.')).is_some_and(|word| is_word(word, WORD_BYTES_MAX))
}

fn own_names(manifest: &Manifest) -> String {
    format!("write plugin.{}.WORD with a word of a-z, 0-9 and '-'", manifest.id)
}

fn check_events(manifest: &Manifest) -> Result<(), PackageError> {
    let emitted = manifest.capabilities.emitted();
    check_count("capabilities.events.emit", emitted.len(), EVENT_TYPES_MAX)?;
    check_count("event-types", manifest.event_types.len(), EVENT_TYPES_MAX)?;
    check_unique("event type", emitted.iter().map(String::as_str))?;
    check_unique("event type", manifest.event_types.iter().map(|declared| declared.event_type.as_str()))?;
    if let Some(undeclared) = emitted.iter().find(|name| manifest.event_type(name).is_none()) {
        return Err(refused("event type", undeclared, "it is emitted and not declared in 'event-types'"));
    }
    for declared in &manifest.event_types {
        let name = declared.event_type.as_str();
        if !is_own(manifest, name) {
            return Err(refused("event type", name, own_names(manifest)));
        }
        if !emitted.iter().any(|other| other == name) {
            let problem =
                "it is declared and not in 'capabilities.events.emit'; add it there or leave it out";
            return Err(refused("event type", name, problem));
        }
        check_text("event type title", &declared.title, TITLE_BYTES_MAX)?;
        check_schema("event type", name, "payload-schema", &declared.payload_schema)?;
    }
    Ok(())
}

fn check_calls(manifest: &Manifest) -> Result<(), PackageError> {
    let called = manifest.capabilities.called();
    check_count("capabilities.fabric.call", called.len(), CALLS_MAX)?;
    check_unique("operation", called.iter().map(String::as_str))?;
    for id in called {
        let is_segment = |segment: &str| {
            !segment.is_empty()
                && segment.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b))
        };
        if id.contains('*') {
            return Err(refused("operation", id, "name each operation by its exact id, without '*'"));
        }
        let is_id = id.len() <= OPERATION_BYTES_MAX && id.contains('.') && id.split('.').all(is_segment);
        if !is_id {
            let problem =
                "an id is words of a-z, 0-9, '-' and '_' with '.' between them, such as network.vlan.create";
            return Err(refused("operation", id, problem));
        }
        if id.starts_with("plugin.") {
            return Err(refused("operation", id, "a plugin cannot call the actions of plugins"));
        }
    }
    Ok(())
}

fn check_kv(manifest: &Manifest) -> Result<(), PackageError> {
    match manifest.capabilities.kv.as_ref().and_then(|kv| kv.bytes) {
        Some(bytes) if bytes == 0 || bytes > KV_BYTES_MAX => {
            let expected = format!("1 to {KV_BYTES_MAX} bytes are accepted");
            Err(field_error("capabilities.kv.bytes", &bytes.to_string(), &expected))
        }
        _ => Ok(()),
    }
}

fn check_permissions(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("permissions", manifest.permissions.len(), PERMISSIONS_MAX)?;
    check_unique("permission", manifest.permissions.iter().map(|permission| permission.id.as_str()))?;
    for permission in &manifest.permissions {
        if !is_own(manifest, &permission.id) {
            return Err(refused("permission", &permission.id, own_names(manifest)));
        }
        check_text("permission title", &permission.title, TITLE_BYTES_MAX)?;
    }
    Ok(())
}

fn check_actions(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("actions", manifest.actions.len(), ACTIONS_MAX)?;
    check_unique("action", manifest.actions.iter().map(|action| action.id.as_str()))?;
    for action in &manifest.actions {
        let problem = action_problem(manifest, action);
        problem.map_or(Ok(()), |problem| Err(refused("action", &action.id, problem)))?;
        check_text("action title", &action.title, TITLE_BYTES_MAX)?;
        if !action.description.is_empty() {
            check_text("action description", &action.description, DESCRIPTION_BYTES_MAX)?;
        }
        check_schema("action", &action.id, "params-schema", &action.params_schema)?;
        check_schema("action", &action.id, "output-schema", &action.output_schema)?;
    }
    Ok(())
}

fn action_problem(manifest: &Manifest, action: &Action) -> Option<String> {
    if !is_word(&action.id, WORD_BYTES_MAX) {
        return Some("an id has 1 to 41 characters of a-z, 0-9 and '-', and begins with a letter".to_owned());
    }
    if let Some(needed) = &action.permission
        && !manifest.permissions.iter().any(|known| known.id == *needed)
    {
        return Some(format!("it needs the permission '{needed}', which 'permissions' does not declare"));
    }
    effect_problem(manifest, action.effect)
}

fn effect_problem(manifest: &Manifest, effect: ActionEffect) -> Option<String> {
    let is_idle = effect == ActionEffect::Stage && manifest.capabilities.called().is_empty();
    is_idle.then(|| {
        "its effect is 'stage', and 'capabilities.fabric.call' names no operation that could stage".to_owned()
    })
}

/// Checks a schema of objects as it is written. [`crate::judge_schemas`] compiles it, once for a package.
fn check_schema(part: &'static str, name: &str, field: &str, document: &Value) -> Result<(), PackageError> {
    Schema::judge(document).map_err(|error| refused(part, name, format!("{field}: {error}")))?;
    if document["type"] == "object" {
        Ok(())
    } else {
        Err(refused(part, name, format!("{field}: it is of objects; write \"type\": \"object\" in it")))
    }
}

#[cfg(test)]
pub(crate) mod tests;
