//! Values that are only known on the firewall: choices, defaults, and what references may name.

use serde_json::{Value, json};

use crate::device::Pfsense;
use crate::draft::Draft;
use crate::facts::{Facts, Field, Kind, Model, Reference};
use crate::store::text;
use crate::{hardware, interfaces, query, represent, vpn};

/// Numbers that are tried for a new object.
const NUMBERS_MAX: u64 = 65_535;

/// The values that a field takes; `None` where every value of its type may be.
pub(crate) fn of(firewall: &Pfsense, model: &Model, field: &Field) -> Option<Vec<Value>> {
    let names = |names: &[&str]| Some(names.iter().map(|name| json!(name)).collect());
    match (model.name.as_str(), field.name.as_str()) {
        ("NetworkInterface", "if") => {
            let devices = hardware::devices(&firewall.stored);
            return Some(devices.into_iter().map(|device| json!(device.name)).collect());
        }
        ("RESTAPISettings", "auth_methods") => return names(&["BasicAuth", "JWTAuth", "KeyAuth"]),
        ("RESTAPISettings", "override_sensitive_fields") => {
            let models = Facts::get().models.values();
            let fields = models.flat_map(|model| model.fields.iter().map(move |field| (model, field)));
            let secret = fields.filter(|(_, field)| field.sensitive);
            return Some(
                secret.map(|(model, field)| json!(format!("{}:{}", model.name, field.name))).collect(),
            );
        }
        ("RESTAPIVersion", "install_version") => return names(&["v2.10.0", "v2.9.0", "v2.8.4", "v2.7.1"]),
        ("RESTAPIAccessListEntry", "users") => {
            let users = firewall.stored.list("User").iter();
            return Some(users.map(|user| json!(text(user, "name"))).collect());
        }
        ("RESTAPIAccessListEntry", "sched") => {
            let schedules = firewall.stored.list("FirewallSchedule").iter();
            return Some(schedules.map(|own| json!(text(own, "name"))).chain([json!("")]).collect());
        }
        _ => {}
    }
    match field.kind {
        Kind::Interface => Some(interfaces::choices(&firewall.stored, field)),
        _ => Some(field.options.clone()).filter(|options| !options.is_empty()),
    }
}

/// What a reference may name.
pub(crate) fn referred(firewall: &Pfsense, refers: &Reference) -> Vec<Value> {
    let models = refers.models.iter().filter_map(|name| Facts::get().model(name));
    let mut out = Vec::new();
    for model in models {
        let rows = query::select(firewall, model, represent::rows(firewall, model), &refers.of);
        let value = |row: represent::Row| row.values.get(&refers.field).cloned();
        out.extend(rows.unwrap_or_default().into_iter().filter_map(value));
    }
    out
}

/// A default that the firewall computes.
pub(crate) fn default(draft: &Draft, field: &Field) -> Option<Value> {
    let config = draft.config();
    let firewall = draft.firewall;
    if field.uid {
        let taken = draft.siblings.len();
        return Some(json!(format!(
            "{:08x}{:05x}",
            firewall.time.as_secs(),
            0x10_0000 + taken * 7 + salt(draft)
        )));
    }
    let next = |model: &str, name: &str, from: u64| {
        let taken: Vec<u64> =
            config.list(model).iter().filter_map(|own| own.get(name).and_then(Value::as_u64)).collect();
        (from..=from + NUMBERS_MAX).find(|number| !taken.contains(number)).unwrap_or(from)
    };
    let free = |prefix: &str, model: &str, name: &str| {
        let is_free = |own: &String| config.having(model, name, own).is_none();
        (0..=NUMBERS_MAX).map(|at| format!("{prefix}{at}")).find(is_free).unwrap_or_default()
    };
    // Numbers of accounts only grow.
    let above = |model: &str, name: &str| {
        let own = config.list(model).iter().filter_map(|own| own.get(name).and_then(Value::as_u64));
        own.filter(|number| *number < 65_000).max().map_or(2000, |last| (last + 1).max(2000))
    };
    Some(match (draft.model.name.as_str(), field.name.as_str()) {
        (_, "created_by" | "updated_by") => json!(draft.client),
        ("User", "uid") => json!(above("User", "uid")),
        ("UserGroup", "gid") => json!(above("UserGroup", "gid")),
        ("IPsecPhase1", "ikeid") => json!(next("IPsecPhase1", "ikeid", 1)),
        ("IPsecPhase2", "reqid") => json!(next("IPsecPhase2", "reqid", 1)),
        ("OpenVPNServer" | "OpenVPNClient", "vpnid") => {
            let server = next("OpenVPNServer", "vpnid", 1);
            json!(
                (server..=server + NUMBERS_MAX)
                    .find(|id| *id == next("OpenVPNClient", "vpnid", *id))
                    .unwrap_or(server)
            )
        }
        ("OpenVPNServer", "tls") => json!(vpn::static_key()),
        ("InterfaceBridge", "bridgeif") => json!(free("bridge", "InterfaceBridge", "bridgeif")),
        ("WireGuardTunnel", "name") => json!(free("tun_wg", "WireGuardTunnel", "name")),
        ("TrafficShaperLimiter", "number") => json!(next("TrafficShaperLimiter", "number", 1)),
        ("TrafficShaperLimiterQueue", "number") => json!(draft.siblings.len() + 1),
        ("HAProxyBackendServer", "serverid") => json!(100 + draft.siblings.len()),
        ("OutboundNATMapping", "source_hash_key") => json!(format!("0x{:032x}", salt(draft) + 1)),
        ("FirewallStatesSize", "maximumstates") => json!(201_000),
        ("FirewallAdvancedSettings", "aliasesresolveinterval") => json!(i64::MAX),
        ("ACMEAccountKey", "accountkey") => json!(vpn::private_key_pem()),
        _ => return None,
    })
}

/// Tells drafts of one second apart: the length of what was stored so far.
fn salt(draft: &Draft) -> usize {
    draft.firewall.history.front().map_or(0, |newest| usize::try_from(newest.time_secs % 4096).unwrap_or(0))
        + draft.model.name.len()
        + draft.nested.len()
}
