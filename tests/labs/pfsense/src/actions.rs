//! Routes that act instead of storing.

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::device::Pfsense;
use crate::facts::Facts;
use crate::hooks::validated;
use crate::reply::Refusal;
use crate::represent::{self, Row};
use crate::store::{Object, text};
use crate::{access, choices, crud, jobs, php, programs, trust};

/// The data of the answer; `None` where the route stores.
pub(crate) fn answer(firewall: &mut Pfsense, call: &Call) -> Option<Result<Value, Refusal>> {
    let name = call.model.name.as_str();
    let done = match (name, call.method.as_str()) {
        (_, "POST") if name.ends_with("Apply") => apply(firewall, call),
        ("RESTAPIJWT", _) => {
            let token = access::issue_token(firewall, &call.user);
            Ok(json!({ "token": token }))
        }
        ("Service", "POST") => service(firewall, call),
        ("Package", "POST") => package(firewall, call),
        ("Ping", _) => ping(firewall, call),
        ("CommandPrompt", _) => command(firewall, call),
        ("SystemReboot", _) => power(firewall, call, "reboot"),
        ("SystemHalt", _) => power(firewall, call, "halt"),
        ("SystemUpdate", _) => power(firewall, call, "update"),
        ("WakeOnLANSend", _) => wake(firewall, call),
        ("Enum", _) => options(firewall, call),
        ("CARP", "PATCH") => carp(firewall, call),
        ("RESTAPIVersion", "PATCH") => install(firewall, call),
        ("RESTAPISettingsSync", _) => sync(firewall, call),
        ("CertificateRenew" | "CertificateAuthorityRenew", _) => trust::renew(firewall, call),
        ("ACMEAccountKeyRegister" | "ACMECertificateIssue" | "ACMECertificateRenew", "POST") => {
            acme(firewall, call)
        }
        _ => return None,
    };
    Some(done)
}

/// The values as an answer shows them.
fn show(firewall: &Pfsense, call: &Call, id: Option<Value>, values: Object) -> Value {
    represent::shown(firewall, call.model, &Row { id, parent: None, values })
}

/// Starts the apply of a subsystem. The answer tells the state before the job has run; only that of the packet filter
/// is read again.
fn apply(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    crud::check_packages(firewall, call.model)?;
    let read = |firewall: &Pfsense| {
        let object = represent::objects(firewall, call.model).into_iter().next();
        let object = object.map(|(_, object)| object).unwrap_or_default();
        represent::values(firewall, call.model, None, &object)
    };
    let before = read(firewall);
    jobs::spawn(firewall, &call.path, call.is_async)?;
    let values = if call.model.name == "FirewallApply" { read(firewall) } else { before };
    Ok(show(firewall, call, None, values))
}

fn service(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let Some(id) = call.data.get("id").filter(|id| !id.is_null()) else {
        return Err(Refusal::invalid("MODEL_REQUIRES_ID", "Field 'id' is required."));
    };
    crud::find(firewall, call, id)?;
    let values = validated(firewall, call)?;
    programs::control(firewall, text(&values, "name"), text(&values, "action"));
    let row = crud::find(firewall, call, id)?;
    Ok(represent::shown(firewall, call.model, &row))
}

fn package(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let values = validated(firewall, call)?;
    let name = text(&values, "name").to_owned();
    if !call.is_dry_run {
        firewall.packages.insert(name.clone());
    }
    let rows = represent::rows(firewall, call.model);
    let row = rows.into_iter().find(|row| text(&row.values, "name") == name);
    Ok(row.map_or_else(|| json!([]), |row| represent::shown(firewall, call.model, &row)))
}

fn ping(firewall: &Pfsense, call: &Call) -> Result<Value, Refusal> {
    let mut values = validated(firewall, call)?;
    let host = text(&values, "host").to_owned();
    let count = values.get("count").and_then(Value::as_u64).unwrap_or(3);
    // What is not a host resolves to nothing.
    let is_known = !host.is_empty() && !host.ends_with(".invalid");
    let (output, code) = if is_known {
        let lines = (0..count).map(|at| format!("64 bytes from {host}: icmp_seq={at} ttl=64 time=0.4 ms\n"));
        let end = format!(
            "\n--- {host} ping statistics ---\n{count} packets transmitted, {count} packets received, 0.0% packet loss"
        );
        (format!("PING {host} ({host}): 56 data bytes\n{}{end}", lines.collect::<String>()), 0)
    } else {
        (format!("ping: cannot resolve {host}: Unknown host"), 68)
    };
    values.insert("output".to_owned(), json!(output));
    values.insert("result_code".to_owned(), json!(code));
    Ok(show(firewall, call, None, values))
}

/// The shell knows two commands: what a client needs for a copy of the configuration, and an echo.
fn command(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let mut values = validated(firewall, call)?;
    let line = text(&values, "command").to_owned();
    let (output, code) = match line.split_once(' ') {
        Some(("cat", "/conf/config.xml" | "/cf/conf/config.xml")) => (firewall.stored.to_xml(), 0),
        Some(("echo", rest)) => (rest.to_owned(), 0),
        _ => {
            let word = line.split(' ').next().unwrap_or_default();
            (format!("sh: {word}: not found"), 127)
        }
    };
    firewall.live.commands.push(line);
    values.insert("output".to_owned(), json!(output));
    values.insert("result_code".to_owned(), json!(code));
    Ok(show(firewall, call, None, values))
}

