//! The invented device: tables of rows in memory, each with its own way to give ids, and objects of settings.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Auth, Fault, Method, Request, Response, fault};
use serde_json::{Map, Value, json};

mod rows;

pub(crate) use rows::digest;
use rows::{
    all_guests, body_of, decoded, keep, listed, method, new_tunnel, params, place, text, tunnel, update,
    upper_mac,
};

pub(crate) type Fields = Map<String, Value>;

/// How a table names its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ids {
    /// By a number of its own that it answers.
    Answered,
    /// By a number of its own that it does not answer.
    Silent,
    /// By this field of the row.
    Field(&'static str),
    /// By the place in the table. New rows stand first.
    Position,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) ids: Ids,
    pub(crate) rows: Vec<Fields>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) tables: BTreeMap<String, Table>,
    pub(crate) settings: BTreeMap<String, Fields>,
}

#[derive(Default)]
pub(crate) struct Device {
    pub(crate) state: RefCell<State>,
    /// Requests that may change something, in their order.
    pub(crate) writes: RefCell<Vec<String>>,
    /// Their bodies, or the parameters of their query.
    pub(crate) bodies: RefCell<Vec<Fields>>,
    pub(crate) reads: RefCell<Vec<String>>,
    next: Cell<u32>,
    /// The answer to the write of this number does not arrive, counted from 0.
    pub(crate) lost: Cell<Option<usize>>,
    /// A write whose path has this is refused.
    pub(crate) refused: RefCell<Option<String>>,
    /// A write whose path has this becomes a task.
    pub(crate) slow: RefCell<Option<String>>,
    /// Behind the write of this number, somebody else puts a rule first.
    pub(crate) intruder: Cell<Option<usize>>,
    /// Reads whose path has this are answered with that.
    pub(crate) rubbish: RefCell<Option<(String, Value)>>,
    /// Reads whose path and query have this are answered with that status.
    pub(crate) failing: RefCell<Vec<(&'static str, u16)>>,
    pub(crate) is_warning: Cell<bool>,
    /// Most rows that a page has, whatever is asked for.
    pub(crate) page_max: Cell<usize>,
    /// What it says the number of rows is.
    pub(crate) total: Cell<Option<u64>>,
}

pub(crate) fn fields(value: &Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}

impl Device {
    pub(crate) fn new() -> Self {
        let device = Device::default();
        device.page_max.set(1000);
        let table = |path: &str, ids, rows: &[Value]| {
            let rows = rows.iter().map(fields).collect();
            device.state.borrow_mut().tables.insert(path.to_owned(), Table { ids, rows });
        };
        rows::begin(&table);
        for (path, options) in [
            ("/nodes/n1/options", json!({ "motd": "one", "limit": 5 })),
            ("/nodes/n2/options", json!({ "motd": "two", "limit": 5 })),
        ] {
            device.state.borrow_mut().settings.insert(path.to_owned(), fields(&options));
        }
        device.next.set(10);
        device
    }

    pub(crate) fn host<'a>(&'a self, description: &'a Value) -> FakeHost<'a> {
        FakeHost::new(|request, auth| self.answer(request, auth)).describing(description)
    }

    pub(crate) fn rows(&self, path: &str) -> Vec<Fields> {
        self.state.borrow().tables[path].rows.clone()
    }

    /// The row of a table whose field has a value.
    pub(crate) fn row(&self, path: &str, field: &str, value: &str) -> Option<Fields> {
        self.rows(path).into_iter().find(|row| text(row.get(field)) == value)
    }

    /// Names of the rules, in their order.
    pub(crate) fn rules(&self) -> Vec<String> {
        self.rows("/rules").iter().map(|row| text(row.get("name"))).collect()
    }

    /// Somebody else changes a table.
    pub(crate) fn others(&self, path: &str, change: impl FnOnce(&mut Vec<Fields>)) {
        change(&mut self.state.borrow_mut().tables.get_mut(path).expect("a table").rows);
    }

