//! Payloads for actions, and what they need on the firewall before.

use heddle_sdk::Method;
use heddle_sdk::testing::conformance::Checked;
use serde_json::{Value, json};

use super::device::Device;

/// A subject of a certificate.
fn subject(more: Value) -> Value {
    let mut all = json!({ "descr": "sample", "keytype": "RSA", "keylen": 2048, "digest_alg": "sha256", "dn_commonname": "sample.example" });
    more.as_object().unwrap().iter().for_each(|(name, value)| all[name.as_str()] = value.clone());
    all
}

/// A payload, and what it needs on the device.
#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn prepared(device: &Device, id: &str) -> Checked<Value> {
    let edit = |edit: Value| device.lab().edit(&edit).unwrap();
    let account = || {
        let account = json!({ "name": "account", "acmeserver": "letsencrypt-staging-2" });
        device.person(Method::Post, "/services/acme/account_key", &account);
    };
    Ok(match id {
        "firewall.state-flush"
        | "diagnostics.arp-flush"
        | "system.update"
        | "diagnostics.reboot"
        | "diagnostics.halt" => json!({}),
        _ if id.ends_with("apply") => {
            // Something waits, so that the apply leaves a trace.
            edit(
                json!({ "do": "set", "model": "FirewallAlias", "fields": { "name": "waits", "type": "host", "address": ["192.0.2.1"] } }),
            );
            json!({})
        }
        "diagnostics.arp-delete" => {
            json!({ "ip_address": first(device, "/diagnostics/arp_table", "ip_address") })
        }
        "diagnostics.table-flush" => json!({ "name": "web_servers" }),
        "dhcp.lease-delete" => {
            let leases = device.person(Method::Get, "/status/dhcp_server/leases", &json!({}));
            let is_active = |lease: &&Value| lease["active_status"] == "active";
            let lease = leases.as_array().unwrap().iter().find(is_active).ok_or("there is no lease")?;
            json!({ "ip": lease["ip"] })
        }
        "dhcp.backend" => json!({ "dhcpbackend": "isc" }),
        "system.api-version-install" => json!({ "install_version": "v2.8.4" }),
        "services.wake-on-lan" => json!({ "interface": "LAN", "mac_addr": "02:00:00:00:00:77" }),
        "services.service-start" => {
            let all = device.person(Method::Get, "/status/services", &json!({}));
            let unbound = all
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["name"] == "unbound")
                .ok_or("there is no unbound")?;
            device.person(
                Method::Post,
                "/status/service",
                &json!({ "id": unbound["id"], "name": "unbound", "action": "stop" }),
            );
            json!({ "name": "unbound" })
        }
        _ if id.starts_with("services.service-") => json!({ "name": "unbound" }),
        "services.acme.register" => {
            account();
            json!({ "name": "account" })
        }
        "services.acme.issue" | "services.acme.renew" => {
            account();
            let certificate = json!({ "name": "sample", "acmeaccount": "account",
                "a_domainlist": [{ "name": "sample.example", "method": "standalone" }] });
            device.person(Method::Post, "/services/acme/certificate", &certificate);
            json!({ "certificate": "sample" })
        }
        "system.certificate-generate" => subject(json!({ "caref": "65a0c0ffee010" })),
        "system.certificate-request" => subject(json!({})),
        "system.ca-generate" => subject(json!({})),
        "system.certificate-sign" => {
            let request = device.person(
                Method::Post,
                "/system/certificate/signing_request",
                &subject(json!({ "descr": "request" })),
            );
            json!({ "descr": "sample", "caref": "65a0c0ffee010", "csr": request["csr"], "digest_alg": "sha256" })
        }
        "system.certificate-renew" => json!({ "certref": "65a0c0ffee011" }),
        "system.ca-renew" => json!({ "caref": "65a0c0ffee010" }),
        other => return Err(format!("there is no sample of '{other}'")),
    })
}

/// A field of the first row of a list.
fn first(device: &Device, path: &str, field: &str) -> Value {
    device.person(Method::Get, path, &json!({}))[0][field].clone()
}
