//! From a command to the code that carries it out: rights, commands of single menus, and those that all lists have.

use crate::call::{Answered, Call, Done};
use crate::device::Router;
use crate::facts::Kind;
use crate::refusal::Refusal;
use crate::{
    access, bridge, certificates, crud, dhcp, files, monitors, packages, print, script, system, tools, vpn,
    wifi,
};

/// Carries out one command. What it changed is taken back when it is refused.
pub(crate) fn run(router: &mut Router, call: &Call) -> Answered {
    access::check(call)?;
    let before = router.store.clone();
    let answered = carry_out(router, call);
    if call.path == "ip/dhcp-client" {
        dhcp::follow(router);
    }
    match &answered {
        Ok(_) if !is_partial(call) => {
            let text = told(call);
            router.remember(before, &text, call.who);
        }
        Err(_) if !is_partial(call) => router.store = before,
        _ => {}
    }
    answered
}

/// Scripts and imports keep what they did before their first error, and each of their commands is an action of its own.
fn is_partial(call: &Call) -> bool {
    call.path.is_empty() || (call.path, call.command) == ("system/script", "run")
}

fn carry_out(router: &mut Router, call: &Call) -> Answered {
    if let Some(answered) = special(router, call) {
        return answered;
    }
    let rows = call.menu.kind_in(router.release) == Kind::List;
    match call.command {
        "print" | "getall" if call.menu.kind_in(router.release) != Kind::None => print::print(router, call),
        "get" if call.menu.kind_in(router.release) == Kind::Object => print::print(router, call),
        "get" if rows => {
            let id = call.id(router)?;
            Ok(Done::rows(vec![print::get(router, call.path, call.menu, call.who, id)?]))
        }
        "listen" if rows => Ok(Done::endless()),
        "listen" if call.menu.kind_in(router.release) == Kind::Object => {
            Err(Refusal::unknown_parameter("follow-only"))
        }
        command if call.menu.can(command) => crud::run(router, call),
        command => match call.menu.command(command, router.release) {
            Some(facts) => {
                if let Some(unknown) = call.args.keys().find(|name| *name != ".id" && !facts.takes(name)) {
                    return Err(Refusal::unknown_parameter(unknown));
                }
                monitors::run(router, call, facts)
            }
            None => Err(Refusal::unclear("no such command")),
        },
    }
}

/// Commands of single menus. Only those that exist in this release are asked for.
fn special(router: &mut Router, call: &Call) -> Option<Answered> {
    let is_known = call.menu.can(call.command)
        || call.menu.command(call.command, router.release).is_some()
        || call.command == "print";
    if !is_known {
        return None;
    }
    let start = call.path.split('/').next().unwrap_or_default();
    match start {
        "" => system::answer(router, call)
            .or_else(|| script::answer(router, call))
            .or_else(|| files::answer(router, call))
            .or_else(|| tools::answer(router, call)),
        "system" => system::answer(router, call)
            .or_else(|| packages::answer(router, call))
            .or_else(|| script::answer(router, call))
            .or_else(|| files::answer(router, call)),
        "file" => files::answer(router, call),
        "certificate" => certificates::answer(router, call),
        "user" | "log" | "radius" | "snmp" => system::answer(router, call),
        "tool" => tools::answer(router, call),
        "interface"
            if call.path.starts_with("interface/wifi") || call.path.starts_with("interface/wireless") =>
        {
            wifi::answer(router, call)
        }
        "caps-man" => wifi::answer(router, call),
        "interface" => bridge::answer(router, call).or_else(|| vpn::answer(router, call)),
        "ppp" => vpn::answer(router, call),
        "ip" | "ipv6" => dhcp::answer(router, call).or_else(|| vpn::answer(router, call)),
        _ => None,
    }
}

/// The action as the history shows it.
fn told(call: &Call) -> String {
    let item = call.path.rsplit('/').next().unwrap_or_default();
    let verb = match call.command {
        "add" => "added",
        "remove" => "removed",
        "move" => "moved",
        _ => "changed",
    };
    format!("{item} {verb}")
}
