//! What webhooks need: hosts that they may go to.

use url::Host;

use super::{Config, ConfigError};

impl Config {
    pub(super) fn check_outgoing(&self, faults: &mut Vec<ConfigError>) {
        if let Some(host) = self.fabric_webhook_allowed_hosts.iter().find(|host| !is_host(host)) {
            faults.push(ConfigError::Value {
                name: "FABRIC_WEBHOOK_ALLOWED_HOSTS",
                value: host.clone(),
                accepted:
                    "host names or addresses such as hooks.example.org, separated by commas: no scheme, no \
                           port, no path, no network and no '*'"
                        .to_owned(),
            });
        }
    }
}

fn is_host(text: &str) -> bool {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    is_name(text) && matches!(Host::parse(text), Ok(Host::Domain(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_host_is_a_name_or_an_address() {
        for host in
            ["hooks.example.org", "Hooks.Example.ORG", "10.1.2.3", "fd00::7", "localhost", "a_b.internal"]
        {
            assert!(is_host(host), "{host}");
        }
        for host in
            ["https://x.example", "x.example:80", "*.example", "10.0.0.0/8", "a b", "", "[fd00::7]", "x/y"]
        {
            assert!(!is_host(host), "{host}");
        }
    }
}
