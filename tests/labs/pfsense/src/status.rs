//! Objects that the system tells, and that no configuration holds.

use serde_json::{Value, json};

use crate::api::shown;
use crate::call::Call;
use crate::device::Pfsense;
use crate::facts::Model;
use crate::reply::Refusal;
use crate::represent::{self, Row};
use crate::store::{Config, NAME, Object, is_true, text};
use crate::{hardware, interfaces, jobs, machine, net, programs, vpn};

/// The objects of a model without a place in the configuration, with their ids.
pub(crate) fn objects(firewall: &Pfsense, model: &Model) -> Option<Vec<(Value, Object)>> {
    if model.name == "Table" {
        return Some(tables(firewall));
    }
    let rows = match model.name.as_str() {
        "ARPTable" => neighbours(firewall),
        "AvailableInterface" => devices(firewall),
        "DHCPServerLease" => leases(firewall),
        "FirewallState" => states(firewall),
        "InterfaceStats" => interface_stats(firewall),
        "RoutingGatewayStatus" => gateways(firewall),
        "Service" => programs::services(firewall),
        "AvailablePackage" => programs::available(firewall),
        "Package" => programs::installed(firewall),
        "ConfigHistoryRevision" => revisions(firewall),
        "IPsecSAStatus"
        | "OpenVPNServerStatus"
        | "OpenVPNClientStatus"
        | "WireGuardTunnelStatus"
        | "WireGuardPeerStatus" => vpn::status(firewall, &model.name),
        "SystemStatus" => vec![machine::system(firewall)],
        "SystemVersion" => vec![machine::version(firewall)],
        "RESTAPIVersion" => vec![machine::api_version(firewall)],
        "CARP" => vec![json!({
            "enable": firewall.live.carp_is_on, "maintenance_mode": firewall.live.carp_is_maintained
        })],
        "AuthLog" | "DHCPLog" | "FirewallLog" | "OpenVPNLog" | "RESTAPILog" | "SystemLog" => {
            machine::log(firewall, &model.name)
        }
        "ACMEAccountKeyRegister" | "ACMECertificateIssue" | "ACMECertificateRenew" => {
            machine::acme(firewall, &model.name)
        }
        name if name.ends_with("Apply") => vec![applied(firewall, name)],
        _ => return None,
    };
    let rows = rows.into_iter().enumerate().filter_map(|(at, row)| match row {
        Value::Object(row) => Some((json!(at), row)),
        _ => None,
    });
    Some(rows.collect())
}

/// Refuses reads that end in an error of the vendor's code.
pub(crate) fn check(firewall: &Pfsense, model: &Model) -> Result<(), Refusal> {
    let is_package_gone = model.packages.iter().any(|package| !firewall.packages.contains(package));
    if is_package_gone && model.name.starts_with("WireGuard") && model.name.ends_with("Status") {
        return Err(Refusal::unexpected("Call to undefined function wg_get_status()"));
    }
    if is_package_gone && model.name.starts_with("ACME") && !model.stored {
        return Err(Refusal::unexpected("Failed opening required acme/acme.inc"));
    }
    Ok(())
}

/// Whether a waiting change is told, and of what.
fn applied(firewall: &Pfsense, model: &str) -> Value {
    let is_dirty = |name: &str| firewall.dirty.contains(name);
    let subsystem = match model {
        "FirewallApply" => {
            let waiting: Vec<&str> = ["aliases", "natconf", "filter", "shaper"]
                .into_iter()
                .filter(|name| is_dirty(name))
                .collect();
            return json!({ "applied": waiting.is_empty(), "pending_subsystems": waiting });
        }
        "InterfaceApply" => {
            let waiting = &firewall.pending_interfaces;
            return json!({ "applied": waiting.is_empty(), "pending_interfaces": waiting });
        }
        "VirtualIPApply" => "vip",
        "DHCPServerApply" => "dhcpd",
        "DNSForwarderApply" => "hosts",
        "DNSResolverApply" => "unbound",
        "IPsecApply" => "ipsec",
        "WireGuardApply" => "wireguard",
        "RoutingApply" => "staticroutes",
        _ => "haproxy",
    };
    json!({ "applied": !is_dirty(subsystem) })
}

fn neighbours(firewall: &Pfsense) -> Vec<Value> {
    let own = firewall.live.leases.iter().filter(|lease| !firewall.live.forgotten.contains(&lease.ip));
    let row = |lease: &crate::live::Lease| {
        json!({ "ip_address": lease.ip, "mac_address": lease.mac, "hostname": lease.hostname,
            "dnsresolve": lease.hostname, "interface": interfaces::show(&firewall.stored, &lease.interface),
            "type": "ethernet", "permanent": false, "expires": "Expires in 1120 seconds" })
    };
    own.map(row).collect()
}

