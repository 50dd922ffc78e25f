//! Edits behind the manager's back: what a person does in the vendor's pages, or what happens in the house.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::console::{Change, Console};
use crate::policies::POLICIES;
use crate::reply::Refusal;
use crate::row::{Row, number, put, shown, text};
use crate::seed::devices::{client, pending};
use crate::store::GLOBAL;
use crate::timeline::Event;
use crate::{devices, policies, rest};

/// What a person does, or what happens.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Edit {
    /// Adds a row to a table, with the controller's own checks.
    Create { site: Option<String>, table: String, body: Map<String, Value> },
    /// Changes the row with this id or name.
    Update { site: Option<String>, table: String, which: String, body: Map<String, Value> },
    /// Removes the row with this id or name, also where other rows refer to it.
    Delete { site: Option<String>, table: String, which: String },
    /// Changes a setting without checks.
    Setting { site: Option<String>, key: String, body: Map<String, Value> },
    /// Puts values into a row without checks, as an older release left them.
    Raw { site: Option<String>, table: String, which: String, body: Map<String, Value> },
    /// A device loses its connection, or comes back.
    Device { site: Option<String>, mac: String, online: bool },
    /// A device that is new reports, or one that waited is gone.
    Pending {
        mac: String,
        model: String,
        #[serde(default)]
        gone: bool,
    },
    /// A client connects or leaves.
    Client { site: Option<String>, mac: String, online: bool },
    /// A client that is new connects; the fields are those of the household.
    NewClient { site: Option<String>, client: Value },
    /// A port has a link, or none.
    Port { site: Option<String>, mac: String, port: i64, up: bool },
    /// Firmware is offered for a device.
    Firmware { site: Option<String>, mac: String, version: String },
    /// A line of the log.
    Log {
        site: Option<String>,
        message: String,
        #[serde(default)]
        is_alert: bool,
    },
    /// An API key of the administrator; without `gone` a new one.
    Key {
        key: String,
        #[serde(default)]
        gone: bool,
    },
    /// Routes that the console lacks from now on.
    Missing { routes: Vec<String> },
    /// The host restarts.
    Restart,
}

/// What an edit looks like, for the person who wrote another one.
const FORM: &str = "an edit is {\"do\": \"create\" | \"update\" | \"delete\" | \"setting\" | \"raw\" | \"device\" | \
    \"pending\" | \"client\" | \"new_client\" | \"port\" | \"firmware\" | \"log\" | \"key\" | \"missing\" | \"restart\"}";

fn site_of(site: Option<String>) -> String {
    site.unwrap_or_else(|| "default".to_owned())
}

fn told(refusal: Refusal) -> String {
    format!("{} {}", refusal.code, refusal.message)
}

impl Console {
    /// Carries out an edit.
    pub(crate) fn edited(&mut self, edit: &Value) -> Result<Value, String> {
        let edit = Edit::deserialize(edit).map_err(|error| format!("{error}; {FORM}"))?;
        match edit {
            Edit::Create { site, table, body } => self.create_row(&site_of(site), &table, body),
            Edit::Update { site, table, which, body } => {
                self.update_row(&site_of(site), &table, &which, body)
            }
            Edit::Delete { site, table, which } => {
                let site = site_of(site);
                let id = self.which(&site, &table, &which)?;
                rest::remove(self, &site, &table, &id);
                Ok(Value::Null)
            }
            Edit::Setting { site, key, body } => {
                let site = site_of(site);
                let scope: &str = if key.starts_with("super_") { GLOBAL } else { &site };
                let row = self.store.having_mut(scope, "setting", "key", &key).ok_or("no such setting")?;
                row.extend(body);
                let row = row.clone();
                self.changed(&site, "setting", &row, Change::Update);
                Ok(json!(shown(&row)))
            }
            Edit::Raw { site, table, which, body } => {
                let site = site_of(site);
                let id = self.which(&site, &table, &which)?;
                let row = self.store.find_mut(&site, &table, &id).ok_or("no such row")?;
                row.extend(body);
                Ok(json!(shown(row)))
            }
            Edit::Missing { routes } => {
                self.missing = routes.into_iter().collect();
                Ok(Value::Null)
            }
            Edit::Key { key, gone } => {
                self.settings.api_keys.retain(|own| *own != key);
                if !gone {
                    self.settings.api_keys.push(key);
                }
                Ok(Value::Null)
            }
            Edit::Restart => {
                self.ask_restart();
                Ok(Value::Null)
            }
            other => self.happens(other),
        }
    }

