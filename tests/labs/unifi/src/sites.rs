//! Sites, administrators, and files of the portal.

use heddle_lab::Request;
use serde_json::{Value, json};

use crate::access::Who;
use crate::console::Console;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, put, row, shown, text, uuid};
use crate::store::GLOBAL;
use crate::v1::{Call, Data, need};
use crate::{seed, stats, wlans};

/// The account of the request.
pub(crate) fn account(own: &Console, who: &Who) -> Value {
    let admin = own.store.having(GLOBAL, "admin", "name", &who.name);
    json!({
        "admin_id": admin.map(|row| text(row, "_id")), "name": who.name, "email": "",
        "is_super": who.may_write,
        "site_role": if who.may_write { "admin" } else { "readonly" }, "is_local": true,
        "super_site_permissions": [],
    })
}

/// The sites, with their health where it is asked for.
pub(crate) fn list(own: &Console, with_health: bool) -> Vec<Value> {
    let rows = own.store.rows(GLOBAL, "site").iter().map(|site| {
        let name = text(site, "name");
        let mut shown = Console::shown("site", site);
        put(&mut shown, "role", "admin");
        put(&mut shown, "device_count", own.store.rows(name, "device").len());
        if with_health {
            put(&mut shown, "health", Value::Array(stats::health(own, name)));
            put(&mut shown, "num_new_alarms", 0);
        }
        Value::Object(shown)
    });
    rows.collect()
}

pub(crate) fn admins(own: &Console) -> Vec<Value> {
    own.store.rows(GLOBAL, "admin").iter().map(|admin| Value::Object(shown(admin))).collect()
}

/// Commands about sites, administrators, and the place of devices.
pub(crate) fn command(own: &mut Console, call: &Call<'_>, command: &str) -> Data {
    match command {
        "get-admins" => Ok(admins(own)),
        "add-site" => add(own, call),
        "update-site" => {
            let desc = need(call, "desc")?.to_owned();
            let site = own.store.having_mut(GLOBAL, "site", "name", call.site).ok_or_else(Refusal::no_id)?;
            put(site, "desc", desc);
            Ok(vec![Value::Object(shown(site))])
        }
        "delete-site" => delete(own, call),
        "move-device" => move_device(own, call),
        "delete-device" => forget_devices(own, call),
        "invite-admin" => {
            let admin = json!({
                "name": need(call, "name")?, "email": need(call, "email")?, "role": text(&call.body, "role"),
                "permissions": call.body.get("permissions"), "is_super": false, "state": "invited",
            });
            let id = own.store.add(GLOBAL, "admin", row(admin));
            Ok(own
                .store
                .find(GLOBAL, "admin", &id)
                .map(|row| Value::Object(shown(row)))
                .into_iter()
                .collect())
        }
        "grant-admin" | "update-admin" | "revoke-admin" | "grant-super-admin" | "revoke-super-admin" => {
            administrator(own, call, command)
        }
        _ => Err(Refusal::new("UnknownCommand")),
    }
}

fn add(own: &mut Console, call: &Call<'_>) -> Data {
    let desc = need(call, "desc")?;
    if own.store.rows(GLOBAL, "site").iter().any(|site| text(site, "desc") == desc) {
        return Err(Refusal::new("SiteNameExisted"));
    }
    let count = own.store.sites().len();
    let name = uuid("site name", &format!("{desc} {count}")).replace('-', "")[..8].to_owned();
    let id = own.store.add(GLOBAL, "site", row(json!({ "name": name, "desc": desc })));
    seed::bare_site(own, &name);
    Ok(own
        .store
        .find(GLOBAL, "site", &id)
        .map(|row| Value::Object(Console::shown("site", row)))
        .into_iter()
        .collect())
}

fn named(own: &Console, call: &Call<'_>) -> Outcome<String> {
    let site = own.store.find(GLOBAL, "site", need(call, "site")?).ok_or_else(Refusal::no_id)?;
    Ok(text(site, "name").to_owned())
}

fn delete(own: &mut Console, call: &Call<'_>) -> Data {
    let name = named(own, call)?;
    if name == "default" {
        return Err(Refusal::new("NoDelete"));
    }
    if !own.store.rows(&name, "device").is_empty() {
        return Err(Refusal::new("SiteHasDevices"));
    }
    own.store.remove_site(&name);
    Ok(Vec::new())
}