fn devices(firewall: &Pfsense) -> Vec<Value> {
    let config = &firewall.stored;
    let row = |device: hardware::Device| {
        let user = config.having(interfaces::INTERFACES, "if", &device.name).map(|own| text(own, NAME));
        let mac = Some(device.mac).filter(|mac| !mac.is_empty());
        let dmesg = mac.as_ref().map(|_| "Intel(R) I350 (Copper)");
        json!({ "if": device.name, "mac": mac, "dmesg": dmesg, "in_use_by": user })
    };
    hardware::devices(config).into_iter().map(row).collect()
}

fn leases(firewall: &Pfsense) -> Vec<Value> {
    let time = |secs: u64| {
        let secs = i64::try_from(secs).unwrap_or_default();
        chrono::DateTime::from_timestamp(secs, 0).unwrap_or_default().format("%Y/%m/%d %H:%M:%S").to_string()
    };
    let now = firewall.time.as_secs();
    let mut rows: Vec<Value> = firewall
        .live
        .leases
        .iter()
        .map(|lease| {
            json!({ "ip": lease.ip, "mac": lease.mac, "hostname": lease.hostname, "if": lease.interface,
                "starts": time(now - 600), "ends": time(now + 6600), "active_status": "active",
                "online_status": "active/online", "descr": "" })
        })
        .collect();
    for server in firewall.running.list("DHCPServer") {
        for map in Config::children(server, "DHCPServerStaticMapping") {
            rows.push(json!({ "ip": text(&map, "ipaddr"), "mac": text(&map, "mac"),
                "hostname": text(&map, "hostname"), "if": text(server, NAME), "starts": "", "ends": "",
                "active_status": "static", "online_status": "idle/offline", "descr": text(&map, "descr") }));
        }
    }
    rows
}

fn states(firewall: &Pfsense) -> Vec<Value> {
    let row = |state: &crate::live::State| {
        json!({ "interface": state.interface, "protocol": "tcp", "direction": "in", "source": state.source,
            "destination": state.destination, "state": "ESTABLISHED:ESTABLISHED", "age": "00:01:40",
            "expires_in": "23:58:20", "packets_total": 24, "packets_in": 12, "packets_out": 12,
            "bytes_total": 4800, "bytes_in": 2400, "bytes_out": 2400 })
    };
    firewall.live.states.iter().map(row).collect()
}

/// State of the assigned interfaces, by what runs.
fn interface_stats(firewall: &Pfsense) -> Vec<Value> {
    let row = |own: &Object| {
        let device = text(own, "if");
        let is_on = is_true(own, "enable");
        let (address, bits) =
            interfaces::address4(own).map_or((Value::Null, Value::Null), |(address, bits)| {
                let mask = net::bounds4("255.255.255.255", bits).map(|(mask, _)| mask.to_string());
                (json!(address), json!(mask))
            });
        let (address6, bits6) = interfaces::address6(own)
            .map_or((Value::Null, Value::Null), |(address, bits)| (json!(address), json!(bits.to_string())));
        let seen = firewall.uptime().as_secs() * 1000;
        let is_leased = text(own, "ipaddr") == "dhcp";
        json!({ "name": text(own, NAME), "descr": interfaces::description(own), "hwif": device,
            "macaddr": hardware::mac(device), "mtu": "1500", "enable": is_on,
            "status": if is_on { "up" } else { "down" }, "ipaddr": address, "subnet": bits,
            "linklocal": "fe80::1%".to_owned() + device, "ipaddrv6": address6, "subnetv6": bits6,
            "inerrs": 0, "outerrs": 0, "collisions": 0, "inbytes": seen, "inbytespass": seen, "outbytes": seen / 2,
            "outbytespass": seen / 2, "inpkts": seen / 500, "inpktspass": seen / 500, "outpkts": seen / 900,
            "outpktspass": seen / 900, "dhcplink": if is_leased { json!("up") } else { Value::Null },
            "media": "1000baseT <full-duplex>",
            "gateway": if is_leased { json!("198.51.100.1") } else { Value::Null }, "gatewayv6": null })
    };
    firewall.running.list(interfaces::INTERFACES).iter().map(row).collect()
}

