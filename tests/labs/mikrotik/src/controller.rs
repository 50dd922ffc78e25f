//! The router on the skeleton: requests, restarts, and what a person does at the console.

use heddle_lab::{Answer, Context, Controller, Request};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::Who;
use crate::call::{Call, Output};
use crate::device::Router;
use crate::facts::Facts;
use crate::refusal::refused;
use crate::store::Origin;
use crate::{console, live, reach, rest, script};

/// What a person does at the console, or what happens in the networks around the box.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Edit {
    /// A command of a menu, with its parameters: `add`, `set`, `remove`, `move` and others.
    Command {
        menu: String,
        command: String,
        #[serde(default)]
        args: Map<String, Value>,
    },
    /// A script, as if typed.
    Script { source: String },
    /// Takes back the last action of any user.
    Undo,
    /// A client gets an address.
    Lease { address: String, mac: String, hostname: String, server: String },
    /// A client gives its address back.
    Release { address: String },
    /// The router makes a row of what it hears, or of hardware that it finds.
    Row { menu: String, values: Map<String, Value> },
    /// A package is put onto the box, or taken away.
    Package { name: String, installed: bool },
}

impl Controller for Router {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        rest::answer(self, request, context)
    }

    fn state(&self, _context: &Context) -> Value {
        self.to_json()
    }

    fn started(&mut self, context: &mut Context) {
        self.tick(context);
    }

    fn advance(&mut self, context: &mut Context) {
        self.tick(context);
    }

    fn is_reachable(&self) -> bool {
        self.is_on() && reach::is_reachable(self)
    }

    fn restart(&mut self, context: &mut Context) {
        self.tick(context);
        self.come_up(false);
    }

    fn edit(&mut self, edit: &Value, _context: &mut Context) -> Result<Value, String> {
        let edit = Edit::deserialize(edit).map_err(|error| error.to_string())?;
        self.carry_out(edit)
    }

    fn refusal(&self, status: u16, _request: &Request) -> Answer {
        refused(status, "request refused", None)
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &["rest_off", "session_closed", "applied_with_400", "command_takes", "update_fails", "sign_fails"]
    }

    /// Single menus of the configuration.
    fn control(&mut self, request: &Request, _context: &mut Context) -> Option<Answer> {
        match request.segments().as_slice() {
            ["configuration", menu @ ..] => Some(Answer::json(200, &json!(self.configured(&menu.join("/"))))),
            _ => None,
        }
    }
}

impl Router {
    fn carry_out(&mut self, edit: Edit) -> Result<Value, String> {
        match edit {
            Edit::Command { menu, command, args } => return self.command(&menu, &command, &args),
            Edit::Script { source } => {
                let (output, _, why) = script::at_once(self, &source, Who::everything("admin"));
                return why.map_or_else(|| Ok(json!({ "output": output })), |why| Err(why.text()));
            }
            Edit::Undo => {
                self.undo();
            }
            Edit::Lease { address, mac, hostname, server } => {
                let server = self.store.having("ip/dhcp-server", "name", &server).map(|row| row.id);
                live::lease(self, &address, &mac.to_uppercase(), &hostname, server);
            }
            Edit::Release { address } => {
                self.store.retain(crate::dhcp::LEASES, |row| {
                    row.origin != Origin::Dynamic || row.text("address") != address
                });
            }
            Edit::Row { menu, mut values } => {
                let (path, _) =
                    Facts::get().menu(&menu).ok_or_else(|| format!("menu '{menu}' is unknown"))?;
                let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let is_dynamic = values.remove("dynamic").is_some_and(|value| value == "true");
                let origin = if is_dynamic { Origin::Dynamic } else { Origin::Own };
                let values = values.into_iter().map(|(name, value)| (name, text(value).into())).collect();
                self.store.add(path, origin, values);
            }
            Edit::Package { name, installed: true } => drop(self.packages.insert(name)),
            Edit::Package { name, installed: false } => drop(self.packages.remove(&name)),
        }
        Ok(json!({}))
    }

    fn command(&mut self, menu: &str, command: &str, args: &Map<String, Value>) -> Result<Value, String> {
        let found = Facts::get().menu(menu).filter(|(path, _)| path.is_empty() || self.has_menu(path));
        let Some((path, facts)) = found else {
            return Err(format!("menu '{menu}' is unknown, names are as ip/firewall/filter"));
        };
        let who = Who::everything("admin");
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let args = args.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let call = Call { path, menu: facts, command, args, query: Vec::new(), proplist: None, who: &who };
        let done = console::run(self, &call).map_err(|refusal| refusal.text())?;
        Ok(match done.output {
            Output::Value(id) => json!({ "id": id }),
            Output::Rows(rows) => json!({ "rows": rows }),
            Output::Object(row) => json!({ "object": row }),
            Output::Nothing => json!({}),
        })
    }
}
