//! What a manifest must hold to beyond its types. Every check names what it
//! refuses; none of them looks at other files of the package.

use serde_json::Value;

use crate::error::PackageError;
use crate::manifest::{Limits, Manifest, Pace, ReadRule};
use crate::{
    MANIFEST, SIGNATURE, SUPPORTED_API, credentials, effects, keys, names, plugin_rules, push_rules, reading,
    schema, session_rules,
};

/// Ids that mean something else in events, permissions, paths or settings.
pub(crate) const RESERVED: &[&str] = &[
    "adapter",
    "admin",
    "api",
    "controller",
    "core",
    "device",
    "event",
    "fabric",
    "heddle",
    "host",
    "install",
    "internal",
    "marketplace",
    "network",
    "platform",
    "plugin",
    "security",
    "site",
    "sync",
    "system",
    "trusted-keys",
    "user",
    "webhook",
];
const SESSIONS_MAX: usize = 8;
const READ_RULES_MAX: usize = 512;
const SECRET_FIELDS_MAX: usize = 256;
const PACE_GAP_MS_MAX: u32 = 60_000;
const WINDOWS_MAX: usize = 4;
const WINDOW_CALLS_MAX: u32 = 1_000;
const WINDOW_MS_MAX: u32 = 3_600_000;

/// Checks everything that can be judged from the manifest alone.
pub(crate) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    check_identity(manifest)?;
    check_limits(&manifest.limits)?;
    manifest.pace.as_ref().map_or(Ok(()), check_pace)?;
    check_files(manifest)?;
    manifest.config_schema.as_ref().map_or(Ok(()), check_config_schema)?;
    plugin_rules::check(manifest)?;
    check_count("auth", manifest.auth.len(), SESSIONS_MAX)?;
    for (name, session) in &manifest.auth {
        session_rules::check(name, session)?;
    }
    credentials::check(manifest)?;
    check_count("reads", manifest.reads.len(), READ_RULES_MAX)?;
    manifest.reads.iter().try_for_each(check_read_rule)?;
    effects::check(manifest)?;
    push_rules::check(manifest)?;
    check_count("secret-fields", manifest.secret_fields.len(), SECRET_FIELDS_MAX)?;
    for field in &manifest.secret_fields {
        check_text("secret-fields", field, 64)?;
    }
    Ok(())
}

fn check_identity(manifest: &Manifest) -> Result<(), PackageError> {
    if manifest.schema != 1 {
        return Err(PackageError::Schema(manifest.schema));
    }
    if !is_id(&manifest.id) {
        return Err(PackageError::Id(manifest.id.clone()));
    }
    if RESERVED.contains(&manifest.id.as_str()) {
        return Err(PackageError::ReservedId(manifest.id.clone()));
    }
    if !SUPPORTED_API.contains(&manifest.api.as_str()) {
        return Err(PackageError::Api { found: manifest.api.clone(), supported: SUPPORTED_API.join(", ") });
    }
    check_text("name", &manifest.name, 80)?;
    check_text("license", &manifest.license, 80)?;
    if !keys::is_publisher(&manifest.publisher) {
        return Err(field_error(
            "publisher",
            &manifest.publisher,
            "a-z, 0-9 and '-' are, starting with a letter",
        ));
    }
    match &manifest.min_host {
        Some(version) if semver::Version::parse(version).is_err() => {
            Err(field_error("min-host", version, "write it as major.minor.patch"))
        }
        _ => Ok(()),
    }
}

/// Most characters of a package's id, all of them ASCII.
pub const ID_CHARS_MAX: usize = 41;

