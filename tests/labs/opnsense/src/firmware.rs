//! Firmware: checks, updates and plugins as jobs with a log, and the restart after them.

use std::collections::BTreeSet;

use heddle_lab::Instant;
use serde_json::{Value, json};

use crate::Release;
use crate::call::{Answer, Call, scalar};
use crate::config::Values;
use crate::device::{Down, Firewall};
use crate::facts::Facts;

const SETTINGS: &str = "Core/Firmware:";
/// Packages that every box has.
const BASE: [&str; 6] = ["opnsense", "suricata", "unbound", "kea", "dnsmasq", "strongswan"];
const MARK_DONE: &str = "***DONE***";
const MARK_REBOOT: &str = "***REBOOT***";
const MARK_ERROR: &str = "***ERROR***";

/// A job of the package manager. One runs at a time.
struct Job {
    kind: String,
    package: String,
    ends: Instant,
    fails: bool,
}

/// Versions, the last check and the job.
pub(crate) struct Firmware {
    release: Release,
    patch: u32,
    /// What it tells in place of them.
    pub(crate) told: Option<String>,
    /// The version that the next restart brings.
    next: Option<(Release, u32)>,
    is_checked: bool,
    job: Option<Job>,
    log: String,
    locked: BTreeSet<String>,
}

impl Firmware {
    pub(crate) fn new(release: Release, told: Option<String>) -> Self {
        Self {
            release,
            patch: release.patch(),
            told,
            next: None,
            is_checked: false,
            job: None,
            log: String::new(),
            locked: BTreeSet::new(),
        }
    }

    /// For example `26.7.2`.
    pub(crate) fn version(&self) -> String {
        self.told.clone().unwrap_or_else(|| format!("{}.{}", self.release.series(), self.patch))
    }

    /// The newest of the series, which is one ahead of the one that is shipped.
    fn newest(&self) -> u32 {
        self.release.patch() + 1
    }

    fn next_series(&self) -> Option<Release> {
        (self.release == Release::V26_1).then_some(Release::V26_7)
    }

    /// Ends the job when its time has come.
    pub(crate) fn advance(firewall: &mut Firewall) {
        let now = firewall.now;
        let Some(job) = firewall.firmware.job.take_if(|job| job.ends <= now) else { return };
        let own = &mut firewall.firmware;
        if job.fails {
            own.log += &format!("Could not fetch the package list.\n{MARK_ERROR}\n{MARK_DONE}\n");
            return;
        }
        match job.kind.as_str() {
            "check" => own.is_checked = true,
            "update" if own.patch < own.newest() => own.next = Some((own.release, own.newest())),
            "upgrade" => own.next = own.next_series().map(|release| (release, release.patch())),
            "install" | "reinstall" => drop(firewall.plugins.insert(job.package.clone())),
            "remove" => drop(firewall.plugins.remove(&job.package)),
            "lock" => drop(own.locked.insert(job.package.clone())),
            "unlock" => drop(own.locked.remove(&job.package)),
            _ => {}
        }
        let restarts = firewall.firmware.next.is_some();
        firewall.firmware.log +=
            &format!("{} finished.\n{}\n", job.kind, if restarts { MARK_REBOOT } else { MARK_DONE });
        if restarts {
            firewall.go_down(Down::Reboot);
        }
    }

    /// A restart brings what was installed, and ends a job that still ran.
    pub(crate) fn booted(firewall: &mut Firewall) {
        let own = &mut firewall.firmware;
        own.job = None;
        // The log is in a place that a restart empties.
        own.log.clear();
        if let Some((release, patch)) = own.next.take() {
            own.release = release;
            own.patch = patch;
            own.is_checked = false;
            firewall.release = release;
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "job": self.job.as_ref().map(|job| &job.kind), "log": self.log, "locked": self.locked,
            "is_checked": self.is_checked })
    }

    fn state(&self) -> &'static str {
        match &self.job {
            Some(_) => "running",
            None if self.log.is_empty() || self.log.contains(MARK_ERROR) => "error",
            None if self.log.contains(MARK_REBOOT) => "reboot",
            None => "done",
        }
    }
}

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match call.command {
        "status" => {
            firewall.firmware.is_checked |= call.is_post;
            Ok(Answer::json(&status(firewall)))
        }
        "running" => Ok(Answer::status(if firewall.firmware.job.is_some() { "busy" } else { "ready" })),
        "upgradestatus" => {
            Ok(Answer::json(&json!({ "status": firewall.firmware.state(), "log": firewall.firmware.log })))
        }
        "log" => {
            if call.param(0) != "0" {
                firewall.firmware.log.clear();
            }
            Ok(Answer::json(&json!({ "status": "ok", "log": firewall.firmware.log })))
        }
        "info" => Ok(Answer::json(&info(firewall))),
        "getoptions" => Ok(Answer::json(&json!({
            "mirrors": { "": "(default)" }, "flavours": { "": "(default)" }, "families": { "": "Community" },
            "has_subscription": [], "allow_custom": true
        }))),
        "set" => set(firewall, call),
        "syncplugins" | "resyncplugins" => {
            firewall.live.acted(call);
            Ok(Answer::status("ok"))
        }
        "changelog" => {
            Ok(Answer::json(&json!({ "status": "ok", "html": format!("Changes of {}", call.param(0)) })))
        }
        "details" => Ok(Answer::json(&json!({ "details": format!("{} has no details", call.param(0)) }))),
        "license" => Ok(Answer::json(&json!({ "license": "BSD2CLAUSE" }))),
        "reboot" | "poweroff" => {
            firewall.firmware.log = format!("{MARK_REBOOT}\n");
            firewall.go_down(if call.command == "reboot" { Down::Reboot } else { Down::Halt });
            Ok(started(firewall))
        }
        "check" | "update" | "upgrade" | "audit" | "cleanup" | "connection" | "health" | "install"
        | "reinstall" | "remove" | "lock" | "unlock" => Ok(start(firewall, call)),
        _ => return None,
    })
}

