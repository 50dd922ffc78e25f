//! Where the catalogue is, and what it is believed for.

use std::path::PathBuf;

use heddle_kernel::config::{ConfigError, Environment};

use crate::source::Source;
use crate::trust::pinned;

heddle_kernel::settings! {
    /// Where the catalogue of packages is, and what it is believed for.
    pub(crate) struct CatalogSettings checked by check {
        /// Address of the catalogue of packages, such as `https://plugins.example.org/`, or the path of a folder with a mirror of it.
        url: Option<String> = "MARKETPLACE_URL", "";
        /// File of the first root, which says whose signatures a catalogue needs. Full assurance.
        root: Option<PathBuf> = "MARKETPLACE_ROOT", "";
        /// Ed25519 public key, 64 hex digits, that signs the bare bytes of the catalogue. Lower assurance: nothing is revoked, and news can be withheld.
        key: Option<String> = "MARKETPLACE_PUBLISHER_PUBLIC_KEY", "";
        /// Takes an unsigned catalogue, where no root and no key is set. Its packages then need a key that a `super_admin` trusts.
        allow_unsigned: bool = "MARKETPLACE_ALLOW_UNSIGNED", "false";
        /// Minutes between two updates of the catalogue; 0: only when a `super_admin` asks for one.
        sync_minutes: u32 = "MARKETPLACE_SYNC_MINUTES", "360", from 0 to 10_080;
        /// Installs newer versions of plugins of the catalogue by itself; one that may do more than was agreed to waits for consent.
        auto_update: bool = "MARKETPLACE_AUTO_UPDATE", "false";
    }
}

fn check(settings: &CatalogSettings, _: Environment, faults: &mut Vec<ConfigError>) {
    let mut refuse = |name: &'static str, value: &str, accepted: &str| {
        faults.push(ConfigError::Value { name, value: value.to_owned(), accepted: accepted.to_owned() });
    };
    if let Some(url) = settings.url.as_deref().filter(|url| Source::of(url).is_none()) {
        refuse(
            "MARKETPLACE_URL",
            url,
            "an address of https: or http: without a query, or the path of a folder",
        );
    }
    let Some(key) = &settings.key else { return };
    if settings.root.is_some() {
        refuse(
            "MARKETPLACE_PUBLISHER_PUBLIC_KEY",
            key,
            "nothing where MARKETPLACE_ROOT is set: a catalogue is believed for one of the two",
        );
    } else if pinned(key).is_none() {
        refuse("MARKETPLACE_PUBLISHER_PUBLIC_KEY", key, "an Ed25519 public key as 64 hex digits");
    }
}
