//! Access control lists: three tables behind shared writes, and rules that vanish.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::{Failure, INVALID, Outcome};
use crate::page::page;

const FORWARDS: &str = "routing.port-forward";
const TABLES: [&str; 3] = ["firewall.gateway-acl", "firewall.switch-acl", "firewall.eap-acl"];

impl Omada {
    pub(crate) fn firewall_call(&mut self, call: &Call) -> Option<Outcome> {
        if !TABLES.contains(&call.item.id.as_str()) {
            return None;
        }
        if call.route.is_web {
            return self.web_acl(call);
        }
        match call.route.role {
            // A rule whose two sides overlap is accepted and never seen again.
            Role::Create if overlaps(&call.body) => Some(Ok(Value::Null)),
            _ => None,
        }
    }

    /// Two port forwards of one interface cannot share an external port.
    pub(crate) fn forward_call(&mut self, call: &Call) -> Option<Outcome> {
        if call.item.id != FORWARDS || !matches!(call.route.role, Role::Create | Role::Update) {
            return None;
        }
        let own = call.row_id().map(|(_, id)| id);
        let same = |row: &&Value| {
            ["externalPort", "interfaceWanPortId"].iter().all(|name| row[*name] == call.body[*name])
        };
        let rows = self.store.rows(call.scope(), FORWARDS).iter();
        let is_taken = rows.filter(|row| row["id"].as_str() != own).any(|row| same(&row));
        is_taken.then(|| Err(Failure::with(-34209, "The external port is in use.")))
    }

    /// The web surface has one list for the three tables, told apart by a type, and another name for the
    /// text.
    fn web_acl(&mut self, call: &Call) -> Option<Outcome> {
        let kind = call.body["type"].as_u64().or_else(|| call.query.get("type")?.parse().ok());
        let table = TABLES.get(usize::try_from(kind.unwrap_or_default()).ok()?).copied();
        let Some(table) = table else { return Some(Err(Failure::new(INVALID))) };
        let site = call.scope().to_owned();
        match call.route.role {
            Role::List => {
                let rows = self.store.rows(&site, table).iter().collect();
                let mut result = page(call, rows, |row| {
                    let mut view = row.clone();
                    view["name"] = row["description"].clone();
                    view["type"] = json!(kind.unwrap_or_default());
                    view
                });
                result["aclDisable"] = json!(false);
                Some(Ok(result))
            }
            Role::Create if overlaps(&call.body) => Some(Ok(Value::Null)),
            Role::Create | Role::Update => {
                let mut row = call.body.clone();
                row["description"] = row["name"].take();
                if let Some(fields) = row.as_object_mut() {
                    fields.retain(|name, _| name != "name" && name != "type" && name != "id");
                }
                if call.route.role == Role::Create {
                    row["id"] = json!(self.store.new_id());
                    row["index"] = json!(self.store.rows(&site, table).len() + 1);
                    self.store.rows_mut(&site, table).push(row);
                } else {
                    let stored = self.store.find_mut(&site, table, "id", call.parameter("id"))?;
                    row["id"] = stored["id"].clone();
                    row["index"] = stored["index"].clone();
                    *stored = row;
                }
                Some(Ok(Value::Null))
            }
            _ => None,
        }
    }
}

fn overlaps(rule: &Value) -> bool {
    let ids = |name: &str| rule[name].as_array().cloned().unwrap_or_default();
    rule["sourceType"] == rule["destinationType"]
        && ids("sourceIds").iter().any(|id| ids("destinationIds").contains(id))
}
