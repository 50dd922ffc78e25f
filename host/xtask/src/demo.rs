//! The practice devices of `run --demo`: one of each vendor, at two sites.

use serde_json::{Value, json};

/// The first device is the one that the README works with.
pub(crate) const DEVICES: [Device; 4] = [
    Device {
        vendor: "openwrt",
        name: "Practice router",
        listen: "127.0.0.1:8181",
        control: "127.0.0.1:8182",
        args: &["--password", "heddle-demo"],
        login: Login::Password("root", "heddle-demo"),
        branch: None,
        site: Site::Lab,
    },
    Device {
        vendor: "omada",
        name: "Practice wireless",
        listen: "127.0.0.1:8183",
        control: "127.0.0.1:8184",
        args: &[],
        login: Login::Password("lab-client", "lab-secret"),
        branch: Some("Branch"),
        site: Site::Lab,
    },
    Device {
        vendor: "opnsense",
        name: "Practice firewall",
        listen: "127.0.0.1:8185",
        control: "127.0.0.1:8186",
        args: &[],
        login: Login::Password("admin-key", "admin-secret"),
        branch: None,
        site: Site::Branch,
    },
    Device {
        vendor: "proxmox",
        name: "Practice cluster",
        listen: "127.0.0.1:8187",
        control: "127.0.0.1:8188",
        args: &[],
        login: Login::Key("root@pam!heddle=6f1c2a34-9d0e-4b57-8a61-3c5d7e9f1a20"),
        branch: None,
        site: Site::Branch,
    },
];

/// A practice device, and how the organization knows it.
pub(crate) struct Device {
    pub(crate) vendor: &'static str,
    pub(crate) name: &'static str,
    pub(crate) listen: &'static str,
    pub(crate) control: &'static str,
    /// Arguments of its program beside the addresses.
    pub(crate) args: &'static [&'static str],
    pub(crate) login: Login,
    /// The vendor's own site that is the branch, where its controller has sites.
    pub(crate) branch: Option<&'static str>,
    pub(crate) site: Site,
}

/// A site of the demo's organization.
#[derive(Clone, Copy)]
pub(crate) enum Site {
    /// The one that the set-up makes.
    Lab,
    Branch,
}

/// What a credential of the device holds.
#[derive(Clone, Copy)]
pub(crate) enum Login {
    /// User name and password, or a key and its secret.
    Password(&'static str, &'static str),
    Key(&'static str),
}

impl Device {
    /// The fields of its credential.
    pub(crate) fn credential(&self) -> Value {
        match self.login {
            Login::Password(name, password) => json!({ "username": name, "password": password }),
            Login::Key(key) => json!({ "api_key": key }),
        }
    }

    /// What a person at the terminal should know.
    pub(crate) fn line(&self) -> String {
        let Self { name, vendor, listen, control, .. } = self;
        let login = match self.login {
            Login::Password(name, password) => format!("'{name}', '{password}'"),
            Login::Key(key) => format!("'{key}'"),
        };
        format!("{name} ({vendor}): http://{listen} ({login}), its faults: http://{control}")
    }
}
