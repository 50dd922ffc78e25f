//! Switches radios and the power of ports off at certain hours: says what is to be off, and stages the changes.
//!
//! They are in the words of the model, so that they fit every vendor that can express them. A person reviews and applies them.

mod calendar;
mod rules;

use heddle_sdk::plugin::{Action, Entry, Host, Plugin, Timer, When, action, settings};
use heddle_sdk::{Fault, FaultExt as _, Level, fault, register_plugin};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::calendar::Local;
use self::rules::{Kind, Settings, Target};

/// The timer, and the trigger that it calls.
const CLOCK: &str = "clock";
/// How long after a failure what could not be staged is tried again.
const AGAIN_MS: u64 = 300_000;

/// The plugin, with the actions that `manifest.json` declares.
pub(crate) struct QuietHours;

impl Plugin for QuietHours {
    const ACTIONS: &'static [Entry] = &[action::<Plan>(), action::<ApplyNow>()];

    fn check(host: &dyn Host) -> Result<Option<Value>, Fault> {
        let settings = read(host)?;
        let now = settings.zone.local(host.now_ms());
        Ok(Some(json!({ "local_time": now.to_string() })))
    }

    /// What the settings have off by now is staged at once.
    fn configure(host: &dyn Host) -> Result<(), Fault> {
        read(host)?;
        wake(host, Some(host.now_ms()))
    }

    fn on_schedule(host: &dyn Host, _: &str, _: &str, _: u64) -> Result<(), Fault> {
        let settings = read(host)?;
        let next = settings.next_change_ms(host.now_ms());
        let applied = ApplyNow::run(host, Again { again: false });
        let has_failed = applied.as_ref().map_or(true, |applied| !applied.failed.is_empty());
        let again = has_failed.then(|| host.now_ms() + AGAIN_MS);
        // The time that comes first. A failure is in the log, and told by the next one that works.
        wake(host, [next, again].into_iter().flatten().min())
    }
}

register_plugin!(QuietHours: actions, triggers, configuration);

/// Sets the timer to a time, or lets it be where there is none.
fn wake(host: &dyn Host, at_ms: Option<u64>) -> Result<(), Fault> {
    let Some(at_ms) = at_ms else { return host.cancel_timers(&[CLOCK.to_owned()]) };
    let when = When::AtMs(at_ms);
    host.set_timers(&[Timer { name: CLOCK.to_owned(), trigger_id: CLOCK.to_owned(), when }])
}

/// The settings, whose names fit together.
fn read(host: &dyn Host) -> Result<Settings, Fault> {
    let settings: Settings = settings(host)?;
    match settings.problem() {
        None => Ok(settings),
        Some(problem) => Err(fault::invalid(problem).with_code("settings")),
    }
}

/// What a target is switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Switch {
    Off,
    On,
}

/// A target, what the rules want of it, and what was staged for it last.
struct Wish<'a> {
    target: &'a Target,
    off_by: Vec<&'a str>,
    asked: Option<Switch>,
}

impl<'a> Wish<'a> {
    fn of(
        host: &dyn Host,
        settings: &'a Settings,
        target: &'a Target,
        now: Local,
    ) -> Result<Wish<'a>, Fault> {
        let off_by = settings.off_by(target, now);
        let asked = host.kv_get(&place(target))?.and_then(|stored| match stored.value.as_slice() {
            b"off" => Some(Switch::Off),
            b"on" => Some(Switch::On),
            _ => None,
        });
        Ok(Wish { target, off_by, asked })
    }

    fn wanted(&self) -> Switch {
        if self.off_by.is_empty() { Switch::On } else { Switch::Off }
    }

    /// Whether it has to be switched. What was never switched off from here is not switched on.
    fn is_due(&self) -> bool {
        self.asked.unwrap_or(Switch::On) != self.wanted()
    }
}

/// The key of the storage for a target. It follows the target when its name is changed.
fn place(target: &Target) -> String {
    let kind = match target.kind {
        Kind::Radio => "radio",
        Kind::Port => "port",
    };
    format!("asked:{kind}:{}:{}", target.controller_id, target.key)
}

/// The action `plan`.
struct Plan;

#[derive(Deserialize)]
struct At {
    at_ms: Option<u64>,
}

#[derive(Serialize)]
struct Planned {
    local_time: String,
    targets: Vec<PlannedTarget>,
}

