//! Roots: the first one, the next ones, and their signatures, which come one by one from keys that are offline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use chrono::TimeDelta;
use clap::{Args, ValueEnum};
use heddle_marketplace::PublisherKey;
use heddle_marketplace::catalog::bounds::ROOT_BYTES_MAX;
use heddle_marketplace::catalog::{
    Catalog, Document, Role, Roles, Root, RootKey, Signatures, Time, signature_name, time_to_text,
};

use crate::registry::{Registry, SignedRoot, signatures_beside};
use crate::{files, keys, say};

#[derive(Args)]
pub(crate) struct Init {
    folder: PathBuf,
    /// A public key as 64 hex digits, or a key file; once for each key
    #[arg(long = "root-key", required = true)]
    root_keys: Vec<String>,
    #[arg(long, default_value_t = 1)]
    root_threshold: usize,
    #[arg(long = "catalog-key", required = true)]
    catalog_keys: Vec<String>,
    #[arg(long, default_value_t = 1)]
    catalog_threshold: usize,
    #[arg(long = "timestamp-key", required = true)]
    timestamp_keys: Vec<String>,
    #[arg(long, default_value_t = 1)]
    timestamp_threshold: usize,
    /// Days until the root expires
    #[arg(long, default_value_t = 365)]
    days: u32,
    /// Key files that sign the root at once; 'sign' adds others
    #[arg(long = "key")]
    keys: Vec<PathBuf>,
}

/// A role as an argument.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleArgument {
    Root,
    Catalog,
    Timestamp,
}

#[derive(Args)]
pub(crate) struct Rotate {
    folder: PathBuf,
    #[arg(long, value_enum)]
    role: RoleArgument,
    /// A public key as 64 hex digits, or a key file
    #[arg(long = "add")]
    added: Vec<String>,
    /// The id of a key
    #[arg(long = "remove")]
    removed: Vec<String>,
    /// How many keys of the role must sign from now on
    #[arg(long)]
    threshold: Option<usize>,
    /// Days until the root expires
    #[arg(long, default_value_t = 365)]
    days: u32,
    /// Key files that sign the root at once: keys of the last root and of this one
    #[arg(long = "key")]
    keys: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Sign {
    /// The registry; or a copy of `draft/root.json`, which is shown, gets its signatures beside it and is not published
    path: PathBuf,
    #[arg(long = "key")]
    keys: Vec<PathBuf>,
}

impl Init {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let mut listed = Vec::new();
        let root = Roles {
            root: role(&self.root_keys, self.root_threshold, &mut listed)?,
            catalog: role(&self.catalog_keys, self.catalog_threshold, &mut listed)?,
            timestamp: role(&self.timestamp_keys, self.timestamp_threshold, &mut listed)?,
        };
        let next = prepared(&Root::new(1, later(now, self.days)?, listed, root))?;
        let secret = keys::load(&self.keys)?;
        let registry = Registry::create(&self.folder)?;
        registry.keep_catalog(&Catalog::empty(1, now))?;
        registry.keep_revocations(&[])?;
        add_signatures(&registry, next, &secret)
    }
}

impl Rotate {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let mut root = registry.root()?;
        root.version += 1;
        root.expires = later(now, self.days)?;
        let mut role = root.role(self.role.document()).clone();
        for id in &self.removed {
            let before = role.keyids.len();
            role.keyids.retain(|known| known != id);
            ensure!(role.keyids.len() < before, "the role has no key '{id}'");
        }
        for text in &self.added {
            role.keyids.push(list(text, &mut root.keys)?);
        }
        role.threshold = self.threshold.unwrap_or(role.threshold);
        match self.role {
            RoleArgument::Root => root.roles.root = role,
            RoleArgument::Catalog => root.roles.catalog = role,
            RoleArgument::Timestamp => root.roles.timestamp = role,
        }
        if registry.next_root()?.is_some() {
            say("the root that waited for signatures is replaced by this one")?;
        }
        let roles = [&root.roles.root, &root.roles.catalog, &root.roles.timestamp];
        let used: BTreeSet<&String> = roles.into_iter().flat_map(|role| &role.keyids).collect();
        root.keys.retain(|key| used.contains(&key.keyid));
        add_signatures(&registry, prepared(&root)?, &keys::load(&self.keys)?)
    }
}

impl Sign {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let secret = keys::load(&self.keys)?;
        if self.path.is_file() {
            return sign_copy(&self.path, &secret);
        }
        let registry = Registry::open(&self.path)?;
        let next = registry.next_root()?.context("no root waits for signatures; 'rotate' prepares one")?;
        add_signatures(&registry, next, &secret)
    }
}

