//! Payloads for actions, and what they need on the firewall before.

use heddle_sdk::testing::conformance::Checked;
use heddle_sdk::{Adapter as _, Listing, Operation};
use serde_json::{Map, Value, json};

use super::device::{Device, facts};
use super::every::short;
use super::samples::{self, done, feature_of, first_key};
use crate::Opnsense;

/// Names of fields that switch a service on.
const SWITCHES: [&str; 5] = ["general.enabled", "enabled", "enable", "settings.enabled", "general.enable"];
const PLUGIN: &str = "os-wol";
const NEW_ID: &str = "5f000000-0000-4000-8000-000000000001";

/// A payload, and what it needs on the device.
pub(super) fn prepared(device: &Device, feature: &Value) -> Checked<Value> {
    let id = short(feature);
    if let Some((_, verb)) = id.rsplit_once(".service-").filter(|(module, _)| *module != "core") {
        let path = feature["binding"]["action"]["path"].as_str().unwrap();
        let module = path.split('/').nth(2).unwrap();
        enable(device, module);
        if verb == "start" {
            device.person(&format!("{module}/service/stop"), &json!({}));
        }
        return Ok(json!({}));
    }
    let area = id.split('.').next().unwrap_or_default();
    let own = match area {
        "core" | "auth" | "trust" => of_system(device, id)?,
        "firewall" | "nat" | "interfaces" | "diagnostics" => of_network(device, id)?,
        "ipsec" | "openvpn" => of_tunnels(device, id),
        "captiveportal" | "kea" | "dhcp" | "dnsmasq" => of_clients(device, id)?,
        _ => of_services(device, id)?,
    };
    with_key(device, feature, own)
}

