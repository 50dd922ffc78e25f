//! How a router starts.

use std::time::Duration;

use crate::Release;

/// How a router is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The release with which it starts.
    pub release: Release,
    /// The version that it tells, whatever its release is, such as `7.30.1`.
    pub told_version: Option<String>,
    /// How many rules of the filter it has, of which the first are those of a household.
    pub rules: usize,
    /// Packages beside the base; all that the simulation knows when absent.
    pub packages: Option<Vec<String>>,
    /// A virtual router has no switch chip, no power over Ethernet and no boot loader.
    pub is_virtual: bool,
    /// Name and password of the administrator.
    pub admin: (String, String),
    /// Name and password of a user who may read everything but secrets, and write nothing.
    pub reader: (String, String),
    /// Requests come over HTTPS: `www-ssl` is the service that carries them, not `www`.
    pub is_secure: bool,
    /// How many bytes an export of the configuration has at least: comments fill it.
    pub export_bytes_min: usize,
    /// How long a restart takes.
    pub boot: Duration,
    /// How long a second of a command takes, and the sixtieth part of the time after which a command is cut.
    pub second: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let pair = |name: &str, password: &str| (name.to_owned(), password.to_owned());
        Self {
            release: Release::default(),
            told_version: None,
            rules: 11,
            packages: None,
            is_virtual: false,
            admin: pair("admin", "heddle-lab"),
            reader: pair("reader", "reader-lab"),
            is_secure: false,
            export_bytes_min: 0,
            boot: Duration::from_secs(20),
            second: Duration::from_secs(1),
        }
    }
}
