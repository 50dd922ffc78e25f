//! Everything that is only created, read, updated and deleted: collections and single objects, by path.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, split_list};
use crate::cluster::{Cluster, check_digest, hash};
use crate::facts::{self, Kind};
use crate::tasks::Order;

/// Parameters that steer a write and are not written.
const STEERING: [&str; 7] = ["digest", "delete", "lock-token", "force", "purge", "keep", "reload"];

/// Parameters that the vendor keeps in files of their own and never shows.
const HIDDEN: [&str; 7] =
    ["password", "keyring", "encryption-key", "master-pubkey", "secret", "token", "client-key"];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) body: Object,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    collections: BTreeMap<String, Vec<Row>>,
    singles: BTreeMap<String, Object>,
}

impl Store {
    pub(crate) fn rows(&self, path: &str) -> &[Row] {
        self.collections.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn rows_mut(&mut self, path: &str) -> &mut Vec<Row> {
        self.collections.entry(path.to_owned()).or_default()
    }

    pub(crate) fn find(&self, path: &str, id: &str) -> Option<&Object> {
        self.rows(path).iter().find(|row| row.id == id).map(|row| &row.body)
    }

    pub(crate) fn find_mut(&mut self, path: &str, id: &str) -> Option<&mut Object> {
        self.rows_mut(path).iter_mut().find(|row| row.id == id).map(|row| &mut row.body)
    }

    pub(crate) fn insert(&mut self, path: &str, id: &str, body: Object) {
        self.rows_mut(path).push(Row { id: id.to_owned(), body });
    }

    /// Whether there was one.
    pub(crate) fn remove(&mut self, path: &str, id: &str) -> bool {
        let rows = self.rows_mut(path);
        let before = rows.len();
        rows.retain(|row| row.id != id);
        rows.len() < before
    }

    pub(crate) fn single(&self, path: &str) -> Object {
        self.singles.get(path).cloned().unwrap_or_default()
    }

    pub(crate) fn single_mut(&mut self, path: &str) -> &mut Object {
        self.singles.entry(path.to_owned()).or_default()
    }

    /// Everything, by path.
    pub(crate) fn to_json(&self) -> Value {
        let mut out: Object = self.singles.iter().map(|(path, body)| (path.clone(), json!(body))).collect();
        for (path, rows) in &self.collections {
            let rows: Object = rows.iter().map(|row| (row.id.clone(), json!(row.body))).collect();
            out.insert(path.clone(), Value::Object(rows));
        }
        Value::Object(out)
    }

    /// The digest of the file that holds a collection: one for all of it.
    pub(crate) fn digest(&self, path: &str) -> String {
        let rows: Vec<String> =
            self.rows(path).iter().map(|row| json!([row.id, row.body]).to_string()).collect();
        hash(&rows.join("\n"), 40)
    }
}

/// Writes changes into an object and removes the named keys.
pub(crate) fn merge(target: &mut Object, changes: Object, removed: &[String]) {
    for name in removed {
        target.shift_remove(name);
    }
    target.extend(changes);
}

impl Cluster {
    /// Answers a call that nothing else answers, from the grammar of its path.
    pub(crate) fn generic_call(&mut self, call: &Call) -> Outcome {
        let pattern = call.route.path.as_str();
        let (parent, _) = pattern.rsplit_once('/').unwrap_or_default();
        let (folder, _) = call.path.rsplit_once('/').unwrap_or_default();
        let is_item = call.route.last_variable().is_some() && is_written(pattern);
        let item =
            call.route.last_variable().and_then(|name| call.params.get(name)).map(crate::answer::text_of);
        let variable =
            facts::item_variable(pattern).filter(|name| is_written(&format!("{pattern}/{{{name}}}")));
        match call.route.method.as_str() {
            "GET" if is_item && call.route.answers == Kind::Array => Ok(self.read_other(call)),
            "GET" if is_item => self.read_item(call, folder, &item.unwrap_or_default()),
            "GET" if variable.is_some() && call.route.answers == Kind::Array => {
                Ok(self.list_items(call, variable.unwrap_or_default()))
            }
            "GET" => Ok(self.read_other(call)),
            "POST" if variable.is_some() => {
                let given = variable.and_then(|name| call.params.get(name)).map(crate::answer::text_of);
                let id = given.unwrap_or_else(|| self.fresh_uuid());
                self.create_item(call, &call.path.clone(), &id, variable.unwrap_or_default())
            }
            "POST" if is_item && facts::has("GET", parent) => self.create_item(
                call,
                folder,
                &item.unwrap_or_default(),
                call.route.last_variable().unwrap_or_default(),
            ),
            "PUT" if is_item => self.update_item(call, folder, &item.unwrap_or_default()),
            "DELETE" if is_item => {
                let id = item.unwrap_or_default();
                check_digest(call, &self.store.digest(folder))?;
                if self.store.remove(folder, &id) { Ok(self.done(call)) } else { Err(missing(call, &id)) }
            }
            "PUT" if facts::has("GET", pattern) => {
                let object = self.store.single_mut(&call.path);
                merge(object, written(call), &call.list("delete"));
                Ok(self.done(call))
            }
            _ => Ok(self.done(call)),
        }
    }

    /// What a write answers: a task where the schema says so, else a plain value of its type.
    pub(crate) fn done(&mut self, call: &Call) -> Value {
        if call.route.is_task() {
            let kind =
                call.route.path.rsplit('/').find(|part| !part.starts_with('{')).unwrap_or("task").to_owned();
            let own = self.nodes.first().map(|node| node.name.clone()).unwrap_or_default();
            let node = call.find("node").unwrap_or(&own).to_owned();
            let id = call.params.get("vmid").map(crate::answer::text_of).unwrap_or_default();
            return self.start(&call.caller, Order::new(&node, &kind, id), |_| Ok(()));
        }
        shape(call)
    }

