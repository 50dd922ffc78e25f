//! Users, groups, API keys and certificates.

use serde_json::{Value, json};

use super::{refusal, unless};
use crate::access;
use crate::der;
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::reply::Refusal;
use crate::store::{Object, text};
use crate::trust;

/// Accounts of the operating system.
const SYSTEM_USERS: [&str; 14] = [
    "root", "toor", "daemon", "operator", "bin", "tty", "kmem", "nobody", "sshd", "unbound", "www", "proxy",
    "dhcpd", "ntpd",
];

pub(crate) fn field(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let texts = |name: &str| -> Vec<String> {
        let items = draft.value(name).as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match (draft.model.name.as_str(), name) {
        ("User", "name") => {
            let is_reserved = SYSTEM_USERS.contains(&draft.text("name"));
            unless(!is_reserved, "USER_CANNOT_USE_RESERVED_USERNAME")
        }
        ("User", "password") => {
            let old = draft.initial.as_ref().map_or("", |initial| text(initial, "password"));
            if draft.text("password") != old {
                let hash = access::hash(draft.text("password"));
                draft.set("password", json!(hash));
            }
            Ok(())
        }
        ("User" | "UserGroup", "priv") => {
            let kind = if draft.model.name == "User" { "USER" } else { "USER_GROUP" };
            let all_known = texts("priv").iter().all(|name| access::is_privilege(name));
            if all_known { Ok(()) } else { Err(refusal(404, &format!("{kind}_PRIV_NOT_FOUND"))) }
        }
        ("UserGroup", "name") => {
            let is_long = draft.text("scope") == "local" && draft.text("name").len() > 16;
            unless(!is_long, "USER_GROUP_NAME_EXCEEDS_MAXIMUM_LENGTH_FOR_LOCAL_SCOPE")
        }
        ("UserGroup", "scope") => {
            let old = draft.initial.as_ref().map_or("", |initial| text(initial, "scope"));
            let becomes_system = draft.text("scope") == "system" && old != "system";
            if becomes_system {
                Err(refusal(422, "USER_GROUP_SCOPE_CANNOT_BE_SET_TO_SYSTEM"))
            } else {
                Ok(())
            }
        }
        // A key belongs to the user who makes it, whatever the request says.
        ("RESTAPIKey", "username") => {
            let user = draft.client.split('@').next().unwrap_or_default().to_owned();
            draft.set("username", json!(user));
            Ok(())
        }
        ("Certificate", "prv") => {
            let is_pair = trust::is_pair(draft.text("crt"), draft.text("prv"));
            unless(is_pair, "CERTIFICATE_CRT_AND_PRV_NOT_KEYPAIR")
        }
        ("CertificateAuthority", "crt") => {
            let is_authority = der::is_authority(draft.text("crt"));
            unless(is_authority, "CERTIFICATE_AUTHORITY_CRT_NOT_VALID_CA")
        }
        ("CertificateAuthority", "prv") => {
            let is_pair = trust::is_pair(draft.text("crt"), draft.text("prv"));
            unless(is_pair, "CERTIFICATE_AUTHORITY_CRT_AND_PRV_NOT_KEYPAIR")
        }
        _ => Ok(()),
    }
}

/// How long a certificate is valid.
pub(crate) fn show_certificate(firewall: &Pfsense, object: &Object, out: &mut Object) {
    let Some((from, until)) = trust::validity(text(object, "crt")) else { return };
    let time = |secs: i64| {
        let time = chrono::DateTime::from_timestamp(secs, 0).unwrap_or_default();
        json!(time.format("%Y-%m-%d %H:%M:%S").to_string())
    };
    let now = i64::try_from(firewall.time.as_secs()).unwrap_or_default();
    for (name, value) in [
        ("valid_from", time(from)),
        ("valid_until", time(until)),
        ("valid_days_left", json!((until - now) / 86_400)),
    ] {
        if out.contains_key(name) {
            out.insert(name.to_owned(), value);
        }
    }
}
