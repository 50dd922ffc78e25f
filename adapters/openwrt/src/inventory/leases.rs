//! DHCP leases from wherever the device keeps them: the module of the web interface, the lease file of dnsmasq, or
//! odhcpd. A source that could not be read is distinguished from one without leases.

use heddle_sdk::{Fault, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use super::{lower_mac, plain};
use crate::rpc::{self, CallError, Read, status};

/// Where the lease file may lie: the manifest lets these be read and no other file.
pub(crate) const FILES: &[&str] = &[
    "/tmp/dhcp.leases",
    "/var/dhcp.leases",
    "/var/run/dhcp.leases",
    "/etc/dhcp.leases",
    "/root/dhcp.leases",
];

/// The reads that say most; the lease file is read only when they do not.
pub(crate) fn reads() -> Vec<Read<'static>> {
    vec![("luci-rpc", "getDHCPLeases", json!({"family": 4})), plain("dhcp", "ipv4leases")]
}

/// What was found out about leases.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// In one form; `expires_secs` is `null` when infinite. `expires_at` is there where the device tells the time itself.
    pub(crate) all: Vec<Value>,
    /// Why none could be read; empty when they could.
    pub(crate) failures: Vec<String>,
    /// Whether a missing right is among the failures.
    pub(crate) is_denied: bool,
    /// The first call that failed, of those that the device has and the user may make.
    failed: Option<Fault>,
}

impl Leases {
    /// The fault of a reading that is about leases alone.
    pub(crate) fn or_fault(self) -> Result<Vec<Value>, Fault> {
        if self.failures.is_empty() {
            return Ok(self.all);
        }
        let message = format!("leases cannot be read: {}", self.failures.join("; "));
        Err(match self.failed {
            Some(fault) => fault,
            None if self.is_denied => fault::denied(message),
            None => fault::unsupported(message),
        })
    }

    fn fails(&mut self, what: &str, error: &CallError) {
        self.is_denied |= error.is_denied();
        let why = if error.is_denied() {
            "the user may not call it"
        } else if error.is_failure() {
            self.failed.get_or_insert_with(|| error.clone().into_fault(what));
            "it failed"
        } else {
            "the device does not have it"
        };
        self.failures.push(format!("'{what}': {why}"));
    }
}

/// Takes the answers of [`reads`], and reads the lease file where they say nothing.
pub(crate) fn gather(
    host: &dyn Host,
    luci: &Result<Value, CallError>,
    odhcpd: &Result<Value, CallError>,
) -> Result<Leases, Fault> {
    let mut leases = Leases::default();
    let of_odhcpd = odhcpd.as_ref().ok().map(odhcpd_leases).unwrap_or_default();
    match luci {
        Ok(answer) => leases.all = luci_leases(answer),
        Err(error) => {
            leases.fails("luci-rpc.getDHCPLeases", error);
            let is_served_by_odhcpd = from_file(host, &mut leases)?;
            if is_served_by_odhcpd && odhcpd.is_ok() {
                leases.failures.clear();
            } else if let Err(error) = odhcpd
                && (is_served_by_odhcpd || !leases.failures.is_empty())
            {
                leases.fails("dhcp.ipv4leases", error);
            }
        }
    }
    for lease in of_odhcpd {
        let is_same = |known: &Value| known["mac"] == lease["mac"] && known["ip"] == lease["ip"];
        if !leases.all.iter().any(is_same) {
            leases.all.push(lease);
        }
    }
    if leases.failures.is_empty() {
        leases.is_denied = false;
    }
    Ok(leases)
}

/// Reads dnsmasq's file where its configuration says it is. True when odhcpd serves `DHCPv4` instead.
fn from_file(host: &dyn Host, leases: &mut Leases) -> Result<bool, Fault> {
    let config = match rpc::call(host, "uci", "get", &json!({"config": "dhcp"})) {
        Ok(config) => config,
        Err(CallError::Host(fault)) => return Err(fault),
        Err(error) => {
            leases.fails("uci.get dhcp", &error);
            return Ok(false);
        }
    };
    let sections: Vec<&Value> =
        config.get("values").and_then(Value::as_object).into_iter().flat_map(|map| map.values()).collect();
    let of = |kind: &str, option: &str| {
        sections
            .iter()
            .find(|section| section[".type"] == json!(kind))
            .and_then(|section| sdk_json::text(section, &format!("/{option}")))
    };
    let is_odhcpd = of("odhcpd", "maindhcp") == Some("1");
    let path = of("dnsmasq", "leasefile").unwrap_or(FILES[0]);
    if !FILES.contains(&path) {
        leases
            .failures
            .push(format!("the lease file '{path}' is not one that may be read; '{}' is", FILES[0]));
        return Ok(is_odhcpd);
    }
    match rpc::call(host, "file", "read", &json!({"path": path})) {
        Ok(answer) => {
            leases.all =
                file_leases(sdk_json::text(&answer, "/data").unwrap_or_default(), host.now_ms() / 1_000);
            leases.failures.clear();
        }
        // An empty file has no data, and none at all means that no lease was given yet.
        Err(error) if error.is_ubus(status::NOT_FOUND) || error.is_ubus(status::NO_DATA) => {
            leases.failures.clear();
        }
        Err(CallError::Host(fault)) => return Err(fault),
        Err(error) => leases.fails(&format!("file.read {path}"), &error),
    }
    Ok(is_odhcpd)
}

fn luci_leases(answer: &Value) -> Vec<Value> {
    let listed = sdk_json::items(answer, "/dhcp_leases").iter();
    listed
        .filter_map(|lease| {
            let mac = sdk_json::text(lease, "/macaddr")?;
            Some(json!({"mac": lower_mac(mac), "ip": lease.get("ipaddr"), "hostname": lease.get("hostname"), "expires_secs": lease.get("expires").and_then(Value::as_i64)}))
        })
        .collect()
}

fn odhcpd_leases(answer: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for (interface, device) in answer.get("device").and_then(Value::as_object).into_iter().flatten() {
        for lease in sdk_json::items(device, "/leases") {
            let Some(mac) = sdk_json::text(lease, "/mac") else { continue };
            let valid = lease.get("valid").and_then(Value::as_i64).filter(|valid| *valid >= 0);
            all.push(json!({"mac": with_colons(mac), "ip": lease.get("address"), "hostname": lease.get("hostname"), "expires_secs": valid, "device": interface}));
        }
    }
    all
}

/// Lines of expiry (seconds since 1970, 0 for never), MAC, address, name or `*`, and client id.
fn file_leases(text: &str, now: u64) -> Vec<Value> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let expiry: u64 = words.next()?.parse().ok()?;
            let (mac, ip, name) = (words.next()?, words.next()?, words.next()?);
            let ends = (expiry > 0).then_some(expiry);
            let left = ends.map(|ends| ends.saturating_sub(now));
            let name = (name != "*").then_some(name);
            // Leases of IPv6 have no MAC in this place.
            mac.contains(':').then(|| {
                json!({"mac": lower_mac(mac), "ip": ip, "hostname": name, "expires_secs": left, "expires_at": ends})
            })
        })
        .collect()
}

/// odhcpd writes a MAC as twelve digits.
fn with_colons(mac: &str) -> String {
    let mac = lower_mac(mac);
    if mac.len() != 12 || !mac.is_ascii() {
        return mac;
    }
    (0..6).map(|i| &mac[i * 2..i * 2 + 2]).collect::<Vec<_>>().join(":")
}
