//! From a request to a controller of the API: routes, accounts, content types, verbs.

use heddle_lab::{Context, Request};
use serde_json::{Map, Value, json};

use crate::accounts::{self, Account};
use crate::call::{Answer, Call, nest};
use crate::device::Firewall;
use crate::facts::{Command, Facts, Operation};
use crate::{
    captive, crud, dhcp, diagnostics, dns, filter, firmware, ids, interfaces, routing, services, system,
    transfer, trust, upkeep, vpn,
};

/// What a browser gets that has no session.
const LOGIN_PAGE: &str = "<!doctype html><html><head><title>Login | OPNsense</title></head><body>\
    <form method=\"post\"><input name=\"usernamefld\"><input name=\"passwordfld\" type=\"password\"></form></body></html>";

/// What `lldpcli show neighbors` prints of a switch at the inner port.
const NEIGHBOURS: &str = "-------------------------------------------------------------------------------
LLDP neighbors:
-------------------------------------------------------------------------------
Interface:    igb1, via: LLDP, RID: 1, Time: 0 day, 02:10:11
  Chassis:
    ChassisID:    mac 02:10:aa:00:00:01
    SysName:      switch1.example.net
    SysDescr:     Simulated switch: 24 ports
    MgmtIP:       192.168.1.2
    Capability:   Bridge, on
  Port:
    PortID:       ifname gi1/0/24
    PortDescr:    uplink
    TTL:          120
-------------------------------------------------------------------------------
";

/// Answers one request on the web port.
pub(crate) fn answer(firewall: &mut Firewall, request: &Request, context: &mut Context) -> Answer {
    let segments = request.segments();
    let ["api", module, controller, command, params @ ..] = segments.as_slice() else {
        return if segments.first() == Some(&"api") { Answer::not_found() } else { login_page() };
    };
    if context.fault("login_page", request).is_some() {
        return login_page();
    }
    let path = format!("{module}/{controller}");
    let command = command.replace('_', "").to_lowercase();
    let Some((facts, params)) = route(firewall, &path, &command, params) else { return Answer::not_found() };
    if context.fault("api_disabled", request).is_some() {
        return denied(403, "Forbidden");
    }
    let Some(account) = accounts::of_request(firewall, request) else {
        return denied(401, "Authentication Failed");
    };
    if !account.may_call(&format!("api/{}", segments[1..].join("/"))) {
        return denied(403, "Forbidden");
    }
    let is_post = request.method == "POST";
    let body = match body(request) {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let call = Call {
        controller: &path,
        command: &command,
        facts,
        params,
        query: form(request.query_pairs()),
        body: if is_post { body } else { Map::new() },
        is_post,
        user: account.name.clone(),
        is_read_only: account.is_read_only,
    };
    firewall.met.lock_busy = is_write(facts.op) && context.fault("config_lock_busy", request).is_some();
    firewall.met.failing_reload =
        facts.op == Operation::Apply && context.fault("reload_fails", request).is_some();
    firewall.met.failing_job =
        path == "core/firmware" && is_post && context.fault("firmware_job_fails", request).is_some();
    serve(firewall, &call, &account)
}

fn serve(firewall: &mut Firewall, call: &Call, account: &Account) -> Answer {
    // The last check for updates is the one answer that a GET gets from a route that is documented for POST.
    let is_last_check = call.controller == "core/firmware" && call.command == "status";
    if call.facts.post && !call.is_post && !is_last_check {
        return wrong_verb(call);
    }
    if call.facts.full && !account.is_full {
        return Answer::refused(
            firewall.release,
            "Permission denied",
            "this needs the full administrator privilege",
        );
    }
    let own = special(firewall, call).or_else(|| crud::answer(firewall, call));
    own.unwrap_or_else(|| {
        firewall.live.acted(call);
        Ok(fallback(call))
    })
    .unwrap_or_else(|refusal| refusal)
}

/// Controllers that do more than store.
fn special(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let module = call.controller.split('/').next().unwrap_or_default();
    let own = match module {
        "firewall" => filter::answer(firewall, call),
        "interfaces" => interfaces::answer(firewall, call),
        "kea" | "dnsmasq" | "dhcrelay" | "hostdiscovery" | "dhcpv4" | "dhcpv6" => {
            dhcp::answer(firewall, call)
        }
        "unbound" => dns::answer(firewall, call),
        "wireguard" | "ipsec" | "openvpn" => vpn::answer(firewall, call),
        "routes" | "routing" => routing::answer(firewall, call),
        "trust" => trust::answer(firewall, call),
        "auth" => accounts::answer(firewall, call),
        "ids" => ids::answer(firewall, call),
        "captiveportal" => captive::answer(firewall, call),
        "diagnostics" => diagnostics::answer(firewall, call),
        "core" if call.controller == "core/firmware" => firmware::answer(firewall, call),
        "core" => system::answer(firewall, call),
        "wol" => services::wake(firewall, call),
        "lldpd" if call.command == "neighbor" => Some(Ok(Answer::text(NEIGHBOURS))),
        _ => None,
    };
    own.or_else(|| upkeep::answer(firewall, call))
        .or_else(|| services::answer(firewall, call))
        .or_else(|| transfer::answer(firewall, call))
}

/// What a route answers that has neither items nor code: the shape that its kind has with nothing to tell.
fn fallback(call: &Call) -> Answer {
    match call.facts.op {
        Operation::List => crate::grid::live(call, Vec::new()),
        Operation::Read | Operation::Download => Answer::empty(),
        Operation::Delete => Answer::result("deleted"),
        Operation::Create | Operation::Update | Operation::SettingsWrite => Answer::result("saved"),
        _ => Answer::status("ok"),
    }
}

fn wrong_verb(call: &Call) -> Answer {
    match (call.facts.op, call.command) {
        (Operation::Apply, _) => Answer::status("failed"),
        (_, "start" | "stop" | "restart" | "querystates" | "querypftop") => {
            Answer::json(&json!({ "response": [] }))
        }
        (_, "searchinstalledrules" | "queryalerts") => Answer::empty(),
        (Operation::Action, _) => Answer::status("failure"),
        _ => Answer::failed(),
    }
}

/// The route's facts and its path values, or `None` when it does not exist in this release with these plugins.
fn route(
    firewall: &Firewall,
    path: &str,
    command: &str,
    params: &[&str],
) -> Option<(&'static Command, Vec<String>)> {
    let controller = Facts::get().controllers.get(path)?;
    if controller.plugin.as_ref().is_some_and(|plugin| !firewall.plugins.contains(plugin)) {
        return None;
    }
    let facts = controller.commands.get(command).filter(|command| command.exists_in(firewall.release));
    let known = facts.or_else(|| log_route(path))?;
    (params.len() >= known.need).then(|| (known, params.iter().map(|text| (*text).to_owned()).collect()))
}

/// The one controller whose command is the name of a log.
fn log_route(path: &str) -> Option<&'static Command> {
    let controller = Facts::get().controllers.get("diagnostics/firewall")?;
    (path == "diagnostics/log").then(|| controller.commands.get("log")).flatten()
}

