//! What a package may do, in words: for the person who installs it.

use serde_json::Value;

use crate::manifest::{
    Apply, ApplyTo, Capabilities, Capture, CaptureFrom, Effect, Kind, Manifest, ReadRule, Request,
};
use crate::plugin::{ActionEffect, HookScheme};
use crate::push::{Channel, ProofAt, Transport};
use crate::reading::ANY;
use crate::{effects, grant};

/// One line for each thing: of an adapter each shape of credential, login step, logout, exposed value, channel and read
/// rule in the manifest's order, of a plugin each capability with its risk, each action and each permission. Control and direction
/// characters are escaped, so that a line cannot look like another one.
#[must_use]
pub fn in_words(manifest: &Manifest) -> Vec<String> {
    let lines = match manifest.kind {
        Kind::Adapter => of_adapter(manifest),
        Kind::Plugin => of_plugin(manifest),
    };
    lines.iter().map(|line| plain(line)).collect()
}

/// What it may do, with its risk, and then what it offers.
fn of_plugin(manifest: &Manifest) -> Vec<String> {
    // Without a host nothing is known of the operations.
    let asked = grant::of(manifest);
    let items = asked.items(|_| false);
    let mut lines: Vec<String> =
        items.iter().map(|item| format!("{} risk: {}", item.risk.as_str(), item.text)).collect();
    if manifest.capabilities == Capabilities::default() {
        lines.insert(0, "no capability: it computes and reaches nothing".to_owned());
    }
    let needs = |permission: &Option<String>| {
        permission.as_ref().map_or_else(String::new, |id| format!("; needs '{id}'"))
    };
    lines.extend(manifest.actions.iter().map(|action| {
        let needs = needs(&action.permission);
        format!("action '{}' ({}): {}{needs}", action.id, action.title, does(action.effect))
    }));
    lines.extend(manifest.triggers.iter().map(|trigger| {
        let by = if trigger.events.is_empty() { "timers".to_owned() } else { trigger.events.join(", ") };
        format!("trigger '{}' ({}), by {by}: {}", trigger.id, trigger.title, does(trigger.effect))
    }));
    lines.extend(manifest.tools.iter().map(|tool| {
        format!(
            "tool '{}' ({}): {}{}",
            tool.id,
            tool.title,
            does(ActionEffect::Read),
            needs(&tool.permission)
        )
    }));
    lines.extend(
        manifest
            .hooks
            .iter()
            .map(|hook| format!("hook '{}' ({}): {}", hook.name, hook.title, does(hook.effect))),
    );
    lines.extend(
        manifest
            .permissions
            .iter()
            .map(|permission| format!("permission '{}' ({})", permission.id, permission.title)),
    );
    lines
}

fn does(effect: ActionEffect) -> &'static str {
    match effect {
        ActionEffect::Read => "reads",
        ActionEffect::Stage => "stages changes for review",
        ActionEffect::Outward => "changes something at its own targets",
    }
}

fn of_adapter(manifest: &Manifest) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(
        manifest.credentials.values().map(|shape| format!("takes a credential: {}", shape.in_words())),
    );
    for (name, session) in &manifest.auth {
        for (step, request) in effects::requests(session) {
            lines.push(format!("session '{name}', {step}: {}", of_request(request)));
        }
        lines.extend(
            session.apply.iter().map(|apply| format!("session '{name}' is sent {}", of_apply(apply))),
        );
        if session.cookie_jar {
            lines.push(format!("session '{name}' keeps and sends the device's cookies"));
        }
        lines.extend(session.refresh.iter().map(|refresh| {
            format!(
                "session '{name}' takes '{}' from {} whenever one has it",
                refresh.name,
                of_place(&refresh.from)
            )
        }));
        let captures = session.login.iter().flat_map(|step| &step.capture);
        lines.extend(captures.filter(|capture| capture.expose).map(|capture| of_exposed(name, capture)));
    }
    if manifest.auth.is_empty() {
        lines.push("no session: no login is sent".to_owned());
    }
    lines.extend(manifest.push.iter().flat_map(|(name, channel)| of_channel(name, channel)));
    lines.extend(manifest.reads.iter().map(of_rule));
    if manifest.reads.is_empty() {
        lines.push("only GET and HEAD count as reads".to_owned());
    }
    lines
}

fn of_request(request: &Request) -> String {
    let body = match (&request.json, &request.form) {
        (Some(json), _) => format!(" with the JSON {json}"),
        (None, Some(form)) => format!(" with the form {}", Value::from_iter(form.clone())),
        (None, None) => String::new(),
    };
    let basic = if request.basic.is_some() { " with Basic authorization" } else { "" };
    let headers: Vec<&str> = request.headers.keys().map(String::as_str).collect();
    let headers =
        if headers.is_empty() { String::new() } else { format!(" with the headers {}", headers.join(", ")) };
    let effect = match request.effect {
        Some(Effect::Session) => "changes the session at the device",
        None => "reads",
    };
    format!("{} {}{basic}{headers}{body}; {effect}", request.method, request.path)
}

