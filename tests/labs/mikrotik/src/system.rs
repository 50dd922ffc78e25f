//! The box itself: restarts, its clock, its log and the accounts of users.

use crate::call::{Answered, Call, Done};
use crate::device::{Down, Router};
use crate::refusal::Refusal;
use crate::store::Row;

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("system", "reboot") => Ok(down(router, Down::Reboot)),
        ("system", "shutdown") => Ok(down(router, Down::Halt)),
        ("system", "reset-configuration") => {
            router.note("system,warning", "configuration reset requested");
            Ok(down(router, Down::Reset))
        }
        ("system", "check-disk") => Ok(down(router, Down::Reboot)),
        ("system", "shell" | "telnet" | "ssh" | "serial-terminal") => {
            Err(Refusal::unclear("no such command"))
        }
        ("log", level @ ("info" | "warning" | "error" | "debug")) => {
            call.need("message").map(|message| {
                // No rule takes messages of this level.
                if level != "debug" {
                    router.note(&format!("script,{level}"), message);
                }
                Done::nothing()
            })
        }
        ("system/logging/action", "clear") => {
            router.log.clear();
            Ok(Done::nothing())
        }
        ("", "undo") => taken_back(router.undo(), "nothing to undo"),
        ("", "redo") => taken_back(router.redo(), "nothing to redo"),
        ("", "password") => password(router, call),
        ("user", "expire-password") => call.ids(router).map(|ids| {
            for id in ids {
                router.store.set("user", id, "expired", "true");
            }
            Done::nothing()
        }),
        ("radius", "reset-counters") => call.ids(router).map(|_| Done::nothing()),
        _ => return None,
    })
}

fn taken_back(is_done: bool, why: &str) -> Answered {
    if is_done { Ok(Done::nothing()) } else { Err(Refusal::failure(why)) }
}

fn down(router: &mut Router, down: Down) -> Done {
    router.go_down(down);
    Done::nothing()
}

fn password(router: &mut Router, call: &Call) -> Answered {
    let (old, new) = (call.need("old-password")?, call.need("new-password")?);
    let user = router.store.having("user", "name", &call.who.name).ok_or(Refusal::NoSuchItem)?;
    if user.text("password") != old {
        return Err(Refusal::failure("wrong old password"));
    }
    if call.need("confirm-new-password")? != new {
        return Err(Refusal::failure("passwords do not match"));
    }
    let id = user.id;
    router.store.set("user", id, "password", new);
    Ok(Done::nothing())
}

/// Date and time are set by hand only while no server sets them.
pub(crate) fn set_clock(router: &Router, row: &mut Row) -> Result<(), Refusal> {
    let by_hand = row.values.remove("date").is_some() | row.values.remove("time").is_some();
    if by_hand && router.store.setting("system/ntp/client", "enabled") == "true" {
        return Err(Refusal::failure("time is set by NTP"));
    }
    Ok(())
}
