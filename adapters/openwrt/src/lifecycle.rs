//! The identity of a device, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
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
            let is_there = found.as_ref().map(|found| found.contains_key(*name));
            Capability::known(name, is_there, format!("'{name}' is absent: {purpose}"))
        })
        .collect();
    for ((_, _, args), answer) in reads[1..].iter().zip(answers) {
        let config = sdk_json::text(args, "/object").unwrap_or_default();
        let may_write = answer.ok().and_then(|answer| answer.get("access")?.as_bool());
        let reason = format!("the user may not write the configuration '{config}'");
        capabilities.push(Capability::known(&format!("write.{config}"), may_write, reason));
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
    let product = sdk_json::text(board, "/model").unwrap_or_default();
    let facts = [
        ("hostname", "/hostname"),
        ("board", "/board_name"),
        ("kernel", "/kernel"),
        ("target", "/release/target"),
        ("revision", "/release/revision"),
    ];
    let add = |profile: DeviceProfile, (key, pointer): (&str, &str)| {
        profile.with_fact(key, sdk_json::text(board, pointer).map(str::to_owned))
    };
    let identity = [board["board_name"].clone(), board["release"].clone()];
    let profile = DeviceProfile::new(product, version).with_capabilities(identity, capabilities);
    facts.into_iter().fold(profile, add)
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
