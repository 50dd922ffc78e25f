//! A device in memory: files, staging and the pending apply, written without
//! the adapter's model so that the two check each other.

use std::cell::RefCell;
use std::collections::BTreeMap;

use heddle_sdk::testing::{FakeHost, json_body, json_response};
use heddle_sdk::{Fault, Request, Response, fault};
use serde_json::{Map, Value, json};

/// (id, type, is anonymous, options)
type Row = (String, String, bool, Map<String, Value>);
type Files = BTreeMap<String, Vec<Row>>;

#[derive(Default)]
pub(super) struct Device {
    files: RefCell<Files>,
    staged: RefCell<Files>,
    before_apply: RefCell<Option<Files>>,
    /// (object.method, answer): what else is asked, or fails.
    pub(super) answers: RefCell<BTreeMap<String, Value>>,
    /// A call at which the connection breaks.
    pub(super) breaks_at: RefCell<Option<String>>,
}

fn id(position: usize, kind: &str) -> String {
    let hash = match kind {
        "rule" => "92bd",
        "zone" => "dc81",
        "defaults" => "e63d",
        "forwarding" => "ad58",
        other => &other[..4.min(other.len())],
    };
    // Only types with a known hash are anonymous in these tests.
    format!("cfg{position:02x}{hash}")
}

impl Device {
    /// `sections`: (type, name or empty, options).
    pub(super) fn file(self, config: &str, sections: &[(&str, &str, Value)]) -> Self {
        let rows = sections.iter().enumerate().map(|(i, (kind, name, options))| {
            let name = if name.is_empty() { id(i + 1, kind) } else { (*name).to_owned() };
            (name.clone(), (*kind).to_owned(), name.starts_with("cfg"), options.as_object().unwrap().clone())
        });
        let rows: Vec<Row> = rows.collect();
        self.files.borrow_mut().insert(config.to_owned(), rows.clone());
        self.staged.borrow_mut().insert(config.to_owned(), rows);
        self
    }

    /// Another person writes: edits the rows, and the device then numbers the sections again.
    pub(super) fn edit(&self, config: &str, edit: impl FnOnce(&mut Vec<Row>)) {
        let mut files = self.files.borrow_mut();
        let rows = files.get_mut(config).unwrap();
        edit(rows);
        for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.2) {
            row.0 = id(i + 1, &row.1);
        }
        self.staged.borrow_mut().insert(config.to_owned(), rows.clone());
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        FakeHost::new(|request, _| self.http(request))
    }

    /// What the files say, without ids that only reflect positions.
    pub(super) fn content(&self) -> Value {
        let files = self.files.borrow();
        json!(
            files
                .iter()
                .map(|(name, rows)| (
                    name,
                    rows.iter()
                        .map(|(id, kind, anonymous, options)| {
                            let sorted: BTreeMap<_, _> = options.iter().collect();
                            json!([kind, (!anonymous).then_some(id), sorted])
                        })
                        .collect::<Vec<_>>()
                ))
                .collect::<BTreeMap<_, _>>()
        )
    }

    fn http(&self, request: &Request) -> Result<Response, Fault> {
        let body = json_body(request).unwrap();
        let answer = match &body {
            Value::Array(calls) => {
                Value::Array(calls.iter().map(|call| self.rpc(call)).collect::<Result<_, _>>()?)
            }
            call => self.rpc(call)?,
        };
        Ok(json_response(200, &answer))
    }

    fn rpc(&self, call: &Value) -> Result<Value, Fault> {
        if call["method"] == "list" {
            return Ok(json!({"result": {"uci": {}, "system": {}, "file": {}, "rpc-sys": {}}}));
        }
        let (object, method) = (call["params"][1].as_str().unwrap(), call["params"][2].as_str().unwrap());
        let name = format!("{object}.{method}");
        if self.breaks_at.borrow().as_ref() == Some(&name) {
            return Err(fault::connection("the connection broke"));
        }
        let answers = self.answers.borrow();
        let result = match answers.get(&name) {
            Some(answer) if answer.get("error").is_some() => return Ok(answer.clone()),
            Some(answer) => answer.clone(),
            None if object == "uci" => self.uci(method, &call["params"][3]),
            None => return Ok(json!({"error": {"code": -32000}})),
        };
        Ok(json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    }

    fn uci(&self, method: &str, args: &Value) -> Value {
        let mut staged = self.staged.borrow_mut();
        let committed = self.files.borrow().get(args["config"].as_str().unwrap_or("")).map_or(0, Vec::len);
        match method {
            "changes" => return json!([0, {"changes": {}}]),
            "apply" => {
                assert_eq!(args["rollback"], json!(true));
                if *staged == *self.files.borrow() {
                    return json!([5]);
                }
                *self.before_apply.borrow_mut() = Some(self.files.borrow().clone());
                for rows in staged.values_mut() {
                    for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.2) {
                        row.0 = id(i + 1, &row.1);
                    }
                }
                *self.files.borrow_mut() = staged.clone();
                return json!([0]);
            }
            "confirm" => return if self.before_apply.take().is_some() { json!([0]) } else { json!([5]) },
            "rollback" => {
                let Some(before) = self.before_apply.take() else { return json!([5]) };
                *self.files.borrow_mut() = before.clone();
                *staged = before;
                return json!([0]);
            }
            _ => {}
        }
        let Some(rows) = staged.get_mut(args["config"].as_str().unwrap()) else { return json!([4]) };
        if method == "get" {
            let values: Map<String, Value> = rows
                .iter()
                .enumerate()
                .map(|(i, (id, kind, anonymous, options))| {
                    let mut body = json!({".type": kind, ".name": id, ".anonymous": anonymous, ".index": i});
                    body.as_object_mut().unwrap().extend(options.clone());
                    (id.clone(), body)
                })
                .collect();
            return json!([0, {"values": values}]);
        }
        if method == "add" {
            let kind = args["type"].as_str().unwrap().to_owned();
            let name = args["name"].as_str().map(str::to_owned);
            // The device numbers on from what it read; tests add at most two.
            let next = committed + 1 + rows.iter().filter(|row| row.0 == id(committed + 1, &kind)).count();
            let row = (
                name.clone().unwrap_or_else(|| id(next, &kind)),
                kind,
                name.is_none(),
                args["values"].as_object().cloned().unwrap_or_default(),
            );
            rows.push(row);
            return json!([0]);
        }
        if method == "order" {
            let wanted: Vec<&str> =
                args["sections"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
            assert_eq!(wanted.len(), rows.len(), "the order is complete");
            rows.sort_by_key(|row| wanted.iter().position(|id| *id == row.0).unwrap());
            return json!([0]);
        }
        let Some(at) = rows.iter().position(|row| row.0 == args["section"].as_str().unwrap()) else {
            return json!([4]);
        };
        match (method, args.get("option")) {
            ("delete", None) => drop(rows.remove(at)),
            ("delete", Some(option)) => drop(rows[at].3.remove(option.as_str().unwrap()).unwrap()),
            ("set", _) => rows[at].3.extend(args["values"].as_object().unwrap().clone()),
            _ => return json!([3]),
        }
        json!([0])
    }
}

