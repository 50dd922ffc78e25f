//! Settings of a server that is started from here, where the user says nothing else.
//!
//! The environment wins, then `heddle.toml` or the file that `HEDDLE_CONFIG` names: the order of the server itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Networks that the practice router of the demo is in: the address guard refuses them otherwise.
const DEMO_NETWORK: &str = "127.0.0.0/8";

/// What says which catalogue a server follows, and what it is believed for.
const CATALOGUE: [&str; 4] =
    ["MARKETPLACE_URL", "MARKETPLACE_ROOT", "MARKETPLACE_PUBLISHER_PUBLIC_KEY", "MARKETPLACE_ALLOW_UNSIGNED"];

/// Settings as the user gave them, and the defaults of `cargo xtask run`.
pub(crate) struct Settings<'a> {
    given: &'a dyn Fn(&str) -> Option<String>,
    packages: PathBuf,
    trusted_keys: PathBuf,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(
        given: &'a dyn Fn(&str) -> Option<String>,
        packages: PathBuf,
        trusted_keys: PathBuf,
    ) -> Self {
        Self { given, packages, trusted_keys }
    }

    /// The variables to set for the server: only what the user left open.
    pub(crate) fn defaults(&self) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut defaults = vec![
            ("ENVIRONMENT", "development".to_owned()),
            // The server's own default is true: here is a checkout, not a network that others depend on.
            ("ADAPTER_READ_ONLY", "false".to_owned()),
            ("BIND_ADDR", "127.0.0.1:8080".to_owned()),
            ("DATA_DIR", "./data".to_owned()),
            ("ADAPTER_PACKAGES", text(&self.packages)),
            ("ADAPTER_TRUSTED_KEYS", text(&self.trusted_keys)),
        ];
        defaults.retain(|(name, _)| (self.given)(name).is_none());
        defaults
    }

    /// The networks of the user, and the one that the practice router is in.
    pub(crate) fn demo_networks(&self) -> String {
        match (self.given)("EGRESS_EXTRA_NETWORKS") {
            Some(given) if given.split(',').any(|network| network.trim() == DEMO_NETWORK) => given,
            Some(given) => format!("{given},{DEMO_NETWORK}"),
            None => DEMO_NETWORK.to_owned(),
        }
    }

    /// Whether the server follows the catalogue of the demo: the user names no other one, and no key for one.
    pub(crate) fn follows_own_catalogue(&self) -> bool {
        CATALOGUE.iter().all(|name| (self.given)(name).is_none())
    }

    /// The variables by which the server follows this catalogue, where the user says nothing of another one.
    pub(crate) fn catalogue(&self, served: &Path, root: &Path) -> Vec<(&'static str, PathBuf)> {
        if !self.follows_own_catalogue() {
            return Vec::new();
        }
        vec![("MARKETPLACE_URL", served.to_owned()), ("MARKETPLACE_ROOT", root.to_owned())]
    }

    /// What the server will find: the user's word, or the default.
    fn effective(&self, name: &str) -> Option<String> {
        let default =
            || self.defaults().into_iter().find_map(|(known, value)| (known == name).then_some(value));
        (self.given)(name).or_else(default)
    }

    pub(crate) fn bind_addr(&self) -> anyhow::Result<SocketAddr> {
        let text = self.effective("BIND_ADDR").unwrap_or_default();
        text.trim()
            .parse()
            .with_context(|| format!("BIND_ADDR '{text}' is not address:port, such as 127.0.0.1:8080"))
    }

    pub(crate) fn data_dir(&self) -> String {
        self.effective("DATA_DIR").unwrap_or_default()
    }

    /// Whether the server will send nothing to a device, as it reads the word.
    pub(crate) fn is_read_only(&self) -> bool {
        let word = self.effective("ADAPTER_READ_ONLY").unwrap_or_default().trim().to_ascii_lowercase();
        !["false", "0", "no", "off"].contains(&word.as_str())
    }
}

/// A setting of the environment or of the file. An empty one counts as not given.
#[expect(clippy::disallowed_methods, reason = "what the user has set is not set again for the server")]
pub(crate) fn given(name: &str) -> Option<String> {
    let file = std::env::var("HEDDLE_CONFIG").unwrap_or_else(|_| "heddle.toml".to_owned());
    std::env::var(name).ok().or_else(|| in_file(&file, name)).filter(|value| !value.is_empty())
}

/// The server refuses a file that it cannot read; here it counts as empty.
fn in_file(path: &str, name: &str) -> Option<String> {
    let table: toml::Table = std::fs::read_to_string(path).ok()?.parse().ok()?;
    match table.get(&name.to_ascii_lowercase())? {
        toml::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(given: &dyn Fn(&str) -> Option<String>) -> Settings<'_> {
        Settings::new(given, "packages".into(), "keys.json".into())
    }

    #[test]
    fn what_the_user_has_set_is_not_set_again() {
        let given = |name: &str| match name {
            "ADAPTER_READ_ONLY" => Some("TRUE".to_owned()),
            "BIND_ADDR" => Some("127.0.0.1:9090".to_owned()),
            "DATA_DIR" => Some("/srv/heddle".to_owned()),
            "ENVIRONMENT" => Some("staging".to_owned()),
            "ADAPTER_PACKAGES" => Some("/srv/packages".to_owned()),
            _ => None,
        };
        let settings = with(&given);
        assert_eq!(settings.defaults(), [("ADAPTER_TRUSTED_KEYS", "keys.json".to_owned())]);
        assert!(settings.is_read_only());
        assert_eq!(settings.bind_addr().unwrap().port(), 9090);
        assert_eq!(settings.data_dir(), "/srv/heddle");
    }

    #[test]
    fn writes_are_on_where_the_user_says_nothing() {
        let settings = with(&|_| None);
        assert!(!settings.is_read_only());
        assert!(settings.defaults().contains(&("ADAPTER_READ_ONLY", "false".to_owned())));
        assert_eq!(settings.bind_addr().unwrap().to_string(), "127.0.0.1:8080");
    }

    #[test]
    fn the_demo_adds_its_network_to_those_of_the_user() {
        let given = |networks: &'static str| move |_: &str| Some(networks.to_owned());
        assert_eq!(with(&|_| None).demo_networks(), "127.0.0.0/8");
        assert_eq!(with(&given("10.0.0.0/8")).demo_networks(), "10.0.0.0/8,127.0.0.0/8");
        assert_eq!(with(&given("10.0.0.0/8, 127.0.0.0/8")).demo_networks(), "10.0.0.0/8, 127.0.0.0/8");
    }

    #[test]
    fn the_demo_has_a_catalogue_where_the_user_follows_none() {
        let (served, root) = (Path::new("public"), Path::new("public/1.root.json"));
        assert_eq!(
            with(&|_| None).catalogue(served, root),
            [("MARKETPLACE_URL", served.to_owned()), ("MARKETPLACE_ROOT", root.to_owned())]
        );
        for name in CATALOGUE {
            let given = |asked: &str| (asked == name).then(|| "1".to_owned());
            assert!(with(&given).catalogue(served, root).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_file_is_read_as_the_server_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heddle.toml");
        std::fs::write(&path, "adapter_read_only = true\nbind_addr = \"127.0.0.1:1\"\n").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(in_file(path, "ADAPTER_READ_ONLY").as_deref(), Some("true"));
        assert_eq!(in_file(path, "BIND_ADDR").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(in_file(path, "DATA_DIR"), None);
        assert_eq!(in_file("/nowhere/heddle.toml", "DATA_DIR"), None);
    }
}
