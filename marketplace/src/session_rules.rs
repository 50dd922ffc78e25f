//! Rules of managed logins: requests that can be built, templates that can be
//! filled, and answers that can be told apart.

use std::collections::HashSet;

use serde_json::Value;

use crate::error::PackageError;
use crate::manifest::{Apply, ApplyTo, Capture, CaptureFrom, Matcher, Request, Session};
use crate::template::{self, Part, Source};

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/// Headers that belong to the connection, never to a session, a credential or a component.
pub const CONNECTION_HEADERS: &[&str] = &[
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
    "http2-settings",
];
const LOGIN_STEPS_MAX: usize = 8;
const EXPOSED_MAX: usize = 8;
const TTL_SECS_MAX: u32 = 7 * 24 * 3600;

/// Checks one declaration; `name` is its key in `auth`.
pub(crate) fn check(name: &str, session: &Session) -> Result<(), PackageError> {
    problem_of(name, session)
        .map_or(Ok(()), |problem| Err(PackageError::Session { session: name.to_owned(), problem }))
}

fn problem_of(name: &str, session: &Session) -> Option<String> {
    if !template::is_name(name) {
        return Some("its name has letters, digits, '-' and '_' only".to_owned());
    }
    if session.login.len() > LOGIN_STEPS_MAX {
        return Some(format!("'login' has at most {LOGIN_STEPS_MAX} steps"));
    }
    if let Some(problem) = problem_without_login(session).filter(|_| session.login.is_empty()) {
        return Some(problem.to_owned());
    }
    if session.ttl_s == 0 || session.ttl_s > TTL_SECS_MAX {
        return Some(format!("'ttl-s' is {}; 1 to {TTL_SECS_MAX} is accepted", session.ttl_s));
    }
    check_steps(session).err()
}

/// What a session without login steps cannot have.
fn problem_without_login(session: &Session) -> Option<&'static str> {
    let names_secret = |template: &str| {
        template::parse(template)
            .is_ok_and(|parts| parts.iter().any(|part| matches!(part, Part::Place(Source::Secret, _))))
    };
    let user = |to: &ApplyTo| matches!(to, ApplyTo::Basic(username) if names_secret(username));
    if !session.apply.iter().any(|apply| names_secret(&apply.value) || user(&apply.to)) {
        return Some(
            "without 'login' steps, 'apply' has to name a secret of the credential: {{secret.api-key}}",
        );
    }
    if session.cookie_jar
        || session.logout.is_some()
        || !session.expired.is_empty()
        || session.expired_before_effect
    {
        return Some(
            "without 'login' steps there is no 'cookie-jar', 'expired', 'expired-before-effect' or 'logout'",
        );
    }
    None
}

fn check_steps(session: &Session) -> Result<(), String> {
    let mut captured = HashSet::new();
    for step in &session.login {
        check_request(&step.request, &captured)?;
        check_matcher("expect", &step.expect)?;
        step.denied.as_ref().map_or(Ok(()), |matcher| check_matcher("denied", matcher))?;
        for capture in &step.capture {
            check_capture(capture)?;
            if !captured.insert(capture.name.as_str()) {
                return Err(format!("'{}' is captured twice", capture.name));
            }
        }
    }
    if session.apply.is_empty() && !session.cookie_jar {
        return Err("neither 'apply' nor 'cookie-jar' carries the session".to_owned());
    }
    session.apply.iter().try_for_each(|apply| check_apply(apply, &captured))?;
    check_exposed(session)?;
    session.expired.iter().try_for_each(|matcher| check_matcher("expired", matcher))?;
    session.logout.as_ref().map_or(Ok(()), |request| check_request(request, &captured))
}

/// Checks that a value that carries the session is never shown to the component, under any name.
fn check_exposed(session: &Session) -> Result<(), String> {
    let captures: Vec<&Capture> = session.login.iter().flat_map(|step| &step.capture).collect();
    let exposed: Vec<&&Capture> = captures.iter().filter(|capture| capture.expose).collect();
    if exposed.len() > EXPOSED_MAX {
        return Err(format!("{} captures are exposed; {EXPOSED_MAX} are the most", exposed.len()));
    }
    let mut applied = HashSet::new();
    for apply in &session.apply {
        for part in template::parse(&apply.value).map_err(|error| error.to_string())? {
            if let Part::Place(Source::Session, name) = part {
                applied.insert(name);
            }
        }
    }
    for capture in exposed {
        let name = &capture.name;
        match &capture.from {
            CaptureFrom::Cookie(_) => {
                return Err(format!("'{name}' comes from a cookie and cannot be exposed"));
            }
            CaptureFrom::Header(header) if header.eq_ignore_ascii_case("set-cookie") => {
                return Err(format!("'{name}' comes from a cookie and cannot be exposed"));
            }
            _ => {}
        }
        let carries = |other: &&&Capture| applied.contains(other.name.as_str()) && other.from == capture.from;
        if applied.contains(name.as_str()) || captures.iter().any(|other| carries(&other)) {
            return Err(format!("'{name}' carries the session in 'apply' and cannot be exposed"));
        }
    }
    Ok(())
}

