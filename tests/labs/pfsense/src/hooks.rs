//! What the vendor does around a write: ids it gives, objects it makes or takes along, and what it refuses to delete.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::call::Call;
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::facts::Facts;
use crate::reply::Refusal;
use crate::represent::Row;
use crate::store::{Config, NAME, Object, text};
use crate::{access, crud, forward, interfaces, jobs, trust, vpn};

/// Names that are tried for a new device.
const NAMES_MAX: u32 = 65_535;

/// The id of a new object.
pub(crate) fn next_id(draft: &Draft, list: &[Object]) -> Value {
    match draft.model.name.as_str() {
        "NetworkInterface" => {
            let is_free = |id: &String| list.iter().all(|own| text(own, NAME) != id);
            let mut ids =
                std::iter::once("lan".to_owned()).chain((1..=NAMES_MAX).map(|at| format!("opt{at}")));
            json!(ids.find(is_free))
        }
        "DHCPServer" => json!(interfaces::store(draft.config(), draft.text("interface"))),
        _ => json!(list.len()),
    }
}

/// Random to a client, and the same in each run.
pub(crate) fn secret(firewall: &Pfsense, what: &str, bytes: usize) -> String {
    let newest = firewall.history.front().map_or(0, |revision| revision.time_secs);
    let seed = format!("{what} {} {newest} {}", firewall.live.server_key, firewall.history.len());
    let blocks = (0..bytes.div_ceil(32)).map(|at| hex::encode(Sha256::digest(format!("{seed} {at}"))));
    blocks.collect::<String>()[..bytes * 2].to_owned()
}

/// Values that exist from the moment of creation.
pub(crate) fn before_create(draft: &mut Draft) -> Result<(), Refusal> {
    let config = draft.config();
    let next = |prefix: &str, field: &str| {
        let is_free = |name: &String| config.having(&draft.model.name, field, name).is_none();
        (0..=NAMES_MAX).map(|at| format!("{prefix}{at}")).find(is_free).unwrap_or_default()
    };
    match draft.model.name.as_str() {
        "InterfaceLAGG" => {
            let name = next("lagg", "laggif");
            draft.set("laggif", json!(name));
        }
        "InterfaceGRE" => {
            let name = next("gre", "greif");
            draft.set("greif", json!(name));
        }
        "PortForward" if draft.text("associated_rule_id") == "new" => {
            let id = format!("nat_{}", &secret(draft.firewall, "associated", 16)[..24]);
            draft.set("associated_rule_id", json!(id));
        }
        "RESTAPIKey" => {
            let bytes =
                draft.number("length_bytes").and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(24);
            let key = secret(draft.firewall, "key", bytes);
            let digest = access::key_digest(draft.text("hash_algo"), &key);
            draft.set("key", json!(key));
            draft.set("hash", json!(digest));
        }
        name if name.starts_with("Certificate") => trust::issue(draft)?,
        _ => {}
    }
    Ok(())
}

/// What an update changes before it is looked at.
pub(crate) fn before_validation(draft: &mut Draft) {
    // An assigned tunnel takes its addresses from its interface.
    let is_tunnel = draft.model.name == "WireGuardTunnel";
    if is_tunnel && draft.config().having(interfaces::INTERFACES, "if", draft.text("name")).is_some() {
        draft.set("addresses", json!([]));
    }
}

pub(crate) fn before_update(draft: &mut Draft) -> Result<(), Refusal> {
    match draft.model.name.as_str() {
        "RESTAPIKey" => Err(Refusal::server("API_KEY_CANNOT_BE_UPDATED", "API keys cannot be updated.")),
        // A certificate that is written is no request any more.
        "Certificate" => {
            draft.set("csr", Value::Null);
            Ok(())
        }
        _ => Ok(()),
    }
}

pub(crate) fn after_create(
    firewall: &mut Pfsense,
    call: &Call,
    id: &Value,
    values: &mut Object,
) -> Result<(), Refusal> {
    match call.model.name.as_str() {
        "NetworkInterface" => drop(firewall.pending_interfaces.insert(crate::php::text(id))),
        "PortForward" if forward::is_linked(values) => {
            let rule = forward::linked_rule(values);
            forward::store_rule(firewall, call, &rule, None)?;
        }
        "RoutingGatewayGroup" => show_protocol(firewall, values),
        "FirewallSchedule" => drop(values.insert("active".to_owned(), json!(true))),
        _ => {}
    }
    Ok(())
}

pub(crate) fn after_update(
    firewall: &mut Pfsense,
    call: &Call,
    id: &Value,
    values: &mut Object,
    initial: &Object,
) -> Result<(), Refusal> {
    match call.model.name.as_str() {
        "NetworkInterface" => drop(firewall.pending_interfaces.insert(crate::php::text(id))),
        "PortForward" if forward::is_linked(values) => {
            let link = text(values, "associated_rule_id").to_owned();
            let rules = firewall.stored.list("FirewallRule");
            let at = rules.iter().position(|rule| text(rule, "associated_rule_id") == link);
            if at.is_some() {
                let rule = forward::linked_rule(values);
                forward::store_rule(firewall, call, &rule, at)?;
            }
        }
        "RoutingGatewayGroup" => show_protocol(firewall, values),
        "FirewallSchedule" => {
            let active = initial.get("active").cloned().unwrap_or(json!(true));
            values.insert("active".to_owned(), active);
        }
        _ => {}
    }
    Ok(())
}

fn show_protocol(firewall: &Pfsense, values: &mut Object) {
    if let Some(model) = Facts::get().model("RoutingGatewayGroup") {
        crate::rules::show(firewall, model, None, &Object::new(), values);
    }
}

