//! What the reader of the guide has from others: packages of a publisher that the server trusts, and a catalogue that the
//! server follows.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use heddle_marketplace::{write_archive, write_dir};
use serde_json::{Value, json};

use crate::marketplace;
use crate::marketplace::registry::Registry;
use crate::sandbox::package;
use crate::support::plugins::{Keys, archive_of, example, guest, named, scripted};
use crate::support::{Options, packages};

/// The plugin that the guide installs from the catalogue, which is that of the demo there.
const FROM_CATALOGUE: &str = "grafana-annotations";

/// The publisher `acme`, with the registry that lists its plugins.
pub(super) struct Acme {
    registry: Registry,
    trusted: Keys,
    /// The folder of the adapters that serve when the server starts.
    adapters: PathBuf,
}

impl Acme {
    /// Writes the archives that the guide sends into the reader's folder. An older version of the adapter serves already, and
    /// the catalogue lists a newer version of the plugin.
    pub(super) fn new(folder: &Path) -> Self {
        let acme =
            Self { registry: Registry::new(), trusted: Keys::new(), adapters: folder.join("adapters") };
        let key = &acme.registry.acme;
        acme.trusted.trust(&[key.trusted_for_own()]);

        let switch = |version: &str| package::named("acme-switch", version, key);
        write_dir(&switch("1.0.0"), &acme.adapters.join("acme-switch")).unwrap();
        symlink(packages().canonicalize().unwrap().join("openwrt"), acme.adapters.join("openwrt")).unwrap();
        std::fs::write(folder.join("acme-switch.zip"), write_archive(&switch("1.1.0")).unwrap()).unwrap();

        let archive = |version: &str| archive_of(&tickets(version), guest("plugin"), key);
        std::fs::write(folder.join("acme-tickets.zip"), archive("1.0.0")).unwrap();
        acme.registry.add(&archive("1.1.0"));
        acme.registry.may_sign(FROM_CATALOGUE);
        let (manifest, component) = example(FROM_CATALOGUE);
        acme.registry.add(&archive_of(&manifest, component, key));
        acme
    }

    /// Settings of a server that trusts the publisher and follows its registry.
    pub(super) fn options(&self) -> Options {
        let shown = |path: &Path| path.display().to_string();
        marketplace::options(&self.registry, &shown(&self.registry.served()))
            .with("ADAPTER_PACKAGES", shown(&self.adapters))
            .with("ADAPTER_TRUSTED_KEYS", shown(&self.trusted.file()))
    }
}

/// A plugin whose server is a setting of the organization, with a secret for it.
fn tickets(version: &str) -> Value {
    let mut manifest = named(&scripted("https://api.example.net"), "acme-tickets");
    manifest["name"] = json!("Tickets");
    manifest["version"] = json!(version);
    manifest["capabilities"]["http"][0]["origin"] = json!({ "setting": "server-url" });
    manifest["capabilities"]["secrets"][0]["name"] = json!("api-key");
    manifest["config-schema"] = json!({
        "type": "object", "properties": { "server-url": { "type": "string", "format": "uri" } },
        "required": ["server-url"], "additionalProperties": false,
    });
    manifest
}