    /// What happens in the house.
    fn happens(&mut self, edit: Edit) -> Result<Value, String> {
        match edit {
            Edit::Device { site, mac, online } => self.move_device(&site_of(site), &mac, online),
            Edit::Pending { mac, gone: true, .. } => {
                self.store.rows_mut(GLOBAL, "pending").retain(|row| text(row, "mac") != mac);
                Ok(Value::Null)
            }
            Edit::Pending { mac, model, .. } => {
                let entry = json!({
                    "mac": mac, "model": model, "ip": "192.168.1.122", "version": "7.0.50.15613",
                    "ports": {},
                });
                pending(self, &entry, false);
                Ok(Value::Null)
            }
            Edit::Client { site, mac, online } => {
                let site = site_of(site);
                let row = self.store.having_mut(&site, "sta", "mac", &mac).ok_or("no such client")?;
                if online {
                    row.remove("~away");
                } else {
                    put(row, "~away", true);
                }
                self.tell_client(&site, &mac);
                Ok(Value::Null)
            }
            Edit::NewClient { site, client: entry } => {
                let site = site_of(site);
                client(self, &site, &entry);
                self.tell_client(&site, entry["mac"].as_str().unwrap_or_default());
                Ok(Value::Null)
            }
            Edit::Port { site, mac, port, up } => self.plug(&site_of(site), &mac, port, up),
            Edit::Firmware { site, mac, version } => {
                let row =
                    self.store.having_mut(&site_of(site), "device", "mac", &mac).ok_or("no such device")?;
                put(row, "~next", version);
                Ok(Value::Null)
            }
            Edit::Log { site, message, is_alert } => {
                let severity = if is_alert { "HIGH" } else { "LOW" };
                self.log(&site_of(site), "SYSTEM", "NOTE", &message, severity);
                Ok(Value::Null)
            }
            _ => Err(FORM.to_owned()),
        }
    }

    /// The id of a row that is named by its id, name, address or description.
    fn which(&self, site: &str, table: &str, which: &str) -> Result<String, String> {
        let fields = ["_id", "name", "mac", "description", "key"];
        let rows = self.store.rows(site, table).iter();
        let mut found = rows.filter(|row| fields.iter().any(|field| text(row, field) == which));
        found.next().map(|row| text(row, "_id").to_owned()).ok_or_else(|| format!("{table} has no '{which}'"))
    }

    fn create_row(&mut self, site: &str, table: &str, body: Row) -> Result<Value, String> {
        let id = match table {
            POLICIES => policies::create(self, site, body).map_err(told)?,
            _ if crate::facts::Facts::get().rest.contains_key(table) => {
                rest::insert(self, site, table, body).map_err(told)?
            }
            _ => {
                let id = self.store.add(site, table, body);
                let row = self.store.find(site, table, &id).cloned().unwrap_or_default();
                self.changed(site, table, &row, Change::Add);
                id
            }
        };
        Ok(self.store.find(site, table, &id).map_or(Value::Null, |row| json!(shown(row))))
    }

    fn update_row(&mut self, site: &str, table: &str, which: &str, body: Row) -> Result<Value, String> {
        let id = self.which(site, table, which)?;
        if table == "device" {
            return devices::write(self, site, &id, &body).map(|row| json!(row)).map_err(told);
        }
        let old = self.store.find(site, table, &id).cloned().ok_or("no such row")?;
        let mut new = old.clone();
        new.extend(body);
        // What the official interface wrote is no longer what stands there.
        new.remove("~official");
        if table == POLICIES {
            policies::replace(self, site, &id, new).map_err(told)?;
        } else {
            rest::replace(self, site, table, &old, new).map_err(told)?;
        }
        Ok(self.store.find(site, table, &id).map_or(Value::Null, |row| json!(shown(row))))
    }

    fn move_device(&mut self, site: &str, mac: &str, is_online: bool) -> Result<Value, String> {
        let row = self.store.having(site, "device", "mac", mac).ok_or("no such device")?;
        if matches!(number(row, "state"), Some(1 | 5)) == is_online {
            return Ok(Value::Null);
        }
        self.timeline.forget(mac);
        let event = if is_online { Event::Booted } else { Event::State(0) };
        self.plan_in(0, site, mac, event);
        self.settle();
        Ok(Value::Null)
    }

    fn plug(&mut self, site: &str, mac: &str, port: i64, is_up: bool) -> Result<Value, String> {
        let device = self.store.having_mut(site, "device", "mac", mac).ok_or("no such device")?;
        let ports = device.get_mut("~ports").and_then(Value::as_array_mut).ok_or("no ports")?;
        let row = ports
            .iter_mut()
            .find(|row| row["idx"] == port)
            .and_then(Value::as_object_mut)
            .ok_or("no such port")?;
        put(row, "up", is_up);
        if !is_up {
            row.remove("peer");
        }
        self.tell_device(site, mac);
        Ok(Value::Null)
    }
}
