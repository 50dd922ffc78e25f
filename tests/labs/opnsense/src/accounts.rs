//! Users, groups, privileges and API keys, and who may call what.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::NaiveDate;
use heddle_lab::Request;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::call::{Answer, Call};
use crate::choices::{USER_GROUPS, USERS, effective};
use crate::config::{Config, Values};
use crate::device::Firewall;
use crate::grid;
use crate::hooks::with;

/// API keys: the id is the key, the values are its user and the hash of its secret.
pub(crate) const KEYS: &str = "apikeys";

/// Privileges and the pages that they open. `*` stands for any text.
pub(crate) const PRIVILEGES: [(&str, &[&str]); 16] = [
    ("page-all", &["*"]),
    ("user-config-readonly", &[]),
    ("page-system-login-logout", &["api/core/menu/*"]),
    ("page-firewall-alias-edit", &["api/firewall/alias/*", "api/firewall/alias_util/*"]),
    (
        "page-firewall-rules",
        &["api/firewall/filter/*", "api/firewall/filter_util/*", "api/firewall/category/*"],
    ),
    (
        "page-firewall-nat",
        &["api/firewall/d_nat/*", "api/firewall/source_nat/*", "api/firewall/one_to_one/*"],
    ),
    ("page-interfaces", &["api/interfaces/*"]),
    ("page-status-interfaces", &["api/interfaces/overview/*", "api/diagnostics/interface/*"]),
    ("page-services-dhcp", &["api/kea/*", "api/dnsmasq/*", "api/dhcrelay/*"]),
    ("page-services-unbound", &["api/unbound/*"]),
    ("page-vpn", &["api/wireguard/*", "api/ipsec/*", "api/openvpn/*"]),
    ("page-routing", &["api/routes/*", "api/routing/*"]),
    ("page-system-usermanager", &["api/auth/*"]),
    ("page-system-trust", &["api/trust/*"]),
    ("page-system-firmware", &["api/core/firmware/*"]),
    ("page-diagnostics", &["api/diagnostics/*"]),
];

/// The user behind a request.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) is_read_only: bool,
    /// Has every page.
    pub(crate) is_full: bool,
    privileges: Vec<String>,
}

impl Account {
    /// Whether a privilege opens the path.
    pub(crate) fn may_call(&self, path: &str) -> bool {
        let own = PRIVILEGES.iter().filter(|(id, _)| self.privileges.iter().any(|own| own == id));
        own.flat_map(|(_, pages)| pages.iter()).any(|page| match page.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == *page,
        })
    }
}

/// The account whose key and secret a request carries. The word before the first space is not looked at.
pub(crate) fn of_request(firewall: &Firewall, request: &Request) -> Option<Account> {
    let (_, encoded) = request.header("authorization")?.split_once(' ')?;
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let mut parts = decoded.split(':');
    let (key, secret) = (parts.next()?, parts.next()?);
    let config = &firewall.stored;
    let stored = config.find(KEYS, key).filter(|values| values.get("secret") == Some(&hash(secret)))?;
    let name = stored.get("username")?;
    let (_, user) = crate::crud::having(config, USERS, "name", name).next()?;
    let is_disabled = effective(USERS, "disabled", user) == "1" || is_expired(firewall, user);
    (!is_disabled).then(|| {
        let privileges = privileges(config, user);
        let has = |id: &str| privileges.iter().any(|own| own == id);
        Account {
            name: name.clone(),
            is_read_only: has("user-config-readonly"),
            is_full: has("page-all"),
            privileges,
        }
    })
}

/// A user expires after a day, written as month, day and year.
fn is_expired(firewall: &Firewall, user: &Values) -> bool {
    let last = NaiveDate::parse_from_str(effective(USERS, "expires", user), "%m/%d/%Y");
    last.is_ok_and(|last| last < firewall.date_time().date_naive())
}

/// Own privileges and those of the user's groups.
fn privileges(config: &Config, user: &Values) -> Vec<String> {
    let uid = effective(USERS, "uid", user);
    let groups = config.rows(USER_GROUPS).map(|(_, group)| group);
    let groups =
        groups.filter(|group| effective(USER_GROUPS, "member", group).split(',').any(|part| part == uid));
    let lists =
        groups.map(|group| effective(USER_GROUPS, "priv", group)).chain([effective(USERS, "priv", user)]);
    lists.flat_map(|list| list.split(',')).filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

/// The form in which a secret is kept.
pub(crate) fn hash(secret: &str) -> String {
    format!("$6${}", hex::encode(Sha256::digest(secret)))
}

/// Routes of `auth` beside users and groups.
pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("auth/user", "searchapikey") => Ok(keys(firewall, call)),
        ("auth/user", "addapikey") => add_key(firewall, call),
        ("auth/user", "delapikey") => delete_key(firewall, call),
        ("auth/user", "newotpseed") => {
            let seed = hash(&firewall.next_serial().to_string());
            Ok(Answer::json(&json!({ "seed": seed[3..35].to_uppercase(), "otp_qrcode": [] })))
        }
        ("auth/priv", "search") => {
            let rows = PRIVILEGES.iter().map(|(id, pages)| json!({ "id": id, "name": id, "match": pages }));
            Ok(grid::live(call, rows.collect()))
        }
        ("auth/priv", "getitem") => Ok(privilege(firewall, call.param(0))),
        ("auth/priv", "setitem") => set_privilege(firewall, call),
        ("auth/group", "set") => return guard_own_rights(firewall, call),
        _ => return None,
    })
}

