//! A plugin that is called by events, timers and requests of others, and writes down what called it.
//!
//! It is built for tests only and is in no package that is delivered. What an event, a request or the settings say decides
//! what it does; its tool answers what is written down.

use heddle_sdk::plugin::Change;
use heddle_sdk::plugin::{
    Action, Cron, Entry, Event, Expected, HookRequest, HookResponse, Host, NewValue, Op, Plugin, Received,
    Timer, When, action,
};
use heddle_sdk::{Auth, Fault, FaultExt as _, Header, Method, Request, fault, register_plugin};
use serde_json::{Value, json};

/// The guest.
#[derive(Debug)]
pub struct Watcher;

/// Key of the list of what called it.
const LOG: &str = "log";

/// Answers what is written down.
struct Ask;

impl Action for Ask {
    const ID: &'static str = "ask";
    type Params = Value;
    type Output = Value;

    fn run(host: &dyn Host, _: Value) -> Result<Value, Fault> {
        let timers: Vec<Value> = host
            .timers()?
            .into_iter()
            .map(|standing| json!({ "name": standing.timer.name, "next-at-ms": standing.next_at_ms }))
            .collect();
        Ok(json!({ "log": log(host)?.0, "timers": timers }))
    }
}

impl Plugin for Watcher {
    const TOOLS: &'static [Entry] = &[action::<Ask>()];

    fn configure(host: &dyn Host) -> Result<(), Fault> {
        let settings = host.settings();
        if let Some(problem) = settings["refuse"].as_str() {
            return Err(fault::invalid(problem.to_owned()));
        }
        write_down(host, format!("configured {}", settings["name"].as_str().unwrap_or_default()))?;
        let timers = settings["timers"].as_array().cloned().unwrap_or_default();
        let timers: Vec<Timer> = timers.iter().map(timer).collect();
        let gone: Vec<String> = host
            .timers()?
            .into_iter()
            .map(|standing| standing.timer.name)
            .filter(|name| !timers.iter().any(|timer| timer.name == *name))
            .collect();
        host.cancel_timers(&gone)?;
        host.set_timers(&timers)
    }

    fn migrate(host: &dyn Host, from_version: &str) -> Result<(), Fault> {
        write_down(host, format!("migrated from {from_version}"))?;
        let (lines, _) = log(host)?;
        // A word in the log says how it goes; what was written before must not stay then.
        if lines.iter().any(|line| line.ends_with("refuse-migration")) {
            return Err(fault::invalid("as it was told".to_owned()));
        }
        assert!(!lines.iter().any(|line| line.ends_with("trap-migration")), "as it was told");
        if lines.iter().any(|line| line.ends_with("slow-migration")) {
            for _ in 0..4_000 {
                host.kv_set("slow", b"1", None)?;
            }
        }
        if host.emit(&[Event::new("plugin.watcher.seen", json!({}))]).is_ok() {
            return Err(fault::generic("a migration emits no events".to_owned()));
        }
        Ok(())
    }

    fn on_events(host: &dyn Host, trigger: &str, events: &[Received]) -> Result<(), Fault> {
        for event in events {
            let data = &event.payload["data"];
            match data["do"].as_str() {
                Some("refuse") => return Err(fault::invalid(format!("{} is refused", name(event)))),
                Some("fail") => return Err(fault::generic(format!("{} fails", name(event)))),
                Some("flaky") if !is_second(host, event)? => {
                    return Err(fault::generic("not yet".to_owned()));
                }
                Some("trap") => panic!("as it was told"),
                Some("emit") => {
                    host.emit(&[Event::new("plugin.watcher.seen", json!({ "n": event.seq }))])?;
                }
                Some(does @ ("send" | "send-slowly")) => {
                    let request = Request::new(Method::Post, "/v1/seen".to_owned()).with_json(&event.payload);
                    let mut request = request;
                    if does == "send-slowly" {
                        request.headers.push(Header { name: "accept".to_owned(), value: b"x-slow".to_vec() });
                    }
                    host.send("api", request, Auth::None)?;
                }
                _ => {}
            }
            if trigger == "restage" {
                restage(host)?;
            }
        }
        let names: Vec<String> = events.iter().map(name).collect();
        write_down(host, format!("{trigger}: {}", names.join(" ")))
    }

