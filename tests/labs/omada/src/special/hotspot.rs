//! Vouchers: a group makes its codes, and a deleted code does not come back.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::generic::{created, not_found};
use crate::outcome::Outcome;
use crate::page::{page, show};
use crate::shape;
use crate::store::is;

const GROUPS: &str = "hotspot.voucher-group";
const VOUCHERS: &str = "hotspot.voucher";

impl Omada {
    pub(crate) fn hotspot_call(&mut self, call: &Call) -> Option<Outcome> {
        let site = call.scope().to_owned();
        match (call.item.id.as_str(), call.route.role) {
            (GROUPS, Role::Create) => Some(Ok(self.create_vouchers(call))),
            (GROUPS, Role::List) if call.route.method == "GET" => {
                let rows = self.store.rows(&site, GROUPS).iter().collect();
                Some(Ok(page(call, rows, |row| self.with_counts(&site, row))))
            }
            (GROUPS, Role::Get) => Some(self.voucher_group(call)),
            (GROUPS, Role::Delete) if call.row_id().is_some() => {
                let id = call.parameter("groupId").to_owned();
                self.store.rows_mut(&site, VOUCHERS).retain(|row| !is(row, "groupId", &id));
                None
            }
            (VOUCHERS, Role::Get) => {
                let row = self.store.find(&site, VOUCHERS, "id", call.parameter("id"));
                let row = row.ok_or_else(|| not_found(call));
                Some(row.map(|row| show(call, &self.with_group(&site, row))))
            }
            (VOUCHERS, Role::Delete) => Some(Ok(self.delete_vouchers(call))),
            ("hotspot.voucher-clear", Role::Do) => {
                let id = call.parameter("groupId").to_owned();
                self.store
                    .rows_mut(&site, VOUCHERS)
                    .retain(|row| !(is(row, "groupId", &id) && row["status"] == 2));
                Some(Ok(Value::Null))
            }
            _ => None,
        }
    }

    fn create_vouchers(&mut self, call: &Call) -> Value {
        let site = call.scope().to_owned();
        let mut group = call.body.clone();
        group["createdTime"] = json!(self.now);
        group["creatorName"] = json!(self.sessions.user);
        let amount = group["amount"].as_u64().unwrap_or_default();
        let length = usize::try_from(group["codeLength"].as_u64().unwrap_or(8)).unwrap_or(8);
        let group_id = self.insert(call, group);
        for _ in 0..amount {
            let id = self.store.new_id();
            let code: String = hex::encode(Sha256::digest(&id))
                .bytes()
                .take(length)
                .map(|byte| char::from(b'0' + byte % 10))
                .collect();
            let row =
                json!({"id": id, "code": code, "groupId": group_id, "status": 0, "createdTime": self.now});
            self.store.rows_mut(&site, VOUCHERS).push(row);
        }
        created(call, &group_id)
    }

    fn vouchers_of<'a>(&'a self, site: &str, group: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        let rows = self.store.rows(site, VOUCHERS).iter();
        rows.filter(|row| row["groupId"] == group["id"])
    }

    fn with_counts(&self, site: &str, group: &Value) -> Value {
        let count = |status: i64| self.vouchers_of(site, group).filter(|row| row["status"] == status).count();
        let mut view = group.clone();
        view["unusedCount"] = json!(count(0));
        view["inUseCount"] = json!(count(1));
        view["usedCount"] = json!(count(1));
        view["expiredCount"] = json!(count(2));
        view["totalCount"] = json!(self.vouchers_of(site, group).count());
        view
    }

    fn with_group(&self, site: &str, voucher: &Value) -> Value {
        let group = voucher["groupId"].as_str().unwrap_or_default();
        let mut view = self.store.find(site, GROUPS, "id", group).cloned().unwrap_or(json!({}));
        shape::lay_over(&mut view, voucher);
        view
    }

    fn voucher_group(&self, call: &Call) -> Outcome {
        let group = self.row(call).ok_or_else(|| not_found(call))?;
        let status = call.query.get("filters.status");
        let chosen = self
            .vouchers_of(call.scope(), group)
            .filter(|row| status.is_none_or(|status| is(row, "status", status)))
            .collect();
        let mut result = show(call, &self.with_counts(call.scope(), group));
        let vouchers = page(call, chosen, Clone::clone);
        for name in ["totalRows", "currentPage", "currentSize", "data"] {
            result[name] = vouchers[name].clone();
        }
        Ok(result)
    }

    fn delete_vouchers(&mut self, call: &Call) -> Value {
        let ids: Vec<String> = match call.row_id() {
            Some((_, id)) => vec![id.to_owned()],
            None => call.body["ids"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|id| Some(id.as_str()?.to_owned()))
                .collect(),
        };
        let group = call.text("groupId").to_owned();
        // 0 takes what is listed, 1 all but what is listed, 2 all of the group.
        let kind = call.body["type"].as_u64().unwrap_or_default();
        let rows = self.store.rows_mut(call.scope(), VOUCHERS);
        rows.retain(|row| {
            let is_listed = ids.iter().any(|id| is(row, "id", id));
            let is_own = is(row, "groupId", &group);
            !match kind {
                0 => is_listed,
                1 => is_own && !is_listed,
                _ => is_own,
            }
        });
        Value::Null
    }
}
