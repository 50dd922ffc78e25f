//! Publishing: the files are written in an order in which a reader between any two of them finds a whole catalogue.
//!
//! A catalogue is there under the name of its version, which is never written again, before the timestamp that names it.
//! The names that stay, `catalog.json` and `timestamp.json`, get their signatures first: those of the new file together with
//! those of the old one, so that either file fits.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;
use heddle_marketplace::PublisherKey;
use heddle_marketplace::catalog::bounds::{CATALOG_BYTES_MAX, TIMESTAMP_BYTES_MAX};
use heddle_marketplace::catalog::{
    CATALOG, Catalog, CatalogRef, Document, Root, Signatures, TIMESTAMP, Time, Timestamp, catalog_name,
    signature_name, time_to_text,
};

use crate::packages::sha256;
use crate::registry::Registry;
use crate::roots::later;
use crate::{files, keys, say};

/// Catalogues that stay under the names of their versions: for readers that saw an older timestamp.
const CATALOGS_KEPT: u64 = 8;

#[derive(Args)]
pub(crate) struct Publish {
    folder: PathBuf,
    #[arg(long = "catalog-key", required = true)]
    catalog_keys: Vec<PathBuf>,
    #[arg(long = "timestamp-key", required = true)]
    timestamp_keys: Vec<PathBuf>,
    /// Days until the catalogue expires
    #[arg(long, default_value_t = 90)]
    days: u32,
    /// Days until the timestamp expires
    #[arg(long, default_value_t = 7)]
    timestamp_days: u32,
}

#[derive(Args)]
pub(crate) struct Renew {
    folder: PathBuf,
    #[arg(long = "key", required = true)]
    keys: Vec<PathBuf>,
    /// Days until the timestamp expires
    #[arg(long, default_value_t = 7)]
    days: u32,
}

impl Publish {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let (catalog_keys, timestamp_keys) =
            (keys::load(&self.catalog_keys)?, keys::load(&self.timestamp_keys)?);
        let mut catalog = registry.catalog()?;
        catalog.version = next_version(&registry)?;
        catalog.expires = later(now, self.days)?;
        let content = catalog.to_bytes();
        let catalog = Catalog::parse(&content)?;
        let signatures = signed(&registry, Document::Catalog, &content, &catalog_keys)?;
        // What can be refused is refused before anything is written.
        let timestamp =
            prepared(&registry, now, self.timestamp_days, named(&catalog, &content)?, &timestamp_keys)?;

        let name = catalog_name(catalog.version);
        files::write(&registry.public(&signature_name(&name)), &signatures.to_bytes())?;
        files::write(&registry.public(&name), &content)?;
        replace(&registry, Document::Catalog, &content, signatures)?;
        replace(&registry, Document::Timestamp, &timestamp.0, timestamp.1)?;
        registry.keep_catalog(&catalog)?;
        remove_old(&registry, catalog.version)?;
        say(&format!(
            "catalogue {} is published and expires at {}",
            catalog.version,
            time_to_text(&catalog.expires)
        ))
    }
}

impl Renew {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let served = registry.served(CATALOG, CATALOG_BYTES_MAX)?;
        let (content, signatures) = served.context("no catalogue is published; 'publish' does it")?;
        check_signers(&registry.root()?, Document::Catalog, &content, &signatures)
            .context("servers would refuse the published catalogue; 'publish' signs it anew")?;
        let catalog = Catalog::parse(&content)?;
        let (content, signatures) =
            prepared(&registry, now, self.days, named(&catalog, &content)?, &keys::load(&self.keys)?)?;
        replace(&registry, Document::Timestamp, &content, signatures)?;
        say(&format!("the timestamp for catalogue {} is published", catalog.version))
    }
}

fn named(catalog: &Catalog, content: &[u8]) -> anyhow::Result<CatalogRef> {
    Ok(CatalogRef {
        version: catalog.version,
        length: u64::try_from(content.len())?,
        sha256: sha256(content),
    })
}

/// The version after every one that was ever written, also by a publication that was cut off.
fn next_version(registry: &Registry) -> anyhow::Result<u64> {
    let named = registry.timestamp()?.map_or(0, |timestamp| timestamp.catalog.version);
    let mut last = named;
    for entry in std::fs::read_dir(registry.public(""))? {
        let name = entry?.file_name();
        let version =
            name.to_str().and_then(|name| name.strip_suffix(CATALOG)?.strip_suffix('.')?.parse::<u64>().ok());
        last = last.max(version.unwrap_or(0));
    }
    Ok(last + 1)
}