    fn on_schedule(host: &dyn Host, trigger: &str, timer: &str, at_ms: u64) -> Result<(), Fault> {
        if timer == "failing" {
            return Err(fault::generic("the timer fails".to_owned()));
        }
        write_down(host, format!("{trigger}: timer {timer} {at_ms}"))
    }

    fn receive(host: &dyn Host, request: HookRequest) -> Result<HookResponse, Fault> {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        write_down(host, format!("hook {}: {body}", request.hook))?;
        match body.as_str() {
            "refuse" => return Err(fault::invalid("the body is refused".to_owned())),
            "slow-once" if host.kv_get(&body)?.is_none() => {
                host.kv_set(&body, b"1", None)?;
                let request = Request::new(Method::Post, "/slow".to_owned()).with_json(&json!({}));
                host.send("api", request, Auth::None)?;
            }
            "status" => {
                return Ok(HookResponse { status: 302, content_type: None, body: Vec::new() });
            }
            _ => {}
        }
        let headers: Vec<&String> = request.headers.iter().map(|(name, _)| name).collect();
        let answer = json!({ "headers": headers, "query": request.query, "body": body });
        let content_type = Some("application/json".to_owned());
        Ok(HookResponse { status: 200, content_type, body: answer.to_string().into_bytes() })
    }
}

register_plugin!(Watcher: configuration, migration, triggers, tools, hooks);

fn name(event: &Received) -> String {
    event.payload["name"].as_str().unwrap_or(&event.event_type).to_owned()
}

/// Whether the plugin is told of this event for the second time.
fn is_second(host: &dyn Host, event: &Received) -> Result<bool, Fault> {
    let key = format!("flaky-{}", event.seq);
    if host.kv_get(&key)?.is_some() {
        return Ok(true);
    }
    host.kv_set(&key, b"1", None)?;
    Ok(false)
}

/// Stages what the settings say. Where they say what comes next, the first call stages and stops, and the one that repeats it
/// asks for the next one alone.
fn restage(host: &dyn Host) -> Result<(), Fault> {
    const RULE: &str = "openwrt.firewall.rule.create";
    const DONE: &str = "staged-the-first";
    let settings = host.settings();
    let next = &settings["stage-next"];
    if next.is_null() {
        return host.call(RULE, &settings["stage"]).map(drop);
    }
    if host.kv_get(DONE)?.is_some() {
        return host.call(RULE, next).map(drop);
    }
    host.call(RULE, &settings["stage"])?;
    host.kv_set(DONE, b"1", None)?;
    panic!("as it was told")
}

fn timer(written: &Value) -> Timer {
    let text = |key: &str| written[key].as_str().unwrap_or_default().to_owned();
    let when = if let Some(at) = written["at-ms"].as_u64() {
        When::AtMs(at)
    } else if let Some(secs) = written["every-s"].as_u64() {
        When::EveryS(u32::try_from(secs).unwrap_or(u32::MAX))
    } else {
        When::Cron(Cron { expression: text("cron"), time_zone: text("time-zone") })
    };
    Timer { name: text("name"), trigger_id: text("trigger"), when }
}

/// What is written down, and its version.
fn log(host: &dyn Host) -> Result<(Vec<String>, Expected), Fault> {
    Ok(match host.kv_get(LOG)? {
        None => (Vec::new(), Expected::Absent),
        Some(stored) => {
            let lines = serde_json::from_slice(&stored.value)
                .map_err(|error| fault::generic(format!("the log is not JSON: {error}")).with_code("log"))?;
            (lines, Expected::Version(stored.version))
        }
    })
}

fn write_down(host: &dyn Host, line: String) -> Result<(), Fault> {
    for _ in 0..20 {
        let (mut lines, expected) = log(host)?;
        lines.push(line.clone());
        let value = serde_json::to_vec(&lines).unwrap_or_default();
        let change = Change::Set(NewValue { value, ttl_s: None });
        if host.kv_transact(&[Op { key: LOG.to_owned(), expected, change }])? {
            return Ok(());
        }
    }
    Err(fault::generic("others write at the same time".to_owned()))
}
