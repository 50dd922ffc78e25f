//! Clients: who is connected, where, and what is done to them.

use serde_json::{Value, json};

use crate::console::Console;
use crate::devices;
use crate::net;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, put, shown as plain, text};
use crate::timeline::Event;

/// Whether a client is connected now.
pub(crate) fn is_online(own: &Console, site: &str, client: &Row) -> bool {
    let known = own.store.having(site, "user", "mac", text(client, "mac"));
    if client.contains_key("~away") || known.is_some_and(|user| flag(user, "blocked")) {
        return false;
    }
    if flag(client, "is_wired") {
        let switch = text(client, "sw_mac");
        let Some(device) = own.store.having(site, "device", "mac", switch) else { return false };
        let port = number(client, "sw_port").unwrap_or_default();
        return devices::is_reached(own, site, switch)
            && devices::is_enabled(own, site, device, port)
            && !flag(device, &format!("~off:{port}"));
    }
    let point = text(client, "ap_mac");
    let is_on = own.store.having(site, "device", "mac", point).is_some_and(|row| !flag(row, "disabled"));
    is_on
        && devices::is_reached(own, site, point)
        && wlan_of(own, site, client).is_some_and(|wlan| {
            flag(wlan, "enabled")
                && crate::wlans::serves(own, site, wlan, point)
                && crate::wlans::radios_of(wlan).contains(&text(client, "radio"))
        })
}

fn wlan_of<'a>(own: &'a Console, site: &str, client: &Row) -> Option<&'a Row> {
    own.store.having(site, "wlanconf", "name", text(client, "essid"))
}

/// The network that a client is in: by its own setting, by its WLAN, or by its port.
pub(crate) fn network_of<'a>(own: &'a Console, site: &str, client: &Row) -> Option<&'a Row> {
    let known = own.store.having(site, "user", "mac", text(client, "mac"));
    let chosen = known.filter(|user| flag(user, "virtual_network_override_enabled"));
    let id = match (chosen, flag(client, "is_wired")) {
        (Some(user), _) => text(user, "virtual_network_override_id").to_owned(),
        (None, false) => text(wlan_of(own, site, client)?, "networkconf_id").to_owned(),
        (None, true) => {
            let device = own.store.having(site, "device", "mac", text(client, "sw_mac"))?;
            let port = devices::profile_of(own, site, device, number(client, "sw_port")?);
            text(&port, "native_networkconf_id").to_owned()
        }
    };
    let found = own.store.find(site, "networkconf", &id);
    found.or_else(|| own.store.having(site, "networkconf", "attr_hidden_id", "LAN"))
}

/// The address of a client: reserved, the one that it brings, or one of its network.
pub(crate) fn address_of(own: &Console, site: &str, client: &Row) -> String {
    let known = own.store.having(site, "user", "mac", text(client, "mac"));
    if let Some(user) = known.filter(|user| flag(user, "use_fixedip")) {
        return text(user, "fixed_ip").to_owned();
    }
    let brought = text(client, "ip");
    let net = network_of(own, site, client).and_then(|network| net::subnet(text(network, "ip_subnet")));
    match net {
        Some(net) if !net::is_in(net, brought) => {
            let last =
                text(client, "mac").rsplit(':').next().and_then(|part| u32::from_str_radix(part, 16).ok());
            net::nth(net, 20 + last.unwrap_or(7) % 200).to_string()
        }
        _ => brought.to_owned(),
    }
}

/// The clients of a site that are connected.
pub(crate) fn online<'a>(own: &'a Console, site: &'a str) -> impl Iterator<Item = &'a Row> {
    own.store.rows(site, "sta").iter().filter(move |client| is_online(own, site, client))
}

pub(crate) fn on_access_point<'a>(own: &'a Console, site: &'a str, mac: &str) -> Vec<&'a Row> {
    online(own, site).filter(|client| text(client, "ap_mac") == mac).collect()
}

pub(crate) fn count_of(own: &Console, site: &str, network: &Row) -> usize {
    let is_in = |client: &&Row| network_of(own, site, client).is_some_and(|own| own["_id"] == network["_id"]);
    online(own, site).filter(is_in).count()
}

