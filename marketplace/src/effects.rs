//! Which requests of a manifest read and which change something, judged before any of them is sent.
//!
//! A rule of `reads` lets the component send what fits it in every phase. Therefore a rule has a condition
//! unless its path does nothing but read, and no rule fits a request that is declared to change the session.

use serde_json::Value;

use crate::error::PackageError;
use crate::manifest::{Manifest, ReadRule, Request, Session};
use crate::reading;

/// How a template counts in a comparison: what fills it is not known yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Template {
    /// It equals nothing: only what certainly fits a rule is a read.
    FitsNothing,
    /// It may equal anything: what could fit a rule is a conflict.
    FitsAnything,
}

/// Checks all logins, logouts and rules of a manifest against each other.
pub(crate) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    for (name, session) in &manifest.auth {
        for (step, request) in requests(session) {
            check_request(manifest, name, &step, request)?;
        }
    }
    manifest.reads.iter().try_for_each(|rule| check_rule(rule, &manifest.reads))
}

/// The requests of a session, each with a word for it: the login's steps, then the renewal and the logout.
pub(crate) fn requests(session: &Session) -> impl Iterator<Item = (String, &Request)> {
    let count = session.login.len();
    let steps = session.login.iter().enumerate();
    let login = steps.map(move |(n, step)| {
        let condition = if step.when.is_some() { ", which may be left out" } else { "" };
        (format!("login step {} of {count}{condition}", n + 1), &step.request)
    });
    let renewal = session.renew.iter().map(|renewal| ("renewal".to_owned(), &renewal.request));
    login.chain(renewal).chain(session.logout.iter().map(|request| ("logout".to_owned(), request)))
}

/// Whether a request changes nothing, as far as its method and the rules tell.
pub(crate) fn reads(request: &Request, rules: &[ReadRule]) -> bool {
    let has_body = request.json.is_some() || request.form.is_some();
    if matches!(request.method.as_str(), "GET" | "HEAD") && !has_body {
        return true;
    }
    let fits = |body: Option<&Value>| {
        rules.iter().any(|rule| {
            is_place(rule, request, Template::FitsNothing)
                && has_query(rule, request, Template::FitsNothing)
                && has_form(rule, request, Template::FitsNothing)
                && has_values(rule, body, Template::FitsNothing)
        })
    };
    match &request.json {
        Some(Value::Array(batch)) => !batch.is_empty() && batch.iter().all(|element| fits(Some(element))),
        body => fits(body.as_ref()),
    }
}

fn check_request(
    manifest: &Manifest,
    session: &str,
    step: &str,
    request: &Request,
) -> Result<(), PackageError> {
    if request.effect.is_none() {
        if reads(request, &manifest.reads) {
            return Ok(());
        }
        let problem = format!(
            "{step} ({} {}) may change something; it is a GET without a body, fits a rule of 'reads', or declares \"effect\": \"session\"",
            request.method, request.path
        );
        return Err(PackageError::Session { session: session.to_owned(), problem });
    }
    match manifest.reads.iter().find(|rule| may_fit(rule, request)) {
        None => Ok(()),
        Some(rule) => refused(
            rule,
            format!(
                "it also fits {step} of auth '{session}', which changes the session; give it a condition that tells them apart"
            ),
        ),
    }
}

fn check_rule(rule: &ReadRule, all: &[ReadRule]) -> Result<(), PackageError> {
    match (!rule.has_condition(), rule.only_reads) {
        (true, false) => refused(
            rule,
            format!(
                "without 'json', 'form' or 'query' every {} to this path counts as a read; add a condition, or \"only-reads\": true where the path does nothing else",
                rule.method
            ),
        ),
        (false, true) => {
            refused(rule, "it has a condition, so 'only-reads' does not hold; leave it out".to_owned())
        }
        (false, false) => Ok(()),
        (true, true) => {
            let conditional = |other: &&ReadRule| {
                other.has_condition()
                    && other.method == rule.method
                    && paths_meet(&other.path, &rule.path, Template::FitsAnything)
            };
            match all.iter().find(conditional) {
                None => Ok(()),
                Some(other) => refused(
                    rule,
                    format!(
                        "it says that the path only reads, and the rule '{} {}' has a condition for it",
                        other.method, other.path
                    ),
                ),
            }
        }
    }
}

/// Whether a rule could let a request through, whatever its templates are filled with.
fn may_fit(rule: &ReadRule, request: &Request) -> bool {
    let fits = |body: Option<&Value>| has_values(rule, body, Template::FitsAnything);
    is_place(rule, request, Template::FitsAnything)
        && (rule.query.is_empty() || has_query(rule, request, Template::FitsAnything))
        && has_form(rule, request, Template::FitsAnything)
        && match &request.json {
            Some(Value::Array(batch)) => batch.iter().any(|element| fits(Some(element))),
            body => fits(body.as_ref()),
        }
}

fn is_place(rule: &ReadRule, request: &Request, template: Template) -> bool {
    let path = request.path.split('?').next().unwrap_or(&request.path);
    rule.method == request.method && paths_meet(&rule.path, path, template)
}

/// Whether some path fits both; `*` stands for one segment.
fn paths_meet(rule: &str, path: &str, template: Template) -> bool {
    let (rule, path): (Vec<&str>, Vec<&str>) = (rule.split('/').collect(), path.split('/').collect());
    rule.len() == path.len()
        && rule.iter().zip(path).all(|(wanted, segment)| {
            let is_open = template == Template::FitsAnything && (segment == "*" || is_template(segment));
            *wanted == "*" || *wanted == segment || is_open
        })
}

fn has_query(rule: &ReadRule, request: &Request, template: Template) -> bool {
    reading::query_fits(rule, &request.path, text_fits(template))
}

/// Whether the body is what a rule takes that names no JSON: a form, or none where it has only a query.
fn has_form(rule: &ReadRule, request: &Request, template: Template) -> bool {
    let has_body = request.json.is_some() || request.form.is_some();
    let form = request.form.as_ref();
    let form = form.map(|form| form.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    reading::body_fits(rule, has_body, form, text_fits(template))
}

fn text_fits(template: Template) -> impl Fn(&str, &str) -> bool {
    move |accepted, found| {
        if is_template(found) { template == Template::FitsAnything } else { accepted == found }
    }
}

fn has_values(rule: &ReadRule, body: Option<&Value>, template: Template) -> bool {
    rule.json.iter().all(|(pointer, values)| {
        body.is_some_and(|body| match body.pointer(pointer) {
            Some(found) if holds_template(found) => template == Template::FitsAnything,
            Some(found) => values.contains(found),
            None => template == Template::FitsAnything && is_below_template(body, pointer),
        })
    })
}

/// Whether a template stands where the pointer would go on: a setting fills it with any JSON.
fn is_below_template(body: &Value, pointer: &str) -> bool {
    pointer
        .match_indices('/')
        .map(|(at, _)| &pointer[..at])
        .any(|parent| body.pointer(parent).and_then(Value::as_str).is_some_and(is_template))
}

fn holds_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(holds_template),
        Value::Object(fields) => fields.values().any(holds_template),
        _ => false,
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}

fn refused(rule: &ReadRule, problem: String) -> Result<(), PackageError> {
    Err(PackageError::ReadRule { rule: format!("{} {}", rule.method, rule.path), problem })
}
