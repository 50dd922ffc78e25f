//! `heddle backup`: writes all data of the service into one encrypted file.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use heddle_core::Clock;
use heddle_kernel::config::Config;
use heddle_kernel::keys::{KeyTexts, sync_folder};
use heddle_store::dump::{Cell, Table};
use heddle_store::{Db, Tx};
use serde_json::Value;
use serde_json::value::RawValue;

use super::container::Sealer;
use super::contents::{FORMAT, Listed, Manifest, tables};
use super::{open_current, passphrase};

/// Rows in memory at once.
const PAGE_ROWS: i64 = 200;

/// A file that is being written; unless it is finished, it disappears.
struct Partial {
    path: PathBuf,
    file: File,
    is_finished: bool,
}

impl Partial {
    fn create(target: &Path) -> anyhow::Result<Self> {
        let mut path = target.as_os_str().to_owned();
        path.push(".partial");
        let path = PathBuf::from(path);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("'{}' cannot be written", path.display()))?;
        if file.try_lock().is_err() {
            bail!("another backup is writing '{}'", path.display());
        }
        // A file that a crash left behind is overwritten, and its permissions are restricted again.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.set_len(0)?;
        Ok(Self { path, file, is_finished: false })
    }

    /// Gives the file its name, once every byte is on the disk.
    fn finish(mut self, target: &Path) -> anyhow::Result<()> {
        self.file.sync_all()?;
        refuse_existing(target)?;
        fs::rename(&self.path, target)?;
        self.is_finished = true;
        sync_folder(target)?;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_finished {
            // A failure cannot be handled here.
            fs::remove_file(&self.path).ok();
        }
    }
}

fn refuse_existing(target: &Path) -> anyhow::Result<()> {
    if fs::symlink_metadata(target).is_ok() {
        bail!("'{}' exists already and is not overwritten: give another name", target.display());
    }
    Ok(())
}

/// Writes a backup of one state of the database, which may be in use meanwhile.
pub async fn backup(config: &Config, target: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let passphrase = passphrase(config)?;
    refuse_existing(target)?;
    let keys = KeyTexts::find(config)?
        .context("there are no keys: neither SECRET_KEY and ENCRYPTION_KEY nor keys.json in DATA_DIR")?;
    let tables = tables().await?;
    let db = open_current(config).await?;
    let mut tx = db.read().await?;
    let partial = Partial::create(target)?;
    let mut sealer = Sealer::new(BufWriter::new(&partial.file), passphrase)?;
    let manifest = manifest(&mut tx, &tables, &keys).await?;
    line(&mut sealer, &serde_json::to_vec(&manifest)?)?;
    for (table, listed) in tables.iter().zip(&manifest.tables) {
        let written = rows(&mut tx, table, &mut sealer)
            .await
            .with_context(|| format!("rows of '{}' cannot be written", table.name))?;
        if written != listed.rows {
            bail!("'{}' changed while it was read", table.name);
        }
    }
    sealer.finish()?;
    tx.rollback().await?;
    db.close().await;
    let bytes = partial.file.metadata()?.len();
    partial.finish(target)?;
    let rows: i64 = manifest.tables.iter().map(|table| table.rows).sum();
    writeln!(
        out,
        "wrote '{}': {rows} rows of {} tables, {bytes} bytes; without BACKUP_PASSPHRASE nobody can read it",
        target.display(),
        tables.len()
    )?;
    Ok(())
}

async fn manifest(tx: &mut Tx, tables: &[Table], keys: &KeyTexts) -> anyhow::Result<Manifest> {
    let mut listed = Vec::with_capacity(tables.len());
    for table in tables {
        listed.push(Listed::of(table, table.count(tx).await?));
    }
    // On one line, as everything else in the file.
    let keys: Value = serde_json::from_slice(&keys.to_json())?;
    Ok(Manifest {
        format: FORMAT,
        heddle: heddle_kernel::version::VERSION.to_owned(),
        schema_version: Db::known_version(),
        created_at: Clock::default().now(),
        keys: RawValue::from_string(keys.to_string())?,
        tables: listed,
    })
}

async fn rows<W: Write>(tx: &mut Tx, table: &Table, sealer: &mut Sealer<W>) -> anyhow::Result<i64> {
    let (mut written, mut last): (i64, Option<Vec<Cell>>) = (0, None);
    loop {
        let page = table.page(tx, last.as_deref(), PAGE_ROWS).await?;
        for row in &page {
            let values: Vec<Value> = row.iter().map(Cell::to_json).collect();
            line(sealer, &serde_json::to_vec(&values)?)?;
            written += 1;
        }
        last = page.into_iter().last();
        if last.is_none() {
            return Ok(written);
        }
    }
}

fn line<W: Write>(sealer: &mut Sealer<W>, bytes: &[u8]) -> std::io::Result<()> {
    sealer.write_all(bytes)?;
    sealer.write_all(b"\n")
}
