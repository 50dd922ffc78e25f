//! Rows as the device stores and shows them, and what requests carry.

use heddle_sdk::{Body, Method, Request, json as sdk_json};
use serde_json::{Value, json};

use super::{Fields, Ids, State, Table, fields};

pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

pub(super) fn method(method: Method) -> String {
    format!("{method:?}").trim_start_matches("Method::").to_owned()
}

/// The rows as a list shows them.
pub(super) fn listed(table: &Table) -> Vec<Value> {
    let one = |(at, row): (usize, &Fields)| {
        let mut row = row.clone();
        if table.ids == Ids::Position {
            row.insert("pos".to_owned(), json!(at));
        }
        Value::Object(row)
    };
    table.rows.iter().enumerate().map(one).collect()
}

pub(super) fn new_tunnel() -> Fields {
    fields(
        &json!({ "mode": "tls", "zone": "", "far": { "peers": "" }, "port": "1194", "on": "1", "serial": "7",
        "comment": "" }),
    )
}

/// A tunnel as it is read: with everything that can be chosen.
pub(super) fn tunnel(state: &State, row: &Fields) -> Value {
    let choices = |known: Vec<(String, String)>, chosen: String| {
        let one = |(id, label): (String, String)| {
            let is_selected = i32::from(chosen.split(',').any(|chosen| chosen == id));
            (id, json!({ "value": label, "selected": is_selected }))
        };
        Value::Object(known.into_iter().map(one).collect())
    };
    let fixed =
        |known: &[(&str, &str)]| known.iter().map(|(id, label)| ((*id).into(), (*label).into())).collect();
    let aliases = &state.tables["/aliases"].rows;
    let zones = aliases.iter().map(|row| (text(row.get("id")), text(row.get("name")))).collect();
    let mut shown = row.clone();
    shown.insert(
        "mode".to_owned(),
        choices(fixed(&[("tls", "TLS"), ("psk", "Shared key")]), text(row.get("mode"))),
    );
    shown.insert("zone".to_owned(), choices(zones, text(row.get("zone"))));
    let peers = choices(fixed(&[("p1", "One"), ("p2", "Two")]), text(row["far"].get("peers")));
    shown.insert("far".to_owned(), json!({ "peers": peers }));
    Value::Object(shown)
}

/// What a list over all nodes shows of guests.
pub(super) fn all_guests(state: &State) -> Vec<Value> {
    let tables = state.tables.iter().filter_map(|(path, table)| {
        let node = path.strip_prefix("/nodes/")?.strip_suffix("/guests")?;
        Some((node, table))
    });
    let row = |node: &str, row: &Fields| json!({ "vmid": row["vmid"], "name": row.get("name"), "node": node, "status": row["status"] });
    tables.flat_map(|(node, table)| table.rows.iter().map(move |guest| row(node, guest))).collect()
}

/// The place of a row by its id.
pub(super) fn place(table: &Table, id: &str) -> Option<usize> {
    let field = match table.ids {
        Ids::Position => return id.parse().ok().filter(|at| *at < table.rows.len()),
        Ids::Field(name) => name,
        Ids::Answered | Ids::Silent => "id",
    };
    table.rows.iter().position(|row| text(row.get(field)) == id)
}

pub(super) fn update(row: &mut Fields, mut body: Fields) {
    for name in text(body.remove("delete").as_ref()).split(',') {
        row.remove(name);
    }
    let emptied: Vec<String> =
        body.keys().filter_map(|name| Some(name.strip_prefix('!')?.to_owned())).collect();
    for name in emptied {
        body.remove(&format!("!{name}"));
        row.remove(&name);
    }
    body.remove("password");
    body.remove("by");
    row.extend(body);
    upper_mac(row);
}

/// Takes away what a service has only together with something else.
pub(super) fn keep(service: &mut Fields) {
    if !matches!(text(service.get("protocol")).as_str(), "tcp" | "udp") {
        service.remove("port");
    }
    if !service.contains_key("port") {
        service.remove("check");
    }
    if service.get("protocol") == Some(&json!("gre")) {
        service.remove("maker");
    }
}

pub(super) fn upper_mac(row: &mut Fields) {
    if let Some(Value::String(mac)) = row.get_mut("mac") {
        *mac = mac.to_uppercase();
    }
}