/// A connected client as `stat/sta` shows it.
pub(crate) fn shown(own: &Console, site: &str, client: &Row) -> Row {
    let mut row = plain(client);
    let since = number(client, "~since").and_then(|at| u64::try_from(at).ok()).unwrap_or(own.now);
    let uptime = own.now.saturating_sub(since) / 1000;
    if let Some(user) = own.store.having(site, "user", "mac", text(client, "mac")) {
        for name in [
            "_id",
            "name",
            "note",
            "noted",
            "usergroup_id",
            "use_fixedip",
            "fixed_ip",
            "network_id",
            "blocked",
            "site_id",
        ] {
            if let Some(value) = user.get(name) {
                row.insert(name.to_owned(), value.clone());
            }
        }
        put(&mut row, "user_id", text(user, "_id"));
    }
    put(&mut row, "ip", address_of(own, site, client));
    put(&mut row, "assoc_time", since / 1000);
    put(&mut row, "latest_assoc_time", since / 1000);
    put(&mut row, "uptime", uptime);
    put(&mut row, "last_seen", own.now / 1000);
    put(&mut row, "first_seen", since / 1000 - 86_400);
    put(&mut row, "satisfaction", 97);
    put(&mut row, "authorized", true);
    if let Some(network) = network_of(own, site, client) {
        put(&mut row, "network", text(network, "name"));
        put(&mut row, "network_id", text(network, "_id"));
        put(&mut row, "vlan", number(network, "vlan").unwrap_or(1));
    }
    let (received, sent) = if flag(client, "is_wired") {
        ("wired-rx_bytes", "wired-tx_bytes")
    } else {
        ("rx_bytes", "tx_bytes")
    };
    put(&mut row, received, uptime * 1900);
    put(&mut row, sent, uptime * 7400);
    if flag(client, "is_wired") {
        put(&mut row, "is_guest", false);
    } else {
        put(&mut row, "bssid", text(client, "ap_mac"));
        put(&mut row, "rssi", 95 + number(client, "signal").unwrap_or(-60));
        put(&mut row, "noise", -96);
        put(&mut row, "radio_proto", "ax");
        put(&mut row, "is_guest", wlan_of(own, site, client).is_some_and(|wlan| flag(wlan, "is_guest")));
        put(&mut row, "authorized", is_authorized(own, site, text(client, "mac")));
    }
    row
}

fn is_guest(own: &Console, site: &str, client: &Row) -> bool {
    !flag(client, "is_wired") && wlan_of(own, site, client).is_some_and(|wlan| flag(wlan, "is_guest"))
}

/// Whether a guest has access now.
fn is_authorized(own: &Console, site: &str, mac: &str) -> bool {
    let guests = own.store.rows(site, "guest").iter();
    let live = |row: &&Row| {
        text(row, "mac") == mac && number(row, "end").is_some_and(|end| end.unsigned_abs() * 1000 > own.now)
    };
    guests.filter(live).any(|row| !flag(row, "expired"))
}

/// A connected client in the official interface.
pub(crate) fn official(own: &Console, site: &str, client: &Row) -> Value {
    let since = number(client, "~since").and_then(|at| u64::try_from(at).ok()).unwrap_or(own.now);
    let is_wired = flag(client, "is_wired");
    let above = if is_wired { text(client, "sw_mac") } else { text(client, "ap_mac") };
    let device = own.store.having(site, "device", "mac", above);
    let known = own.store.having(site, "user", "mac", text(client, "mac"));
    let name = known
        .map(|user| text(user, "name"))
        .filter(|name| !name.is_empty())
        .unwrap_or(text(client, "hostname"));
    let access = if is_guest(own, site, client) {
        json!({ "type": "GUEST", "authorized": is_authorized(own, site, text(client, "mac")) })
    } else {
        json!({ "type": "DEFAULT" })
    };
    json!({
        "type": if is_wired { "WIRED" } else { "WIRELESS" }, "id": text(client, "~uuid"), "name": name,
        "connectedAt": crate::row::moment(since), "ipAddress": address_of(own, site, client),
        "macAddress": text(client, "mac"), "uplinkDeviceId": device.map(|row| text(row, "~uuid")),
        "access": access,
    })
}

