//! Rules for triggers, tools and hooks, and for the events and times that call triggers.

use super::{
    DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX, WORD_BYTES_MAX, check_schema, check_unique, effect_problem,
    is_word, refused,
};
use crate::credentials::is_field_name;
use crate::error::PackageError;
use crate::manifest::Manifest;
use crate::plugin::{Hook, HookEncoding, HookScheme, HookSignature, SignedPart, Tool, Trigger};
use crate::rules::{check_count, check_text, field_error};
use crate::session_rules::check_header;

const TRIGGERS_MAX: usize = 50;
const TOOLS_MAX: usize = 20;
const HOOKS_MAX: usize = 8;
const SUBSCRIBED_MAX: usize = 64;
const EVENT_TYPE_BYTES_MAX: usize = 120;
const SIGNED_BYTES_MAX: usize = 200;
const PREFIX_BYTES_MAX: usize = 32;
const TOLERANCE_SECS_MAX: u32 = 900;
/// Least and most seconds of `min-interval-s`.
const INTERVAL_SECS: std::ops::RangeInclusive<u32> = 60..=31 * 86_400;

const ID: &str = "an id has 1 to 41 characters of a-z, 0-9 and '-', and begins with a letter";

pub(super) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    check_patterns(manifest)?;
    check_triggers(manifest)?;
    check_used(manifest)?;
    check_schedule(manifest)?;
    check_tools(manifest)?;
    check_hooks(manifest)
}

fn check_patterns(manifest: &Manifest) -> Result<(), PackageError> {
    let subscribed = manifest.capabilities.subscribed();
    check_count("capabilities.events.subscribe", subscribed.len(), SUBSCRIBED_MAX)?;
    check_unique("subscription", subscribed.iter().map(String::as_str))?;
    for pattern in subscribed {
        let problem = pattern_problem(pattern);
        problem.map_or(Ok(()), |problem| Err(refused("subscription", pattern, problem)))?;
    }
    Ok(())
}

/// Each subscription is for a trigger.
fn check_used(manifest: &Manifest) -> Result<(), PackageError> {
    let is_used = |pattern: &String| manifest.triggers.iter().any(|trigger| trigger.events.contains(pattern));
    match manifest.capabilities.subscribed().iter().find(|pattern| !is_used(pattern)) {
        None => Ok(()),
        Some(unused) => {
            let problem = "no trigger has it in its 'events'; add it there or leave it out";
            Err(refused("subscription", unused, problem))
        }
    }
}

fn pattern_problem(pattern: &str) -> Option<&'static str> {
    let name = pattern.strip_suffix(".*").unwrap_or(pattern);
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b))
    };
    if pattern.len() > EVENT_TYPE_BYTES_MAX || !name.split('.').all(is_segment) {
        return Some(
            "write a type such as device.status.changed, or device.* for all that begin with device.",
        );
    }
    (name == "plugin" || name.starts_with("plugin."))
        .then_some("events of plugins do not call triggers; a Connection joins what two plugins do")
}

fn check_schedule(manifest: &Manifest) -> Result<(), PackageError> {
    let Some(schedule) = &manifest.capabilities.schedule else { return Ok(()) };
    if !INTERVAL_SECS.contains(&schedule.min_interval_s) {
        let (least, most) = (INTERVAL_SECS.start(), INTERVAL_SECS.end());
        let expected = format!("{least} to {most} seconds are accepted");
        let found = schedule.min_interval_s.to_string();
        return Err(field_error("capabilities.schedule.min-interval-s", &found, &expected));
    }
    if manifest.triggers.is_empty() {
        return Err(field_error("capabilities.schedule", "without a trigger", "a timer calls a trigger"));
    }
    Ok(())
}

fn check_triggers(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("triggers", manifest.triggers.len(), TRIGGERS_MAX)?;
    check_unique("trigger", manifest.triggers.iter().map(|trigger| trigger.id.as_str()))?;
    for trigger in &manifest.triggers {
        let problem = trigger_problem(manifest, trigger);
        problem.map_or(Ok(()), |problem| Err(refused("trigger", &trigger.id, problem)))?;
        check_words("trigger", &trigger.title, &trigger.description)?;
    }
    Ok(())
}

fn trigger_problem(manifest: &Manifest, trigger: &Trigger) -> Option<String> {
    if !is_word(&trigger.id, WORD_BYTES_MAX) {
        return Some(ID.to_owned());
    }
    let subscribed = manifest.capabilities.subscribed();
    if let Some(other) = trigger.events.iter().find(|event| !subscribed.contains(event)) {
        return Some(format!("its event '{other}' is not in 'capabilities.events.subscribe'"));
    }
    if trigger.events.is_empty() && manifest.capabilities.schedule.is_none() {
        return Some(
            "nothing calls it: give it 'events', or the manifest the capability 'schedule'".to_owned(),
        );
    }
    effect_problem(manifest, trigger.effect)
}