fn of_apply(apply: &Apply) -> String {
    let place = match &apply.to {
        ApplyTo::Basic(_) => "as Basic authorization".to_owned(),
        ApplyTo::Header(name) => format!("in the header '{name}'"),
        ApplyTo::Cookie(name) => format!("in the cookie '{name}'"),
        ApplyTo::JsonPointer(pointer) => format!("in the JSON body at '{pointer}'"),
        ApplyTo::FormField(name) => format!("in the form field '{name}'"),
        ApplyTo::Query(name) => format!("in the query parameter '{name}'"),
    };
    let methods = if apply.methods.is_empty() {
        String::new()
    } else {
        format!(" of {} requests", apply.methods.join(", "))
    };
    format!("{place}{methods}")
}

/// How a channel is opened, what its messages ask for, and where its requests carry more than the session says.
fn of_channel(name: &str, channel: &Channel) -> Vec<String> {
    let each = channel
        .each
        .as_ref()
        .map(|each| format!("channel '{name}' lists its objects: GET {}; reads", each.path));
    let per = if channel.per.is_controller() { "" } else { ", for each site" };
    let ways = channel.ways.iter().flat_map(|way| {
        let (how, path, session) = (of_transport(channel.transport()), &way.path, &way.session);
        let opened = format!("channel '{name}' {how}: GET {path} in session '{session}'{per}; reads");
        let applied = way.apply.iter().map(|apply| format!("channel '{name}' is sent {}", of_apply(apply)));
        std::iter::once(opened).chain(applied).collect::<Vec<_>>()
    });
    let hook = channel.hook.as_ref().map(|hook| {
        let place = match &hook.proof.at {
            ProofAt::Json(pointer) => format!("at '{pointer}' of the body"),
            ProofAt::Header(header) => format!("in the header '{header}'"),
        };
        let proof = match hook.proof.scheme {
            HookScheme::Token => "its secret",
            HookScheme::HmacSha256 => "a signature (HMAC-SHA-256)",
        };
        format!("channel '{name}' is called by the controller, which proves itself by {proof} {place}")
    });
    let reads: Vec<&str> = channel.reads().into_iter().collect();
    let reads = format!("channel '{name}' has read again: {}", reads.join(", "));
    each.into_iter().chain(ways).chain(hook).chain([reads]).collect()
}

fn of_transport(transport: Option<Transport<'_>>) -> String {
    match transport {
        Some(Transport::Socket(_)) => "keeps a WebSocket open".to_owned(),
        Some(Transport::Stream(_)) => "keeps an event stream open".to_owned(),
        Some(Transport::Watch(watch)) => format!("asks every {} ms", watch.every_ms),
        Some(Transport::Hook(_)) | None => String::new(),
    }
}

fn of_exposed(session: &str, capture: &Capture) -> String {
    format!("session '{session}' shows the component {} as '{}'", of_place(&capture.from), capture.name)
}

fn of_place(from: &CaptureFrom) -> String {
    match from {
        CaptureFrom::Json(pointer) => format!("'{pointer}' of the JSON answer"),
        CaptureFrom::Header(name) => format!("the answer's header '{name}'"),
        CaptureFrom::Cookie(name) => format!("the cookie '{name}'"),
    }
}

fn of_rule(rule: &ReadRule) -> String {
    if !rule.has_condition() {
        return format!("counts as a read: every {} {}, whatever it holds", rule.method, rule.path);
    }
    let conditions = rule.json.iter().map(|(pointer, values)| {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        format!("'{pointer}' is {}", values.join(" or "))
    });
    let fields = rule.form.iter().map(|(name, values)| of_accepted("form field", name, values));
    let parameters = rule.query.iter().map(|(name, values)| of_accepted("parameter", name, values));
    let conditions: Vec<String> = conditions.chain(fields).chain(parameters).collect();
    format!("counts as a read: {} {} where {}", rule.method, rule.path, conditions.join(" and "))
}

fn of_accepted(kind: &str, name: &str, values: &[String]) -> String {
    if values.iter().any(|value| value == ANY) {
        return format!("the {kind} '{name}' is there");
    }
    format!("the {kind} '{name}' is {}", values.join(" or "))
}

/// The text with everything but visible ASCII and spaces escaped.
pub(crate) fn plain(line: &str) -> String {
    line.chars()
        .flat_map(|c| if c == ' ' || c.is_ascii_graphic() { vec![c] } else { c.escape_unicode().collect() })
        .collect()
}

#[cfg(test)]
mod tests;