fn check_request(request: &Request, captured: &HashSet<&str>) -> Result<(), String> {
    check_method(&request.method)?;
    if let Some(problem) = path_fault(&request.path) {
        return Err(format!("path '{}': {problem}", request.path));
    }
    if request.json.is_some() && request.form.is_some() {
        return Err("a request has 'json' or 'form', not both".to_owned());
    }
    check_template(&request.path, captured)?;
    request.json.as_ref().map_or(Ok(()), |json| check_templates(json, captured))?;
    request.form.iter().flatten().try_for_each(|(_, value)| check_template(value, captured))
}

fn check_method(method: &str) -> Result<(), String> {
    if METHODS.contains(&method) {
        Ok(())
    } else {
        Err(format!("method '{method}' is not accepted; {} are", METHODS.join(", ")))
    }
}

fn check_templates(value: &Value, captured: &HashSet<&str>) -> Result<(), String> {
    match value {
        Value::String(text) => check_template(text, captured),
        Value::Array(items) => items.iter().try_for_each(|item| check_templates(item, captured)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            if key.contains("{{") {
                return Err(format!("key '{key}' holds a template; only values may"));
            }
            check_templates(value, captured)
        }),
        _ => Ok(()),
    }
}

fn check_template(text: &str, captured: &HashSet<&str>) -> Result<(), String> {
    let parts = template::parse(text).map_err(|error| error.to_string())?;
    let unknown = parts.iter().find_map(|part| match part {
        Part::Place(Source::Session, name) if !captured.contains(name.as_str()) => Some(name),
        _ => None,
    });
    match unknown {
        Some(name) => Err(format!("'{{{{session.{name}}}}}' is used, but no earlier step captures '{name}'")),
        None => Ok(()),
    }
}

fn check_matcher(field: &str, matcher: &Matcher) -> Result<(), String> {
    if matcher.status.is_empty() && matcher.json.is_empty() && matcher.content_type.is_none() {
        return Err(format!("'{field}' has no condition and would fit every answer"));
    }
    if let Some(status) = matcher.status.iter().find(|status| !(100..=599).contains(*status)) {
        return Err(format!("'{field}' names the status {status}; 100 to 599 is accepted"));
    }
    for (pointer, values) in &matcher.json {
        if !is_pointer(pointer) {
            return Err(format!("'{pointer}' of '{field}' is not a JSON pointer; it starts with '/'"));
        }
        if values.is_empty() {
            return Err(format!("'{pointer}' of '{field}' has no values and fits no answer"));
        }
    }
    match &matcher.content_type {
        Some(text) if text.is_empty() || text.chars().any(|c| c.is_ascii_uppercase() || c.is_control()) => {
            Err(format!("content type '{text}' of '{field}' must be lower case and not empty"))
        }
        _ => Ok(()),
    }
}

fn check_capture(capture: &Capture) -> Result<(), String> {
    if !template::is_name(&capture.name) {
        return Err(format!("'{}' cannot name a capture; use letters, digits, '-' and '_'", capture.name));
    }
    match &capture.from {
        CaptureFrom::Json(pointer) if is_pointer(pointer) => Ok(()),
        CaptureFrom::Json(pointer) => Err(format!("'{pointer}' is not a JSON pointer; it starts with '/'")),
        CaptureFrom::Header(name) | CaptureFrom::Cookie(name) if is_token(name) => Ok(()),
        CaptureFrom::Header(name) | CaptureFrom::Cookie(name) => {
            Err(format!("'{name}' cannot name a header or a cookie"))
        }
    }
}

fn check_apply(apply: &Apply, captured: &HashSet<&str>) -> Result<(), String> {
    check_template(&apply.value, captured)?;
    apply.methods.iter().try_for_each(|method| check_method(method))?;
    match &apply.to {
        ApplyTo::Basic(username) => check_template(username, captured),
        ApplyTo::Header(name) => {
            let lower = name.to_ascii_lowercase();
            if CONNECTION_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
                return Err(format!("header '{name}' belongs to the connection and cannot carry a session"));
            }
            if is_token(name) { Ok(()) } else { Err(format!("'{name}' cannot name a header")) }
        }
        ApplyTo::Cookie(name) if !is_token(name) => Err(format!("'{name}' cannot name a cookie")),
        ApplyTo::JsonPointer(pointer) if pointer.is_empty() || !is_pointer(pointer) => {
            Err(format!("'{pointer}' is not a JSON pointer to a place in the body; it starts with '/'"))
        }
        ApplyTo::FormField(name) | ApplyTo::Query(name) if name.is_empty() => {
            Err("a form field or query parameter needs a name".to_owned())
        }
        _ => Ok(()),
    }
}

/// What is wrong with a path of a request or rule.
pub(crate) fn path_fault(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') || path.starts_with("//") {
        return Some("it starts with one '/' and names no host");
    }
    if path.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\' || c == '#') {
        return Some("spaces, control characters, '\\' and '#' are not accepted");
    }
    let plain = path.split('?').next().unwrap_or(path).to_ascii_lowercase().replace("%2e", ".");
    if plain.contains("%2f") || plain.contains("%5c") {
        return Some("an encoded '/' or '\\' is not accepted");
    }
    if plain.split('/').any(|segment| segment == "." || segment == "..") {
        return Some("'.' and '..' are not accepted");
    }
    None
}

/// A JSON pointer: empty for the whole document, else `/a/b` with `~0` and `~1`.
pub(crate) fn is_pointer(text: &str) -> bool {
    let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && escapes
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
