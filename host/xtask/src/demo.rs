//! The practice devices of `run --demo`: each stands in the file `demo.json` beside its simulated controller.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::workspace::Workspace;

/// A practice device, and how the organization knows it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    /// The folder of its simulated controller.
    #[serde(skip)]
    pub(crate) vendor: String,
    pub(crate) name: String,
    pub(crate) listen: SocketAddr,
    pub(crate) control: SocketAddr,
    /// Arguments of its program beside the addresses.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    pub(crate) login: Login,
    /// What its controller is told beside address and login.
    #[serde(default)]
    pub(crate) settings: Map<String, Value>,
    /// The vendor's own site that is the branch, where its controller has sites.
    pub(crate) branch: Option<String>,
    pub(crate) site: Site,
}

/// A site of the demo's organization.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Site {
    /// The one that the set-up makes.
    Lab,
    Branch,
}

/// What a credential of the device holds.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Login {
    /// User name and password, or a key and its secret.
    Password {
        username: String,
        password: String,
    },
    Key {
        api_key: String,
    },
}

/// The devices of the demo by their addresses: the README works with the first one. A simulated controller without
/// `demo.json` is not among them.
pub(crate) fn devices(workspace: &Workspace) -> anyhow::Result<Vec<Device>> {
    let mut devices = Vec::new();
    for vendor in workspace.labs()? {
        let path = workspace.lab(&vendor).join("demo.json");
        if !path.is_file() {
            continue;
        }
        let told = path.display();
        let text = fs::read_to_string(&path).with_context(|| format!("'{told}' cannot be read"))?;
        let device = serde_json::from_str(&text).with_context(|| format!("'{told}' is no device"))?;
        devices.push(Device { vendor, ..device });
    }
    devices.sort_by_key(|device| device.listen);
    ensure_apart(&devices)?;
    Ok(devices)
}

/// Refuses an address or a name that two devices have, and an address that others reach: the logins are public.
fn ensure_apart(devices: &[Device]) -> anyhow::Result<()> {
    let (mut addresses, mut names) = (BTreeSet::new(), BTreeSet::new());
    for device in devices {
        let vendor = &device.vendor;
        for address in [device.listen, device.control] {
            ensure!(
                address.ip().is_loopback(),
                "the demo's device of '{vendor}' is open to others at {address}"
            );
            ensure!(addresses.insert(address), "another device of the demo has {address}, too: '{vendor}'");
        }
        ensure!(names.insert(&device.name), "another device of the demo is named '{}', too", device.name);
    }
    Ok(())
}

impl Device {
    /// The fields of its credential.
    pub(crate) fn credential(&self) -> Value {
        match &self.login {
            Login::Password { username, password } => json!({ "username": username, "password": password }),
            Login::Key { api_key } => json!({ "api_key": api_key }),
        }
    }

    /// What a person at the terminal should know.
    pub(crate) fn line(&self) -> String {
        let Self { name, vendor, listen, control, .. } = self;
        let login = match &self.login {
            Login::Password { username, password } => format!("'{username}', '{password}'"),
            Login::Key { api_key } => format!("'{api_key}'"),
        };
        format!("{name} ({vendor}): http://{listen} ({login}), its faults: http://{control}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(vendor: &str, port: u16) -> Device {
        let text = json!({
            "name": format!("Practice {vendor}"),
            "listen": format!("127.0.0.1:{port}"),
            "control": format!("127.0.0.1:{}", port + 1),
            "login": { "api_key": "key" },
            "site": "lab",
        });
        let device: Device = serde_json::from_value(text).expect("it has all fields");
        Device { vendor: vendor.to_owned(), ..device }
    }

    #[test]
    fn the_device_that_the_readme_works_with_is_the_first_one() {
        let workspace = Workspace::locate().expect("cargo knows the workspace");
        let devices = devices(&workspace).expect("every file can be read");
        let readme = fs::read_to_string(workspace.root.join("README.md")).expect("there is a README");
        let first = devices.first().expect("there is a device");
        assert!(readme.contains(&format!("http://{}/faults", first.control)), "{}", first.line());
        assert!(devices.len() > 1);
    }

    #[test]
    fn two_devices_share_no_address_and_no_name() {
        ensure_apart(&[device("a", 8181), device("b", 8183)]).expect("they are apart");
        for (other, told) in [(device("b", 8182), "127.0.0.1:8182"), (device("a", 8183), "'Practice a'")] {
            let refused = ensure_apart(&[device("a", 8181), other]).expect_err("they are not apart");
            assert!(refused.to_string().contains(told), "{refused}");
        }
        let open = Device { listen: ([0, 0, 0, 0], 8181).into(), ..device("a", 8181) };
        assert!(ensure_apart(&[open]).is_err());
    }

    #[test]
    fn a_field_that_no_device_has_is_refused() {
        let text = r#"{"name": "x", "listen": "127.0.0.1:1", "control": "127.0.0.1:2", "site": "lab",
            "login": {"api_key": "key"}, "brunch": "Branch"}"#;
        let refused = serde_json::from_str::<Device>(text).expect_err("there is no such field");
        assert!(refused.to_string().contains("brunch"), "{refused}");
    }
}