pub(crate) fn digest(value: &Value) -> Value {
    let bytes = sdk_json::digest(value);
    json!(bytes[..6].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

pub(super) fn body_of(request: &Request) -> Fields {
    match &request.body {
        Body::Json(body) => fields(&serde_json::from_str(body).expect("JSON")),
        Body::Form(form) => form.iter().map(|(name, value)| (name.clone(), json!(value))).collect(),
        _ => Fields::new(),
    }
}

pub(super) fn params(query: &str) -> Fields {
    let pairs = query.split('&').filter_map(|part| part.split_once('='));
    pairs.map(|(name, value)| (decoded(name), json!(decoded(value)))).collect()
}

pub(super) fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(byte);
            rest = &behind[2..];
        } else {
            out.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(out).expect("UTF-8")
}

/// The tables that every device begins with.
pub(super) fn begin(table: &dyn Fn(&str, Ids, &[Value])) {
    table("/aliases", Ids::Answered, &[json!({ "id": "x1", "name": "web", "note": "old" })]);
    table("/zones", Ids::Silent, &[]);
    table(
        "/rules",
        Ids::Position,
        &[
            json!({ "name": "ssh", "target": "x1", "action": "pass" }),
            json!({ "name": "dns", "target": "x1", "action": "pass" }),
            json!({ "name": "ntp", "target": "x1", "action": "block" }),
        ],
    );
    table("/profiles", Ids::Field("id"), &[]);
    table(
        "/services",
        Ids::Answered,
        &[
            json!({ "id": "x4", "name": "web", "protocol": "tcp", "port": 443, "check": "https", "note": "old",
                "locked": true }),
            json!({ "id": "x5", "name": "dns", "protocol": "udp", "port": 53, "maker": "other" }),
            json!({ "id": "x6", "name": "vpn", "protocol": "esp" }),
        ],
    );
    table(
        "/bundles",
        Ids::Answered,
        &[
            json!({ "id": "x7", "name": "office", "services": ["web", "!vpn"] }),
            json!({ "id": "x8", "name": "home", "first": "dns" }),
        ],
    );
    begin_hosts(table);
}

fn begin_hosts(table: &dyn Fn(&str, Ids, &[Value])) {
    table(
        "/nodes",
        Ids::Field("name"),
        &[
            json!({ "name": "n1", "number": 7, "role": "host" }),
            json!({ "name": "n2", "number": 8, "role": "host" }),
            json!({ "name": "w", "number": 9, "role": "witness" }),
        ],
    );
    table(
        "/nodes/n1/guests",
        Ids::Field("vmid"),
        &[json!({ "vmid": "100", "name": "mail", "status": "stopped", "cores": "2",
            "net": "virtio=BC:24,bridge=vmbr0,tag=20", "memory": "512" })],
    );
    table("/nodes/n2/guests", Ids::Field("vmid"), &[]);
    table("/nodes/n1/guests/100/snapshots", Ids::Field("name"), &[json!({ "name": "base" })]);
    table("/nodes/n1/guests/100/filters", Ids::Position, &[json!({ "name": "in", "action": "drop" })]);
    table("/nodes/n1/slots", Ids::Field("name"), &[json!({ "name": "a" }), json!({ "name": "a:b" })]);
    table("/nodes/n2/slots", Ids::Field("name"), &[json!({ "name": "a" })]);
    table(
        "/nodes/n1/slots/a/cards",
        Ids::Answered,
        &[json!({ "id": "x2", "bus": "00:1f.2", "mode": "raid" })],
    );
    table("/nodes/n1/slots/a:b/cards", Ids::Answered, &[]);
    table(
        "/nodes/n2/slots/a/cards",
        Ids::Answered,
        &[json!({ "id": "x3", "bus": "00:1f.2", "mode": "raid" })],
    );
    table(
        "/tunnels",
        Ids::Field("uuid"),
        &[json!({ "uuid": "builtin", "mode": "psk", "zone": "", "far": {} })],
    );
    table(
        "/ports",
        Ids::Field("id"),
        &[
            json!({ "id": "p1", "node": "n1", "port": 1, "speed": 100 }),
            json!({ "id": "p2", "node": "n2", "port": 1, "speed": 100 }),
        ],
    );
    table("/tags", Ids::Field("name"), &[]);
    table("/groups", Ids::Answered, &[]);
    table(
        "/watches",
        Ids::Answered,
        &[
            json!({ "id": "*1", "name": "all", "on": "true", "dynamic": "true" }),
            json!({ "id": "*2", "name": "ping", "on": "true", "pause": "90s", "from": "!lan", "burst": "100",
                "loud": "", "times": "3600s,90s" }),
            json!({ "id": "*3", "on": "false" }),
        ],
    );
}
