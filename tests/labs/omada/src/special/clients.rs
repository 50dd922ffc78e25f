//! Clients: those online and those known, and what an administrator does to them.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::generic::overwrite;
use crate::outcome::{Failure, Outcome};
use crate::page::{page, show};
use crate::timeline::{CLIENTS, Event};

const NO_CLIENT: i64 = -41011;

impl Omada {
    pub(crate) fn client_call(&mut self, call: &Call) -> Option<Outcome> {
        match (call.item.id.as_str(), call.route.role) {
            ("insights.client", Role::List) => Some(Ok(self.client_list(call))),
            ("insights.client", Role::Read) if call.route.name.ends_with("insight/clients") => {
                let rows = self.store.rows(call.scope(), CLIENTS).iter().collect();
                Some(Ok(page(call, rows, |row| known_view(&self.client_view(row)))))
            }
            ("insights.client", Role::Get) => {
                let client = self.store.find(call.scope(), CLIENTS, "mac", call.mac());
                Some(
                    client
                        .map(|row| show(call, &self.client_view(row)))
                        .ok_or_else(|| Failure::new(NO_CLIENT)),
                )
            }
            ("insights.client-delete", Role::Do) if !call.mac().is_empty() => {
                let mac = call.mac().to_owned();
                self.store.rows_mut(call.scope(), CLIENTS).retain(|row| row["mac"] != mac.as_str());
                Some(Ok(Value::Null))
            }
            (item, _) if item.starts_with("insights.client-") && !call.mac().is_empty() => {
                Some(self.change_client(call))
            }
            _ => None,
        }
    }

    fn client_list(&self, call: &Call) -> Value {
        let filters = &call.body["filters"];
        let of_query = call.query.get("filters.active").map(|text| text == "true");
        // The older read shows who is online; the newer one, and the web surface, what the filter asks for.
        let active = match (&call.route.method, filters["active"].as_bool().or(of_query)) {
            (_, Some(active)) => Some(active),
            (method, None) if method == "GET" && !call.route.is_web => Some(true),
            _ if call.body["scope"].as_u64() == Some(1) => Some(true),
            _ => None,
        };
        let wireless =
            filters["wireless"].as_bool().or(call.query.get("filters.wireless").map(|text| text == "true"));
        let rows: Vec<&Value> = self
            .store
            .rows(call.scope(), CLIENTS)
            .iter()
            .filter(|row| active.is_none_or(|active| row["active"] == active))
            .filter(|row| wireless.is_none_or(|wireless| row["wireless"] == wireless))
            .collect();
        let count = |field: &str, wanted: bool| rows.iter().filter(|row| row[field] == wanted).count();
        let stat = json!({
            "total": rows.len(), "wireless": count("wireless", true), "wired": count("wireless", false),
            "numGuest": count("guest", true), "numUser": count("guest", false),
        });
        let mut result = page(call, rows, |row| self.client_view(row));
        if result.get("clientStat").is_some() {
            crate::shape::lay_over(&mut result["clientStat"], &stat);
        }
        result
    }

    fn client_view(&self, row: &Value) -> Value {
        let mut view = row.clone();
        if row["active"] == true {
            let since = row["connectedAt"].as_u64().unwrap_or(self.now);
            let seconds = self.now.saturating_sub(since) / 1000;
            view["uptime"] = json!(seconds);
            view["lastSeen"] = json!(self.now);
            view["trafficDown"] = json!(row["trafficDown"].as_u64().unwrap_or_default() + seconds * 1200);
            view["trafficUp"] = json!(row["trafficUp"].as_u64().unwrap_or_default() + seconds * 300);
        }
        view
    }

    fn change_client(&mut self, call: &Call) -> Outcome {
        let (site, mac, now) = (call.scope().to_owned(), call.mac().to_owned(), self.now);
        let client =
            self.store.find_mut(&site, CLIENTS, "mac", &mac).ok_or_else(|| Failure::new(NO_CLIENT))?;
        let is_wireless = client["wireless"] == true;
        match call.last() {
            "block" => {
                client["blocked"] = json!(true);
                client["active"] = json!(false);
                client["lastSeen"] = json!(now);
            }
            "unblock" => {
                client["blocked"] = json!(false);
                self.plan(&site, &mac, &[(1, Event::ClientBack)]);
            }
            // Only a radio can send a client away.
            "reconnect" | "disconnect" if !is_wireless => return Err(Failure::new(-41025)),
            "reconnect" | "disconnect" => {
                client["active"] = json!(false);
                client["lastSeen"] = json!(now);
                self.plan(&site, &mac, &[(1, Event::ClientBack)]);
            }
            "ratelimit" => client["rateLimit"] = call.body.clone(),
            "lock-to-ap" => client["clientLockToApSetting"] = call.body.clone(),
            "update-ipSetting" => client["ipSetting"] = call.body.clone(),
            _ => overwrite(client, call),
        }
        Ok(Value::Null)
    }
}

/// The history row of a client, which has other names for the same facts.
fn known_view(client: &Value) -> Value {
    let mut view = client.clone();
    for (name, from) in
        [("block", "blocked"), ("download", "trafficDown"), ("upload", "trafficUp"), ("duration", "uptime")]
    {
        view[name] = client[from].clone();
    }
    view["lockToAp"] = json!(client["clientLockToApSetting"]["enable"] == true);
    view
}