/// Whether a text has the form of a package's id.
pub(crate) fn is_id(id: &str) -> bool {
    (3..=ID_CHARS_MAX).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn check_limits(limits: &Limits) -> Result<(), PackageError> {
    let asked = [
        ("memory-mib", limits.memory_mib, 256),
        ("cpu-ms", limits.cpu_ms, 5_000),
        ("requests", limits.requests, 512),
        ("parallel", limits.parallel, 16),
        ("request-bytes", limits.request_bytes, 8 * 1024 * 1024),
    ];
    for (name, value, max) in asked {
        match value {
            Some(value) if value == 0 || value > max => return Err(PackageError::Limit { name, value, max }),
            _ => {}
        }
    }
    Ok(())
}

fn check_pace(pace: &Pace) -> Result<(), PackageError> {
    for (field, value) in [("pace read-gap-ms", pace.read_gap_ms), ("pace write-gap-ms", pace.write_gap_ms)] {
        if value > PACE_GAP_MS_MAX {
            return Err(field_error(field, &value.to_string(), "60000 ms is the most"));
        }
    }
    check_count("pace windows", pace.windows.len(), WINDOWS_MAX)?;
    for window in &pace.windows {
        let bounds = [
            ("pace windows calls", window.calls, WINDOW_CALLS_MAX),
            ("pace windows window-ms", window.window_ms, WINDOW_MS_MAX),
        ];
        for (name, value, max) in bounds {
            if value == 0 || value > max {
                return Err(PackageError::Limit { name, value, max });
            }
        }
    }
    Ok(())
}

fn check_files(manifest: &Manifest) -> Result<(), PackageError> {
    for file in &manifest.files {
        names::check_name(&file.path)?;
        let own = [MANIFEST, SIGNATURE].iter().any(|name| name.eq_ignore_ascii_case(&file.path));
        if own {
            let reason = "the manifest and its signature are not listed";
            return Err(PackageError::FileName { name: file.path.clone(), reason });
        }
        let is_hash =
            file.sha256.len() == 64 && file.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            return Err(field_error("sha256", &file.sha256, "write 64 lower-case hex digits"));
        }
    }
    names::check_distinct(manifest.files.iter().map(|file| file.path.as_str()))?;
    if !manifest.files.iter().any(|file| file.path == manifest.component) {
        return Err(PackageError::ComponentNotListed(manifest.component.clone()));
    }
    Ok(())
}

fn check_config_schema(document: &Value) -> Result<(), PackageError> {
    schema::Schema::parse(document).map(drop).map_err(PackageError::ConfigSchema)
}

fn check_read_rule(rule: &ReadRule) -> Result<(), PackageError> {
    let refused = |problem: &str| {
        let rule = format!("{} {}", rule.method, rule.path);
        Err(PackageError::ReadRule { rule, problem: problem.to_owned() })
    };
    match rule.method.as_str() {
        "POST" | "PUT" | "PATCH" => {}
        "GET" | "HEAD" => return refused("GET and HEAD always read and need no rule"),
        _ => return refused("its method must be POST, PUT or PATCH"),
    }
    if let Some(problem) = session_rules::path_fault(&rule.path) {
        return refused(problem);
    }
    if rule.path.contains(['?', '{', '}']) {
        return refused("a path of a rule has no template, and its query stands in 'query'");
    }
    if rule.path.split('/').any(|segment| segment.contains('*') && segment != "*") {
        return refused("'*' stands for one whole segment");
    }
    for (pointer, values) in &rule.json {
        if !session_rules::is_pointer(pointer) {
            return refused("a key of 'json' is a JSON pointer and starts with '/'");
        }
        if values.is_empty() {
            return refused("an empty list of values fits no request");
        }
    }
    if !rule.json.is_empty() && !rule.form.is_empty() {
        return refused("a body is JSON or a form; give 'json' or 'form', not both");
    }
    match reading::problem(&rule.form).or_else(|| reading::problem(&rule.query)) {
        Some(problem) => refused(problem),
        None => Ok(()),
    }
}

pub(crate) fn check_text(field: &str, value: &str, bytes_max: usize) -> Result<(), PackageError> {
    let sound = !value.trim().is_empty() && value.len() <= bytes_max && !value.chars().any(char::is_control);
    if sound {
        Ok(())
    } else {
        Err(field_error(field, value, &format!("write 1 to {bytes_max} bytes without control characters")))
    }
}

pub(crate) fn check_count(field: &str, found: usize, max: usize) -> Result<(), PackageError> {
    if found <= max {
        Ok(())
    } else {
        Err(field_error(field, &format!("{found} entries"), &format!("{max} entries are the most")))
    }
}

pub(crate) fn field_error(field: &str, value: &str, expected: &str) -> PackageError {
    // What is refused for its length is not repeated in full.
    let value = value.chars().take(120).collect();
    PackageError::Field { field: field.to_owned(), value, expected: expected.to_owned() }
}