/// A router much like one out of the box.
pub(super) fn router() -> Device {
    Device::default()
        .file("firewall", &[
            ("defaults", "", json!({"input": "REJECT"})),
            ("zone", "", json!({"name": "lan", "network": ["lan"], "input": "ACCEPT", "output": "ACCEPT", "forward": "ACCEPT"})),
            ("zone", "", json!({"name": "wan", "network": "wan wan6", "input": "REJECT", "output": "ACCEPT", "forward": "REJECT", "masq": "1"})),
            ("forwarding", "", json!({"src": "lan", "dest": "wan"})),
            ("rule", "", json!({"name": "Allow-Ping", "src": "wan", "proto": "icmp", "icmp_type": "echo-request", "target": "ACCEPT"})),
            ("rule", "", json!({"name": "Allow-DHCP", "src": "wan", "proto": "udp", "dest_port": "68", "target": "ACCEPT"})),
            ("rule", "web", json!({"name": "Web", "src": "wan", "dest": "lan", "proto": ["tcp"], "dest_port": "80", "target": "ACCEPT", "enabled": "0"})),
            ("redirect", "a", json!({"name": "A", "src": "wan", "proto": "tcp", "src_dport": "81", "dest_ip": "192.168.1.2"})),
            ("redirect", "b", json!({"name": "B", "src": "wan", "proto": "tcp", "src_dport": "82", "dest_ip": "192.168.1.3"})),
            ("zone", "spare", json!({"name": "spare", "input": "DROP", "output": "DROP", "forward": "DROP"})),
        ])
        .file("dhcp", &[
            ("dhcp", "lan", json!({"interface": "lan", "start": "100", "limit": "150", "leasetime": "12h"})),
            ("host", "printer", json!({"name": "printer", "mac": ["00:11:22:33:44:55"], "ip": "192.168.1.20"})),
        ])
        .file("network", &[
            ("interface", "loopback", json!({"proto": "static", "device": "lo"})),
            ("device", "br", json!({"name": "br-lan", "type": "bridge", "ports": ["lan1", "lan2"]})),
            ("device", "port", json!({"name": "lan2", "mtu": "1500"})),
            ("interface", "lan", json!({"proto": "static", "device": "br-lan", "ipaddr": "192.168.1.1", "netmask": "255.255.255.0"})),
            ("interface", "wan", json!({"proto": "dhcp", "device": "eth1"})),
            ("bridge-vlan", "v10", json!({"device": "br-lan", "vlan": "10", "ports": ["lan1:t"]})),
        ])
        .file("system", &[("system", "main", json!({"hostname": "OpenWrt", "timezone": "UTC"}))])
}
