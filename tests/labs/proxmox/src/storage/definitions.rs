//! The definitions of storages, one for the whole cluster.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Outcome, field};
use crate::cluster::{Cluster, check_digest};
use crate::store::{merge, written};

/// Definition keys that cannot change.
const FIXED: [&str; 9] =
    ["type", "path", "server", "export", "pool", "vgname", "thinpool", "share", "datastore"];

impl Cluster {
    /// The routes below `/storage`.
    pub(super) fn definition_call(&mut self, call: &Call, tail: &str) -> Option<Outcome> {
        let storage = call.text("storage").to_owned();
        let kind = self.store.find("/storage", &storage).map(|body| field(body, "type").to_owned());
        match (call.route.method.as_str(), tail) {
            ("GET", "") => {
                let digest = self.store.digest("/storage");
                let seen = self.store.rows("/storage").iter().filter(|row| {
                    call.find("type").is_none_or(|only| field(&row.body, "type") == only)
                        && self.may(&call.caller, &format!("/storage/{}", row.id), "Datastore.Audit")
                });
                let shown = seen.map(|row| {
                    let mut body = row.body.clone();
                    body.insert("digest".to_owned(), Value::from(digest.clone()));
                    Value::Object(body)
                });
                Some(Ok(shown.collect()))
            }
            ("POST", _) if kind.is_some() => {
                Some(Err(Failure::refused(format!("storage ID '{storage}' already defined"))))
            }
            ("POST", _) => {
                let mut body = written(call);
                body.insert("storage".to_owned(), Value::from(storage.clone()));
                if matches!(call.text("type"), "nfs" | "cifs" | "pbs" | "cephfs" | "rbd" | "iscsi") {
                    body.insert("shared".to_owned(), Value::from(1));
                }
                body.entry("content".to_owned()).or_insert(Value::from("images,rootdir"));
                self.store.insert("/storage", &storage, body);
                Some(Ok(json!({ "storage": storage, "type": call.text("type") })))
            }
            ("PUT", _) => {
                let Some(kind) = kind else {
                    return Some(Err(Failure::refused(format!("storage '{storage}' does not exist"))));
                };
                if let Err(failure) = check_digest(call, &self.store.digest("/storage")) {
                    return Some(Err(failure));
                }
                let changes = written(call);
                if let Some(name) = FIXED.iter().find(|name| changes.contains_key(**name)) {
                    let text = format!("can't change value of fixed parameter '{name}'");
                    return Some(Err(Failure::refused(text)));
                }
                if let Some(body) = self.store.find_mut("/storage", &storage) {
                    merge(body, changes, &call.list("delete"));
                }
                Some(Ok(json!({ "storage": storage, "type": kind })))
            }
            ("DELETE", _) => {
                self.access.acl.retain(|grant| grant.path != format!("/storage/{storage}"));
                self.remove_storage_from_pools(&storage);
                None
            }
            _ => None,
        }
    }
}