    fn answer(&self, request: &Request, auth: &Auth) -> Result<Response, Fault> {
        assert!(matches!(auth, Auth::Session(name) if name == "api"), "{auth:?}");
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = decoded(path);
        let mut body = params(query);
        body.extend(body_of(request));
        if request.method == Method::Get || path.starts_with("/query/") {
            self.reads.borrow_mut().push(request.path.clone());
            let failing = self.failing.borrow();
            if let Some((_, status)) = failing.iter().find(|(of, _)| request.path.contains(of)) {
                return Ok(json_response(*status, &json!({})));
            }
            let rubbish = self.rubbish.borrow();
            let (status, answer) = match &*rubbish {
                Some((of, answer)) if path.contains(of.as_str()) => (200, answer.clone()),
                _ => self.read(&path, &body),
            };
            return Ok(json_response(status, &answer));
        }
        let number = self.writes.borrow().len();
        self.writes.borrow_mut().push(format!("{} {}", method(request.method), request.path));
        self.bodies.borrow_mut().push(body.clone());
        let (status, mut answer) = self.write(request.method, &path, body);
        if self.intruder.get() == Some(number) {
            let rule = json!({ "name": format!("intruder-{number}"), "target": "", "action": "pass" });
            self.others("/rules", |rows| rows.insert(0, fields(&rule)));
        }
        if self.lost.get() == Some(number) {
            return Err(fault::connection("the answer was lost"));
        }
        if self.is_warning.get() {
            answer["warnings"] = json!(["the disk is nearly full"]);
        }
        if status == 200 && self.slow.borrow().as_ref().is_some_and(|slow| path.contains(slow.as_str())) {
            answer["task"] = json!("t1");
        }
        Ok(json_response(status, &answer))
    }

    fn read(&self, path: &str, asked: &Fields) -> (u16, Value) {
        let state = self.state.borrow();
        if let Some(settings) = state.settings.get(path) {
            return (200, json!({ "data": settings, "digest": digest(&json!(settings)) }));
        }
        if path == "/templates/tunnel" {
            return (200, json!({ "data": tunnel(&state, &new_tunnel()) }));
        }
        if path == "/query/usage" {
            return (200, json!({ "asked": asked }));
        }
        if path == "/guests" {
            return (200, json!({ "items": all_guests(&state) }));
        }
        if let Some(table) = state.tables.get(path) {
            let mut rows = listed(table);
            for row in rows.iter_mut().filter(|_| path == "/tunnels") {
                let alias = state.tables["/aliases"].rows.iter().find(|alias| alias["id"] == row["zone"]);
                row["zone_label"] = json!(text(alias.and_then(|alias| alias.get("name"))));
            }
            let number = |name: &str| text(asked.get(name)).parse::<usize>().ok();
            let size = number("size").unwrap_or(usize::MAX).min(self.page_max.get());
            let from = number("from").or_else(|| Some((number("page")? - 1) * size)).unwrap_or(0);
            let total = self.total.get().unwrap_or(rows.len() as u64);
            let items: Vec<&Value> = rows.iter().skip(from).take(size).collect();
            return (200, json!({ "items": items, "total": total, "digest": digest(&json!(table.rows)) }));
        }
        let Some((above, id)) = path.rsplit_once('/') else { return (404, json!({})) };
        let Some(table) = state.tables.get(above) else { return (404, json!({})) };
        match place(table, id) {
            Some(at) if above == "/tunnels" => (200, json!({ "data": tunnel(&state, &table.rows[at]) })),
            Some(at) => (200, json!({ "data": table.rows[at], "digest": digest(&json!(table.rows[at])) })),
            None => (404, json!({})),
        }
    }

