//! Restart, firmware upgrade and factory reset: the device answers "accepted"
//! first, drops off, and is polled until it is back.

use heddle_sdk::{
    Change, ChangePlan, Completion, Danger, Effect, Fault, FaultExt, Host, Operation, Outcome, PlanStep,
    Readiness, Response, Stage, Standing, Task, fault, json as sdk_json,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::features::schema;
use crate::plan::native;
use crate::read;
use crate::rpc;
use crate::stages::done;
use crate::token::{PowerToken, Token};

pub(crate) const REBOOT: &str = "openwrt.system.reboot";
pub(crate) const UPGRADE: &str = "openwrt.system.firmware-upgrade";
pub(crate) const RESET: &str = "openwrt.system.factory-reset";

/// Where the device's own upgrade looks for the image.
const IMAGE: &str = "/tmp/firmware.bin";
/// The uptime may lag behind the host's clock by this much without a restart.
const SLACK_S: u64 = 5;
/// A device that is still running after this time is not going to restart; writing an image is slow.
const STAYS_UP_MS: u64 = 90_000;
const STAYS_UP_WRITING_MS: u64 = 240_000;

pub(crate) fn is_action(feature: &str) -> bool {
    [REBOOT, UPGRADE, RESET].contains(&feature)
}

pub(crate) fn features() -> Vec<Value> {
    let none = schema::object(Map::new(), &[]);
    let mut image = Map::new();
    image.insert("url".to_owned(), json!({"type": "string", "pattern": "^https?://[^\\x00-\\x20'\"\\\\]{1,1000}$", "description": "where the device fetches the image"}));
    image.insert("sha256".to_owned(), json!({"type": "string", "pattern": "^[0-9a-fA-F]{64}$", "description": "what the image must hash to"}));
    image.insert(
        "keep_settings".to_owned(),
        json!({"type": "boolean", "default": true, "description": "false wipes the configuration"}),
    );
    vec![
        schema::action(REBOOT, "Restart the router", &none, None),
        schema::action(
            UPGRADE,
            "Upgrade the firmware",
            &schema::object(image, &["url", "sha256"]),
            Some(120_000),
        ),
        schema::action(RESET, "Reset to factory settings", &none, None),
    ]
}

/// Model, version and uptime in seconds.
fn read_state(host: &dyn Host) -> Result<(Value, u64), Fault> {
    let answers = rpc::batch(host, &[("system", "board", json!({})), ("system", "info", json!({}))])?;
    let mut answers = answers.into_iter();
    let mut next = |what: &str| {
        answers.next().expect("as many answers as reads").map_err(|error| error.into_fault(what))
    };
    let (board, info) = (next("system.board")?, next("system.info")?);
    let base = json!({"board": sdk_json::text(&board, "/board_name"), "version": sdk_json::text(&board, "/release/version"), "revision": sdk_json::text(&board, "/release/revision")});
    Ok((base, sdk_json::number(&info, "/uptime").unwrap_or(0)))
}

fn calls(feature: &str, payload: &Value) -> Result<Vec<Value>, Fault> {
    let text = |name: &str| {
        sdk_json::text(payload, &format!("/{name}")).ok_or_else(|| {
            fault::invalid(format!("'{name}' is missing")).with_field(format!("/{name}"), "is required")
        })
    };
    Ok(match feature {
        REBOOT => vec![rpc::body("system", "reboot", &json!({}))],
        RESET => vec![rpc::body("rpc-sys", "factory", &json!({}))],
        _ => {
            let keep = payload.get("keep_settings").and_then(Value::as_bool).unwrap_or(true);
            text("sha256")?;
            vec![
                rpc::body(
                    "file",
                    "exec",
                    &json!({"command": "/bin/uclient-fetch", "params": ["-q", "-O", IMAGE, text("url")?]}),
                ),
                rpc::body("file", "exec", &json!({"command": "/usr/bin/sha256sum", "params": [IMAGE]})),
                // Without `keep` the device wipes its configuration.
                rpc::body("rpc-sys", "upgrade_start", &json!({"keep": keep})),
            ]
        }
    })
}

/// Refuses calls that the device does not have, or that the user may not make: once accepted, an action cannot say so.
fn refuse_incapable(host: &dyn Host, calls: &[Value]) -> Result<(), Fault> {
    let name = |call: &Value, at: usize| call["params"][at].as_str().unwrap_or_default().to_owned();
    let mut wanted: Vec<(String, String)> = calls.iter().map(|call| (name(call, 1), name(call, 2))).collect();
    if calls.len() > 1 {
        wanted.push(("system".to_owned(), "validate_firmware_image".to_owned()));
    }
    wanted.dedup();
    let objects: Vec<&str> = wanted.iter().map(|(object, _)| object.as_str()).collect();
    let found = rpc::objects(host, &objects)?;
    for (object, method) in &wanted {
        let has = found.get(object).is_some_and(|methods| methods.is_empty() || methods.contains(method));
        if !has {
            let package = match object.as_str() {
                "rpc-sys" => "; install 'rpcd-mod-rpcsys'",
                "file" => "; install 'rpcd-mod-file'",
                _ => "",
            };
            return Err(fault::unsupported(format!("the device has no '{object}.{method}'{package}"))
                .with_code("method-absent"));
        }
    }
    let mut asks: Vec<(String, Value)> = wanted
        .iter()
        .map(|(object, method)| {
            (format!("{object}.{method}"), json!({"scope": "ubus", "object": object, "function": method}))
        })
        .collect();
    for command in calls.iter().filter_map(|call| call["params"][3]["command"].as_str()) {
        asks.push((command.to_owned(), json!({"scope": "file", "object": command, "function": "exec"})));
    }
    let reads: Vec<rpc::Read<'_>> =
        asks.iter().map(|(_, args)| ("session", "access", args.clone())).collect();
    for ((what, _), answer) in asks.iter().zip(rpc::batch(host, &reads)?) {
        if answer.is_ok_and(|answer| answer.get("access") == Some(&json!(false))) {
            return Err(fault::denied(format!(
                "the user may not use '{what}'; add it to an access group of the user"
            ))
            .with_code("method-denied"));
        }
    }
    Ok(())
}

/// Plans one action.
pub(crate) fn plan(host: &dyn Host, change: &Change) -> Result<ChangePlan, Fault> {
    if change.operation != Operation::Update {
        return Err(fault::invalid(format!("'{}' can only be updated", change.feature)));
    }
    let payload: Value =
        serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
    let calls = calls(&change.feature, &payload)?;
    refuse_incapable(host, &calls)?;
    let (base, uptime_s) = read_state(host)?;
    let mut warnings = vec!["the network behind the router is down until it has restarted".to_owned()];
    let summary = match change.feature.as_str() {
        REBOOT => "restart the router",
        RESET => {
            warnings.push(
                "all settings, passwords and addresses are lost; the router will answer with its defaults"
                    .to_owned(),
            );
            "reset the router to factory settings"
        }
        _ => {
            warnings.push(
                "the device stops commands after about 30 s; the image must be fetched within that time"
                    .to_owned(),
            );
            if payload.get("keep_settings") == Some(&json!(false)) {
                warnings.push("the configuration is wiped".to_owned());
            }
            "upgrade the firmware"
        }
    };
    let base_digest = sdk_json::digest(&base).to_vec();
    let native = calls.iter().map(|body| native(Stage::Apply, body)).collect();
    let token = PowerToken {
        feature: change.feature.clone(),
        calls,
        base: base.clone(),
        uptime_s,
        read_at_ms: host.now_ms(),
        sha256: sdk_json::text(&payload, "/sha256").map(str::to_ascii_lowercase),
    };
    Ok(ChangePlan {
        steps: vec![PlanStep { summary: summary.to_owned(), before: Some(base.to_string()), after: None }],
        native,
        holes: Vec::new(),
        danger: Danger::Catastrophic,
        lockout_risk: true,
        warnings,
        also: Vec::new(),
        base_digest,
        inverse: None,
        holds: false,
        undo_takes_all: false,
        touches: vec!["system/power".to_owned()],
        token: Token::Power(token).write()?,
    })
}

/// What `poll` needs to know of a device that went down.
#[derive(Serialize, Deserialize)]
struct Down {
    feature: String,
    version: Value,
    #[serde(default)]
    revision: Value,
    /// Seconds that it had been up, and when that was read.
    uptime_s: u64,
    at_ms: u64,
    sent_at_ms: u64,
}

/// Whether the device has started since it had been up for `uptime_s` at `at_ms`.
fn has_restarted(now_uptime_s: u64, uptime_s: u64, at_ms: u64, now_ms: u64) -> bool {
    let passed_s = now_ms.saturating_sub(at_ms) / 1000;
    // Clocks drift: a few seconds a day, and more for longer.
    now_uptime_s + SLACK_S + passed_s / 5_000 < uptime_s + passed_s || now_uptime_s < uptime_s
}

/// Whether the calls of an action can be sent.
pub(crate) fn ready(host: &dyn Host, token: &PowerToken, left: u32) -> Result<Readiness, Fault> {
    if left > 0 {
        return Err(fault::busy("the action was interrupted before its last call; plan again")
            .with_code("interrupted"));
    }
    if read::leave_adopted(host)? {
        return Err(read::somebody_applies());
    }
    let (base, uptime_s) = read_state(host)?;
    if base != token.base {
        return Err(fault::state_moved("the device runs another version than was reviewed; plan again")
            .with_code("state-moved"));
    }
    if has_restarted(uptime_s, token.uptime_s, token.read_at_ms, host.now_ms()) {
        return Err(fault::state_moved("the device restarted since the plan was reviewed; plan again")
            .with_code("state-moved"));
    }
    Ok(Readiness::send(0))
}

/// What came of a call of an action; the last one is followed until the device is back.
pub(crate) fn judge(
    host: &dyn Host,
    token: &PowerToken,
    index: usize,
    answer: Result<Response, Fault>,
) -> Result<Outcome, Fault> {
    let call =
        token.calls.get(index).ok_or_else(|| fault::invalid("the plan has no such call; plan again"))?;
    let answer = rpc::answer(answer);
    if index + 1 == token.calls.len() {
        return went_down(host, token, call, answer);
    }
    // What these commands leave is a file in memory.
    let unchanged = |fault: Fault| fault.with_effect(Effect::None);
    let answer = answer.map_err(|error| unchanged(error.into_fault("file.exec")))?;
    check_command(call, &answer, token.sha256.as_deref()).map_err(unchanged)?;
    if token.feature == UPGRADE && index + 2 == token.calls.len() {
        check_image(host).map_err(unchanged)?;
    }
    Ok(done())
}

fn went_down(
    host: &dyn Host,
    token: &PowerToken,
    call: &Value,
    answer: Result<Value, rpc::CallError>,
) -> Result<Outcome, Fault> {
    match answer {
        Ok(_) => {}
        // The device may have gone down before it answered.
        Err(rpc::CallError::Host(Fault::Connection(info) | Fault::Timeout(info)))
            if !matches!(info.effect, Effect::None) => {}
        Err(error @ rpc::CallError::Refused(_)) => {
            let name = |at: usize| call["params"][at].as_str().unwrap_or("?");
            let what = format!("{}.{}", name(1), name(2));
            return Err(error.into_fault(&what).with_effect(Effect::None));
        }
        Err(error) => return Err(error.into_fault(&token.feature)),
    }
    Ok(Outcome::Pending(pending(&Down {
        feature: token.feature.clone(),
        version: token.base["version"].clone(),
        revision: token.base["revision"].clone(),
        uptime_s: token.uptime_s,
        at_ms: token.read_at_ms,
        sent_at_ms: host.now_ms(),
    })))
}

/// A command that ended badly left at most a file in `/tmp`.
fn check_command(call: &Value, answer: &Value, sha256: Option<&str>) -> Result<(), Fault> {
    let code = answer.get("code").and_then(Value::as_i64).unwrap_or(0);
    let is_fetch = call.pointer("/params/3/params/0") == Some(&json!("-q"));
    if code != 0 {
        let what = if is_fetch {
            "the device could not fetch the image"
        } else {
            "the device could not hash the image"
        };
        return Err(fault::generic(format!("{what} (exit code {code})")));
    }
    if is_fetch {
        return Ok(());
    }
    let found =
        sdk_json::text(answer, "/stdout").and_then(|text| text.split_whitespace().next()).unwrap_or_default();
    if sha256 != Some(found.to_ascii_lowercase().as_str()) {
        return Err(fault::invalid(format!("the image that the device fetched hashes to '{found}'"))
            .with_field("/sha256", "is not the hash of the image"));
    }
    Ok(())
}

fn check_image(host: &dyn Host) -> Result<(), Fault> {
    let answer = rpc::call(host, "system", "validate_firmware_image", &json!({"path": IMAGE}))
        .map_err(|error| error.into_fault("system.validate_firmware_image"))?;
    if answer.get("valid") == Some(&json!(true)) {
        return Ok(());
    }
    Err(fault::invalid("the image is not one for this device")
        .with_field("/url", "is not an image for this device"))
}

fn pending(down: &Down) -> Task {
    let is_upgrade = down.feature != REBOOT;
    Task {
        token: serde_json::to_vec(down).expect("a task has only string keys"),
        poll_after_ms: 10_000,
        unreachable_for_ms: Some(if is_upgrade { 300_000 } else { 120_000 }),
        give_up_after_ms: if is_upgrade { 900_000 } else { 600_000 },
        progress_percent: None,
        message: Some("waiting for the router to come back".to_owned()),
    }
}

/// Asks whether the device is back.
pub(crate) fn poll(host: &dyn Host, task: &[u8]) -> Result<Outcome, Fault> {
    let down: Down = serde_json::from_slice(task)
        .map_err(|_| fault::invalid("the task was made by another version of this adapter"))?;
    let (base, uptime_s) = match read_state(host) {
        Ok(state) => state,
        Err(Fault::Authentication(_)) if down.feature == RESET => {
            return Ok(completed(
                "the router is back with its factory settings; its credential must be set again",
            ));
        }
        Err(Fault::Connection(_) | Fault::Timeout(_) | Fault::NotReady(_)) => {
            return Ok(Outcome::Pending(pending(&down)));
        }
        Err(fault) => return Err(fault),
    };
    let now = host.now_ms();
    if !has_restarted(uptime_s, down.uptime_s, down.at_ms, now) {
        let limit = if down.feature == REBOOT { STAYS_UP_MS } else { STAYS_UP_WRITING_MS };
        if now.saturating_sub(down.sent_at_ms) > limit {
            let message = "the device accepted the call and did not restart; its log says why";
            return Ok(Outcome::Failed(
                fault::generic(message).with_code("no-restart").with_effect(Effect::None),
            ));
        }
        return Ok(Outcome::Pending(pending(&down)));
    }
    if down.feature == UPGRADE && base["version"] == down.version && base["revision"] == down.revision {
        return Ok(completed("the router restarted with the version that it had"));
    }
    Ok(done())
}

fn completed(warning: &str) -> Outcome {
    Outcome::Done(Completion { warnings: vec![warning.to_owned()], ..Completion::default() })
}

/// Whether the device has restarted since the plan.
pub(crate) fn compare(host: &dyn Host, token: &PowerToken) -> Result<Standing, Fault> {
    let (base, uptime_s) = match read_state(host) {
        Err(Fault::Authentication(_)) if token.feature == RESET => return Ok(Standing::After),
        other => other?,
    };
    if token.feature == UPGRADE && base != token.base {
        return Ok(Standing::After);
    }
    let is_back = has_restarted(uptime_s, token.uptime_s, token.read_at_ms, host.now_ms());
    Ok(if is_back { Standing::After } else { Standing::Before })
}
