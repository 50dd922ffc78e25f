//! Packages and updates: switches wait for a restart, an update installs the next release.

use crate::call::{Answered, Call, Done, Output};
use crate::device::{Down, PACKAGES, Router};
use crate::refusal::Refusal;
use crate::release::Release;
use crate::store::Record;

const DOWNLOADED: &str = "Downloaded, please reboot router to upgrade it";
const UNREACHED: &str = "ERROR: could not connect to update server";

/// Packages with their ids: the base package is the first.
pub(crate) fn rows(router: &Router) -> Vec<Record> {
    let names = std::iter::once("routeros").chain(PACKAGES).enumerate();
    let installed = names.filter(|(at, name)| {
        *at == 0 || router.packages.contains(*name) || router.scheduled.contains_key(*name)
    });
    let rows = installed.map(|(at, name)| {
        let is_on = at == 0 || router.packages.contains(name);
        let pairs = [
            (".id", format!("*{:X}", at + 1)),
            ("name", name.to_owned()),
            ("version", router.version()),
            ("build-time", "2026-01-14 08:00:00".to_owned()),
            ("disabled", (!is_on).to_string()),
            ("available", "false".to_owned()),
            ("scheduled", router.scheduled.get(name).cloned().unwrap_or_default()),
            ("size", if at == 0 { "12345678" } else { "409600" }.to_owned()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    });
    rows.collect()
}

/// The state of updates: what is installed, and what the last check found.
pub(crate) fn fill_update(router: &Router, out: &mut Record) {
    let mut put = |name: &str, value: String| drop(out.insert(name.to_owned(), value));
    put("installed-version", router.version());
    if router.is_update_checked {
        put("latest-version", latest(router));
        put("status", status(router));
    }
}

fn latest(router: &Router) -> String {
    router.release.next().map_or_else(|| router.version(), |next| next.version().to_owned())
}

fn status(router: &Router) -> String {
    let text = match router.release.next() {
        Some(_) if router.is_update_downloaded => DOWNLOADED,
        Some(_) => "New version is available",
        None => "System is already up to date",
    };
    text.to_owned()
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("system/package/update", "check-for-updates") => Ok(check(router)),
        ("system/package/update", "download") => Ok(transfer(router, false)),
        ("system/package/update", "install") => Ok(transfer(router, true)),
        ("system/package/update", "cancel") => Ok(Done::nothing()),
        ("system/package", "enable" | "disable" | "uninstall" | "unschedule") => switch(router, call),
        ("system/package", "apply-changes") => {
            if router.scheduled.is_empty() && !router.is_update_downloaded {
                return Some(Err(Refusal::failure("nothing to do")));
            }
            router.installs = router.release.next().filter(|_| router.is_update_downloaded);
            router.go_down(Down::Reboot);
            Ok(Done::nothing())
        }
        ("system/package", "downgrade") => downgrade(router),
        ("system/routerboard", "upgrade") => {
            let version = router.version();
            router.store.set("system/routerboard", 0, "upgraded-to", version);
            router.note(
                "system,info,critical",
                "Firmware upgraded successfully, please reboot for changes to take effect!",
            );
            Ok(Done::nothing())
        }
        _ => return None,
    })
}

/// Rows with a number for each step; the last one is the result.
fn sections(router: &Router, steps: &[(&str, bool)]) -> Vec<Record> {
    let channel = router.store.setting("system/package/update", "channel");
    let channel = if channel.is_empty() { "stable" } else { channel };
    let rows = steps.iter().enumerate().map(|(at, (status, is_known))| {
        let mut row = Record::new();
        let mut put = |name: &str, value: &str| drop(row.insert(name.to_owned(), value.to_owned()));
        put(".section", &at.to_string());
        put("channel", channel);
        put("installed-version", &router.version());
        put("status", status);
        if *is_known {
            put("latest-version", &latest(router));
        }
        row
    });
    rows.collect()
}

fn check(router: &mut Router) -> Done {
    let rows = if router.met.update_fails {
        sections(router, &[("finding out latest version...", false), (UNREACHED, false)])
    } else {
        router.is_update_checked = true;
        let status = status(router);
        sections(router, &[("finding out latest version...", false), (status.as_str(), true)])
    };
    Done { output: Output::Rows(rows), secs: Some(2) }
}

fn transfer(router: &mut Router, installs: bool) -> Done {
    let checked = check(router);
    let Some(next) = router.release.next().filter(|_| !router.met.update_fails) else { return checked };
    router.is_update_downloaded = true;
    let last = if installs { "Downloaded, rebooting..." } else { DOWNLOADED };
    let steps = [("finding out latest version...", false), ("downloading...", true), (last, true)];
    let rows = sections(router, &steps);
    if installs {
        router.installs = Some(next);
        router.go_down(Down::Reboot);
    }
    Done { output: Output::Rows(rows), secs: Some(4) }
}

fn switch(router: &mut Router, call: &Call) -> Answered {
    for id in call.ids(router)? {
        let name = rows(router).into_iter().find(|row| row.get(".id") == Some(&format!("*{id:X}")));
        let name = name.and_then(|row| row.get("name").cloned()).ok_or(Refusal::NoSuchItem)?;
        if name == "routeros" && call.command != "unschedule" {
            return Err(Refusal::failure("can not change the base package"));
        }
        match call.command {
            "unschedule" => drop(router.scheduled.remove(&name)),
            command => drop(router.scheduled.insert(name, format!("scheduled for {command}"))),
        }
    }
    Ok(Done::nothing())
}

fn downgrade(router: &mut Router) -> Answered {
    let previous: Option<Release> = router.release.previous();
    match previous {
        Some(previous) => {
            router.installs = Some(previous);
            router.go_down(Down::Reboot);
            Ok(Done::nothing())
        }
        None => Err(Refusal::failure("no older packages to install")),
    }
}