    fn read_item(&self, call: &Call, folder: &str, id: &str) -> Outcome {
        let mut body = self.store.find(folder, id).cloned().ok_or_else(|| missing(call, id))?;
        if let Some(name) = call.route.last_variable() {
            body.entry(own_name(folder, name).to_owned()).or_insert_with(|| Value::from(id));
        }
        if has_digest(&call.route.path) {
            body.insert("digest".to_owned(), Value::from(self.store.digest(folder)));
        }
        Ok(Value::Object(body))
    }

    fn list_items(&self, call: &Call, variable: &str) -> Value {
        let digest = has_digest(&format!("{}/{{{variable}}}", call.route.path));
        let digest = digest.then(|| Value::from(self.store.digest(&call.path)));
        let rows = self.store.rows(&call.path).iter().map(|row| {
            let mut body = row.body.clone();
            let name = own_name(&call.path, variable);
            body.entry(name.to_owned()).or_insert_with(|| Value::from(row.id.clone()));
            if let Some(digest) = &digest {
                body.insert("digest".to_owned(), digest.clone());
            }
            Value::Object(body)
        });
        rows.collect()
    }

    fn create_item(&mut self, call: &Call, folder: &str, id: &str, variable: &str) -> Outcome {
        if self.store.find(folder, id).is_some() {
            return Err(Failure::refused(format!("{} '{id}' already exists", noun(folder))));
        }
        let mut body = written(call);
        body.shift_remove(variable);
        body.insert(own_name(folder, variable).to_owned(), Value::from(id));
        self.store.insert(folder, id, body);
        Ok(self.done(call))
    }

    fn update_item(&mut self, call: &Call, folder: &str, id: &str) -> Outcome {
        check_digest(call, &self.store.digest(folder))?;
        let object = self.store.find_mut(folder, id).ok_or_else(|| missing(call, id))?;
        merge(object, written(call), &call.list("delete"));
        Ok(self.done(call))
    }

    /// An index of sub-paths, a single object, or an empty answer of the right type.
    fn read_other(&self, call: &Call) -> Value {
        let pattern = call.route.path.as_str();
        let children = facts::children(pattern);
        if let (Some(key), Kind::Array) = (&call.route.child_key, call.route.answers)
            && !children.is_empty()
        {
            return children.iter().map(|name| json!({ key: name })).collect();
        }
        if facts::has("PUT", pattern) {
            let mut object = self.store.single(&call.path);
            if has_digest(pattern) {
                object.insert("digest".to_owned(), Value::from(hash(&json!(object).to_string(), 40)));
            }
            return Value::Object(object);
        }
        shape(call)
    }
}

/// What answers call the name of an object.
fn own_name<'a>(folder: &str, variable: &'a str) -> &'a str {
    if folder == "/cluster/acme/plugins" { "plugin" } else { variable }
}

/// Whether items of this pattern are changed or removed by the schema.
fn is_written(pattern: &str) -> bool {
    facts::has("PUT", pattern) || facts::has("DELETE", pattern)
}

fn has_digest(pattern: &str) -> bool {
    facts::routes()
        .iter()
        .any(|route| route.method == "PUT" && route.path == pattern && route.field("digest").is_some())
}

/// The parameters of a call that are kept.
pub(crate) fn written(call: &Call) -> Object {
    let variables = call.route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut dropped: Vec<&str> = variables.chain(STEERING).collect();
    let hides = ["/storage", "/cluster/notifications", "/access/domains", "/cluster/metrics"];
    if hides.iter().any(|prefix| call.path.starts_with(prefix)) {
        dropped.extend(HIDDEN);
    }
    call.without(&dropped)
}

fn noun(folder: &str) -> &str {
    match folder.rsplit('/').next().unwrap_or_default() {
        "storage" => "storage ID",
        "backup" => "job",
        "entries" => "entry",
        "dns" | "zfs" => folder.rsplit('/').next().unwrap_or_default(),
        other => other.strip_suffix('s').unwrap_or(other),
    }
}

fn missing(call: &Call, id: &str) -> Failure {
    let folder = call.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    // Few parts of the server have real codes for objects.
    let status = if folder.starts_with("/cluster/notifications") { 404 } else { 500 };
    Failure::new(status, format!("{} '{id}' does not exist", noun(folder)))
}

/// The emptiest answer of the type that the schema names.
fn shape(call: &Call) -> Value {
    let plain = |kind: &str, word: Option<&String>| match (kind, word) {
        (_, Some(word)) => Value::from(word.clone()),
        ("i" | "n" | "b", None) => Value::from(0),
        ("a", None) => json!([]),
        ("o", None) => json!({}),
        _ => Value::from(""),
    };
    match call.route.answers {
        Kind::Array => json!([]),
        Kind::Object => {
            let fields = call.route.answer_fields.iter().filter_map(|field| match field.as_slice() {
                [name, kind, words @ ..] => {
                    let given = call.params.get(name).cloned();
                    Some((name.clone(), given.unwrap_or_else(|| plain(kind, words.first()))))
                }
                _ => None,
            });
            Value::Object(fields.collect())
        }
        Kind::Integer | Kind::Number | Kind::Boolean => Value::from(0),
        Kind::Text if call.route.method == "GET" => Value::from(""),
        Kind::Text | Kind::None => Value::Null,
    }
}

/// The members of a list in text, without doubles, sorted.
pub(crate) fn sorted_set(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = split_list(text).map(str::to_owned).collect();
    parts.sort();
    parts.dedup();
    parts
}