impl RoleArgument {
    fn document(self) -> Document {
        match self {
            Self::Root => Document::Root,
            Self::Catalog => Document::Catalog,
            Self::Timestamp => Document::Timestamp,
        }
    }
}

/// The moment that is so many days later.
pub(crate) fn later(now: Time, days: u32) -> anyhow::Result<Time> {
    now.checked_add_signed(TimeDelta::days(i64::from(days))).context("so many days are too many")
}

fn role(texts: &[String], threshold: usize, listed: &mut Vec<RootKey>) -> anyhow::Result<Role> {
    let keyids = texts.iter().map(|text| list(text, listed)).collect::<anyhow::Result<_>>()?;
    Ok(Role { keyids, threshold })
}

/// Adds a key to a list that may have it, and returns its id.
fn list(text: &str, listed: &mut Vec<RootKey>) -> anyhow::Result<String> {
    let key = RootKey::of(&keys::public(text)?);
    let id = key.keyid.clone();
    if !listed.contains(&key) {
        listed.push(key);
    }
    Ok(id)
}

/// A root that a server would read, without signatures.
fn prepared(root: &Root) -> anyhow::Result<SignedRoot> {
    let content = root.to_bytes();
    let root = Root::parse(&root.name(), &content)?;
    Ok(SignedRoot { root, content, signatures: Signatures::default() })
}

fn add_signatures(registry: &Registry, mut next: SignedRoot, secret: &[PublisherKey]) -> anyhow::Result<()> {
    let before = registry.find_root()?;
    let expected = before.as_ref().map_or(1, |root| root.version + 1);
    ensure!(
        next.root.version == expected,
        "the prepared root is not the next one; 'rotate' prepares it anew"
    );
    let chain: Vec<&Root> = before.iter().chain([&next.root]).collect();
    let accepted: Vec<[u8; 32]> = chain.iter().flat_map(|root| root.keys_of(Document::Root)).collect();
    for key in secret {
        ensure!(accepted.contains(&key.trusted().key), "'{}' is no key of the role 'root'", key.publisher());
        next.signatures
            .sign(Document::Root, &next.content, key.signing())
            .map_err(|problem| anyhow!(problem))?;
    }
    next.signatures.retain(Document::Root, &next.content, &accepted);
    registry.keep_next_root(&next)?;
    let mut is_complete = true;
    for root in chain {
        let signers = next.signatures.signers(Document::Root, &next.content, &root.keys_of(Document::Root));
        let needed = root.role(Document::Root).threshold;
        is_complete &= signers.len() >= needed;
        say(&format!(
            "{} has {} of {needed} signatures by the keys of {}",
            next.root.name(),
            signers.len(),
            root.name()
        ))?;
    }
    if !is_complete {
        return say("the root waits for signatures: 'sign' adds them");
    }
    registry.publish_root(&next)?;
    say(&format!("{} is published and expires at {}", next.root.name(), time_to_text(&next.root.expires)))
}

/// Says which keys servers would trust after this root. A person who signs on an offline machine sees it nowhere else.
fn show(root: &Root) -> anyhow::Result<()> {
    say(&format!("{} expires at {}", root.name(), time_to_text(&root.expires)))?;
    for (name, role) in
        [("root", &root.roles.root), ("catalog", &root.roles.catalog), ("timestamp", &root.roles.timestamp)]
    {
        let keys = role.keyids.iter().map(|id| format!("\n    {id}")).collect::<String>();
        say(&format!("  {name}: {} of these {} keys{keys}", role.threshold, role.keyids.len()))?;
    }
    Ok(())
}

fn sign_copy(path: &Path, secret: &[PublisherKey]) -> anyhow::Result<()> {
    let content = files::get(path, ROOT_BYTES_MAX)?;
    let root = Root::parse("the root", &content)?;
    show(&root)?;
    if secret.is_empty() {
        return say("nothing was signed: '--key' names the key that signs");
    }
    let mut signatures = signatures_beside(path)?;
    for key in secret {
        signatures.sign(Document::Root, &content, key.signing()).map_err(|problem| anyhow!(problem))?;
    }
    files::write(Path::new(&signature_name(&path.to_string_lossy())), &signatures.to_bytes())?;
    say(&format!(
        "version {} of the root is signed; take the signatures back to the drafts of the registry",
        root.version
    ))
}