/// The next timestamp for a catalogue, signed.
fn prepared(
    registry: &Registry,
    now: Time,
    days: u32,
    catalog: CatalogRef,
    secret: &[PublisherKey],
) -> anyhow::Result<(Vec<u8>, Signatures)> {
    let last = registry.timestamp()?;
    if let Some(last) = &last {
        ensure!(
            last.signed <= now,
            "the clock shows {}, but the last timestamp was signed at {}",
            time_to_text(&now),
            time_to_text(&last.signed)
        );
    }
    let revocations = registry.revocations()?;
    let mut published = last.iter().flat_map(|last| &last.revocations);
    if let Some(known) = published.find(|known| !revocations.iter().any(|one| one.is_same(known))) {
        bail!(
            "the draft lacks the published revocation of the {} '{}'; servers refuse a list without it",
            known.kind,
            known.value
        );
    }
    let version = last.map_or(1, |last| last.version + 1);
    let timestamp = Timestamp::new(version, now, later(now, days)?, catalog, revocations);
    let content = timestamp.to_bytes();
    Timestamp::parse(&content)?;
    let signatures = signed(registry, Document::Timestamp, &content, secret)?;
    Ok((content, signatures))
}

/// Signs a file with the keys of its role. Keys of a root that still waits for signatures sign, too: then the file is good
/// before and after that root is published.
fn signed(
    registry: &Registry,
    document: Document,
    content: &[u8],
    secret: &[PublisherKey],
) -> anyhow::Result<Signatures> {
    let root = registry.root()?;
    let next = registry.next_root()?;
    let accepted: Vec<[u8; 32]> = [Some(&root), next.as_ref().map(|next| &next.root)]
        .into_iter()
        .flatten()
        .flat_map(|root| root.keys_of(document))
        .collect();
    let mut signatures = Signatures::default();
    for key in secret {
        ensure!(
            accepted.contains(&key.trusted().key),
            "'{}' is no key for the {}",
            key.publisher(),
            said(document)
        );
        signatures.sign(document, content, key.signing()).map_err(|problem| anyhow!(problem))?;
    }
    check_signers(&root, document, content, &signatures)?;
    Ok(signatures)
}

/// Refuses a file that servers would refuse, because too few keys of the published root signed it.
fn check_signers(
    root: &Root,
    document: Document,
    content: &[u8],
    signatures: &Signatures,
) -> anyhow::Result<()> {
    let found = signatures.signers(document, content, &root.keys_of(document)).len();
    let needed = root.role(document).threshold;
    ensure!(found >= needed, "{needed} keys must sign the {}, and {found} did", said(document));
    Ok(())
}

fn said(document: Document) -> &'static str {
    match document {
        Document::Root => "root",
        Document::Catalog => "catalogue",
        Document::Timestamp => "timestamp",
    }
}

/// Replaces `catalog.json` or `timestamp.json`, signatures first.
fn replace(
    registry: &Registry,
    document: Document,
    content: &[u8],
    mut signatures: Signatures,
) -> anyhow::Result<()> {
    let (name, bytes_max) = match document {
        Document::Timestamp => (TIMESTAMP, TIMESTAMP_BYTES_MAX),
        Document::Catalog | Document::Root => (CATALOG, CATALOG_BYTES_MAX),
    };
    if let Some((old, mut of_old)) = registry.served(name, bytes_max)? {
        of_old.retain(document, &old, &registry.root()?.keys_of(document));
        signatures.extend(of_old);
    }
    files::write(&registry.public(&signature_name(name)), &signatures.to_bytes())?;
    files::write(&registry.public(name), content)
}

/// Removes catalogues that no reader asks for any more.
fn remove_old(registry: &Registry, version: u64) -> anyhow::Result<()> {
    let Some(old) = version.checked_sub(CATALOGS_KEPT) else { return Ok(()) };
    let name = catalog_name(old);
    for name in [name.clone(), signature_name(&name)] {
        let path = registry.public(&name);
        if path.exists() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}