/// Measured gateways: those that run, and the one that the provider gives.
fn gateways(firewall: &Pfsense) -> Vec<Value> {
    let mut names: Vec<(String, String, String)> = firewall
        .running
        .list("RoutingGateway")
        .iter()
        .filter(|own| !is_true(own, "disabled"))
        .map(|own| {
            let source = interfaces::of_id(&firewall.running, text(own, "interface"));
            let source = source.and_then(interfaces::address4).map_or(String::new(), |(address, _)| address);
            let monitor = Some(text(own, "monitor")).filter(|own| !own.is_empty());
            (text(own, "name").to_owned(), source, monitor.unwrap_or(text(own, "gateway")).to_owned())
        })
        .collect();
    let is_leased =
        interfaces::of_id(&firewall.running, "wan").is_some_and(|own| text(own, "ipaddr") == "dhcp");
    if is_leased {
        names.push(("WAN_DHCP".to_owned(), "198.51.100.20".to_owned(), "198.51.100.1".to_owned()));
    }
    let row = |(name, source, monitor): (String, String, String)| {
        let own = firewall.live.gateways.get(&name);
        let number = |of: fn(&crate::live::Measured) -> f64| own.map_or(0.0, of);
        json!({ "name": name, "srcip": source, "monitorip": monitor, "delay": number(|own| own.delay),
            "stddev": number(|own| own.stddev), "loss": number(|own| own.loss),
            "status": own.map_or("online", |own| own.status.as_str()),
            "substatus": own.map_or("none", |own| own.substatus.as_str()) })
    };
    names.into_iter().map(row).collect()
}

fn revisions(firewall: &Pfsense) -> Vec<Value> {
    let row = |own: &crate::device::Revision| json!({ "time": own.time_secs, "description": own.description, "version": "23.3", "filesize": own.size });
    firewall.history.iter().map(row).collect()
}

/// Tables of the running filter: those of aliases, and the vendor's own.
fn tables(firewall: &Pfsense) -> Vec<(Value, Object)> {
    let own = ["bogons", "sshguard", "virusprot"].iter().map(|name| ((*name).to_owned(), Vec::new()));
    let aliases = firewall.running.list("FirewallAlias").iter().filter(|alias| text(alias, "type") != "port");
    let entries = |alias: &Object| -> Vec<Value> {
        let items = alias.get("address").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_flushed = firewall.live.flushed.contains(text(alias, "name"));
        if is_flushed { Vec::new() } else { items }
    };
    let of_aliases = aliases.map(|alias| (text(alias, "name").to_owned(), entries(alias)));
    own.chain(of_aliases)
        .map(|(name, entries)| {
            let object =
                Object::from_iter([("name".to_owned(), json!(name)), ("entries".to_owned(), json!(entries))]);
            (json!(name), object)
        })
        .collect()
}

/// Deletes an object that the system tells; `None` where it is one of the configuration.
pub(crate) fn delete(firewall: &mut Pfsense, call: &Call, row: &Row) -> Option<Result<(), Refusal>> {
    let value = |field: &str| text(&row.values, field).to_owned();
    match call.model.name.as_str() {
        "ARPTable" => drop(firewall.live.forgotten.insert(value("ip_address"))),
        "DHCPServerLease" => firewall.live.leases.retain(|lease| lease.ip != value("ip")),
        "FirewallState" => {
            let (from, to) = (host(&value("source")), host(&value("destination")));
            firewall.live.states.retain(|own| host(&own.source) != from || host(&own.destination) != to);
        }
        "Table" => drop(row.id.clone().map(|id| firewall.live.flushed.insert(crate::php::text(&id)))),
        "ConfigHistoryRevision" => {
            let time = row.values.get("time").and_then(Value::as_u64);
            firewall.history.retain(|own| Some(own.time_secs) != time);
        }
        "OpenVPNServerConnectionStatus" => {
            firewall.live.sessions.retain(|own| own.remote_host != value("remote_host"));
        }
        "Package" => programs::remove(firewall, &value("name")),
        _ => return None,
    }
    Some(Ok(()))
}

/// All states between two addresses go together.
fn host(endpoint: &str) -> String {
    endpoint.split(':').next().unwrap_or_default().to_owned()
}

/// Deletes everything in a way of its own; `None` where objects go one by one.
pub(crate) fn delete_all(firewall: &mut Pfsense, call: &Call) -> Option<Result<Value, Refusal>> {
    match call.model.name.as_str() {
        // These two write although the request is a dry run.
        "FirewallState" => Some(jobs::spawn(firewall, "states", true).map(|()| json!([]))),
        "DHCPServerLease" => {
            let rows = represent::rows(firewall, call.model);
            firewall.live.leases.clear();
            Some(Ok(shown(firewall, call, &rows)))
        }
        _ => None,
    }
}
