//! Timers of plugins: names, triggers and counts are checked here, times and the quota by the server.

use heddle_core::fault::{Fault, FaultKind};

use crate::bindings::heddle::common::types;
use crate::bindings::plugin::heddle::plugin::schedule;
use crate::limits::{TIMER_CHANGES_MAX, TIMER_NAME_BYTES_MAX, TIMER_TEXT_BYTES_MAX};
use crate::reach::{OfPlugin, Own};
use crate::services::{StandingTimer, Timer, TimerTimes};
use crate::state::State;

impl schedule::Host for State {
    async fn set(&mut self, timers: Vec<schedule::Timer>) -> wasmtime::Result<Result<(), types::Fault>> {
        let done = self.set_timers(timers).await;
        self.told(done)
    }

    async fn cancel(&mut self, names: Vec<String>) -> wasmtime::Result<Result<(), types::Fault>> {
        let done = self.cancel_timers(names).await;
        self.told(done)
    }

    async fn list(&mut self) -> wasmtime::Result<Result<Vec<schedule::Standing>, types::Fault>> {
        let done = self.list_timers().await;
        if let Ok(listed) = &done {
            self.lower("schedule.list", format!("{listed:?}"));
        }
        self.told(done.map(|listed| listed.into_iter().map(to_guest).collect()))
    }
}

impl State {
    async fn set_timers(&mut self, timers: Vec<schedule::Timer>) -> Result<(), Fault> {
        self.waits();
        let mut plugin = self.reach.of_plugin()?;
        take(&mut plugin, timers.len())?;
        let min_interval =
            plugin.facts.manifest.capabilities.schedule.as_ref().map_or(u32::MAX, |has| has.min_interval_s);
        let mut checked: Vec<Timer> = Vec::with_capacity(timers.len());
        for timer in timers {
            let timer = check(&plugin, timer, min_interval)?;
            if checked.iter().any(|other| other.name == timer.name) {
                return Err(invalid(format!("timer '{}' is there twice", timer.name)));
            }
            checked.push(timer);
        }
        if checked.is_empty() {
            return Ok(());
        }
        plugin.plugin.services.timers_set(&plugin.of(), checked, min_interval).await
    }

    async fn cancel_timers(&mut self, names: Vec<String>) -> Result<(), Fault> {
        self.waits();
        let mut plugin = self.reach.of_plugin()?;
        take(&mut plugin, names.len())?;
        names.iter().try_for_each(|name| check_name(name))?;
        if names.is_empty() {
            return Ok(());
        }
        plugin.plugin.services.timers_cancel(&plugin.of(), names).await
    }

    async fn list_timers(&mut self) -> Result<Vec<StandingTimer>, Fault> {
        self.waits();
        let mut plugin = self.reach.of_plugin()?;
        spend(&mut plugin, 1)?;
        let listed = plugin.plugin.services.timers_list(&plugin.of()).await?;
        plugin.account.give(listed.iter().map(|standing| standing.timer.name.len() + 64).sum());
        Ok(listed)
    }
}

/// Takes changes from the budget of the call, before anything of them is looked at: those that are refused count, too.
fn take(plugin: &mut OfPlugin<'_>, changes: usize) -> Result<(), Fault> {
    spend(plugin, changes)?;
    if plugin.plugin.own != Own::All {
        return Err(plugin.refuse("read-only", "a check or a migration changes no timers"));
    }
    Ok(())
}

fn spend(plugin: &mut OfPlugin<'_>, changes: usize) -> Result<(), Fault> {
    let spent = &mut plugin.plugin.spent.timers;
    *spent = spent.saturating_add(changes.max(1));
    if *spent > TIMER_CHANGES_MAX {
        let message =
            format!("a call may change {TIMER_CHANGES_MAX} timers, and those that are refused count");
        return Err(Fault::new(FaultKind::Generic, message).with_code("timer-budget"));
    }
    Ok(())
}

fn check(plugin: &OfPlugin<'_>, asked: schedule::Timer, min_interval: u32) -> Result<Timer, Fault> {
    check_name(&asked.name)?;
    let (name, trigger) = (asked.name, asked.trigger_id);
    if plugin.facts.manifest.trigger(&trigger).is_none() {
        let names: Vec<&str> = plugin.facts.manifest.triggers.iter().map(|one| one.id.as_str()).collect();
        let has = names.join(", ");
        return Err(invalid(format!(
            "timer '{name}' is for a trigger that the manifest does not have; it has {has}"
        )));
    }
    let times = match asked.when {
        schedule::When::AtMs(at) => TimerTimes::At(at),
        schedule::When::EveryS(secs) if secs < min_interval => {
            return Err(invalid(format!(
                "timer '{name}' would come every {secs} s; 'min-interval-s' of the manifest is {min_interval}"
            )));
        }
        schedule::When::EveryS(secs) => TimerTimes::Every(secs),
        schedule::When::Cron(cron) => {
            let longest = cron.expression.len().max(cron.time_zone.len());
            if longest > TIMER_TEXT_BYTES_MAX {
                return Err(invalid(format!(
                    "the times of timer '{name}' have more than {TIMER_TEXT_BYTES_MAX} bytes"
                )));
            }
            TimerTimes::Cron { expression: cron.expression, time_zone: cron.time_zone }
        }
    };
    Ok(Timer { name, trigger, times })
}

fn check_name(name: &str) -> Result<(), Fault> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.:".contains(&b);
    if (1..=TIMER_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(invalid(format!(
        "a timer's name has 1 to {TIMER_NAME_BYTES_MAX} characters of a-z, 0-9, '-', '_', '.' and ':'"
    )))
}

fn invalid(message: String) -> Fault {
    Fault::new(FaultKind::Invalid, message).with_code("timer")
}

fn to_guest(standing: StandingTimer) -> schedule::Standing {
    let StandingTimer { timer, next_at_ms } = standing;
    let when = match timer.times {
        TimerTimes::At(at) => schedule::When::AtMs(at),
        TimerTimes::Every(secs) => schedule::When::EveryS(secs),
        TimerTimes::Cron { expression, time_zone } => {
            schedule::When::Cron(schedule::Cron { expression, time_zone })
        }
    };
    let timer = schedule::Timer { name: timer.name, trigger_id: timer.trigger, when };
    schedule::Standing { timer, next_at_ms }
}
