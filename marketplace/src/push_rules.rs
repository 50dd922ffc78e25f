//! What channels must hold to beyond their types: requests that can be built, rules that can fit, and readings that the
//! package has.

mod requests;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::Value;

use self::requests::{check_hook, check_opened};
use crate::description::Description;
use crate::error::PackageError;
use crate::manifest::Manifest;
use crate::model;
use crate::plugin_rules::{WORD_BYTES_MAX, is_word};
use crate::push::{Channel, DEVICE, Differs, PushRule, Transport};
use crate::rules::check_count;
use crate::session_rules::is_pointer;

/// The interface version that has channels.
const SINCE: &str = "1.1";
/// Stands in the address where a channel's name would.
const SECRET: &str = "secret";
const CHANNELS_MAX: usize = 16;
const RULES_MAX: usize = 64;
const CONDITIONS_MAX: usize = 8;
const VALUES_MAX: usize = 32;
/// Values of all rules of a channel. With two `*` in a pointer, each is compared with every value of a message.
const CHANNEL_VALUES_MAX: usize = 256;
const READS_MAX: usize = 32;
const POINTERS_MAX: usize = 16;
const TEXT_BYTES_MAX: usize = 200;
/// Most `*` of a text, and of a pointer of a rule.
const STARS_MAX: usize = 2;
const SETTLE_MS_MAX: u32 = 1_000;
const EVERY_MS: RangeInclusive<u32> = 1_000..=60_000;
const PING_SECS: RangeInclusive<u32> = 5..=120;
const SOCKET_SILENCE_SECS_MAX: u32 = 600;
const STREAM_SECS: RangeInclusive<u32> = 5..=3_600;
const QUIET_SECS: RangeInclusive<u32> = 60..=30 * 86_400;
const RULE_EVERY_SECS: RangeInclusive<u32> = 1..=3_600;
const RULE_AGAIN_SECS: RangeInclusive<u32> = 1..=60;

/// Checks the channels of a manifest, as far as they can be judged without the description.
pub(crate) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("push", manifest.push.len(), CHANNELS_MAX)?;
    for (name, channel) in &manifest.push {
        let problem = problem_of(manifest, name, channel).err();
        problem.map_or(Ok(()), |problem| Err(refused(name, problem)))?;
    }
    Ok(())
}

/// Checks that the package fills the kinds of the model that its channels have read.
pub(crate) fn check_reads(manifest: &Manifest, description: &Description) -> Result<(), PackageError> {
    let is_filled = |kind: &str| kind == DEVICE || description.model.iter().any(|filled| filled.kind == kind);
    for (name, channel) in &manifest.push {
        if let Some(kind) = channel.reads().into_iter().find(|kind| !is_filled(kind)) {
            let problem = format!(
                "a rule reads '{kind}', which 'model' of the description does not fill; add it there, or leave it out of 'reads'"
            );
            return Err(refused(name, problem));
        }
    }
    Ok(())
}

fn refused(name: &str, problem: String) -> PackageError {
    PackageError::Channel { channel: name.chars().take(120).collect(), problem }
}

fn problem_of(manifest: &Manifest, name: &str, channel: &Channel) -> Result<(), String> {
    if !is_word(name, WORD_BYTES_MAX) {
        return Err(format!(
            "its name has 1 to {WORD_BYTES_MAX} characters of a-z, 0-9 and '-', and begins with a letter"
        ));
    }
    if name == SECRET {
        return Err(format!(
            "'{SECRET}' is what the address of a controller's secret ends with; give it another name"
        ));
    }
    if manifest.api == "1.0" {
        return Err(format!("channels are of the interface {SINCE}; write \"api\": \"{SINCE}\""));
    }
    let named: Vec<&str> = channel.transports().map(|transport| transport.as_str()).collect();
    let Some(transport) = channel.transport() else {
        return Err(format!(
            "it has exactly one of 'socket', 'stream', 'watch' and 'hook'; it has [{}]",
            named.join(", ")
        ));
    };
    check_transport(transport)?;
    match transport {
        Transport::Hook(hook) => check_hook(channel, hook)?,
        _ => check_opened(manifest, channel, transport)?,
    }
    if let Some(problem) = channel.releases.as_ref().and_then(crate::release::Span::problem) {
        return Err(format!("releases: {problem}"));
    }
    if let Some(settle) = channel.settle_ms.filter(|settle| *settle > SETTLE_MS_MAX) {
        return Err(format!("'settle-ms' is {settle}; 0 to {SETTLE_MS_MAX} is accepted"));
    }
    check_site(channel)?;
    check_rules(channel, transport)
}

fn within(key: &str, found: u32, accepted: &RangeInclusive<u32>) -> Result<(), String> {
    if accepted.contains(&found) {
        return Ok(());
    }
    Err(format!("'{key}' is {found}; {} to {} is accepted", accepted.start(), accepted.end()))
}

fn check_transport(transport: Transport<'_>) -> Result<(), String> {
    match transport {
        Transport::Socket(socket) => {
            within("socket.ping-s", socket.ping_s, &PING_SECS)?;
            // A pong has to have the time to come.
            within("socket.silence-s", socket.silence_s, &(socket.ping_s + 1..=SOCKET_SILENCE_SECS_MAX))
        }
        Transport::Stream(stream) => {
            stream.silence_s.map_or(Ok(()), |secs| within("stream.silence-s", secs, &STREAM_SECS))?;
            stream.renew_s.map_or(Ok(()), |secs| within("stream.renew-s", secs, &STREAM_SECS))
        }
        Transport::Watch(watch) => {
            within("watch.every-ms", watch.every_ms, &EVERY_MS)?;
            check_plain_pointer("watch.items", &watch.items)?;
            check_plain_pointer("watch.key", &watch.key)?;
            check_values_of("watch.of", &watch.of)
        }
        Transport::Hook(hook) => within("hook.quiet-s", hook.quiet_s, &QUIET_SECS),
    }
}