fn move_device(own: &mut Console, call: &Call<'_>) -> Data {
    let target = named(own, call)?;
    let mac = need(call, "mac")?;
    let rows = own.store.rows_mut(call.site, "device");
    let place =
        rows.iter().position(|row| text(row, "mac") == mac).ok_or_else(|| Refusal::new("UnknownDevice"))?;
    let mut device = rows.remove(place);
    // What it was told by its old site stays there.
    put(&mut device, "port_overrides", json!([]));
    device.remove("mgmt_network_id");
    device.remove("~uplink");
    wlans::leave_groups(own, call.site, mac);
    if text(&device, "type") == "uap" {
        wlans::join_usual_group(own, &target, mac);
    }
    own.store.add(&target, "device", device);
    own.provision_one(&target, mac);
    Ok(Vec::new())
}

/// Removes devices; one that is reached is reset.
pub(crate) fn forget_device(own: &mut Console, site: &str, mac: &str) -> Outcome<()> {
    let device =
        own.store.having_mut(site, "device", "mac", mac).ok_or_else(|| Refusal::new("UnknownDevice"))?;
    let is_reached = matches!(crate::row::number(device, "state"), Some(1 | 5));
    put(device, "~reached", is_reached);
    put(device, "state", 8);
    own.timeline.forget(mac);
    own.plan(site, mac, &[(1, crate::timeline::Event::Forgotten)]);
    Ok(())
}

fn forget_devices(own: &mut Console, call: &Call<'_>) -> Data {
    let macs: Vec<String> = crate::v1::macs(call).into_iter().map(str::to_owned).collect();
    macs.iter().try_for_each(|mac| forget_device(own, call.site, mac))?;
    Ok(Vec::new())
}

fn administrator(own: &mut Console, call: &Call<'_>, command: &str) -> Data {
    let sent = ["admin", "admin_id"].iter().map(|name| text(&call.body, name)).find(|id| !id.is_empty());
    let id = sent.ok_or_else(|| Refusal::invalid("admin", ".+"))?.to_owned();
    let admin = own.store.find_mut(GLOBAL, "admin", &id).ok_or_else(|| Refusal::new("AdminNotFound"))?;
    match command {
        "grant-admin" | "update-admin" => {
            for name in ["name", "email", "role", "permissions"] {
                if let Some(value) = call.body.get(name) {
                    put(admin, name, value.clone());
                }
            }
        }
        "grant-super-admin" => put(admin, "is_super", true),
        "revoke-super-admin" => put(admin, "is_super", false),
        _ if flag(admin, "is_super") => return Err(Refusal::new("CannotRevokeSuperAdmin")),
        _ => drop(own.store.remove(GLOBAL, "admin", &id)),
    }
    let password = text(&call.body, "x_password").to_owned();
    let admin = own.store.find(GLOBAL, "admin", &id).cloned();
    if let Some(admin) = admin.as_ref().filter(|_| !password.is_empty()) {
        change_password(own, admin, password);
    }
    Ok(admin.map(|row| Value::Object(shown(&row))).into_iter().collect())
}

fn change_password(own: &mut Console, admin: &Row, password: String) {
    let accounts = [&mut own.settings.admin, &mut own.settings.viewer];
    if let Some(account) = accounts.into_iter().find(|account| account.0 == text(admin, "name")) {
        account.1 = password;
        own.access.end_all();
    }
}

/// Stores a file of the portal.
pub(crate) fn upload(own: &mut Console, request: &Request, site: &str, who: &Who) -> Data {
    if !who.may_write {
        return Err(Refusal::read_only());
    }
    let part =
        request.parts.iter().find(|part| part.name == "file").ok_or_else(|| Refusal::invalid("file", ""))?;
    let file = json!({ "filename": part.file_name, "filesize": part.bytes, "url": "/guest/portalfile" });
    let id = own.store.add(site, "portalfile", row(file));
    Ok(own.store.find(site, "portalfile", &id).map(|row| Value::Object(shown(row))).into_iter().collect())
}
