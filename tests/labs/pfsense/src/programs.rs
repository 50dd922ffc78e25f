//! Services and packages.

use serde_json::{Value, json};

use crate::device::Pfsense;
use crate::facts::Facts;
use crate::release::Release;
use crate::store::{is_true, text};

/// Services that every firewall has.
const BASE: [(&str, &str); 7] = [
    ("dhcpd", "DHCP Service"),
    ("dpinger", "Gateway Monitoring Daemon"),
    ("ntpd", "NTP clock sync"),
    ("sshd", "Secure Shell Daemon"),
    ("syslogd", "System Logger Daemon"),
    ("unbound", "DNS Resolver"),
    ("dnsmasq", "DNS Forwarder"),
];
/// Services that packages bring.
const OF_PACKAGES: [(&str, &str, &str); 5] = [
    ("pfSense-pkg-WireGuard", "wireguard", "WireGuard"),
    ("pfSense-pkg-haproxy", "haproxy", "TCP/HTTP(S) Load Balancer"),
    ("pfSense-pkg-bind", "named", "BIND DNS Server"),
    ("pfSense-pkg-freeradius3", "radiusd", "FreeRADIUS Server"),
    ("pfSense-pkg-Service_Watchdog", "servicewatchdog", "Service Watchdog"),
];

pub(crate) fn services(firewall: &Pfsense) -> Vec<Value> {
    let config = &firewall.running;
    let serves = config.list("DHCPServer").iter().any(|server| is_true(server, "enable"));
    let resolves = is_true(&config.single("DNSResolverSettings"), "enable");
    let has_ssh = is_true(&config.single("SSH"), "enable");
    let is_enabled = |name: &str| match name {
        "dhcpd" => serves,
        "unbound" => resolves,
        "sshd" => has_ssh,
        "dnsmasq" => false,
        _ => true,
    };
    let row = |name: &str, descr: &str, is_on: bool| {
        let runs = is_on && !firewall.live.stopped.contains(name);
        json!({ "name": name, "description": descr, "enabled": is_on, "status": runs })
    };
    let mut out: Vec<Value> = BASE.iter().map(|(name, descr)| row(name, descr, is_enabled(name))).collect();
    for server in config.list("OpenVPNServer") {
        let descr = format!("OpenVPN server: {}", text(server, "description"));
        out.push(row("openvpn", &descr, !is_true(server, "disable")));
    }
    // The older release asks for services of packages in a way that finds none of them running.
    let sees_packages = firewall.release >= Release::V2_8;
    for (package, name, descr) in OF_PACKAGES {
        if firewall.packages.contains(package) {
            out.push(row(name, descr, sees_packages));
        }
    }
    out
}

/// Starts, stops or restarts a service by its name.
pub(crate) fn control(firewall: &mut Pfsense, name: &str, action: &str) {
    if action == "stop" {
        firewall.live.stopped.insert(name.to_owned());
        return;
    }
    firewall.live.stopped.remove(name);
    *firewall.live.restarts.entry(format!("{action} {name}")).or_default() += 1;
}

/// The packages that the repository offers.
fn known() -> Vec<&'static str> {
    let models = Facts::get().models.values();
    let mut names: Vec<&str> = models.flat_map(|model| &model.packages).map(String::as_str).collect();
    names.extend(["pfSense-pkg-RESTAPI", "pfSense-pkg-nmap"]);
    names.sort_unstable();
    names.dedup();
    names
}

pub(crate) fn available(firewall: &Pfsense) -> Vec<Value> {
    let row = |name: &str| {
        json!({ "name": name, "shortname": short(name), "descr": "", "version": "1.2.0",
            "installed": firewall.packages.contains(name), "deps": [] })
    };
    known().into_iter().map(row).collect()
}

pub(crate) fn installed(firewall: &Pfsense) -> Vec<Value> {
    let row = |name: &&str| {
        json!({ "name": name, "shortname": short(name), "descr": "", "installed_version": "1.2.0",
            "latest_version": "1.2.0", "update_available": false })
    };
    known().iter().filter(|name| firewall.packages.contains(**name)).map(row).collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("pfSense-pkg-").unwrap_or(name)
}

/// Removes a package. The one that answers goes, too.
pub(crate) fn remove(firewall: &mut Pfsense, name: &str) {
    firewall.packages.remove(name);
}
