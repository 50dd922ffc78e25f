//! Services: whether they are enabled by what runs, and stopped by a person.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::choices::{ASSIGNMENTS, effective};
use crate::config::Values;
use crate::device::Firewall;
use crate::facts::{Facts, Operation};
use crate::{grid, present};

/// Services that always run, beside those of the modules.
const BASE: [&str; 6] = ["configd", "login", "ntpd", "openssh", "pf", "webgui"];
/// Services that cannot be stopped.
const LOCKED: [&str; 3] = ["configd", "login", "pf"];
/// Names of fields that switch a module on.
const SWITCHES: [&str; 4] = ["general.enabled", "enabled", "enable", "settings.enabled"];

impl Firewall {
    /// `running`, `stopped`, `disabled`, or `unknown` for a service that does not exist.
    pub(crate) fn service_status(&self, module: &str) -> &'static str {
        if !BASE.contains(&module) && !self.modules().any(|known| known == module) {
            return "unknown";
        }
        match (self.is_enabled(module), self.live.stopped.contains(module)) {
            (false, _) => "disabled",
            (true, true) => "stopped",
            (true, false) => "running",
        }
    }

    /// Modules that have a service controller, of the core and of the plugins that are installed.
    fn modules(&self) -> impl Iterator<Item = &'static str> {
        let controllers = Facts::get().controllers.iter().filter(|(_, controller)| {
            controller.plugin.as_ref().is_none_or(|plugin| self.plugins.contains(plugin))
        });
        controllers.filter_map(|(path, _)| path.strip_suffix("/service")).filter(|module| *module != "core")
    }

    /// Whether the settings that run switch the module on. A module without a switch is on.
    fn is_enabled(&self, module: &str) -> bool {
        let controllers =
            Facts::get().controllers.iter().filter(|(path, _)| path.split('/').next() == Some(module));
        let nodes = controllers
            .flat_map(|(_, controller)| controller.commands.values())
            .filter_map(|command| command.node.as_deref());
        let mut switches = nodes.filter(|node| node.ends_with(':')).flat_map(|node| {
            let found = SWITCHES.iter().filter(move |name| Facts::get().field(node, name).is_some());
            found.map(move |name| (node, *name))
        });
        let empty = Values::new();
        let is_on = |(node, name): (&str, &str)| {
            let values = self.running.find(node, "").map_or(&empty, |values| values);
            effective(node, name, values) == "1"
        };
        match module {
            "ipsec" => self.running.value("IPsec/Swanctl:", "", "enabled") == "1",
            "captiveportal" => self.running.rows("CaptivePortal/CaptivePortal:zones.zone").next().is_some(),
            "openvpn" => self.running.rows("OpenVPN/OpenVPN:Instances.Instance").next().is_some(),
            "dhcrelay" => self.running.rows("DHCRelay/DHCRelay:relays").next().is_some(),
            _ => {
                let mut has_switch = false;
                let is_enabled = switches.any(|switch| {
                    has_switch = true;
                    is_on(switch)
                });
                is_enabled || !has_switch
            }
        }
    }

    /// Starts, stops or restarts. False when there is no such service.
    fn steer(&mut self, module: &str, command: &str) -> bool {
        let is_known = BASE.contains(&module) || self.modules().any(|known| known == module);
        if is_known && command.starts_with("stop") {
            self.live.stopped.insert(module.to_owned());
        } else if is_known {
            self.live.stopped.remove(module);
        }
        if is_known && command.starts_with("restart") {
            *self.live.restarts.entry(module.to_owned()).or_default() += 1;
        }
        is_known
    }
}

/// The service controllers of all modules, and the list of services.
pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    if (call.controller, call.command) == ("monit/settings", "getgeneral") {
        let empty = Values::new();
        let node = "Monit/Monit:";
        let values = firewall.stored.find(node, "").map_or(&empty, |values| values);
        let form = present::form(node, values, &firewall.stored, firewall.release);
        return Some(Ok(Answer::json(&json!({ "monit": { "general": form["general"] } }))));
    }
    if call.controller == "core/service" {
        return Some(Ok(core(firewall, call)));
    }
    let module = call.controller.strip_suffix("/service")?;
    Some(Ok(match call.command {
        "status" => Answer::json(&json!({
            "status": firewall.service_status(module),
            "widget": { "caption_stop": "stop service", "caption_start": "start service",
            "caption_restart": "restart service" }
        })),
        "start" | "stop" | "restart" => {
            if firewall.service_status(module) != "disabled" {
                firewall.steer(module, call.command);
            }
            Answer::text("OK")
        }
        "startservice" | "stopservice" | "restartservice" => {
            firewall.steer(module, call.command);
            Answer::result("ok")
        }
        "reconfigure" if call.facts.op == Operation::Apply => {
            firewall.apply(&format!("{}/{}", call.controller, call.command));
            match module {
                "wireguard" | "openvpn" => Answer::result("ok"),
                "ids" => Answer::status("OK"),
                "monit" => Answer::json(
                    &json!({ "status": "ok", "template": "OK", "result": "Control file syntax OK" }),
                ),
                _ => Answer::status("ok"),
            }
        }
        _ => return None,
    }))
}

/// Wakes a host of the list, one that the body describes, or all.
pub(crate) fn wake(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let hosts = "Wol/Wol:wolentry";
    let answer = match call.command {
        "set" => {
            let wake = call.body.get("wake");
            let interface = wake.and_then(|wake| wake.get("interface")).and_then(Value::as_str);
            let known = firewall.stored.find(hosts, &call.text("uuid"));
            let interface = known.map(|own| effective(hosts, "interface", own)).or(interface);
            let is_known = interface.is_some_and(|key| firewall.running.find(ASSIGNMENTS, key).is_some());
            Answer::status(if is_known { "OK" } else { "error" })
        }
        "wakeall" => {
            let rows =
                firewall.stored.rows(hosts).map(|(_, own)| json!({ "mac": own.get("mac"), "status": "OK" }));
            Answer::json(&json!({ "results": rows.collect::<Vec<_>>() }))
        }
        _ => return None,
    };
    firewall.live.acted(call);
    Some(Ok(answer))
}

fn core(firewall: &mut Firewall, call: &Call) -> Answer {
    if call.command == "search" {
        let mut names: Vec<&str> = BASE.into_iter().chain(firewall.modules()).collect();
        names.sort_unstable();
        names.dedup();
        let rows = names.into_iter().filter(|name| firewall.service_status(name) != "disabled");
        let rows: Vec<Value> = rows
            .map(|name| {
                json!({
                    "id": name, "name": name, "description": format!("{name} service"),
                    "locked": i32::from(LOCKED.contains(&name)),
                    "running": i32::from(firewall.service_status(name) == "running")
                })
            })
            .collect();
        return grid::live(call, rows);
    }
    let name = call.param(0).to_owned();
    let is_allowed = !(call.command == "stop" && LOCKED.contains(&name.as_str()));
    Answer::result(if is_allowed && firewall.steer(&name, call.command) { "ok" } else { "failed" })
}
