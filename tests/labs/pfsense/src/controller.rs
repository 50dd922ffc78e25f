//! The firewall on the skeleton: requests, restarts, and what a person does at the web interface.

use heddle_lab::{Answer, Context, Controller, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api;
use crate::device::Pfsense;
use crate::facts::Facts;
use crate::live::{Lease, Measured, Session};
use crate::reply::Refusal;
use crate::store::{NAME, Object, children_key, place_of};

/// What a person does at the web interface, or what happens in the networks around the firewall.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Edit {
    /// Stores fields of an object, which is made when no id is given, or of settings.
    Set {
        model: String,
        id: Option<Value>,
        fields: Object,
        /// Where a new object is put; behind all others when absent.
        at: Option<usize>,
        /// The person also presses the button that applies.
        #[serde(default)]
        apply: bool,
    },
    /// Removes an object.
    Remove {
        model: String,
        id: Value,
        #[serde(default)]
        apply: bool,
    },
    /// Applies everything, as a restart would.
    Apply,
    /// Installs or removes a package.
    Package { name: String, installed: bool },
    /// What the monitor measures of a gateway.
    Gateway { name: String, measured: Measured },
    /// A client gets an address.
    Lease { lease: Lease },
    /// A client gives its address back.
    Release { ip: String },
    /// A client connects to an `OpenVPN` server.
    Session { session: Session },
}

impl Controller for Pfsense {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        api::answer(self, request, context)
    }

    fn state(&self, _context: &Context) -> Value {
        self.to_json()
    }

    fn started(&mut self, context: &mut Context) {
        self.tick(context);
        self.keep_revision("(system): initial configuration");
    }

    fn advance(&mut self, context: &mut Context) {
        self.tick(context);
    }

    fn is_reachable(&self) -> bool {
        self.is_on()
    }

    /// Tokens end: their key is made anew.
    fn end_sessions(&mut self, context: &mut Context) {
        self.live.server_key = context.token();
    }

    fn restart(&mut self, context: &mut Context) {
        self.tick(context);
        self.come_up();
    }

    fn edit(&mut self, edit: &Value, _context: &mut Context) -> Result<Value, String> {
        let edit = Edit::deserialize(edit).map_err(|error| error.to_string())?;
        self.carry_out(edit)
    }

    fn refusal(&self, status: u16, _request: &Request) -> Answer {
        Refusal::new(status, "LAB_ORDERED_STATUS", "This status was ordered.").answer()
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &[
            "config_lock_busy",
            "login_page",
            "lost_update",
            "php_error",
            "queue_full",
            "reload_fails",
            "unavailable",
        ]
    }

    fn control(&mut self, request: &Request, _context: &mut Context) -> Option<Answer> {
        if request.method != "GET" {
            return None;
        }
        let rows = match request.segments().as_slice() {
            ["pending"] => json!(self.pending()),
            ["stored", model] => self.stored_rows(model),
            ["running", model] => self.running_rows(model),
            _ => return None,
        };
        Some(Answer::json(200, &rows))
    }
}

impl Pfsense {
    fn carry_out(&mut self, edit: Edit) -> Result<Value, String> {
        match edit {
            Edit::Set { model, id, fields, at, apply } => {
                return self.edit_object(&model, id, fields, at, apply);
            }
            Edit::Remove { model, id, apply } => {
                let known = Facts::get().model(&model).ok_or_else(|| unknown(&model))?;
                let list = self.stored.list_mut(&model);
                let at =
                    place_of(known, &id, list).ok_or_else(|| format!("'{model}' has no object '{id}'"))?;
                list.remove(at);
                self.edited(&model, apply);
            }
            Edit::Apply => {
                self.running = self.stored.clone();
                self.dirty.clear();
                self.pending_interfaces.clear();
            }
            Edit::Package { name, installed: true } => drop(self.packages.insert(name)),
            Edit::Package { name, installed: false } => drop(self.packages.remove(&name)),
            Edit::Gateway { name, measured } => drop(self.live.gateways.insert(name, measured)),
            Edit::Lease { lease } => self.live.leases.push(lease),
            Edit::Release { ip } => self.live.leases.retain(|lease| lease.ip != ip),
            Edit::Session { session } => self.live.sessions.push(session),
        }
        Ok(json!({}))
    }

    fn edit_object(
        &mut self,
        model: &str,
        id: Option<Value>,
        fields: Object,
        at: Option<usize>,
        apply: bool,
    ) -> Result<Value, String> {
        let known = Facts::get().model(model).filter(|known| known.stored).ok_or_else(|| unknown(model))?;
        let is_own = |name: &String| {
            let is_child = known.fields.iter().filter_map(|field| field.nested.as_ref());
            known.field(name).is_some() || name == NAME || { is_child }
                .any(|child| *name == children_key(child))
        };
        if let Some(name) = fields.keys().find(|name| !is_own(name)) {
            return Err(format!("'{model}' has no field '{name}'"));
        }
        let list = self.stored.list_mut(model);
        let place = match id {
            Some(id) => {
                let at =
                    place_of(known, &id, list).ok_or_else(|| format!("'{model}' has no object '{id}'"))?;
                list[at].extend(fields);
                at
            }
            None if !known.many && !list.is_empty() => {
                list[0].extend(fields);
                0
            }
            None => {
                let at = at.unwrap_or(list.len()).min(list.len());
                list.insert(at, fields);
                at
            }
        };
        self.edited(model, apply);
        Ok(json!({ "id": place }))
    }

    fn edited(&mut self, model: &str, apply: bool) {
        self.keep_revision("admin@192.168.1.50 (Local Database): edited by hand");
        let Some(known) = Facts::get().model(model) else { return };
        if apply || known.apply.is_none() {
            self.activate(known);
        } else {
            self.mark(known);
        }
    }
}

fn unknown(model: &str) -> String {
    format!("model '{model}' is unknown, names are as FirewallAlias")
}
