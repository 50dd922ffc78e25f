//! How a controller is logged in to, which also says below which path its interfaces stand.

use heddle_sdk::{Fault, Host, fault};
use serde_json::Value;

/// Below which the Network application of a console stands.
const PREFIX: &str = "/proxy/network";
/// The interface that only API keys are for.
const OFFICIAL: &str = "/integration/";
/// What belongs to the console, and to no application of it.
const CONSOLE: [&str; 2] = ["/api/system/", "/api/firmware/"];

/// The ways to log in that a controller can be set to; each is a session of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// A key of a console, in each request.
    ApiKey,
    /// A local account of a console.
    Account,
    /// An account of a controller that runs without UniFi OS.
    SelfHosted,
}

impl Login {
    /// By API key, unless the settings of the controller say another `login`.
    pub(crate) fn of(host: &dyn Host) -> Self {
        match host.settings().get("login").and_then(Value::as_str) {
            Some("account") => Self::Account,
            Some("self-hosted") => Self::SelfHosted,
            _ => Self::ApiKey,
        }
    }

    pub(crate) fn session(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::Account => "account",
            Self::SelfHosted => "self-hosted",
        }
    }

    /// The path as this controller has it.
    pub(crate) fn path(self, path: &str) -> Result<String, Fault> {
        let is_console = CONSOLE.iter().any(|part| path.starts_with(part));
        if is_console && self == Self::SelfHosted {
            return Err(fault::unsupported("a self-hosted controller has no console"));
        }
        if is_console && self == Self::ApiKey {
            let message = "keys belong to the applications; the console itself takes an account: set the login to 'account'";
            return Err(fault::unsupported(message));
        }
        if path.starts_with(OFFICIAL) && self != Self::ApiKey {
            let message =
                "the official API takes API keys alone; set the login of the controller to 'api-key'";
            return Err(fault::unsupported(message));
        }
        let prefix = if is_console || self == Self::SelfHosted { "" } else { PREFIX };
        Ok(format!("{prefix}{path}"))
    }
}
