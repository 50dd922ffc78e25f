//! Rules of managed logins: requests that can be built, templates that can be
//! filled, and answers that can be told apart.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::error::PackageError;
use crate::headers;
use crate::manifest::{
    Apply, ApplyTo, Capture, CaptureFrom, HeaderIs, Matcher, Refresh, Renewal, Request, Session, When,
};
use crate::places;
use crate::template::{self, Part, Source};

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const LOGIN_STEPS_MAX: usize = 8;
const EXPOSED_MAX: usize = 8;
const REFRESHES_MAX: usize = 16;
const HEADERS_MAX: usize = 16;
const LOGIN_GAP_MS_MAX: u32 = 300_000;
/// Most seconds that a session is used, renewals included.
pub const SESSION_SECS_MAX: u32 = 7 * 24 * 3600;

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
    if session.ttl_s == 0 || session.ttl_s > SESSION_SECS_MAX {
        return Some(format!("'ttl-s' is {}; 1 to {SESSION_SECS_MAX} is accepted", session.ttl_s));
    }
    if let Some(gap) = session.login_gap_ms.filter(|gap| *gap == 0 || *gap > LOGIN_GAP_MS_MAX) {
        return Some(format!("'login-gap-ms' is {gap}; 1 to {LOGIN_GAP_MS_MAX} is accepted"));
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
        || session.renew.is_some()
        || session.ttl_from.is_some()
        || !session.refresh.is_empty()
        || session.login_gap_ms.is_some()
    {
        return Some(
            "without 'login' steps there is no 'cookie-jar', 'expired', 'expired-before-effect', 'renew', 'ttl-from', 'refresh', 'login-gap-ms' or 'logout'",
        );
    }
    None
}