fn check_site(channel: &Channel) -> Result<(), String> {
    let Some(site) = &channel.site else { return Ok(()) };
    if !channel.per.is_controller() {
        return Err(
            "each site has a channel of its own, so no message has to name one; leave out 'site'".to_owned()
        );
    }
    check_plain_pointer("site.at", &site.at)
}

fn check_rules(channel: &Channel, transport: Transport<'_>) -> Result<(), String> {
    if channel.rules.is_empty() || channel.rules.len() > RULES_MAX {
        return Err(format!("it has {} rules; 1 to {RULES_MAX} are accepted", channel.rules.len()));
    }
    for (number, rule) in channel.rules.iter().enumerate() {
        check_rule(rule, transport).map_err(|problem| format!("rule {}: {problem}", number + 1))?;
    }
    let values: usize = channel.rules.iter().flat_map(|rule| rule.when.values()).map(Vec::len).sum();
    if values > CHANNEL_VALUES_MAX {
        return Err(format!(
            "'when' of its rules has {values} values together; {CHANNEL_VALUES_MAX} are the most"
        ));
    }
    Ok(())
}

fn check_rule(rule: &PushRule, transport: Transport<'_>) -> Result<(), String> {
    check_conditions(rule)?;
    check_kinds(&rule.reads)?;
    rule.every_s.map_or(Ok(()), |secs| within("every-s", secs, &RULE_EVERY_SECS))?;
    rule.again_s.map_or(Ok(()), |secs| within("again-s", secs, &RULE_AGAIN_SECS))?;
    let Some(differs) = &rule.differs else { return Ok(()) };
    match transport {
        Transport::Socket(_) | Transport::Stream(_) => check_differs(differs),
        Transport::Watch(_) => {
            Err("a 'watch' compares its elements already; leave out 'differs', and use its 'of'".to_owned())
        }
        Transport::Hook(_) => {
            Err("nothing is remembered between two calls of a 'hook'; leave out 'differs'".to_owned())
        }
    }
}

fn check_conditions(rule: &PushRule) -> Result<(), String> {
    if rule.when.is_empty() || rule.when.len() > CONDITIONS_MAX {
        return Err(format!("'when' has {} conditions; 1 to {CONDITIONS_MAX} are accepted", rule.when.len()));
    }
    for (pointer, values) in &rule.when {
        check_pointer("when", pointer, STARS_MAX)?;
        if values.is_empty() || values.len() > VALUES_MAX {
            return Err(format!("'{pointer}' has {} values; 1 to {VALUES_MAX} are accepted", values.len()));
        }
        for value in values {
            match value {
                Value::String(text) => check_text(pointer, text)?,
                Value::Array(_) | Value::Object(_) => {
                    return Err(format!(
                        "'{pointer}' is compared with texts, numbers, true, false and null only"
                    ));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }
    Ok(())
}

fn check_kinds(reads: &[String]) -> Result<(), String> {
    if reads.is_empty() || reads.len() > READS_MAX {
        return Err(format!("'reads' has {} entries; 1 to {READS_MAX} are accepted", reads.len()));
    }
    let mut seen = BTreeSet::new();
    for kind in reads {
        let shown: String = kind.chars().take(100).collect();
        if kind != DEVICE && model::find(kind).is_none() {
            return Err(format!(
                "'reads' has '{shown}'; write '{DEVICE}', or a kind of the model such as 'client'"
            ));
        }
        if !seen.insert(kind) {
            return Err(format!("'reads' has '{shown}' twice"));
        }
    }
    Ok(())
}

fn check_differs(differs: &Differs) -> Result<(), String> {
    check_pointer("differs.by", &differs.by, 1)?;
    check_values_of("differs.of", &differs.of)
}

fn check_values_of(key: &str, pointers: &[String]) -> Result<(), String> {
    if pointers.is_empty() || pointers.len() > POINTERS_MAX {
        return Err(format!("'{key}' has {} pointers; 1 to {POINTERS_MAX} are accepted", pointers.len()));
    }
    pointers.iter().try_for_each(|pointer| check_plain_pointer(key, pointer))
}

fn check_plain_pointer(key: &str, pointer: &str) -> Result<(), String> {
    check_pointer(key, pointer, 0)
}

/// Checks a pointer, which may have so many `*`.
fn check_pointer(key: &str, pointer: &str, stars_max: usize) -> Result<(), String> {
    if pointer.len() > TEXT_BYTES_MAX || !is_pointer(pointer) {
        return Err(format!(
            "'{key}' has '{}', which is no JSON pointer; it starts with '/'",
            shown(pointer)
        ));
    }
    let stars = pointer.split('/').filter(|segment| *segment == "*").count();
    match stars_max {
        most if stars <= most => Ok(()),
        0 => Err(format!("'{key}' has '{pointer}'; it names one place, without '*'")),
        most => Err(format!("'{key}' has '{pointer}' with {stars} '*'; {most} is the most")),
    }
}

/// Checks a text in which `*` stands for any text.
fn check_text(key: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!(
            "'{key}' has '{}'; a text has 1 to {TEXT_BYTES_MAX} bytes without control characters",
            shown(text)
        ));
    }
    if text.matches('*').count() > STARS_MAX {
        return Err(format!("'{key}' has '{text}'; a text has {STARS_MAX} '*' at most"));
    }
    Ok(())
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
pub(crate) mod tests;
