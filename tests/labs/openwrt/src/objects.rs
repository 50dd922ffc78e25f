//! The ubus objects and methods that this router has: their arguments, and whether they change anything.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// One method of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub(crate) object: &'static str,
    pub(crate) name: &'static str,
    /// Argument names and ubus types.
    pub(crate) args: &'static [(&'static str, &'static str)],
    pub(crate) is_write: bool,
}

const fn read(
    object: &'static str,
    name: &'static str,
    args: &'static [(&'static str, &'static str)],
) -> Method {
    Method { object, name, args, is_write: false }
}

const fn write(
    object: &'static str,
    name: &'static str,
    args: &'static [(&'static str, &'static str)],
) -> Method {
    Method { object, name, args, is_write: true }
}

const S: &str = "string";
const B: &str = "boolean";
const N: &str = "number";
const T: &str = "object";
const A: &str = "array";
const CONFIG: &[(&str, &str)] = &[("config", S)];
const SELECT: &[(&str, &str)] = &[("config", S), ("section", S), ("option", S), ("type", S), ("match", T)];

const METHODS: &[Method] = &[
    read("dhcp", "ipv4leases", &[]),
    read("dhcp", "ipv6leases", &[]),
    write("file", "exec", &[("command", S), ("params", A), ("env", T)]),
    read("file", "read", &[("path", S), ("base64", B)]),
    read("file", "stat", &[("path", S)]),
    read("hostapd.phy0-ap0", "get_clients", &[]),
    read("hostapd.phy1-ap0", "get_clients", &[]),
    read("iwinfo", "assoclist", &[("device", S), ("mac", S)]),
    read("iwinfo", "devices", &[]),
    read("iwinfo", "info", &[("device", S)]),
    read("log", "read", &[("lines", N), ("stream", B), ("oneshot", B)]),
    read("luci-rpc", "getDHCPLeases", &[("family", N)]),
    read("luci-rpc", "getHostHints", &[]),
    read("luci-rpc", "getNetworkDevices", &[]),
    read("network.device", "status", &[("name", S)]),
    read("network.interface", "dump", &[]),
    read("network.wireless", "status", &[]),
    read("rc", "list", &[("name", S), ("skip_running_check", B)]),
    write("rpc-sys", "factory", &[]),
    read("rpc-sys", "packagelist", &[("all", B)]),
    write("rpc-sys", "password_set", &[("user", S), ("password", S)]),
    write("rpc-sys", "reboot", &[]),
    write("rpc-sys", "upgrade_start", &[("keep", B)]),
    read("service", "list", &[("name", S), ("verbose", B)]),
    read("session", "access", &[("scope", S), ("object", S), ("function", S)]),
    read("session", "destroy", &[]),
    read("session", "login", &[("username", S), ("password", S), ("timeout", N)]),
    read("system", "board", &[]),
    read("system", "info", &[]),
    write("system", "reboot", &[]),
    read("system", "validate_firmware_image", &[("path", S)]),
    write("uci", "add", &[("config", S), ("type", S), ("name", S), ("values", T)]),
    write("uci", "apply", &[("rollback", B), ("timeout", N)]),
    read("uci", "changes", CONFIG),
    write("uci", "commit", CONFIG),
    read("uci", "configs", &[]),
    write("uci", "confirm", &[]),
    write(
        "uci",
        "delete",
        &[("config", S), ("section", S), ("type", S), ("match", T), ("option", S), ("options", A)],
    ),
    read("uci", "get", SELECT),
    write("uci", "order", &[("config", S), ("sections", A)]),
    write("uci", "rename", &[("config", S), ("section", S), ("option", S), ("name", S)]),
    write("uci", "revert", CONFIG),
    write("uci", "rollback", &[]),
    write("uci", "set", &[("config", S), ("section", S), ("type", S), ("match", T), ("values", T)]),
    read("uci", "state", SELECT),
];

/// The method, when the object has it.
pub(crate) fn method(object: &str, name: &str) -> Option<Method> {
    METHODS.iter().find(|method| method.object == object && method.name == name).copied()
}

pub(crate) fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = METHODS.iter().map(|method| method.object).collect();
    names.dedup();
    names
}

/// The objects that a router without some packages has.
pub(crate) fn present(missing: &BTreeSet<String>) -> Vec<&'static str> {
    names().into_iter().filter(|name| !missing.contains(*name)).collect()
}

/// The signatures of one object, as `list` prints them.
pub(crate) fn signatures(object: &str) -> Value {
    let methods = METHODS.iter().filter(|method| method.object == object);
    let print = |args: &[(&str, &str)]| -> Map<String, Value> {
        args.iter().map(|(name, kind)| ((*name).to_owned(), json!(kind))).collect()
    };
    Value::Object(methods.map(|method| (method.name.to_owned(), Value::Object(print(method.args)))).collect())
}

/// The methods that change nothing, by object.
pub(crate) fn readable() -> Value {
    let mut out = Map::new();
    for name in names() {
        let methods: Vec<&str> = METHODS
            .iter()
            .filter(|method| method.object == name && !method.is_write)
            .map(|method| method.name)
            .collect();
        if !methods.is_empty() {
            out.insert(name.to_owned(), json!(methods));
        }
    }
    Value::Object(out)
}