fn check_steps(session: &Session) -> Result<(), String> {
    let mut captured = HashSet::new();
    for step in &session.login {
        step.when.as_ref().map_or(Ok(()), check_when)?;
        check_request(&step.request, &captured)?;
        check_matcher("expect", &step.expect)?;
        step.denied.as_ref().map_or(Ok(()), |matcher| check_matcher("denied", matcher))?;
        for capture in &step.capture {
            check_capture(capture)?;
            // A step that may be left out can take the place of what another one captured.
            if !captured.insert(capture.name.as_str()) && step.when.is_none() {
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
    check_lifetime(session)?;
    check_refreshes("refresh", &session.refresh, session)?;
    session.renew.as_ref().map_or(Ok(()), |renewal| check_renewal(renewal, session, &captured))?;
    session.logout.as_ref().map_or(Ok(()), |request| check_request(request, &captured))
}

pub(crate) fn check_when(when: &When) -> Result<(), String> {
    let names = [("secret", &when.secret), ("setting", &when.setting)];
    let mut given = names.iter().filter_map(|(kind, name)| Some((kind, name.as_ref()?))).peekable();
    if given.peek().is_none() {
        return Err("'when' has no condition; it names a 'secret' or a 'setting'".to_owned());
    }
    if when.setting.is_none() && !when.is.is_empty() {
        return Err("'when.is' has values of a setting; name it in 'setting'".to_owned());
    }
    match given.find(|(_, name)| !template::is_name(name)) {
        Some((kind, name)) => Err(format!("'{name}' cannot name a {kind}; use letters, digits, '-' and '_'")),
        None => Ok(()),
    }
}

fn check_lifetime(session: &Session) -> Result<(), String> {
    match session.ttl_from.as_ref().map(|place| &place.from) {
        None => Ok(()),
        Some(CaptureFrom::Cookie(_)) => {
            Err("'ttl-from' names a place in JSON or a header, not a cookie".to_owned())
        }
        Some(from) => check_from(from),
    }
}

fn check_renewal(renewal: &Renewal, session: &Session, captured: &HashSet<&str>) -> Result<(), String> {
    let (after, ttl) = (renewal.after_s, session.ttl_s);
    if after == 0 || after >= ttl {
        return Err(format!(
            "'renew.after-s' is {after}; it is more than 0 and less than 'ttl-s', which is {ttl}"
        ));
    }
    if let Some(age) = renewal.max_age_s.filter(|age| *age <= after || *age > SESSION_SECS_MAX) {
        return Err(format!(
            "'renew.max-age-s' is {age}; it is more than 'after-s', and {SESSION_SECS_MAX} at most"
        ));
    }
    check_request(&renewal.request, captured)?;
    check_matcher("renew.expect", &renewal.expect)?;
    check_refreshes("renew.capture", &renewal.capture, session)?;
    let mut names = HashSet::new();
    match renewal.capture.iter().find(|capture| !names.insert(&capture.name)) {
        Some(twice) => Err(format!("'{}' is captured twice in 'renew'", twice.name)),
        None => Ok(()),
    }
}

/// Checks that each entry replaces a value that the login captures and the component never sees.
fn check_refreshes(field: &str, refreshes: &[Refresh], session: &Session) -> Result<(), String> {
    if refreshes.len() > REFRESHES_MAX {
        return Err(format!("'{field}' has {} entries; {REFRESHES_MAX} are the most", refreshes.len()));
    }
    for refresh in refreshes {
        check_from(&refresh.from)?;
        let name = &refresh.name;
        let mut captures = session.login.iter().flat_map(|step| &step.capture);
        match captures.find(|capture| capture.name == *name) {
            None => return Err(format!("'{field}' replaces '{name}', which no step of the login captures")),
            Some(capture) if capture.expose => {
                return Err(format!("'{field}' replaces '{name}', which is exposed and stays as it is"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The places that values of the session are taken from, each with the name of the value.
fn sources(session: &Session) -> impl Iterator<Item = (&str, &CaptureFrom)> {
    let captures = session.login.iter().flat_map(|step| &step.capture);
    let renewed = session.renew.iter().flat_map(|renewal| &renewal.capture);
    let replaced = session.refresh.iter().chain(renewed);
    captures
        .map(|capture| (capture.name.as_str(), &capture.from))
        .chain(replaced.map(|refresh| (refresh.name.as_str(), &refresh.from)))
}

/// Checks that a value that carries the session is never shown to the component, under any name.
fn check_exposed(session: &Session) -> Result<(), String> {
    let captures = session.login.iter().flat_map(|step| &step.capture);
    let exposed: Vec<&Capture> = captures.filter(|capture| capture.expose).collect();
    if exposed.len() > EXPOSED_MAX {
        return Err(format!("{} captures are exposed; {EXPOSED_MAX} are the most", exposed.len()));
    }
    let carrying = carriers(session);
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
        let carries = |(other, from): (&str, &CaptureFrom)| carrying.contains(other) && *from == capture.from;
        if carrying.contains(name) || sources(session).any(carries) {
            return Err(format!(
                "'{name}' carries the session in 'apply', 'renew' or 'logout' and cannot be exposed"
            ));
        }
    }
    Ok(())
}

/// The captures that carry the session: in what every request carries, and in the requests that prolong and end it. What
/// stands in a path is an id.
fn carriers(session: &Session) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for apply in &session.apply {
        places::in_text(Source::Session, &apply.value, &mut found);
        if let ApplyTo::Basic(username) = &apply.to {
            places::in_text(Source::Session, username, &mut found);
        }
    }
    let renewal = session.renew.iter().map(|renewal| &renewal.request);
    let requests = renewal.chain(&session.logout);
    requests.for_each(|request| places::in_request(Source::Session, request, &mut found));
    found
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
    check_request_headers(request, captured)?;
    request.json.as_ref().map_or(Ok(()), |json| check_templates(json, captured))?;
    request.form.iter().flatten().try_for_each(|(_, value)| check_template(value, captured))
}

fn check_request_headers(request: &Request, captured: &HashSet<&str>) -> Result<(), String> {
    if request.headers.len() > HEADERS_MAX {
        return Err(format!("a request has {} headers; {HEADERS_MAX} are the most", request.headers.len()));
    }
    for (name, value) in &request.headers {
        check_header(name)?;
        check_template(value, captured)?;
    }
    let Some(basic) = &request.basic else { return Ok(()) };
    if request.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        return Err("a request has 'basic' or the header 'authorization', not both".to_owned());
    }
    check_template(&basic.username, captured)?;
    check_template(&basic.password, captured)
}

/// Checks that a header may carry a part of a login or session.
pub(crate) fn check_header(name: &str) -> Result<(), String> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name) {
        return Err(format!("'{name}' cannot name a header"));
    }
    if headers::is_connection(&lower) {
        return Err(format!("header '{name}' belongs to the connection and cannot carry a session"));
    }
    if headers::carries_credentials(&lower) {
        Ok(())
    } else {
        Err(format!(
            "header '{name}' says how a request is read, or makes another one of it; use another header"
        ))
    }
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

pub(crate) fn check_matcher(field: &str, matcher: &Matcher) -> Result<(), String> {
    let has_shell = !matcher.status.is_empty() || matcher.content_type.is_some() || matcher.empty.is_some();
    if !has_shell && matcher.json.is_empty() && matcher.header.is_empty() {
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
    if matcher.empty == Some(true) && !matcher.json.is_empty() {
        return Err(format!("'{field}' asks for JSON in an empty body and fits no answer"));
    }
    for (name, wanted) in &matcher.header {
        if !is_token(name) {
            return Err(format!("'{name}' of '{field}' cannot name a header"));
        }
        if matches!(wanted, HeaderIs::Values(values) if values.is_empty()) {
            return Err(format!("header '{name}' of '{field}' has no values and fits no answer"));
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
    check_from(&capture.from)
}

fn check_from(from: &CaptureFrom) -> Result<(), String> {
    match from {
        CaptureFrom::Json(pointer) if is_pointer(pointer) => Ok(()),
        CaptureFrom::Json(pointer) => Err(format!("'{pointer}' is not a JSON pointer; it starts with '/'")),
        CaptureFrom::Header(name) | CaptureFrom::Cookie(name) if is_token(name) => Ok(()),
        CaptureFrom::Header(name) | CaptureFrom::Cookie(name) => {
            Err(format!("'{name}' cannot name a header or a cookie"))
        }
    }
}

pub(crate) fn check_apply(apply: &Apply, captured: &HashSet<&str>) -> Result<(), String> {
    check_template(&apply.value, captured)?;
    apply.methods.iter().try_for_each(|method| check_method(method))?;
    match &apply.to {
        ApplyTo::Basic(username) => check_template(username, captured),
        ApplyTo::Header(name) => check_header(name),
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

#[cfg(test)]
mod tests;