#[derive(Serialize)]
struct PlannedTarget {
    name: String,
    is_off: bool,
    rules: Vec<String>,
    asked: Option<Switch>,
    would_stage: bool,
}

impl Action for Plan {
    const ID: &'static str = "plan";
    type Params = At;
    type Output = Planned;

    fn run(host: &dyn Host, at: At) -> Result<Planned, Fault> {
        let settings = read(host)?;
        let now = settings.zone.local(at.at_ms.unwrap_or_else(|| host.now_ms()));
        let targets = settings.targets.iter().map(|target| {
            let wish = Wish::of(host, &settings, target, now)?;
            Ok(PlannedTarget {
                name: target.name.clone(),
                is_off: wish.wanted() == Switch::Off,
                rules: wish.off_by.iter().map(|&name| name.to_owned()).collect(),
                asked: wish.asked,
                would_stage: wish.is_due(),
            })
        });
        Ok(Planned { local_time: now.to_string(), targets: targets.collect::<Result<_, Fault>>()? })
    }
}

/// The action `apply-now`.
struct ApplyNow;

#[derive(Deserialize)]
struct Again {
    #[serde(default)]
    again: bool,
}

#[derive(Serialize)]
struct Applied {
    local_time: String,
    staged: Vec<StagedTarget>,
    failed: Vec<FailedTarget>,
    unchanged: usize,
}

#[derive(Serialize)]
struct StagedTarget {
    name: String,
    to: Switch,
    change_id: String,
    problem: Option<String>,
}

#[derive(Serialize)]
struct FailedTarget {
    name: String,
    message: String,
}

impl Action for ApplyNow {
    const ID: &'static str = "apply-now";
    type Params = Again;
    type Output = Applied;

    fn run(host: &dyn Host, Again { again }: Again) -> Result<Applied, Fault> {
        let settings = read(host)?;
        let now = settings.zone.local(host.now_ms());
        let mut applied =
            Applied { local_time: now.to_string(), staged: Vec::new(), failed: Vec::new(), unchanged: 0 };
        let mut first = None;
        for target in &settings.targets {
            let wish = Wish::of(host, &settings, target, now)?;
            let is_repeated = again && wish.asked.is_some();
            if !wish.is_due() && !is_repeated {
                applied.unchanged += 1;
                continue;
            }
            // One controller that does not answer keeps no other from its quiet hours.
            match stage(host, &wish) {
                Ok(staged) => applied.staged.push(staged),
                Err(fault) => {
                    let message = fault.info().message.clone();
                    host.log(
                        Level::Warn,
                        "nothing could be staged",
                        &[("target", &target.name), ("reason", &message)],
                    );
                    applied.failed.push(FailedTarget { name: target.name.clone(), message });
                    first.get_or_insert(fault);
                }
            }
        }
        match first {
            Some(fault) if applied.staged.is_empty() => Err(fault),
            _ => Ok(applied),
        }
    }
}

/// Stages that a target is switched, and keeps that it was.
fn stage(host: &dyn Host, wish: &Wish<'_>) -> Result<StagedTarget, Fault> {
    let (target, to) = (wish.target, wish.wanted());
    let is_on = to == Switch::On;
    let (operation, payload) = match target.kind {
        Kind::Radio => ("network.radio.update", json!({ "key": target.key, "enabled": is_on })),
        Kind::Port => ("network.port.update", json!({ "key": target.key, "poe": { "enabled": is_on } })),
    };
    let why = if is_on { "no rule has it off".to_owned() } else { wish.off_by.join(", ") };
    let mut params = json!({
        "controller_id": target.controller_id,
        "payload": payload,
        "notes": format!("Quiet hours of {}: {why}", target.name),
    });
    if let Some(site) = &target.site_ref {
        params["site_ref"] = json!(site);
    }
    let staged = host.call(operation, &params)?;
    let change_id = staged["change_id"]
        .as_str()
        .ok_or_else(|| fault::generic(format!("'{operation}' answered without the id of a change")))?;
    host.kv_set(&place(target), if is_on { b"on" } else { b"off" }, None)?;
    Ok(StagedTarget {
        name: target.name.clone(),
        to,
        change_id: change_id.to_owned(),
        problem: staged["plan_error"]["message"].as_str().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests;