fn power(firewall: &mut Pfsense, call: &Call, kind: &str) -> Result<Value, Refusal> {
    let values = validated(firewall, call)?;
    // The older release has the switch as a field of its own.
    let is_dry = call.is_dry_run || crate::store::is_true(&values, "dry_run");
    if !is_dry {
        jobs::spawn(firewall, kind, call.is_async)?;
    }
    Ok(show(firewall, call, None, values))
}

fn wake(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let values = validated(firewall, call)?;
    if !call.is_dry_run {
        firewall.live.woken.push(text(&values, "mac_addr").to_owned());
    }
    Ok(show(firewall, call, None, values))
}

/// The choices of a field at this moment.
fn options(firewall: &Pfsense, call: &Call) -> Result<Value, Refusal> {
    let mut values = validated(firewall, call)?;
    let Some(model) = Facts::get().model(text(&values, "model_name")) else {
        return Err(Refusal::not_found("ENUM_MODEL_DOES_NOT_EXIST", "The model does not exist."));
    };
    let name = text(&values, "model_field").to_owned();
    let Some(field) = model.fields(firewall.release).find(|field| field.name == name) else {
        return Err(Refusal::not_found("ENUM_MODEL_FIELD_DOES_NOT_EXIST", "The field does not exist."));
    };
    let own = choices::of(firewall, model, field);
    let found = own.or_else(|| Some(choices::referred(firewall, field.refers.as_ref()?)));
    let Some(found) = found else {
        let text = "The field has no choices.";
        return Err(Refusal::conflict("ENUM_MODEL_FIELD_DOES_NOT_SUPPORT_CHOICES", text));
    };
    let pairs = found.iter().map(|value| (php::text(value), json!(php::text(value))));
    values.insert("choices".to_owned(), Value::Object(pairs.collect::<Map<_, _>>()));
    Ok(show(firewall, call, None, values))
}

fn carp(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let mut draft = crate::draft::Draft::new(firewall, call.model, &call.client);
    draft.set("enable", json!(firewall.live.carp_is_on));
    draft.set("maintenance_mode", json!(firewall.live.carp_is_maintained));
    draft.lay_over(&call.data);
    draft.validate()?;
    let values = draft.values;
    if !call.is_dry_run {
        firewall.live.carp_is_on = crate::store::is_true(&values, "enable");
        firewall.live.carp_is_maintained = crate::store::is_true(&values, "maintenance_mode");
        firewall.keep_revision("Updated CARP settings via API");
    }
    Ok(show(firewall, call, None, values))
}

/// Another version of the API itself. While it is installed, the routes are away.
fn install(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let values = validated(firewall, call)?;
    let release = match text(&values, "install_version") {
        "v2.7.1" => Some(crate::Release::V2_7),
        "v2.8.4" => Some(crate::Release::V2_8),
        "v2.10.0" => Some(crate::Release::V2_10),
        _ => None,
    };
    let shown = show(firewall, call, None, values);
    if let Some(release) = release.filter(|_| !call.is_dry_run) {
        firewall.release = release;
    }
    Ok(shown)
}

/// Settings from a peer replace the own ones.
fn sync(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let values = validated(firewall, call)?;
    let Ok(Value::Object(sent)) = serde_json::from_str(text(&values, "sync_data")) else {
        let text = "Field `sync_data` must hold the settings of a peer as JSON.";
        return Err(Refusal::invalid("RESTAPI_SETTINGS_SYNC_INVALID_SYNC_DATA", text));
    };
    let mut settings = firewall.stored.single("RESTAPISettings");
    if !crate::store::is_true(&settings, "ha_sync") {
        let text = "Synchronisation is not enabled.";
        return Err(Refusal::forbidden("RESTAPI_SETTINGS_SYNC_NOT_ENABLED", text));
    }
    let is_known =
        |name: &String| Facts::get().model("RESTAPISettings").is_some_and(|own| own.field(name).is_some());
    settings.extend(sent.into_iter().filter(|(name, _)| is_known(name)));
    let mut config = firewall.stored.clone();
    config.put_single("RESTAPISettings", settings);
    firewall.save("Synchronized settings", config)?;
    firewall.running.take_over("RESTAPISettings", &firewall.stored);
    Ok(show(firewall, call, None, values))
}

/// Registers an account or issues a certificate: a job whose outcome lists tell afterwards.
fn acme(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let mut values = validated(firewall, call)?;
    let (prefix, field) = match call.model.name.as_str() {
        "ACMEAccountKeyRegister" => ("register", "name"),
        "ACMECertificateIssue" => ("issue", "certificate"),
        _ => ("renew", "certificate"),
    };
    if !call.is_dry_run {
        let name = text(&values, field).to_owned();
        firewall.live.acme.insert(format!("{prefix} {name}"), firewall.time.as_secs());
        values.insert("status".to_owned(), json!("pending"));
    }
    Ok(show(firewall, call, None, values))
}
