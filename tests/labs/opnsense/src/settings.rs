//! How a firewall starts.

use std::time::Duration;

use crate::Release;

/// How a firewall is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The release with which it starts.
    pub release: Release,
    /// The version that it tells, whatever its release is.
    pub told_version: Option<String>,
    /// How many filter rules it has, of which the first few are those of a household.
    pub rules: usize,
    /// Plugins that are installed from the start; all that the simulation knows when absent.
    pub plugins: Option<Vec<String>>,
    /// Key and secret of the administrator.
    pub admin: (String, String),
    /// Key and secret of a user who may read everything and save nothing.
    pub reader: (String, String),
    /// How many bytes a download of the configuration has at least: a long comment fills it.
    pub backup_bytes_min: usize,
    /// How long a restart takes.
    pub boot: Duration,
    /// How long a firmware job takes.
    pub job: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let pair = |key: &str, secret: &str| (key.to_owned(), secret.to_owned());
        Self {
            release: Release::default(),
            told_version: None,
            rules: 4,
            plugins: None,
            admin: pair("admin-key", "admin-secret"),
            reader: pair("reader-key", "reader-secret"),
            backup_bytes_min: 0,
            boot: Duration::from_secs(20),
            job: Duration::from_secs(10),
        }
    }
}
