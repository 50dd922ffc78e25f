//! The firewall on the skeleton: requests, restarts, and what a person does at the web interface.

use heddle_lab::{Answer, Context, Controller, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api;
use crate::call::scalar;
use crate::config::Values;
use crate::device::Firewall;
use crate::facts::Facts;
use crate::live::{Lease, Live};
use crate::routing::Measured;

/// What a person does at the web interface, or what happens in the networks around the box.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Edit {
    /// Stores fields of an item, which is made when the id is unknown, or of settings, whose id is empty.
    Set {
        node: String,
        #[serde(default)]
        id: String,
        fields: serde_json::Map<String, Value>,
        /// The person also presses the button that applies.
        #[serde(default)]
        apply: bool,
    },
    /// Removes an item.
    Remove {
        node: String,
        id: String,
        #[serde(default)]
        apply: bool,
    },
    /// Applies everything, as a restart would.
    Apply,
    /// Installs or removes a plugin.
    Plugin { name: String, installed: bool },
    /// What the monitor measures of a gateway.
    Gateway { name: String, measured: Measured },
    /// A client gets an address.
    Lease { address: String, mac: String, hostname: String, interface: String },
    /// A client gives its address back.
    Release { address: String },
    /// A second firewall joins, with these services.
    Peer { services: Vec<String> },
}

impl Controller for Firewall {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        api::answer(self, request, context).into_lab()
    }

    fn state(&self, _context: &Context) -> Value {
        self.to_json()
    }

    fn started(&mut self, context: &mut Context) {
        self.tick(context);
        self.live = Live::seeded();
        self.keep_revision("root", "initial configuration");
    }

    fn advance(&mut self, context: &mut Context) {
        self.tick(context);
    }

    fn is_reachable(&self) -> bool {
        self.is_on()
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
        Answer::json(status, &json!({ "status": status, "message": "request refused" }))
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &[
            "config_lock_busy",
            "reload_fails",
            "login_page",
            "api_disabled",
            "rollback_dead",
            "firmware_job_fails",
        ]
    }

    /// What is stored and not active, and single lists of what is stored and of what runs.
    fn control(&mut self, request: &Request, _context: &mut Context) -> Option<Answer> {
        let rows = match request.segments().as_slice() {
            ["pending"] => json!(self.pending()),
            ["stored", node @ ..] => self.stored_rows(&node.join("/")),
            ["running", node @ ..] => self.running_rows(&node.join("/")),
            _ => return None,
        };
        Some(Answer::json(200, &rows))
    }
}

impl Firewall {
    fn carry_out(&mut self, edit: Edit) -> Result<Value, String> {
        match edit {
            Edit::Set { node, id, fields, apply } => return self.edit_item(&node, id, &fields, apply),
            Edit::Remove { node, id, apply } => {
                let mut config = self.stored.clone();
                if !config.remove(&node, &id) {
                    return Err(format!("'{node}' has no item '{id}'"));
                }
                self.store("root", "edited by hand", config);
                self.apply_by_hand(&node, apply);
            }
            Edit::Apply => self.running = self.stored.clone(),
            Edit::Plugin { name, installed: true } => drop(self.plugins.insert(name)),
            Edit::Plugin { name, installed: false } => drop(self.plugins.remove(&name)),
            Edit::Gateway { name, measured } => drop(self.live.gateways.insert(name, measured)),
            Edit::Lease { address, mac, hostname, interface } => {
                self.live.leases.push(Lease { address, mac, hostname, interface, lasts_secs: 7200 });
            }
            Edit::Peer { services } => {
                self.live.peer = services.into_iter().map(|name| (name, true)).collect();
            }
            Edit::Release { address } => self.live.leases.retain(|lease| lease.address != address),
        }
        Ok(json!({}))
    }

    fn edit_item(
        &mut self,
        node: &str,
        id: String,
        fields: &serde_json::Map<String, Value>,
        apply: bool,
    ) -> Result<Value, String> {
        let is_known =
            Facts::get().nodes().any(|known| known == node) || self.stored.rows(node).next().is_some();
        if !is_known {
            return Err(format!("list '{node}' is unknown, names are as Firewall/Alias:aliases.alias"));
        }
        let id = if id.is_empty() && !node.ends_with(':') { self.new_uuid() } else { id };
        let mut config = self.stored.clone();
        let mut values = config.find(node, &id).map(|values| Values::clone(values)).unwrap_or_default();
        values.extend(fields.iter().filter_map(|(name, value)| Some((name.clone(), scalar(value)?))));
        config.put(node, &id, values);
        self.store("root", "edited by hand", config);
        self.apply_by_hand(node, apply);
        Ok(json!({ "id": id }))
    }

    fn apply_by_hand(&mut self, node: &str, apply: bool) {
        if apply {
            let stored = self.stored.clone();
            self.running.take_over(node, &stored);
        }
    }
}