/// The payload with the key of an object, which is made where there is none.
fn with_key(device: &Device, feature: &Value, own: Value) -> Checked<Value> {
    let mut payload = own.as_object().cloned().unwrap_or_default();
    let keys: Vec<&str> =
        feature["natural-key"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if feature.get("kind").is_none() || keys.iter().all(|key| payload.contains_key(*key)) {
        return Ok(Value::Object(payload));
    }
    let mut known = first_key(device, feature, &keys);
    if known.is_empty() {
        let kind = feature["kind"].as_str().unwrap();
        let maker = feature_of(kind).ok_or_else(|| format!("no feature makes a '{kind}'"))?;
        let sample = samples::prepare(device, maker)?;
        done(device, short(maker), Operation::Create, &sample.create)?;
        known = first_key(device, feature, &keys);
    }
    for (name, value) in known {
        payload.entry(name).or_insert(value);
    }
    Ok(Value::Object(payload))
}

/// Switches a service on in all settings of its module.
fn enable(device: &Device, module: &str) {
    let set = |node: &str, field: &str| {
        let edit = json!({ "do": "set", "node": node, "id": "", "fields": { field: "1" }, "apply": true });
        device.lab().edit(&edit).unwrap();
    };
    if module == "ipsec" {
        set("IPsec/Swanctl:", "enabled");
    }
    for (controller, found) in facts()["controllers"].as_object().unwrap() {
        if controller.split('/').next() != Some(module) {
            continue;
        }
        let commands = found["commands"].as_object().unwrap().values();
        for key in commands.filter_map(|command| command["fields"].as_str()).filter(|key| key.ends_with(':'))
        {
            let known = facts()["fields"][key].as_array().unwrap();
            let names = known.iter().filter_map(|field| field["name"].as_str());
            names.filter(|name| SWITCHES.contains(name)).for_each(|name| set(key, name));
        }
    }
}

fn of_system(device: &Device, id: &str) -> Checked<Value> {
    let edit = |edit: Value| device.lab().edit(&edit).unwrap();
    let payload = match id {
        "core.firmware-install" => {
            edit(json!({ "do": "plugin", "name": PLUGIN, "installed": false }));
            json!({ "name": PLUGIN })
        }
        "core.firmware-unlock" => {
            done(device, "core.firmware-lock", Operation::Create, &json!({ "name": PLUGIN }))?;
            json!({ "name": PLUGIN })
        }
        "core.firmware-remove" | "core.firmware-reinstall" | "core.firmware-lock" => {
            json!({ "name": PLUGIN })
        }
        "core.status-dismiss" => json!({ "subject": "firewall" }),
        "core.section-reset" => json!({ "items": ["Firewall/Alias"] }),
        "core.config-revert" | "core.config-revision" => {
            let category = json!({ "name": "x" });
            edit(json!({ "do": "set", "node": "Firewall/Category:categories.category", "fields": category }));
            let listing = Listing::of("core.config-revision", 10);
            let page = Opnsense::list_objects(&device.host(), &listing).unwrap();
            json!({ "id": page.items.last().unwrap().reference.key })
        }
        "core.snapshot-activate" | "core.snapshot-rename" => {
            done(device, "core.snapshot", Operation::Create, &json!({ "name": "before" }))?;
            let mut key = json!({ "name": "before" });
            if id == "core.snapshot-rename" {
                key["to"] = json!("after");
                key["note"] = json!("renamed");
            }
            key
        }
        "core.service-start" | "core.service-instance-start" => {
            device.person("core/service/stop/ntpd", &json!({}));
            json!({ "name": "ntpd", "instance": "1" })
        }
        _ if id.starts_with("core.service-") => json!({ "name": "ntpd", "instance": "1" }),
        _ if id.starts_with("core.ha-peer-") => {
            edit(json!({ "do": "peer", "services": ["unbound", "openvpn"] }));
            json!({ "service": "unbound" })
        }
        "auth.user-import" => json!({ "payload": "name,descr\nimported,from a file\n" }),
        "auth.api-key" => {
            let page = Opnsense::list_objects(&device.host(), &Listing::of("auth.api-key", 10)).unwrap();
            let bodies = page.items.iter().map(|item| serde_json::from_str::<Value>(&item.body).unwrap());
            let other = bodies.into_iter().find(|body| body["username"] != "root").ok_or("no other key")?;
            json!({ "username": other["username"], "id": other["id"] })
        }
        "trust.crl-sign" | "trust.crl-delete" => {
            done(device, "trust.ca", Operation::Create, &json!({ "descr": "own", "commonname": "own" }))?;
            let list = json!({ "descr": "own", "description": "revoked", "crlmethod": "internal", "lifetime": 3650 });
            if id == "trust.crl-delete" {
                done(device, "trust.crl-sign", Operation::Create, &list)?;
                json!({ "descr": "own" })
            } else {
                list
            }
        }
        _ => json!({}),
    };
    Ok(only_known(id, payload))
}

/// Without the values that the feature does not take.
fn only_known(id: &str, mut payload: Value) -> Value {
    if let Some(fields) = payload.as_object_mut() {
        fields.retain(|name, _| match name.as_str() {
            "instance" => id.starts_with("core.service-instance-"),
            "service" => id != "core.ha-peer-restart-all",
            _ => true,
        });
    }
    payload
}

fn of_network(device: &Device, id: &str) -> Checked<Value> {
    let entry = json!({ "alias": "web_servers", "ip": "192.168.1.20" });
    let file = |text: &str| json!({ "payload": text.replace("ID", NEW_ID) });
    let state = || {
        let page = Opnsense::list_objects(&device.host(), &Listing::of("diagnostics.state", 10)).unwrap();
        let body: Value = serde_json::from_str(&page.items[0].body).unwrap();
        let (state, creator) = body["id"].as_str().unwrap().split_once('/').unwrap();
        json!({ "stateid": state, "creatorid": creator })
    };
    Ok(match id {
        "firewall.alias-import" => json!({ "data": { "aliases": { "alias": {
            NEW_ID: { "name": "imported", "type": "host", "content": "192.0.2.7", "enabled": "1" }
        } } } }),
        "firewall.alias-update" => json!({ "action": "geoip" }),
        "firewall.alias-entry-add" => json!({ "alias": "web_servers", "ip": "192.0.2.99" }),
        "firewall.alias-entry-remove" => entry,
        "firewall.table-flush" => json!({ "alias": "web_servers" }),
        "firewall.rule-import" => file("@uuid,interface,description\nID,lan,imported\n"),
        "firewall.category-import" => file("name,color\nimported,aa5500\n"),
        "nat.port-forward-import" => file(
            "@uuid,interface,protocol,destination.network,target,descr\nID,wan,tcp,wanip,192.168.1.20,imported\n",
        ),
        "nat.npt-import" => file(
            "@uuid,interface,source_net,destination_net,description\nID,wan,2001:db8::/64,2001:db8:1::/64,imported\n",
        ),
        "nat.one-to-one-import" => file(
            "@uuid,interface,source_net,external,description\nID,wan,192.168.1.20,198.51.100.9,imported\n",
        ),
        "nat.outbound-import" => {
            file("@uuid,interface,source_net,target,description\nID,wan,192.168.1.0/24,wanip,imported\n")
        }
        "interfaces.reload" => json!({ "identifier": "lan" }),
        "diagnostics.state-delete" => state(),
        "diagnostics.state-kill" => json!({ "filter": "192.168.1.100" }),
        "diagnostics.carp-enable" => {
            done(device, "diagnostics.carp-disable", Operation::Create, &json!({}))?;
            json!({})
        }
        "diagnostics.carp-maintenance-end" => {
            done(device, "diagnostics.carp-maintenance", Operation::Create, &json!({}))?;
            json!({})
        }
        "diagnostics.route-delete" => json!({ "destination": "10.99.0.0/16", "gateway": "198.51.100.1" }),
        "diagnostics.health-delete" => json!({ "report": "system-processor" }),
        "diagnostics.ping-prepare" => json!({ "settings_hostname": "192.0.2.1" }),
        "diagnostics.capture-prepare" => json!({ "settings_interface": ["lan"], "settings_fam": "any" }),
        _ if id.starts_with("diagnostics.ping") || id.starts_with("diagnostics.capture") => {
            let (kind, _) =
                id["diagnostics.".len()..].split_once('-').unwrap_or((&id["diagnostics.".len()..], ""));
            let prepare = format!("diagnostics.{kind}-prepare");
            let form = of_network(device, &prepare)?;
            done(device, &prepare, Operation::Create, &form)?;
            let kind = format!("diagnostics.{kind}");
            let page = Opnsense::list_objects(&device.host(), &Listing::of(&kind, 10)).unwrap();
            let job: Value = serde_json::from_str(&page.items[0].body).unwrap();
            let key = json!({ "id": job["id"] });
            if id.ends_with("-stop") {
                done(device, &format!("{kind}-start"), Operation::Create, &key)?;
            }
            key
        }
        _ => json!({}),
    })
}

fn of_tunnels(device: &Device, id: &str) -> Value {
    match id {
        "ipsec.enable" => drop(device.person("ipsec/connections/toggle/0", &json!({}))),
        "ipsec.disable" => drop(device.person("ipsec/connections/toggle/1", &json!({}))),
        "ipsec.connect" | "ipsec.disconnect" | "ipsec.sad" | "ipsec.spd" => {
            enable(device, "ipsec");
            device.person("ipsec/service/reconfigure", &json!({}));
            if id == "ipsec.connect" {
                let name = first(device, "ipsec.session", "name");
                let path = format!("ipsec/sessions/disconnect/{}", name.as_str().unwrap());
                device.person(&path, &json!({}));
            }
        }
        "ipsec.legacy-phase1-enable" => drop(device.person("ipsec/tunnel/toggle_phase1/1/0", &json!({}))),
        "ipsec.legacy-phase2-enable" => drop(device.person("ipsec/tunnel/toggle_phase2/0/0", &json!({}))),
        "openvpn.instance-start" => drop(device.person("openvpn/service/stop_service", &json!({}))),
        "openvpn.session-kill" => return json!({ "server_id": "1", "session_id": "17" }),
        "openvpn.export-presets" => return json!({ "vpnid": "1", "hostname": "vpn.example.net" }),
        _ => {}
    }
    json!({})
}

/// A field of the first object of a kind.
fn first(device: &Device, kind: &str, name: &str) -> Value {
    let page = Opnsense::list_objects(&device.host(), &Listing::of(kind, 10)).unwrap();
    let body: Value = serde_json::from_str(&page.items[0].body).unwrap();
    body[name].clone()
}

fn of_clients(device: &Device, id: &str) -> Checked<Value> {
    let vouchers = || {
        let body = json!({ "count": 2, "validity": 3600, "vouchergroup": "guests" });
        let made = device.person("captiveportal/voucher/generate_vouchers/Vouchers", &body);
        made[0]["username"].as_str().unwrap().to_owned()
    };
    let file = |text: &str| json!({ "payload": text });
    Ok(match id {
        "captiveportal.session-connect" => json!({ "zoneid": "0", "user": "guest", "ip": "192.168.20.7" }),
        "captiveportal.voucher-drop-expired" => {
            let code = vouchers();
            device.person("captiveportal/voucher/expire_voucher/Vouchers", &json!({ "username": code }));
            json!({ "provider": "Vouchers", "group": "guests" })
        }
        "captiveportal.voucher-drop-group" => {
            vouchers();
            json!({ "provider": "Vouchers", "group": "guests" })
        }
        "captiveportal.voucher-expire" => json!({ "provider": "Vouchers", "username": vouchers() }),
        "captiveportal.template-save" => json!({ "name": "own", "content": "UEsFBgAAAAA=" }),
        "captiveportal.template" => {
            let body = json!({ "name": "own", "content": "UEsFBgAAAAA=" });
            device.person("captiveportal/template/save_template", &body);
            json!({ "name": "own" })
        }
        "kea.dhcp4-reservation-import" => {
            file("ip_address,hw_address,hostname\n192.168.1.88,02:00:00:00:00:88,imported\n")
        }
        "kea.dhcp6-reservation-import" => {
            let subnet = json!({ "subnet": "2001:db8::/64", "interface": "lan" });
            done(device, "kea.dhcp6-subnet", Operation::Create, &subnet)?;
            let rows = "subnet,ip_address,duid,hostname\nID,2001:db8::88,00:01:00:01:00:00:00:88,imported\n";
            let stored = device.stored();
            let subnets = stored.get("Kea/KeaDhcpv6:subnets.subnet6").and_then(Value::as_object);
            let uuid = subnets.and_then(|subnets| subnets.keys().next()).ok_or("there is no subnet")?;
            file(&rows.replace("ID", uuid))
        }
        "kea.lease4" | "kea.lease6" => {
            enable(device, "kea");
            json!({})
        }
        "dnsmasq.host-import" => file("host,ip\nimported,192.0.2.44\n"),
        _ => json!({}),
    })
}

fn of_services(device: &Device, id: &str) -> Checked<Value> {
    let file = |text: &str| json!({ "payload": text.replace("ID", NEW_ID) });
    if id.starts_with("haproxy.server-") {
        // A pool with two servers in the running proxy.
        for name in ["one", "two"] {
            let server = json!({ "name": name, "address": "192.0.2.7", "port": 8080 });
            done(device, "haproxy.server", Operation::Create, &server)?;
        }
        let pool = json!({ "name": "web", "linkedServers": ["one", "two"] });
        done(device, "haproxy.backend", Operation::Create, &pool)?;
    }
    Ok(match id {
        "unbound.blocklist-quick" => {
            done(device, "unbound.blocklist", Operation::Create, &json!({ "description": "own" }))?;
            json!({ "domain": "a.example", "type": "blocklists" })
        }
        "acme.sign-all" | "acme.reset" => {
            let maker = feature_of("acme.certificate").ok_or("nothing makes a certificate")?;
            let sample = samples::prepare(device, maker)?;
            done(device, "acme.certificate", Operation::Create, &sample.create)?;
            if id == "acme.reset" {
                done(device, "acme.sign-all", Operation::Create, &json!({}))?;
            }
            json!({})
        }
        "haproxy.server-state" => json!({ "backend": "web", "server": "one", "state": "maint" }),
        "haproxy.server-weight" => json!({ "backend": "web", "server": "one", "weight": "50%" }),
        "haproxy.server-state-bulk" => json!({ "server_ids": "web/one,web/two", "state": "ready" }),
        "haproxy.server-weight-bulk" => json!({ "server_ids": "web/one,web/two", "weight": "10" }),
        "haproxy.cert-sync" => json!({ "frontend_ids": NEW_ID }),
        "wol.wake" => json!({ "interface": "lan", "mac": "02:00:00:00:00:77" }),
        "ids.alert-log-drop" => json!({ "filename": "eve.json" }),
        "shaper.pipe-import" => file(
            "@uuid,enabled,number,bandwidth,bandwidthMetric,mask,description\nID,1,10077,100,Mbit,none,imported\n",
        ),
        "shaper.queue-import" => {
            let pipes = device.stored();
            let pipe = pipes["TrafficShaper/TrafficShaper:pipes.pipe"]
                .as_object()
                .unwrap()
                .keys()
                .next()
                .unwrap()
                .clone();
            let rows =
                "@uuid,enabled,number,pipe,weight,mask,description\nID,1,10077,PIPE,50,none,imported\n";
            file(&rows.replace("PIPE", &pipe))
        }
        _ => Value::Object(Map::new()),
    })
}