fn keys(firewall: &Firewall, call: &Call) -> Answer {
    let rows = firewall.stored.rows(KEYS).map(
        |(key, values)| json!({ "id": STANDARD.encode(key), "key": key, "username": values.get("username") }),
    );
    grid::live(call, rows.collect())
}

/// Key and secret are answered once; only the hash of the secret stays.
fn add_key(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let name = call.param(0);
    if crate::crud::having(&firewall.stored, USERS, "name", name).next().is_none() {
        return Ok(Answer::failed());
    }
    let serial = firewall.next_serial();
    let make = |what: &str| STANDARD.encode(Sha256::digest(format!("{what} {name} {serial}")));
    let (key, secret) = (make("key"), make("secret"));
    let mut config = firewall.stored.clone();
    config.put(KEYS, &key, crate::config::values(&[("username", name), ("secret", &hash(&secret))]));
    firewall.save(call, config)?;
    Ok(Answer::json(&json!({ "result": "ok", "hostname": "fw1.example.net", "key": key, "secret": secret })))
}

fn delete_key(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let key = STANDARD
        .decode(call.param(0))
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    let mut config = firewall.stored.clone();
    if !config.remove(KEYS, &key) {
        return Ok(Answer::result("not found"));
    }
    firewall.save(call, config)?;
    Ok(Answer::result("deleted"))
}

/// The users and groups that have a privilege, as option maps.
fn privilege(firewall: &Firewall, id: &str) -> Answer {
    if !PRIVILEGES.iter().any(|(known, _)| *known == id) {
        return Answer::empty();
    }
    let options = |list: &str| -> Value {
        let rows = firewall.stored.rows(list).map(|(uuid, values)| {
            let selected = effective(list, "priv", values).split(',').any(|own| own == id);
            (
                uuid.to_owned(),
                json!({ "value": effective(list, "name", values), "selected": i32::from(selected) }),
            )
        });
        Value::Object(rows.collect())
    };
    Answer::json(&json!({ "priv": { "id": id, "users": options(USERS), "groups": options(USER_GROUPS) } }))
}

/// Users and groups that are left out lose the privilege.
fn set_privilege(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let id = call.param(0);
    let posted = call.body.get("priv").ok_or_else(Answer::failed)?;
    let mut config = firewall.stored.clone();
    for (list, field) in [(USERS, "users"), (USER_GROUPS, "groups")] {
        let wanted = posted.get(field).and_then(crate::call::scalar).unwrap_or_default();
        config.rewrite(list, |uuid, values| {
            let mut own: Vec<&str> = effective(list, "priv", values)
                .split(',')
                .filter(|own| !own.is_empty() && *own != id)
                .collect();
            if wanted.split(',').any(|part| part == uuid) {
                own.push(id);
            }
            Some(with(values, "priv", &own.join(",")))
        });
    }
    firewall.save(call, config)?;
    Ok(Answer::result("saved"))
}

/// A write that takes the writer's own rights is refused.
fn guard_own_rights(firewall: &Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let posted = call.body.get("group")?;
    let group = firewall.stored.find(USER_GROUPS, call.param(0))?;
    let (_, user) = crate::crud::having(&firewall.stored, USERS, "name", &call.user).next()?;
    let uid = effective(USERS, "uid", user);
    let holds = |list: &str, wanted: &str| list.split(',').any(|part| part == wanted);
    let gives_all = holds(effective(USER_GROUPS, "priv", group), "page-all");
    let is_member = holds(effective(USER_GROUPS, "member", group), uid);
    let loses = |field: &str, wanted: &str| {
        posted.get(field).and_then(crate::call::scalar).is_some_and(|list| !holds(&list, wanted))
    };
    let own_all = holds(effective(USERS, "priv", user), "page-all");
    let takes_own = gives_all && is_member && !own_all && (loses("priv", "page-all") || loses("member", uid));
    takes_own.then(|| Err(Answer::refused(firewall.release, "Group", "this would take your own rights away")))
}
