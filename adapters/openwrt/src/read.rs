//! Reading configuration files, and telling a session of the host's from one that the device lent it.
//!
//! While an apply waits for its confirmation, the device gives every login of the same user the session that made
//! it. Such a session belongs to another client: the adapter stages nothing into it and never ends it.

use std::collections::BTreeMap;

use heddle_sdk::{Fault, FaultExt, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use crate::rpc;
use crate::touch::Configs;
use crate::uci::Config;
use crate::world::World;

/// Seconds that the manifest's login asks for. No other client asks for this number, so a session with another one
/// was made by another client.
const OWN_TIMEOUT: &str = "1193";
/// How long to wait for another client's confirmation: the device's web interface allows 90 s.
const RETRY_AFTER_MS: u64 = 30_000;

/// Whether the session that would be used is another client's.
pub(crate) fn is_adopted(host: &dyn Host) -> Result<bool, Fault> {
    let facts = host.session_facts(rpc::SESSION)?;
    Ok(facts.iter().any(|(name, value)| name == "timeout" && value != OWN_TIMEOUT))
}

/// Forgets a session that is another client's. The manifest has no logout: forgetting never ends a session.
pub(crate) fn leave_adopted(host: &dyn Host) -> Result<bool, Fault> {
    let is_adopted = is_adopted(host)?;
    if is_adopted {
        host.reset_session(rpc::SESSION);
    }
    Ok(is_adopted)
}

pub(crate) fn somebody_applies() -> Fault {
    fault::busy(
        "another client's change waits for its confirmation at the device; until that is over nothing else can be written",
    )
    .with_code("apply-pending")
    .with_retry_after_ms(RETRY_AFTER_MS)
}

/// Reads whole files: ids of sections depend on everything in them.
///
/// A session sees its own staged changes as if they were in the files, and the device puts changes that it took
/// back into the staging of the session that made them. Such a session is forgotten and the files are read again.
pub(crate) fn configs(host: &dyn Host, names: &[&str]) -> Result<Configs, Fault> {
    Ok(all(host, names, &[])?.0)
}

/// The files of a plan, and what else it wants to know; what cannot be read of the latter is left out.
pub(crate) fn for_plan(host: &dyn Host, names: &[&str]) -> Result<(Configs, World), Fault> {
    let mut more: Vec<rpc::Read<'_>> = ["network", "firewall", "dhcp"]
        .iter()
        .filter(|name| !names.contains(*name))
        .map(|name| ("uci", "get", json!({"config": name})))
        .collect();
    more.push(("network.device", "status", json!({})));
    let (configs, mut answers) = all(host, names, &more)?;
    let devices = answers.pop().flatten();
    let mut world = World { configs: configs.clone(), ..World::default() };
    for ((_, _, args), answer) in more.iter().zip(answers) {
        let name = sdk_json::text(args, "/config").unwrap_or_default();
        if let Some(config) = answer.and_then(|answer| Config::parse(name, &answer).ok()) {
            world.configs.insert(name.to_owned(), config);
        }
    }
    world.devices = devices.as_ref().and_then(Value::as_object).map(|map| map.keys().cloned().collect());
    Ok((configs, world))
}

type Answers = Vec<Option<Value>>;

fn all(host: &dyn Host, names: &[&str], more: &[rpc::Read<'_>]) -> Result<(Configs, Answers), Fault> {
    for _ in 0..2 {
        let (found, is_clean) = once(host, names, more)?;
        let is_adopted = leave_adopted(host)?;
        if is_clean {
            return Ok(found);
        }
        if is_adopted {
            return Err(somebody_applies());
        }
        host.reset_session(rpc::SESSION);
    }
    Err(fault::busy("the session of the device holds changes that were not made here; try again in a minute")
        .with_code("session-dirty")
        .with_retry_after_ms(60_000))
}

/// The answers, and whether nothing is staged over the files.
fn once(
    host: &dyn Host,
    names: &[&str],
    more: &[rpc::Read<'_>],
) -> Result<((Configs, Answers), bool), Fault> {
    let mut reads: Vec<rpc::Read<'_>> =
        names.iter().map(|name| ("uci", "get", json!({"config": name}))).collect();
    reads.push(("uci", "changes", json!({})));
    reads.extend(more.iter().cloned());
    let mut answers = rpc::batch(host, &reads)?.into_iter();
    let mut configs = BTreeMap::new();
    for name in names {
        let answer = answers.next().expect("an answer for each read");
        let answer = answer.map_err(|error| unreadable(error, name))?;
        configs.insert((*name).to_owned(), Config::parse(name, &answer)?);
    }
    let staged = answers.next().expect("an answer for each read");
    let staged = staged.map_err(|error| error.into_fault("uci.changes"))?;
    let rest = answers.map(Result::ok).collect();
    Ok(((configs, rest), is_empty(staged.get("changes"))))
}

/// Why a file gives no answer.
pub(crate) fn unreadable(error: rpc::CallError, name: &str) -> Fault {
    if error.is_broken_file() {
        return fault::generic(format!(
            "the device cannot read '/etc/config/{name}': the file is broken; 'uci show {name}' at the device names the line"
        ))
        .with_code("config-broken");
    }
    if error.is_ubus(rpc::status::NOT_FOUND) {
        return fault::unsupported(format!(
            "the device has no '/etc/config/{name}'; install the package that this configures"
        ))
        .with_code("config-absent");
    }
    if error.is_denied() {
        return fault::denied(format!(
            "the user may not read the configuration '{name}' ('uci.get'); add it to an access group of the user"
        ));
    }
    error.into_fault(&format!("uci.get {name}"))
}

/// The device answers an object, an array or nothing.
fn is_empty(staged: Option<&Value>) -> bool {
    match staged {
        None => true,
        Some(Value::Object(configs)) => {
            configs.values().all(|list| list.as_array().is_none_or(Vec::is_empty))
        }
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}