    fn write(&self, method: Method, path: &str, mut body: Fields) -> (u16, Value) {
        // Groups are written below their type.
        let path = path.replace("/groups/ip/", "/groups/");
        let path = path.as_str();
        if self.refused.borrow().as_ref().is_some_and(|refused| path.contains(refused.as_str())) {
            return (422, json!({ "fields": { "note": "is not liked" } }));
        }
        if path.starts_with("/tunnels")
            && let Some(inner) = body.remove("tunnel")
        {
            body = fields(&inner);
            // What is left out is blanked.
            body.entry("comment").or_insert(json!(""));
        }
        let mut state = self.state.borrow_mut();
        if matches!(path, "/wake" | "/ping" | "/apply") || path.starts_with("/nodes/n1/jobs/") {
            return (200, json!({}));
        }
        if let Some(settings) = state.settings.get_mut(path) {
            settings.extend(body);
            return (200, json!({}));
        }
        if method == Method::Post && state.tables.contains_key(path) {
            return self.create(&mut state, path, body);
        }
        let Some((above, last)) = path.rsplit_once('/') else { return (404, json!({})) };
        if let Some(table) = state.tables.get_mut(above) {
            let Some(at) = place(table, last) else { return (404, json!({})) };
            let of = if table.ids == Ids::Position { json!(table.rows) } else { json!(table.rows[at]) };
            if body.remove("digest").is_some_and(|known| known != digest(&of)) {
                return (409, json!({}));
            }
            if method == Method::Delete {
                table.rows.remove(at);
                let below = format!("{path}/");
                state.tables.retain(|path, _| !path.starts_with(&below));
            } else {
                update(&mut table.rows[at], body);
                if above == "/services" {
                    keep(&mut table.rows[at]);
                }
            }
            return (200, json!({}));
        }
        let Some((table, id)) = above.rsplit_once('/') else { return (404, json!({})) };
        self.act(&mut state, (table, id, last), body)
    }

    fn create(&self, state: &mut State, path: &str, mut body: Fields) -> (u16, Value) {
        let table = state.tables.get_mut(path).expect("a table");
        let id = format!("x{}", self.next.replace(self.next.get() + 1));
        match table.ids {
            Ids::Answered | Ids::Silent => drop(body.insert("id".to_owned(), json!(id))),
            Ids::Position => {
                table.rows.insert(0, body);
                return (200, json!({}));
            }
            Ids::Field(name) if place(table, &text(body.get(name))).is_some() => return (409, json!({})),
            Ids::Field(_) => {}
        }
        let answer = if table.ids == Ids::Answered { json!({ "made": { "id": id } }) } else { json!({}) };
        upper_mac(&mut body);
        if path == "/tunnels" {
            let mut tunnel = new_tunnel();
            tunnel.extend(body);
            body = tunnel;
        }
        if path.ends_with("/guests") {
            body.insert("status".to_owned(), json!("stopped"));
            body.remove("password");
            body.remove("node");
            let snapshots = format!("{path}/{}/snapshots", text(body.get("vmid")));
            state.tables.get_mut(path).expect("a table").rows.push(body);
            state.tables.insert(snapshots, Table { ids: Ids::Field("name"), rows: Vec::new() });
            return (200, answer);
        }
        table.rows.push(body);
        (200, answer)
    }

    fn act(&self, state: &mut State, (path, id, what): (&str, &str, &str), body: Fields) -> (u16, Value) {
        let Some(at) = state.tables.get(path).and_then(|table| place(table, id)) else {
            return (404, json!({}));
        };
        let row = &mut state.tables.get_mut(path).expect("a table").rows[at];
        match what {
            "start" => drop(row.insert("status".to_owned(), json!("running"))),
            "stop" => drop(row.insert("status".to_owned(), json!("stopped"))),
            "resize" => drop(row.insert("memory".to_owned(), json!(text(body.get("memory"))))),
            "migrate" => {
                let table = format!("/nodes/{}/guests", text(body.get("target")));
                let guest = state.tables.get_mut(path).expect("a table").rows.remove(at);
                state.tables.get_mut(&table).expect("a table").rows.push(guest);
            }
            "clone" => {
                let mut copy = row.clone();
                copy.insert("vmid".to_owned(), json!(text(body.get("newid"))));
                return self.create(state, path, copy);
            }
            "block" | "pass" => drop(row.insert("action".to_owned(), json!(what))),
            "ping" => {}
            _ => return (404, json!({})),
        }
        (200, json!({}))
    }
}
