//! What decides about packages and is not in them: keys that are trusted, what is revoked, downgrades that are allowed.

use heddle_kernel::app::App;
use heddle_marketplace::catalog::{Action, Revocation, Subject, gravest};
use heddle_marketplace::{TrustedKey, Verified};
use heddle_runtime::Adapter;
use heddle_store::installed_packages::Installed;
use heddle_store::publisher_keys::{self, PublisherKeyRow};
use heddle_store::{Tx, catalogs};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::not_loaded::NotLoaded;
use crate::settings::{AdapterSettings, trusted_keys};

/// Facts outside the packages that decide between them.
#[derive(Clone, Default)]
pub struct Ground {
    /// Keys that a person trusts, in the file or over the API: they open what is sent.
    pub trusted: Vec<TrustedKey>,
    /// Keys that a catalogue listed for what was installed from it: they open what is kept, and nothing that is sent.
    pub listed: Vec<TrustedKey>,
    /// Revocations of catalogues.
    pub revoked: Vec<Revocation>,
    /// `id@version` of packages that may serve although a newer version did.
    pub downgrades: Vec<String>,
}

impl Ground {
    /// What holds now.
    ///
    /// # Errors
    /// The file of keys or the database cannot be read.
    pub async fn of(app: &App) -> Result<Self, NotLoaded> {
        let mut tx = app.db.read().await?;
        let rows = publisher_keys::all(&mut tx).await?;
        let revoked = revocations(&mut tx).await?;
        drop(tx);
        let mut trusted =
            trusted_keys(&app.config).map_err(|error| NotLoaded::Passing(format!("{error:#}")))?;
        let mut listed = Vec::new();
        for row in &rows {
            let keys = if row.listed_for.is_empty() { &mut trusted } else { &mut listed };
            keys.extend(trusted_key(row));
        }
        let downgrades = app.config.of::<AdapterSettings>().downgrades.clone();
        Ok(Self { trusted, listed, revoked, downgrades })
    }

    /// The same with what is revoked now, which stays so until the transaction ends.
    pub async fn held(&self, tx: &mut Tx) -> Result<Self, NotLoaded> {
        catalogs::hold_gate(tx).await?;
        Ok(Self { revoked: revocations(tx).await?, ..self.clone() })
    }

    /// The same, where this package, `id@version`, may serve although a newer version did.
    #[must_use]
    pub fn allowing(mut self, package: String) -> Self {
        self.downgrades.push(package);
        self
    }

    /// The same, where this package also may serve if it is pinned.
    #[must_use]
    pub fn with_pin(mut self, installed: &Installed) -> Self {
        if installed.is_pinned {
            self.downgrades.push(format!("{}@{}", installed.adapter_id, installed.version));
        }
        self
    }

    /// All keys that open what is kept.
    #[must_use]
    pub fn keys(&self) -> Vec<TrustedKey> {
        self.trusted.iter().chain(&self.listed).cloned().collect()
    }

    /// Whether a key is still known.
    pub(crate) fn has_key(&self, key_id: &str) -> bool {
        self.trusted.iter().chain(&self.listed).any(|key| key.key_id() == key_id)
    }

    /// What a catalogue says against a package, and how urgent that is.
    #[must_use]
    pub fn revocation(&self, package: &Verified) -> Option<&Revocation> {
        let manifest = package.manifest();
        let subject = Subject {
            plugin: &manifest.id,
            version: &manifest.version,
            package_sha256: package.archive_sha256(),
            manifest_sha256: Some(package.manifest_sha256()),
            component_sha256: Some(package.component_sha256()),
            key_ids: &package.key_ids(),
        };
        gravest(&self.revoked, &subject)
    }

    /// Whether a package may be installed, as far as catalogues say; else says why not.
    pub fn may_install(&self, package: &Verified) -> Result<(), String> {
        match self.revocation(package) {
            None => Ok(()),
            Some(revocation) => Err(revoked(package, revocation)),
        }
    }

    /// Whether a package may run, as far as catalogues say. One that is blocked goes on where it is installed.
    pub(crate) fn may_run(&self, package: &Verified) -> Result<(), String> {
        match self.revocation(package) {
            Some(revocation) if revocation.action != Action::Block => Err(revoked(package, revocation)),
            _ => Ok(()),
        }
    }
}

/// What a catalogue says against an adapter that serves, and how urgent that is.
#[must_use]
pub fn said_of<'a>(adapter: &Adapter, revoked: &'a [Revocation]) -> Option<&'a Revocation> {
    let (manifest, provenance) = (adapter.manifest(), adapter.provenance());
    let subject = Subject {
        plugin: &manifest.id,
        version: &manifest.version,
        package_sha256: provenance.archive_sha256.as_deref(),
        manifest_sha256: Some(adapter.manifest_sha256()),
        component_sha256: Some(adapter.component_sha256()),
        key_ids: &provenance.key_ids,
    };
    gravest(revoked, &subject)
}

fn revoked(package: &Verified, revocation: &Revocation) -> String {
    let manifest = package.manifest();
    format!(
        "version {} of '{}' is revoked by the catalogue: {}; install another version",
        manifest.version, manifest.id, revocation.reason
    )
}

/// What the catalogue revoked.
///
/// # Errors
/// The database gives no answer, or has an entry that cannot be read: then nothing is taken for sound.
pub async fn revocations(tx: &mut Tx) -> Result<Vec<Revocation>, NotLoaded> {
    let entries = catalogs::revocations(tx).await?;
    let read = |entry: &Value| {
        Revocation::deserialize(entry).map_err(|error| {
            NotLoaded::Passing(format!("a revocation in the database cannot be read: {error}"))
        })
    };
    entries.iter().map(read).collect()
}

/// The key of a row; a row that cannot be read is no key.
fn trusted_key(row: &PublisherKeyRow) -> Vec<TrustedKey> {
    let entry =
        json!([{ "publisher": row.publisher, "public_key": row.public_key, "ids": row.ids }]).to_string();
    heddle_marketplace::parse_trusted_keys(entry.as_bytes()).unwrap_or_else(|error| {
        tracing::error!(key = %row.key_id, error = %error, "a key of a publisher in the database cannot be read");
        Vec::new()
    })
}
