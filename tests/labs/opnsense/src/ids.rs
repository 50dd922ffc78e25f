//! Intrusion detection: rule files by name, rules by number, and alerts.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::config::{Values, values};
use crate::crud::having;
use crate::device::Firewall;
use crate::grid;

/// Rule files that the box can fetch.
const FILES: [&str; 3] = ["emerging-malware.rules", "emerging-scan.rules", "opnsense.test.rules"];
/// Rules in them: number, action, text.
const RULES: [(&str, &str, &str); 3] = [
    ("2000001", "alert", "scan of ports"),
    ("2000002", "alert", "beacon of malware"),
    ("2000003", "drop", "test file"),
];
const STATE: &str = "IDS/IDS:files.file";
const ADJUSTED: &str = "IDS/IDS:rules.rule";
const SETTINGS: &str = "IDS/IDS:";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("ids/settings", "listrulesets") => {
            let rows = FILES.iter().map(|name| ruleset(firewall, name)).collect();
            Ok(grid::live(call, rows))
        }
        ("ids/settings", "getruleset") if FILES.contains(&call.param(0)) => {
            Ok(Answer::json(&ruleset(firewall, call.param(0))))
        }
        ("ids/settings", "getruleset") => Ok(Answer::empty()),
        ("ids/settings", "setruleset") => set_ruleset(firewall, call),
        ("ids/settings", "toggleruleset") => toggle_rulesets(firewall, call),
        ("ids/settings", "getrulesetproperties") => Ok(Answer::json(&json!({ "properties": [] }))),
        ("ids/settings", "setrulesetproperties") => Ok(Answer::result("saved")),
        ("ids/settings", "searchinstalledrules") => {
            Ok(grid::live(call, RULES.iter().map(|rule| installed(firewall, rule)).collect()))
        }
        ("ids/settings", "getruleinfo") => {
            let found = RULES.iter().find(|(sid, _, _)| *sid == call.param(0));
            Ok(found.map_or_else(Answer::empty, |rule| Answer::json(&installed(firewall, rule))))
        }
        ("ids/settings", "setrule" | "togglerule") => adjust(firewall, call),
        ("ids/settings", "checkpolicyrule") => {
            Ok(Answer::json(&json!({ "status": "ok", "count": firewall.stored.rows(ADJUSTED).count() })))
        }
        ("ids/service", "queryalerts") => Ok(grid::live(call, Vec::new())),
        ("ids/service", "updaterules" | "reloadrules") => {
            firewall.live.acted(call);
            let is_detached = !call.param(0).is_empty();
            Ok(Answer::status(&if is_detached { crate::seed::uuid("job", 1) } else { "OK".to_owned() }))
        }
        ("ids/service", "reconfigure") => Ok(reconfigure(firewall)),
        _ => return None,
    })
}

fn ruleset(firewall: &Firewall, name: &str) -> Value {
    let enabled = having(&firewall.stored, STATE, "filename", name).next();
    let enabled = enabled.is_some_and(|(_, values)| values.get("enabled").is_some_and(|on| on == "1"));
    json!({ "filename": name, "description": name.trim_end_matches(".rules"),
        "enabled": if enabled { "1" } else { "0" },
        "documentation_url": "", "modified_local": null })
}

/// The body has no root key.
fn set_ruleset(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    if !FILES.contains(&call.param(0)) {
        return Ok(Answer::failed());
    }
    let enabled = if call.body.contains_key("enabled") { call.text("enabled") } else { "1".to_owned() };
    put_ruleset(firewall, call, call.param(0), enabled == "1")?;
    Ok(Answer::result("saved"))
}

fn put_ruleset(firewall: &mut Firewall, call: &Call, name: &str, is_on: bool) -> Result<(), Answer> {
    let known = having(&firewall.stored, STATE, "filename", name).next().map(|(id, _)| id.to_owned());
    let id = known.unwrap_or_else(|| firewall.new_uuid());
    let mut config = firewall.stored.clone();
    config.put(STATE, &id, values(&[("filename", name), ("enabled", if is_on { "1" } else { "0" })]));
    firewall.save(call, config)
}

/// Answers the state of the last file: `0`, `1`, `none` when nothing changed, or `error`.
fn toggle_rulesets(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let mut status = "none";
    for name in call.param(0).split(',') {
        if !FILES.contains(&name) {
            return Ok(Answer::status("error"));
        }
        let is_on = ruleset(firewall, name)["enabled"] == "1";
        let wanted = if call.param(1).is_empty() { !is_on } else { call.param(1) == "1" };
        if wanted != is_on {
            put_ruleset(firewall, call, name, wanted)?;
            status = if wanted { "1" } else { "0" };
        }
    }
    Ok(Answer::status(status))
}

fn installed(firewall: &Firewall, (sid, action, text): &(&str, &str, &str)) -> Value {
    let adjusted = having(&firewall.stored, ADJUSTED, "sid", sid).next().map(|(_, values)| values);
    let own = |field: &str, usual: &str| {
        adjusted.and_then(|values| values.get(field)).map_or(usual, String::as_str).to_owned()
    };
    json!({ "sid": sid, "msg": text, "source": FILES[0], "action": own("action", action),
        "enabled": own("enabled", "1"),
        "status": if adjusted.is_some() { "override" } else { "default" }, "classtype": "misc-activity" })
}

/// Each change of a rule is a stored adjustment.
fn adjust(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let state = call.param(1);
    let action = call.text("action");
    if call.command == "setrule" && action.is_empty() {
        return Ok(Answer::failed());
    }
    let mut config = firewall.stored.clone();
    for sid in call.param(0).split(',') {
        let known = having(&config, ADJUSTED, "sid", sid)
            .next()
            .map(|(id, values)| (id.to_owned(), Values::clone(values)));
        let (id, mut own) = known.unwrap_or_else(|| {
            (firewall.new_uuid(), values(&[("sid", sid), ("enabled", "1"), ("action", "alert")]))
        });
        let was_on = own.get("enabled").is_some_and(|on| on == "1");
        let mut put = |field: &str, value: &str| drop(own.insert(field.to_owned(), value.to_owned()));
        match (call.command, state) {
            ("setrule", _) => {
                put("action", &action);
                put("enabled", if call.text("enabled") == "0" { "0" } else { "1" });
            }
            (_, "alert" | "drop") => put("action", state),
            (_, "") => put("enabled", if was_on { "0" } else { "1" }),
            (_, state) => put("enabled", state),
        }
        config.put(ADJUSTED, &id, own);
    }
    firewall.save(call, config)?;
    Ok(if call.command == "setrule" {
        Answer::result("saved")
    } else {
        Answer::json(&json!({ "result": "saved" }))
    })
}

/// The first apply makes the job that fetches rules.
fn reconfigure(firewall: &mut Firewall) -> Answer {
    if firewall.stored.value(SETTINGS, "", "general.UpdateCron").is_empty() {
        let id = firewall.new_uuid();
        let mut config = firewall.stored.clone();
        let job = [
            ("origin", "IDS"),
            ("command", "ids update"),
            ("description", "rule updates"),
            ("enabled", "0"),
            ("hours", "0"),
        ];
        config.put("Cron/Cron:jobs.job", &id, values(&job));
        let mut settings = config.find(SETTINGS, "").map(|values| Values::clone(values)).unwrap_or_default();
        settings.insert("general.UpdateCron".to_owned(), id);
        config.put(SETTINGS, "", settings);
        firewall.store("root", "/api/ids/service/reconfigure made changes", config);
    }
    firewall.apply("ids/service/reconfigure");
    Answer::status("OK")
}