fn is_write(operation: Operation) -> bool {
    !matches!(operation, Operation::List | Operation::Read | Operation::Apply | Operation::Download)
}

fn denied(status: u16, message: &str) -> Answer {
    let body = json!({ "status": status, "message": message });
    Answer::of(status, "application/json", body.to_string().into_bytes())
}

fn login_page() -> Answer {
    Answer::of(200, "text/html; charset=UTF-8", LOGIN_PAGE.as_bytes().to_vec())
}

/// The fields of the body. A JSON body must not be empty; broken JSON and other types are no fields at all.
fn body(request: &Request) -> Result<Map<String, Value>, Answer> {
    let content_type = request.header("content-type").unwrap_or_default().to_lowercase().replace(' ', "");
    if content_type == "application/json" || content_type == "application/json;charset=utf-8" {
        if request.body.is_empty() {
            let body = json!({ "status": 400, "message": "Invalid JSON syntax" });
            return Err(Answer::of(400, "application/json", body.to_string().into_bytes()));
        }
        return Ok(match request.json() {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        });
    }
    if content_type.starts_with("application/x-www-form-urlencoded") {
        return Ok(form(request.form()));
    }
    Ok(Map::new())
}

/// Pairs of a form, where `alias[name]` is a field of `alias`.
fn form(pairs: Vec<(String, String)>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in pairs {
        let path = key.replace("][", ".").replace('[', ".").replace(']', "");
        nest(&mut out, &path, json!(value));
    }
    out
}
