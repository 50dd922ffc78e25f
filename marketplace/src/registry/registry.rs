//! The folder of a registry: what is served, and what is prepared.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use heddle_marketplace::catalog::bounds::{CATALOG_BYTES_MAX, ROOT_BYTES_MAX, TIMESTAMP_BYTES_MAX};
use heddle_marketplace::catalog::{
    CATALOG, Catalog, Revocation, Root, Signatures, TIMESTAMP, Timestamp, root_name, signature_name,
};

use crate::files;

const SIGNATURES_BYTES_MAX: u64 = 16 * 1024;
/// The prepared root among the drafts.
const NEXT_ROOT: &str = "root.json";
const REVOCATIONS: &str = "revocations.json";

/// A registry that this command alone changes.
#[derive(Debug)]
pub(crate) struct Registry {
    folder: PathBuf,
    /// Given back when the command ends.
    _lock: File,
}

/// A root with its signatures.
#[derive(Debug)]
pub(crate) struct SignedRoot {
    pub(crate) root: Root,
    pub(crate) content: Vec<u8>,
    pub(crate) signatures: Signatures,
}

impl Registry {
    /// Makes the folders of a new registry.
    pub(crate) fn create(folder: &Path) -> anyhow::Result<Self> {
        ensure!(!folder.join("draft").exists(), "'{}' is a registry already", folder.display());
        for name in ["draft", "public/packages", "public/icons"] {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).with_context(|| format!("'{}' cannot be made", path.display()))?;
        }
        Self::open(folder)
    }

    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let lock = folder.join("draft").join(".lock");
        let lock = File::create(&lock).with_context(|| {
            format!("'{}' is no registry, or not writable; 'init' makes one", folder.display())
        })?;
        lock.try_lock().context("another command changes this registry")?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    pub(crate) fn public(&self, name: &str) -> PathBuf {
        self.folder.join("public").join(name)
    }

    fn draft(&self, name: &str) -> PathBuf {
        self.folder.join("draft").join(name)
    }

    /// The last root that is served.
    pub(crate) fn find_root(&self) -> anyhow::Result<Option<Root>> {
        let mut last = None;
        for version in 1.. {
            let name = root_name(version);
            let Some(content) = files::read(&self.public(&name), ROOT_BYTES_MAX)? else { break };
            last = Some(Root::parse(&name, &content)?);
        }
        Ok(last)
    }

    /// The last root; there must be one.
    pub(crate) fn root(&self) -> anyhow::Result<Root> {
        self.find_root()?.context("no root is published; 'sign' adds the signatures that the first one lacks")
    }

    /// The root that waits for signatures.
    pub(crate) fn next_root(&self) -> anyhow::Result<Option<SignedRoot>> {
        let path = self.draft(NEXT_ROOT);
        let Some(content) = files::read(&path, ROOT_BYTES_MAX)? else { return Ok(None) };
        let root = Root::parse(NEXT_ROOT, &content)?;
        Ok(Some(SignedRoot { root, content, signatures: signatures_beside(&path)? }))
    }

    pub(crate) fn keep_next_root(&self, next: &SignedRoot) -> anyhow::Result<()> {
        files::write(&self.draft(NEXT_ROOT), &next.content)?;
        let signatures = self.draft(&signature_name(NEXT_ROOT));
        if !next.signatures.is_empty() {
            return files::write(&signatures, &next.signatures.to_bytes());
        }
        if signatures.exists() {
            std::fs::remove_file(&signatures).context("signatures of an older root stay among the drafts")?;
        }
        Ok(())
    }

    /// Serves a root. A reader that sees it finds its signatures there.
    pub(crate) fn publish_root(&self, next: &SignedRoot) -> anyhow::Result<()> {
        let name = next.root.name();
        files::write(&self.public(&signature_name(&name)), &next.signatures.to_bytes())?;
        files::write(&self.public(&name), &next.content)?;
        for draft in [NEXT_ROOT.to_owned(), signature_name(NEXT_ROOT)] {
            std::fs::remove_file(self.draft(&draft)).context("the published root stays among the drafts")?;
        }
        Ok(())
    }

    /// The catalogue that the next publication will sign.
    pub(crate) fn catalog(&self) -> anyhow::Result<Catalog> {
        Ok(Catalog::parse(&files::get(&self.draft(CATALOG), CATALOG_BYTES_MAX)?)?)
    }

    /// Keeps the catalogue for the next publication, if a server would read it.
    pub(crate) fn keep_catalog(&self, catalog: &Catalog) -> anyhow::Result<()> {
        let content = catalog.to_bytes();
        Catalog::parse(&content)?;
        files::write(&self.draft(CATALOG), &content)
    }

    pub(crate) fn revocations(&self) -> anyhow::Result<Vec<Revocation>> {
        match files::read(&self.draft(REVOCATIONS), TIMESTAMP_BYTES_MAX)? {
            Some(content) => {
                serde_json::from_slice(&content).context("the draft of the revocations is damaged")
            }
            None => Ok(Vec::new()),
        }
    }

    pub(crate) fn keep_revocations(&self, revocations: &[Revocation]) -> anyhow::Result<()> {
        files::write(&self.draft(REVOCATIONS), &serde_json::to_vec_pretty(revocations)?)
    }

    /// A served file with its signatures.
    pub(crate) fn served(&self, name: &str, bytes_max: u64) -> anyhow::Result<Option<(Vec<u8>, Signatures)>> {
        let path = self.public(name);
        let Some(content) = files::read(&path, bytes_max)? else { return Ok(None) };
        Ok(Some((content, signatures_beside(&path)?)))
    }

    pub(crate) fn timestamp(&self) -> anyhow::Result<Option<Timestamp>> {
        let content = files::read(&self.public(TIMESTAMP), TIMESTAMP_BYTES_MAX)?;
        content.map(|content| Ok(Timestamp::parse(&content)?)).transpose()
    }
}

/// The signatures that lie beside a file; none where there is no such file.
pub(crate) fn signatures_beside(path: &Path) -> anyhow::Result<Signatures> {
    let beside = PathBuf::from(signature_name(&path.to_string_lossy()));
    match files::read(&beside, SIGNATURES_BYTES_MAX)? {
        Some(content) => Signatures::parse(&content)
            .map_err(|problem| anyhow::anyhow!("'{}' is no signature file: {problem}", beside.display())),
        None => Ok(Signatures::default()),
    }
}
