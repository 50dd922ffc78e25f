//! Pools: named sets of guests and storages.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, field, split_list};
use crate::cluster::Cluster;

impl Cluster {
    /// The pool of a guest.
    pub(crate) fn pool_of(&self, vmid: u64) -> Option<&str> {
        let vmid = vmid.to_string();
        let pools = self.store.rows("/pools");
        pools
            .iter()
            .find(|pool| split_list(field(&pool.body, "vms")).any(|own| own == vmid))
            .map(|pool| &*pool.id)
    }

    pub(crate) fn add_to_pool(&mut self, pool: &str, vmid: u64) {
        self.remove_from_pools(vmid);
        if let Some(body) = self.store.find_mut("/pools", pool) {
            change(body, "vms", &[vmid.to_string()], false);
        }
    }

    pub(crate) fn remove_from_pools(&mut self, vmid: u64) {
        for pool in self.store.rows_mut("/pools") {
            change(&mut pool.body, "vms", &[vmid.to_string()], true);
        }
    }

    pub(crate) fn remove_storage_from_pools(&mut self, storage: &str) {
        for pool in self.store.rows_mut("/pools") {
            change(&mut pool.body, "storage", &[storage.to_owned()], true);
        }
    }

    pub(crate) fn pool_call(&mut self, call: &Call) -> Option<Outcome> {
        call.route.path.strip_prefix("/pools")?;
        let id = call.text("poolid").to_owned();
        let missing = || Failure::refused(format!("pool '{id}' does not exist"));
        Some(match call.route.method.as_str() {
            "GET" if call.params.contains_key("poolid") => match self.store.find("/pools", &id).cloned() {
                None => Err(missing()),
                Some(body) => {
                    let mut shown = self.pool_members(&body, call.find("type"));
                    shown.insert("poolid".to_owned(), Value::from(id));
                    let one = Value::Object(shown);
                    // The newer form answers a list of one.
                    Ok(if call.route.path == "/pools" { json!([one]) } else { one })
                }
            },
            "GET" => {
                let seen = self.store.rows("/pools").iter();
                let seen =
                    seen.filter(|pool| self.may(&call.caller, &format!("/pool/{}", pool.id), "Pool.Audit"));
                Ok(seen
                    .map(|pool| json!({ "poolid": pool.id, "comment": field(&pool.body, "comment") }))
                    .collect())
            }
            "POST" if self.store.find("/pools", &id).is_some() => {
                Err(Failure::refused(format!("create pool failed: pool '{id}' already exists")))
            }
            "POST" => {
                self.store.insert("/pools", &id, call.without(&["poolid"]));
                Ok(Value::Null)
            }
            "PUT" if self.store.find("/pools", &id).is_none() => Err(missing()),
            "PUT" => self.change_pool(call, &id),
            _ => {
                let Some(body) = self.store.find("/pools", &id) else { return Some(Err(missing())) };
                if !field(body, "vms").is_empty() || !field(body, "storage").is_empty() {
                    return Some(Err(Failure::refused(format!("pool '{id}' is not empty"))));
                }
                self.store.remove("/pools", &id);
                Ok(Value::Null)
            }
        })
    }

    fn change_pool(&mut self, call: &Call, id: &str) -> Outcome {
        let removes = call.flag("delete");
        for vmid in call.list("vms") {
            let number: u64 = vmid.parse().unwrap_or_default();
            if !self.guests.contains_key(&number) {
                return Err(Failure::refused(format!("VM {vmid} does not exist")));
            }
            let current = self.pool_of(number).map(str::to_owned);
            match (removes, current) {
                (true, current) if current.as_deref() != Some(id) => {
                    return Err(Failure::refused(format!("VM {vmid} is not a pool member")));
                }
                (false, Some(other)) if !call.flag("allow-move") => {
                    return Err(Failure::refused(format!("VM {vmid} is already a pool member of {other}")));
                }
                (false, _) => self.remove_from_pools(number),
                _ => {}
            }
        }
        if let Some(body) = self.store.find_mut("/pools", id) {
            change(body, "vms", &call.list("vms"), removes);
            change(body, "storage", &call.list("storage"), removes);
            if let Some(comment) = call.find("comment") {
                body.insert("comment".to_owned(), Value::from(comment));
            }
        }
        Ok(Value::Null)
    }

    fn pool_members(&self, body: &Object, only: Option<&str>) -> Object {
        let vms = split_list(field(body, "vms")).filter_map(|vmid| self.guests.get(&vmid.parse().ok()?));
        let vms = vms.filter(|guest| only.is_none_or(|only| only == guest.kind.name())).map(|guest| {
            let mut row = self.guest_row(guest);
            row.insert("id".to_owned(), Value::from(format!("{}/{}", guest.kind.name(), guest.vmid)));
            row.insert("type".to_owned(), Value::from(guest.kind.name()));
            row.insert("node".to_owned(), Value::from(guest.node.clone()));
            Value::Object(row)
        });
        let storages =
            split_list(field(body, "storage")).filter(|_| only.is_none_or(|only| only == "storage"));
        let storages =
            storages.map(|id| json!({ "id": format!("storage/{id}"), "type": "storage", "storage": id }));
        let mut out = Object::new();
        out.insert("comment".to_owned(), Value::from(field(body, "comment")));
        out.insert("members".to_owned(), vms.chain(storages).collect());
        out
    }
}

/// Adds names to a list in text, or removes them.
fn change(body: &mut Object, key: &str, names: &[String], removes: bool) {
    let mut list: Vec<String> = split_list(field(body, key)).map(str::to_owned).collect();
    list.retain(|own| !names.contains(own));
    if !removes {
        list.extend(names.iter().cloned());
    }
    body.insert(key.to_owned(), Value::from(list.join(",")));
}
