//! How a firewall starts.

use std::time::Duration;

use crate::Release;

/// How a firewall is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The release of the REST API package.
    pub release: Release,
    /// The version of pfSense that it tells; that of CE 2.8.1 when absent.
    pub told_version: Option<String>,
    /// The version to which an update leads; none is available when absent.
    pub update_to: Option<String>,
    /// How many filter rules it has, of which the first few are those of a household.
    pub rules: usize,
    /// Packages that are installed from the start; all that the simulation knows when absent.
    pub packages: Option<Vec<String>>,
    /// Name and password of the administrator.
    pub admin: (String, String),
    /// Name and password of a user who may only read.
    pub reader: (String, String),
    /// An API key of the administrator, which works where the method is switched on.
    pub api_key: String,
    /// The methods of authentication that are switched on, as the vendor names them.
    pub auth_methods: Vec<String>,
    /// How many failed logins within half an hour make the firewall drop the client's packets; never when absent.
    pub login_failures_max: Option<usize>,
    /// How long a background job runs.
    pub job: Duration,
    /// How long a restart takes.
    pub boot: Duration,
    /// How long after a restart the web server answers with a page of its own.
    pub starting: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let pair = |name: &str, password: &str| (name.to_owned(), password.to_owned());
        Self {
            release: Release::default(),
            told_version: None,
            update_to: None,
            rules: 4,
            packages: None,
            admin: pair("admin", "pfsense"),
            reader: pair("reader", "reader-password"),
            api_key: "lab-api-key".to_owned(),
            auth_methods: vec!["BasicAuth".to_owned()],
            login_failures_max: Some(30),
            job: Duration::from_millis(500),
            boot: Duration::from_secs(20),
            starting: Duration::from_secs(5),
        }
    }
}