/// Keeps a client away, or lets it in again.
pub(crate) fn block(own: &mut Console, site: &str, mac: &str, is_blocked: bool) -> Outcome<Row> {
    let id = match own.store.having(site, "user", "mac", mac) {
        Some(user) => text(user, "_id").to_owned(),
        None => own.store.add(site, "user", crate::row::row(json!({ "mac": mac }))),
    };
    let user = own.store.find_mut(site, "user", &id).ok_or_else(Refusal::not_found)?;
    put(user, "blocked", is_blocked);
    let user = user.clone();
    own.changed(site, "user", &user, crate::console::Change::Update);
    own.tell_client(site, mac);
    Ok(plain(&user))
}

/// Cuts a wireless client off; it comes back by itself.
pub(crate) fn kick(own: &mut Console, site: &str, mac: &str) -> Outcome<()> {
    let client =
        own.store.having_mut(site, "sta", "mac", mac).ok_or_else(|| Refusal::new("UnknownStation"))?;
    if !flag(client, "is_wired") {
        put(client, "~away", true);
        own.plan(site, mac, &[(1, Event::Back)]);
        own.tell_client(site, mac);
        own.log(site, "CLIENT_DEVICES", "CLIENT_DISCONNECTED", &format!("{mac} was disconnected"), "LOW");
    }
    Ok(())
}

/// Removes what is known of clients. Addresses are compared as texts.
pub(crate) fn forget(own: &mut Console, site: &str, macs: &[&str]) -> Vec<Value> {
    let gone: Vec<Row> = own
        .store
        .rows(site, "user")
        .iter()
        .filter(|user| macs.contains(&text(user, "mac")))
        .cloned()
        .collect();
    own.store.rows_mut(site, "user").retain(|user| !macs.contains(&text(user, "mac")));
    own.store.rows_mut(site, "sta").retain(|client| !macs.contains(&text(client, "mac")));
    for user in &gone {
        own.changed(site, "user", user, crate::console::Change::Delete);
    }
    gone.iter().map(|user| Value::Object(plain(user))).collect()
}

/// What a guest may use.
#[derive(Default)]
pub(crate) struct Allowance {
    pub(crate) minutes: i64,
    pub(crate) up: Option<i64>,
    pub(crate) down: Option<i64>,
    pub(crate) megabytes: Option<i64>,
    pub(crate) method: &'static str,
}

/// Gives a guest access, in place of the access that it had; that one is returned.
pub(crate) fn authorize(
    own: &mut Console,
    site: &str,
    mac: &str,
    allowance: &Allowance,
) -> (Row, Option<Row>) {
    let before = revoke(own, site, mac);
    let start = own.now / 1000;
    let guest = json!({
        "mac": mac, "start": start, "end": start + allowance.minutes.unsigned_abs() * 60,
        "duration": allowance.minutes * 60,
        "authorized_by": "api", "expired": false, "qos_rate_max_up": allowance.up,
        "qos_rate_max_down": allowance.down,
        "qos_usage_quota": allowance.megabytes, "~method": allowance.method, "bytes": 0, "tx_bytes": 0,
        "rx_bytes": 0,
    });
    let id = own.store.add(site, "guest", crate::row::row(guest));
    own.tell_client(site, mac);
    (own.store.find(site, "guest", &id).cloned().unwrap_or_default(), before)
}

/// Takes the access of a guest away, and returns it.
pub(crate) fn revoke(own: &mut Console, site: &str, mac: &str) -> Option<Row> {
    let now = own.now / 1000;
    let rows = own.store.rows_mut(site, "guest").iter_mut();
    let mut live = rows.filter(|row| text(row, "mac") == mac && !flag(row, "expired"));
    let row =
        live.next_back().filter(|row| number(row, "end").is_some_and(|end| end.unsigned_abs() > now))?;
    put(row, "expired", true);
    Some(row.clone())
}
