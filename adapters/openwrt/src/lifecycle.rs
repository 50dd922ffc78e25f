//! The identity of a device, and what it can do.

use heddle_sdk::{Attribute, Availability, Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use crate::rpc;

/// Objects that decide what can be read or done, and what they are for.
const OBJECTS: &[(&str, &str)] = &[
    ("uci", "configuration; install rpcd"),
    ("system", "identity and load"),
    ("network.interface", "interfaces"),
    ("network.device", "counters"),
    ("network.wireless", "radios"),
    ("iwinfo", "wireless clients; install rpcd-mod-iwinfo"),
    ("luci-rpc", "DHCP leases and names; install rpcd-mod-luci"),
    ("dhcp", "leases of odhcpd"),
    ("file", "firmware upgrade; install rpcd-mod-file"),
    ("rpc-sys", "firmware upgrade and factory reset; install rpcd-mod-rpcsys"),
    ("log", "log"),
];

/// Logs in, reads who the device is, and probes which objects it has.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let write =
        |config: &str| ("session", "access", json!({"scope": "uci", "object": config, "function": "write"}));
    let reads =
        [("system", "board", json!({})), write("network"), write("firewall"), write("dhcp"), write("system")];
    let mut answers = rpc::batch(host, &reads)?.into_iter();
    let board = answers
        .next()
        .expect("as many answers as reads")
        .map_err(|error| error.into_fault("system.board"))?;
    let version = version_of(&board)
        .ok_or_else(|| fault::unsupported("the device does not say which release of OpenWrt it runs"))?;
    let names: Vec<&str> = OBJECTS.iter().map(|(name, _)| *name).collect();
    let found = rpc::objects(host, &names).ok();
    let mut capabilities: Vec<Capability> = OBJECTS
        .iter()
        .map(|(name, purpose)| {
            let available = match &found {
                None => Availability::Unknown,
                Some(found) if found.contains_key(*name) => Availability::Yes,
                Some(_) => Availability::No,
            };
            let reason =
                matches!(available, Availability::No).then(|| format!("'{name}' is absent: {purpose}"));
            Capability { id: (*name).to_owned(), available, reason }
        })
        .collect();
    for ((_, _, args), answer) in reads[1..].iter().zip(answers) {
        let config = sdk_json::text(args, "/object").unwrap_or_default();
        let available = match answer.map(|answer| answer.get("access").and_then(Value::as_bool)) {
            Ok(Some(true)) => Availability::Yes,
            Ok(Some(false)) => Availability::No,
            Ok(None) | Err(_) => Availability::Unknown,
        };
        let reason = matches!(available, Availability::No)
            .then(|| format!("the user may not write the configuration '{config}'"));
        capabilities.push(Capability { id: format!("write.{config}"), available, reason });
    }
    Ok(profile(&board, version, capabilities))
}

/// The version of the device. Snapshots that are built on different days have one name, so that only the revision beside it
/// tells them apart.
fn version_of(board: &Value) -> Option<String> {
    let version = sdk_json::text(board, "/release/version").filter(|version| !version.is_empty())?;
    let is_snapshot = version.contains("SNAPSHOT") || !version.contains(|c: char| c.is_ascii_digit());
    match sdk_json::text(board, "/release/revision") {
        Some(revision) if is_snapshot => Some(format!("{version} {revision}")),
        _ => Some(version.to_owned()),
    }
}

fn profile(board: &Value, version: String, capabilities: Vec<Capability>) -> DeviceProfile {
    let present: Vec<&str> = capabilities
        .iter()
        .filter(|capability| matches!(capability.available, Availability::Yes))
        .map(|capability| capability.id.as_str())
        .collect();
    let fingerprint = json!([board.get("board_name"), board.get("release"), present]);
    let facts = [
        ("hostname", "/hostname"),
        ("board", "/board_name"),
        ("kernel", "/kernel"),
        ("target", "/release/target"),
        ("revision", "/release/revision"),
    ]
    .iter()
    .filter_map(|(key, pointer)| {
        Some(Attribute { key: (*key).to_owned(), value: sdk_json::text(board, pointer)?.to_owned() })
    })
    .collect();
    DeviceProfile {
        product: sdk_json::text(board, "/model").unwrap_or_default().to_owned(),
        version,
        fingerprint: hex::encode(sdk_json::digest(&fingerprint)),
        capabilities,
        facts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_one_build() {
        for (release, expected) in [
            (json!({"version": "24.10.2", "revision": "r28739-d9340319c6"}), Some("24.10.2")),
            (json!({"version": "24.10.0-rc1", "revision": "r28219"}), Some("24.10.0-rc1")),
            (
                json!({"version": "SNAPSHOT", "revision": "r29000-0123abcdef"}),
                Some("SNAPSHOT r29000-0123abcdef"),
            ),
            (json!({"version": "SNAPSHOT"}), Some("SNAPSHOT")),
            (json!({"version": "24.10-SNAPSHOT", "revision": "r28800-1"}), Some("24.10-SNAPSHOT r28800-1")),
            (json!({"version": "", "revision": "r28739"}), None),
            (json!({"revision": "r28739"}), None),
        ] {
            assert_eq!(version_of(&json!({"release": release})).as_deref(), expected, "{release}");
        }
    }
}