/// A job answers at once with an id that no route asks for.
fn started(firewall: &mut Firewall) -> Answer {
    let id = firewall.new_uuid();
    Answer::json(&json!({ "status": "ok", "msg_uuid": id }))
}

fn start(firewall: &mut Firewall, call: &Call) -> Answer {
    let package = call.param(0).to_owned();
    let is_plugin =
        Facts::get().controllers.values().any(|controller| controller.plugin.as_ref() == Some(&package));
    let is_about_known = is_plugin || (BASE.contains(&package.as_str()) && call.command != "install");
    let needs_package = call.facts.need > 0;
    if firewall.firmware.job.is_some() || (needs_package && !is_about_known) {
        return Answer::json(
            &json!({ "status": "failure", "status_msg": "the request cannot be carried out" }),
        );
    }
    let ends = firewall.now + firewall.settings.job;
    firewall.firmware.log = format!("***GOT REQUEST TO {}***\n", call.command.to_uppercase());
    firewall.firmware.job =
        Some(Job { kind: call.command.to_owned(), package, ends, fails: firewall.met.failing_job });
    started(firewall)
}

/// The last check, in the words of the update page.
fn status(firewall: &Firewall) -> Value {
    let own = &firewall.firmware;
    let has_update = own.is_checked && own.patch < own.newest();
    let next_series = own.next_series().filter(|_| own.is_checked);
    let latest = format!("{}.{}", own.release.series(), own.newest());
    let word = match (has_update, next_series) {
        (true, _) => "update",
        (false, Some(_)) => "upgrade",
        (false, None) => "none",
    };
    let packages = if has_update {
        json!({ "opnsense": { "name": "opnsense", "old": own.version(), "new": latest, "reason": "upgrade",
            "repository": "OPNsense" } })
    } else {
        json!([])
    };
    let sets = match next_series {
        Some(next) => {
            json!({ "base": { "name": "base", "old": own.release.series(), "new": next.series(),
                "reason": "upgrade" } })
        }
        None => json!([]),
    };
    json!({
        "status": word,
        "status_msg": if own.is_checked { "the last check is shown" } else { "no check was made yet" },
        "status_reboot": if has_update { "1" } else { "0" }, "all_packages": packages, "all_sets": sets,
        "product": {
            "product_id": "opnsense", "product_version": own.version(),
            "product_series": own.release.series(),
            "product_latest": latest, "product_target": "opnsense", "product_name": "OPNsense"
        },
        "upgrade_major_version": next_series.map_or("", Release::series),
        "last_check": firewall.time.as_secs()
    })
}

fn info(firewall: &Firewall) -> Value {
    let own = &firewall.firmware;
    let flag = |on: bool| if on { "1" } else { "0" };
    let entry = |name: &str, installed: bool| {
        json!({ "name": name, "version": "1.0", "comment": name, "flatsize": "1MiB", "license": "BSD2CLAUSE",
            "locked": flag(own.locked.contains(name)), "repository": "OPNsense", "origin": "opnsense",
            "provided": "1", "installed": flag(installed), "path": format!("OPNsense/opnsense/{name}"),
            "configured": flag(installed) })
    };
    let mut plugins: Vec<&String> =
        Facts::get().controllers.values().filter_map(|controller| controller.plugin.as_ref()).collect();
    plugins.sort();
    plugins.dedup();
    let installed = BASE.iter().copied().chain(firewall.plugins.iter().map(String::as_str));
    json!({
        "product_id": "opnsense", "product_version": own.version(), "product": status(firewall)["product"],
        "package": installed.map(|name| entry(name, true)).collect::<Vec<_>>(),
        "plugin": plugins.iter().map(|name| entry(name, firewall.plugins.contains(*name))).collect::<Vec<_>>(),
        "changelog": [{ "series": own.release.series(), "version": own.version(),
            "date": "January 28, 2026" }]
    })
}

/// Acts at once. The list of plugins is not taken, and characters outside an address are removed.
fn set(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let posted = call.body.get("firmware").and_then(Value::as_object);
    let posted = posted
        .ok_or_else(|| Answer::json(&json!({ "status": "failure", "status_msg": "nothing was sent" })))?;
    let mut config = firewall.stored.clone();
    let mut values = config.find(SETTINGS, "").map(|values| Values::clone(values)).unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=".contains(*c);
    for (name, value) in posted.iter().filter(|(name, _)| *name != "plugins") {
        if let Some(text) = scalar(value).filter(|_| Facts::get().field(SETTINGS, name).is_some()) {
            values.insert(name.clone(), text.chars().filter(allowed).collect());
        }
    }
    config.put(SETTINGS, "", values);
    firewall.save(call, config)?;
    Ok(Answer::json(&json!({ "status": "ok", "status_msg": "" })))
}
