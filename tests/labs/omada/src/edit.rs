//! Edits behind the manager's back: what a person does in the web interface, or to the devices themselves.

use heddle_lab::{Context, Request};
use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::envelope;
use crate::router::Match;
use crate::store::GLOBAL;
use crate::timeline::{CLIENTS, DEVICES, Event, PENDING};

/// What an edit looks like, for the person who wrote another one.
const FORM: &str = r#"an edit is {"method", "path", "body"} as either surface takes it,
{"path", "row": {}} for a row of the list at the path, {"site", "device", "state": "down" or "up"},
{"site", "client", "active"}, {"site", "pending": {}}, {"missing": []} or {"restart": true};
"site" and "device" are an id and a MAC address, or a name"#;

impl Omada {
    /// A call of either surface is carried out without credentials and limits; `{omadacId}` may stand in its
    /// path.
    pub(crate) fn edited(&mut self, edit: &Value, _context: &mut Context) -> Result<Value, String> {
        let text = |name: &str| edit[name].as_str().map(str::to_owned);
        let site = text("site").unwrap_or_default();
        let named = self.store.find(GLOBAL, "system.site", "name", &site);
        let site = named.and_then(|site| site["siteId"].as_str()).unwrap_or(&site).to_owned();
        if let (Some(method), Some(path)) = (text("method"), text("path")) {
            return self.edited_by_call(&method, &path, &edit["body"]);
        }
        if let (Some(path), true) = (text("path"), edit["row"].is_object()) {
            return self.put_row(&path, &edit["row"]);
        }
        if let (Some(device), Some(state)) = (text("device"), text("state")) {
            let found = ["mac", "name"].iter().find_map(|by| self.store.find(&site, DEVICES, by, &device));
            let mac = found.and_then(|found| found["mac"].as_str()).map(str::to_owned);
            let mac = mac.ok_or_else(|| format!("device '{device}' does not exist"))?;
            let event = if state == "down" { Event::Status(0) } else { Event::Booted };
            self.plan(&site, &mac, &[(0, event)]);
            self.settle();
            return Ok(Value::Null);
        }
        if let (Some(mac), Some(active)) = (text("client"), edit["active"].as_bool()) {
            let now = self.now;
            let client = self.store.find_mut(&site, CLIENTS, "mac", &mac);
            let client = client.ok_or_else(|| format!("client '{mac}' does not exist"))?;
            client["active"] = json!(active);
            client[if active { "connectedAt" } else { "lastSeen" }] = json!(now);
            self.log_client(&site, &mac, active);
            return Ok(Value::Null);
        }
        if edit["pending"].is_object() {
            let mut device = edit["pending"].clone();
            device["detailStatus"] = json!(20);
            self.store.rows_mut(&site, PENDING).push(device);
            return Ok(Value::Null);
        }
        if let Some(routes) = edit["missing"].as_array() {
            self.missing = routes.iter().filter_map(|route| Some(route.as_str()?.to_owned())).collect();
            return Ok(Value::Null);
        }
        if edit["restart"] == true {
            self.ask_restart();
            return Ok(Value::Null);
        }
        Err(FORM.to_owned())
    }

    /// Adds a row to what the list at the path shows, as a device or a person at it would.
    fn put_row(&mut self, path: &str, row: &Value) -> Result<Value, String> {
        let call = self.call_of("GET", path, &Value::Null)?;
        let is_read = matches!(call.route.role, Role::Read | Role::Get) || !call.item.is_collection;
        if is_read && !call.item.id.starts_with("device.") {
            let is_bare = call.route.answer.as_ref().is_some_and(|field| field.is_array);
            let rows = if is_bare { json!([row]) } else { json!({"totalRows": 1, "data": [row]}) };
            self.store.set_document(call.scope(), &call.document(), rows);
            return Ok(Value::Null);
        }
        self.store.rows_mut(call.scope(), &call.collection()).push(row.clone());
        Ok(Value::Null)
    }

    fn call_of(&self, method: &str, path: &str, body: &Value) -> Result<Call, String> {
        let path = path.replace("{omadacId}", &self.omadac_id);
        let request = Request::new(method, &path, "");
        let Match::Found(route, parameters) = self.router.find(method, &request.segments()) else {
            return Err(format!("the controller has no route {method} {path}"));
        };
        Ok(Call::new(route, parameters, request.query_pairs().into_iter().collect(), body.clone()))
    }

    fn edited_by_call(&mut self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let call = self.call_of(method, path, body)?;
        let outcome = self.carry_out(&call);
        match outcome {
            Ok(result) => Ok(result),
            Err(_) => Err(envelope(&outcome).to_string()),
        }
    }
}
