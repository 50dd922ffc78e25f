//! The requests of a channel: those that open it, and the proof of those that a controller sends.

use std::collections::BTreeSet;

use super::{check_plain_pointer, check_text};
use crate::manifest::{ApplyTo, Manifest, Session};
use crate::plugin::{HookEncoding, HookScheme};
use crate::plugin_rules::occasions::signature_problem;
use crate::push::{Channel, Each, HookChannel, Proof, ProofAt, StreamFormat, Transport, Way};
use crate::session_rules::{check_apply, check_matcher, check_when, path_fault};
use crate::template::Source;
use crate::{credentials, places};

const WAYS_MAX: usize = 8;

pub(super) fn check_hook(channel: &Channel, hook: &HookChannel) -> Result<(), String> {
    let keys = [
        ("ways", !channel.ways.is_empty()),
        ("each", channel.each.is_some()),
        ("unsupported", channel.unsupported.is_some()),
        ("per", !channel.per.is_controller()),
    ];
    if let Some((key, _)) = keys.into_iter().find(|(_, is_there)| *is_there) {
        return Err(format!(
            "'{key}' is of channels that the host opens, and a controller calls a hook; leave it out"
        ));
    }
    check_proof(&hook.proof)
}

fn check_proof(proof: &Proof) -> Result<(), String> {
    let ProofAt::Json(pointer) = &proof.at else {
        return signature_problem(&proof.signature())
            .map_or(Ok(()), |problem| Err(format!("proof: {problem}")));
    };
    if pointer.is_empty() {
        return Err("'proof.at.json' names a place in the body; it starts with '/'".to_owned());
    }
    check_plain_pointer("proof.at.json", pointer)?;
    let has_more = proof.scheme != HookScheme::Token
        || proof.signed.is_some()
        || proof.timestamp.is_some()
        || !proof.prefix.is_empty()
        || proof.encoding != HookEncoding::default();
    if has_more {
        return Err(
            "a proof in the body is a token, without 'prefix', 'encoding', 'signed' and 'timestamp'; a signature stands in a header"
                .to_owned(),
        );
    }
    Ok(())
}

/// Checks what only channels have that the host opens.
pub(super) fn check_opened(
    manifest: &Manifest,
    channel: &Channel,
    transport: Transport<'_>,
) -> Result<(), String> {
    if !manifest.capabilities.controller_http {
        return Err("the host opens it at the controller; write \"controller-http\": true in 'capabilities'"
            .to_owned());
    }
    if channel.ways.is_empty() || channel.ways.len() > WAYS_MAX {
        return Err(format!("it has {} entries in 'ways'; 1 to {WAYS_MAX} are accepted", channel.ways.len()));
    }
    if channel.ways.iter().rev().skip(1).any(|way| way.when.is_none()) {
        return Err(
            "a way without 'when' always holds, so only the last one of 'ways' may be without it".to_owned()
        );
    }
    channel.ways.iter().try_for_each(|way| check_way(manifest, channel, way))?;
    channel.each.as_ref().map_or(Ok(()), |each| check_each(channel, each, transport))?;
    let Some(unsupported) = &channel.unsupported else { return Ok(()) };
    check_matcher("unsupported", unsupported)?;
    let is_lines = matches!(transport, Transport::Stream(stream) if stream.format == StreamFormat::JsonLines);
    if is_lines && (!unsupported.json.is_empty() || unsupported.empty.is_some()) {
        return Err(
            "'unsupported' cannot ask for the body of an answer whose lines are messages; use 'status', 'content-type' or 'header'"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_way(manifest: &Manifest, channel: &Channel, way: &Way) -> Result<(), String> {
    way.when.as_ref().map_or(Ok(()), check_when)?;
    check_path(channel, "path", &way.path, true)?;
    let Some(session) = manifest.auth.get(&way.session) else {
        let declared: Vec<&str> = manifest.auth.keys().map(String::as_str).collect();
        return Err(format!(
            "a way names the session '{}', which 'auth' does not declare; it declares [{}]",
            way.session,
            declared.join(", ")
        ));
    };
    check_applied(session, way).and_then(|()| credentials::check_applied(manifest, session, &way.apply))
}

fn check_applied(session: &Session, way: &Way) -> Result<(), String> {
    let declared = || session.login.iter().flat_map(|step| &step.capture);
    let captured = declared().map(|capture| capture.name.as_str()).collect();
    let mut carried = BTreeSet::new();
    for apply in &way.apply {
        check_apply(apply, &captured)?;
        if matches!(apply.to, ApplyTo::JsonPointer(_) | ApplyTo::FormField(_)) {
            return Err(
                "'apply' of a way puts nothing into a body: the request is a GET; use a header, a cookie or the query"
                    .to_owned(),
            );
        }
        if !apply.methods.is_empty() {
            return Err("'apply' of a way has no 'methods': the request is a GET".to_owned());
        }
        places::in_text(Source::Session, &apply.value, &mut carried);
        if let ApplyTo::Basic(username) = &apply.to {
            places::in_text(Source::Session, username, &mut carried);
        }
    }
    let exposed = declared().filter(|capture| capture.expose).find(|capture| carried.contains(&capture.name));
    exposed.map_or(Ok(()), |capture| {
        Err(format!("'{}' carries the session in 'apply' of a way and cannot be exposed", capture.name))
    })
}

/// Checks a path and its placeholders: `{each}` where `each` is declared, `{site}` where the channel is of a site.
fn check_path(channel: &Channel, key: &str, path: &str, is_way: bool) -> Result<(), String> {
    if let Some(problem) = path_fault(path) {
        return Err(format!("'{key}' is '{path}': {problem}"));
    }
    let mut placeholders = vec![("{each}", is_way && channel.each.is_some(), "'each' is there")];
    placeholders.push(("{site}", is_way && !channel.per.is_controller(), "'per' is 'site'"));
    for (placeholder, is_needed, why) in placeholders {
        let is_there = path.contains(placeholder);
        if is_needed && !is_there {
            return Err(format!("'{key}' has {placeholder} where {why}"));
        }
        // What lists the objects may do so site by site.
        let is_allowed = is_needed || placeholder == "{site}" && !channel.per.is_controller();
        if is_there && !is_allowed {
            return Err(format!("'{key}' has {placeholder} only where {why}"));
        }
    }
    let rest = path.replace("{each}", "").replace("{site}", "");
    if rest.contains(['{', '}']) {
        return Err(format!("'{key}' is '{path}'; {{site}} and {{each}} are the only placeholders"));
    }
    Ok(())
}

fn check_each(channel: &Channel, each: &Each, transport: Transport<'_>) -> Result<(), String> {
    if matches!(transport, Transport::Watch(_)) {
        return Err("'each' is of a 'socket' or a 'stream'; a 'watch' reads a list at once".to_owned());
    }
    check_path(channel, "each.path", &each.path, false)?;
    check_plain_pointer("each.from", &each.from)?;
    each.like.as_ref().map_or(Ok(()), |like| check_text("each.like", like))
}