/// A title, and a description where there is one.
fn check_words(part: &str, title: &str, description: &str) -> Result<(), PackageError> {
    check_text(&format!("{part} title"), title, TITLE_BYTES_MAX)?;
    if description.is_empty() {
        return Ok(());
    }
    check_text(&format!("{part} description"), description, DESCRIPTION_BYTES_MAX)
}

fn check_tools(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("tools", manifest.tools.len(), TOOLS_MAX)?;
    check_unique("tool", manifest.tools.iter().map(|tool| tool.id.as_str()))?;
    for tool in &manifest.tools {
        let problem = tool_problem(manifest, tool);
        problem.map_or(Ok(()), |problem| Err(refused("tool", &tool.id, problem)))?;
        check_text("tool title", &tool.title, TITLE_BYTES_MAX)?;
        check_text("tool description", &tool.description, DESCRIPTION_BYTES_MAX)?;
        check_schema("tool", &tool.id, "params-schema", &tool.params_schema)?;
        check_schema("tool", &tool.id, "output-schema", &tool.output_schema)?;
    }
    Ok(())
}

fn tool_problem(manifest: &Manifest, tool: &Tool) -> Option<String> {
    if !is_word(&tool.id, WORD_BYTES_MAX) {
        return Some(ID.to_owned());
    }
    if manifest.action(&tool.id).is_some() {
        return Some("an action has the same id; both are operations of the Fabric".to_owned());
    }
    let needed = tool.permission.as_ref()?;
    let is_known = manifest.permissions.iter().any(|known| known.id == *needed);
    (!is_known).then(|| format!("it needs the permission '{needed}', which 'permissions' does not declare"))
}

fn check_hooks(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("hooks", manifest.hooks.len(), HOOKS_MAX)?;
    check_unique("hook", manifest.hooks.iter().map(|hook| hook.name.as_str()))?;
    for hook in &manifest.hooks {
        let problem = hook_problem(manifest, hook).or_else(|| signature_problem(&hook.signature));
        problem.map_or(Ok(()), |problem| Err(refused("hook", &hook.name, problem)))?;
        check_words("hook", &hook.title, &hook.description)?;
    }
    Ok(())
}

fn hook_problem(manifest: &Manifest, hook: &Hook) -> Option<String> {
    if !is_word(&hook.name, WORD_BYTES_MAX) {
        return Some(ID.replace("an id", "a name"));
    }
    let secret = &hook.signature.secret;
    if !is_field_name(secret) {
        return Some(format!(
            "its secret '{secret}' has no name of a-z, 0-9 and '-' that begins with a letter"
        ));
    }
    if manifest.capabilities.secrets.rules().iter().any(|rule| rule.name == *secret) {
        return Some(format!(
            "its secret '{secret}' is one of 'capabilities.secrets', which are sent; use one of its own"
        ));
    }
    effect_problem(manifest, hook.effect)
}

pub(crate) fn signature_problem(signature: &HookSignature) -> Option<String> {
    if let Err(problem) = check_header(&signature.header) {
        return Some(problem);
    }
    let is_plain = |b: u8| b.is_ascii_graphic() || b == b' ';
    if signature.prefix.len() > PREFIX_BYTES_MAX || !signature.prefix.bytes().all(is_plain) {
        return Some("its prefix has at most 32 visible characters".to_owned());
    }
    if signature.scheme == HookScheme::Token {
        let has_more = signature.signed.is_some()
            || signature.timestamp.is_some()
            || signature.encoding != HookEncoding::default();
        return has_more.then(|| {
            "a token signs nothing: leave out 'signed', 'timestamp' and 'encoding', or write the scheme 'hmac-sha256'"
                .to_owned()
        });
    }
    if signature.signed.as_ref().is_some_and(|text| text.len() > SIGNED_BYTES_MAX) {
        return Some(format!("its 'signed' has more than {SIGNED_BYTES_MAX} bytes"));
    }
    let parts = match signature.parts() {
        Ok(parts) => parts,
        Err(problem) => return Some(format!("signed: {problem}")),
    };
    let timestamp = signature.timestamp.as_ref()?;
    if !(1..=TOLERANCE_SECS_MAX).contains(&timestamp.tolerance_s) {
        return Some(format!("its 'tolerance-s' is not 1 to {TOLERANCE_SECS_MAX}"));
    }
    let header = SignedPart::Header(timestamp.header.to_ascii_lowercase());
    (!parts.contains(&header)).then(|| {
        format!(
            "its time is in the header '{name}', which is not signed; write {{header.{name}}} in 'signed'",
            name = timestamp.header
        )
    })
}
