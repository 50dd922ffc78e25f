//! Sites, backup and restore, DHCP reservations, the restart of the controller, and batches of calls.

use heddle_lab::{Context, Request};
use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::{BACKUP_RUNS, Failure, INVALID, Outcome, SKIPPED, envelope};
use crate::page::show;
use crate::timeline::{BACKUPS, CONTROLLER, Event};

/// Inner calls of one batch.
const BATCH_MAX: usize = 20;
const NO_BACKUP: i64 = -30305;

impl Omada {
    pub(crate) fn system_call(&mut self, call: &Call) -> Option<Outcome> {
        match (call.item.id.as_str(), call.route.role) {
            ("system.site", Role::Create | Role::Delete) => Some(self.site_call(call)),
            ("system.backup" | "system.backup-sites", _) => self.backup_call(call),
            ("system.restore" | "system.restore-sites", Role::Do) => Some(self.restore(call)),
            ("system.restore", Role::Read) => Some(Ok(json!({"status": 0}))),
            ("system.webhook", Role::Do) => Some(Ok(self.test_webhook(call))),
            ("system.controller-reboot", Role::Do) => {
                self.ask_restart();
                Some(Ok(json!({"rebootTime": self.timeline.restart_ms() / 1000})))
            }
            // A reservation that is not there is deleted with success.
            ("system.dhcp-reservation", Role::Delete) if call.row_id().is_some() => {
                let mac = call.mac().to_owned();
                self.store
                    .rows_mut(call.scope(), "system.dhcp-reservation")
                    .retain(|row| row["mac"] != mac.as_str());
                Some(Ok(Value::Null))
            }
            ("system.dhcp-reservation", Role::Create) => {
                let client = self.store.find(call.scope(), "insights.client", "mac", call.text("mac"));
                let name = client.map(|client| client["name"].clone());
                let network = self.store.find(call.scope(), "switch.network", "id", call.text("netId"));
                let Some(network) = network.map(|network| network["name"].clone()) else {
                    return Some(Err(Failure::new(-33503)));
                };
                let outcome = self.generic(call);
                if outcome.is_ok() {
                    let row = self.store.rows_mut(call.scope(), "system.dhcp-reservation").last_mut()?;
                    row["netName"] = network;
                    row["clientName"] = name.unwrap_or(json!(""));
                }
                Some(outcome)
            }
            _ => None,
        }
    }

    fn site_call(&mut self, call: &Call) -> Outcome {
        let outcome = self.generic(call)?;
        if call.route.role == Role::Create {
            let site = self.store.rows_mut(CONTROLLER, "system.site").last_mut();
            let id = site.and_then(|site| {
                // The account of the devices is never read back.
                site.as_object_mut()?.remove("deviceAccountSetting");
                Some(site["siteId"].as_str()?.to_owned())
            });
            if let Some(id) = id {
                crate::seed::furnish(self, &id);
            }
        } else {
            let id = call.parameter("siteId").to_owned();
            self.store.remove_scope(&id);
        }
        Ok(outcome)
    }

    fn backup_call(&mut self, call: &Call) -> Option<Outcome> {
        let scope = call.scope().to_owned();
        match (call.route.role, call.last()) {
            (Role::Do, _) => {
                if self.awaits(BACKUPS, &Event::BackupDone) {
                    return Some(Err(Failure::new(BACKUP_RUNS)));
                }
                let sites: Vec<String> = match call.body["siteIds"].as_array() {
                    Some(sites) => sites.iter().filter_map(|site| Some(site.as_str()?.to_owned())).collect(),
                    None => vec![scope],
                };
                for site in sites {
                    self.plan(&site, BACKUPS, &[(3, Event::BackupDone)]);
                }
                Some(Ok(Value::Null))
            }
            (_, "files") => {
                let files = self.store.rows(&scope, BACKUPS).clone();
                Some(Ok(show(call, &json!({"fileList": files}))))
            }
            (_, "result") => Some(Ok(json!({"status": i32::from(self.awaits(BACKUPS, &Event::BackupDone))}))),
            _ => None,
        }
    }

    /// A restore signs everybody out and restarts the controller.
    fn restore(&mut self, call: &Call) -> Outcome {
        let file = call.text("fileName");
        let Some(snapshot) = self.snapshots.get(file) else {
            return Err(Failure::with(NO_BACKUP, "The backup file does not exist."));
        };
        let files = self.store.rows(CONTROLLER, BACKUPS).clone();
        self.store.bring_back(snapshot);
        *self.store.rows_mut(CONTROLLER, BACKUPS) = files;
        self.ask_restart();
        Ok(Value::Null)
    }

    /// Several writes in one call. The outer code says nothing about the inner ones.
    pub(crate) fn batch(&mut self, call: &Call, is_of_user: bool, context: &mut Context) -> Value {
        let actions = call.body["actions"].as_array().cloned().unwrap_or_default();
        let interrupts = call.body["interrupt"] != false;
        let mut answers: Vec<Value> = Vec::new();
        let mut has_failed = actions.len() > BATCH_MAX;
        for action in &actions {
            let outcome = if has_failed && interrupts {
                Err(Failure::new(SKIPPED))
            } else {
                self.batched(action, is_of_user, context)
            };
            has_failed |= outcome.is_err();
            answers.push(envelope(&outcome));
        }
        json!({"response": answers})
    }

    fn batched(&mut self, action: &Value, is_of_user: bool, context: &mut Context) -> Outcome {
        let text = |name: &str| action[name].as_str().unwrap_or_default();
        let (method, query) = (text("method"), text("query"));
        // The description calls the body a text, but only an object is taken.
        let is_own = text("path").split('/').nth(3) == Some(self.omadac_id.as_str());
        if !is_own || method == "GET" || action["body"].is_string() {
            return Err(Failure::new(INVALID));
        }
        let body = if action["body"].is_null() { String::new() } else { action["body"].to_string() };
        let target =
            if query.is_empty() { text("path").to_owned() } else { format!("{}?{query}", text("path")) };
        self.dispatch(&Request::new(method, &target, body), is_of_user, context)
    }
}