/// Refuses to delete what is in use, and takes along what cannot stay.
pub(crate) fn before_delete(call: &Call, row: &Row, config: &mut Config) -> Result<(), Refusal> {
    let value = |field: &str| text(&row.values, field);
    let is_assigned = |field: &str| config.having(interfaces::INTERFACES, "if", value(field)).is_some();
    let conflict = |id: &str| Err(Refusal::conflict(id, "The object is in use."));
    match call.model.name.as_str() {
        "NetworkInterface" => interface(row, config),
        "InterfaceBridge" if is_assigned("bridgeif") => {
            Err(Refusal::invalid("INTERFACE_BRIDGE_IN_USE", "The bridge is in use by an interface."))
        }
        "InterfaceLAGG" if is_assigned("laggif") => conflict("INTERFACE_LAGG_CANNOT_BE_DELETED_WHILE_IN_USE"),
        "InterfaceGRE" if is_assigned("greif") => conflict("INTERFACE_GRE_CANNOT_DELETE_WHILE_IN_USE"),
        "OpenVPNServer" if vpn::is_assigned(config, true, &row.values) => {
            conflict("OPENVPN_SERVER_CANNOT_BE_DELETED_WHILE_IN_USE")
        }
        "OpenVPNClient" if vpn::is_assigned(config, false, &row.values) => {
            conflict("OPENVPN_CLIENT_CANNOT_BE_DELETED_WHILE_IN_USE")
        }
        "User" if value("scope") != "user" => {
            let text = "System users cannot be deleted.";
            Err(Refusal::invalid("USER_WITH_SYSTEM_SCOPE_CANNOT_BE_DELETED", text))
        }
        "Certificate" if trust::is_used(config, value("refid")) => {
            let text = "The certificate is in use.";
            Err(Refusal::forbidden("CERTIFICATE_CANNOT_BE_DELETED_WHILE_IN_USE", text))
        }
        "CertificateAuthority" if trust::is_authority_used(config, value("refid")) => {
            conflict("CERTIFICATE_AUTHORITY_CANNOT_BE_DELETED_WHILE_IN_USE")
        }
        "CertificateAuthority" => {
            let refid = value("refid").to_owned();
            for certificate in config.list_mut("Certificate") {
                if text(certificate, "caref") == refid {
                    certificate.shift_remove("caref");
                }
            }
            config.list_mut("CertificateRevocationList").retain(|list| text(list, "caref") != refid);
            Ok(())
        }
        "PortForward" if forward::is_linked(&row.values) => {
            let link = value("associated_rule_id").to_owned();
            let is_last = config.list("FirewallRule").len() <= 1;
            if !is_last {
                config.list_mut("FirewallRule").retain(|rule| text(rule, "associated_rule_id") != link);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn interface(row: &Row, config: &mut Config) -> Result<(), Refusal> {
    let id = row.id.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let lists = |model: &str, field: &str| {
        config.list(model).iter().any(|own| match own.get(field) {
            Some(Value::Array(items)) => items.contains(&json!(id)),
            Some(own) => own == &json!(id),
            None => false,
        })
    };
    let refuse = |what: &str| {
        let text = "The interface is in use.";
        Err(Refusal::invalid(&format!("NETWORK_INTERFACE_{what}"), text))
    };
    if id == "wan" {
        return refuse("WAN_CANNOT_BE_DELETED");
    }
    for (model, field, what) in [
        ("InterfaceGroup", "members", "IN_USE_BY_INTERFACE_GROUP"),
        ("InterfaceBridge", "members", "IN_USE_BY_INTERFACE_BRIDGE"),
        ("InterfaceGRE", "if", "IN_USE_BY_INTERFACE_GRE"),
        ("TrafficShaper", "interface", "IN_USE_BY_TRAFFIC_SHAPER_QUEUE"),
    ] {
        if lists(model, field) {
            return refuse(what);
        }
    }
    config.list_mut("DHCPServer").retain(|server| text(server, NAME) != id);
    config.list_mut("FirewallRule").retain(|rule| rule.get("interface") != Some(&json!([id])));
    config.list_mut("PortForward").retain(|rule| text(rule, "interface") != id);
    Ok(())
}

pub(crate) fn after_delete(firewall: &mut Pfsense, call: &Call, row: &Row) {
    match call.model.name.as_str() {
        // The device goes at once, without an apply.
        "NetworkInterface" | "VirtualIP" => {
            firewall.activate(call.model);
            if call.model.name == "VirtualIP" && !firewall.met.is_overwritten {
                firewall.dirty.remove("vip");
            }
            let id = row.id.as_ref().map(crate::php::text).unwrap_or_default();
            firewall.pending_interfaces.remove(&id);
        }
        _ => {}
    }
}

/// What else happens when a write has become active.
pub(crate) fn applied(firewall: &mut Pfsense, call: &Call) -> Result<(), Refusal> {
    match call.model.name.as_str() {
        "FirewallSchedule" => jobs::spawn(firewall, jobs::FILTER, call.is_async),
        "WebGUISettings" => {
            firewall.web_restarts = Some(firewall.now + std::time::Duration::from_secs(3));
            Ok(())
        }
        "DHCPServerBackend" => jobs::spawn(firewall, "/services/dhcp_server/apply", call.is_async),
        // Certificates that other models make stand in the list of certificates.
        name if name.starts_with("Certificate") => {
            let lists = ["Certificate", "CertificateAuthority"].iter();
            for model in lists.filter_map(|name| Facts::get().model(name)) {
                firewall.activate(model);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The values of an action's request after its validation.
pub(crate) fn validated(firewall: &Pfsense, call: &Call) -> Result<Object, Refusal> {
    crud::check_packages(firewall, call.model)?;
    let mut draft = Draft::new(firewall, call.model, &call.client);
    draft.lay_over(&call.data);
    draft.validate()?;
    Ok(draft.values)
}
