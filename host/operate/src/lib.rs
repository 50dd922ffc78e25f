//! Operating the service from its command line: tables, backups, keys, and what is wrong.
//!
//! Each command opens what it needs itself; none starts the server. Output goes to the given writer.

mod backup;
mod container;
mod contents;
mod doctor;
mod restore;
mod rotate;
mod user;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
pub use backup::backup;
pub use doctor::doctor;
use heddle_core::secret::Secret;
use heddle_kernel::audit::key;
use heddle_kernel::config::Config;
use heddle_kernel::keys::KeyTexts;
use heddle_store::audit::heads_behind;
use heddle_store::{Db, PoolSettings};
pub use restore::restore;
pub use rotate::rotate;
pub use user::{reset_mfa, reset_password, unlock};

/// Heads that one statement reads.
const HEADS_PAGE_ROWS: i64 = 1_000;
const PASSPHRASE_CHARS_MIN: usize = 12;

/// One connection, for a command that does one thing.
const POOL: PoolSettings = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_secs(10) };

/// Brings the database to this version and says from which it came.
pub async fn migrate(config: &Config, out: &mut dyn Write) -> anyhow::Result<()> {
    let before = match Db::open_as_is(&config.database(), &POOL).await {
        Ok(Some(db)) => {
            let schema = db.schema().await.context("database cannot be read")?;
            db.close().await;
            schema.version
        }
        Ok(None) => None,
        Err(error) => return Err(error).context("database cannot be opened"),
    };
    heddle_kernel::files::prepare(config)?;
    let db = Db::open(&config.database(), &POOL).await.context("database cannot be migrated")?;
    let known = Db::known_version();
    db.close().await;
    match before {
        Some(before) if before == known => writeln!(out, "database is at version {known} already")?,
        Some(before) => writeln!(out, "database went from version {before} to version {known}")?,
        None => writeln!(out, "database was empty and is at version {known} now")?,
    }
    Ok(())
}

/// A temporary folder, removed when this is dropped.
pub struct Passing(PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        // The system removes what is left of it.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Returns the settings of a command that only prints: its files lie in a temporary folder.
pub fn without_traces(mut config: Config) -> (Config, Passing) {
    let name = format!("heddle-{}", heddle_core::secret::random_secret().expose());
    let folder = std::env::temp_dir().join(name);
    config.data_dir.clone_from(&folder);
    (config.database_url, config.log_database_url, config.cache_url) = (None, None, None);
    (config, Passing(folder))
}

/// Prints the end of each organization's audit log, one line each: id, number, hash. The operator keeps them elsewhere.
pub async fn audit_heads(config: &Config, out: &mut dyn Write) -> anyhow::Result<()> {
    let db = open_current(config).await?;
    let keys = KeyTexts::find(config)?.context("there are no keys yet")?.keys();
    let mut tx = db.read().await?;
    let key = key::find(&mut tx, &keys).await?;
    let mut after = None;
    loop {
        let page = heads_behind(&mut tx, after, HEADS_PAGE_ROWS).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.org_id);
        for head in &page {
            let is_authentic = key.as_ref().is_some_and(|key| head.is_authentic(key));
            let mark = if is_authentic { "" } else { " (not written by this service)" };
            writeln!(out, "{} {} {}{mark}", head.org_id, head.seq, head.hash)?;
        }
    }
    tx.rollback().await?;
    db.close().await;
    Ok(())
}

/// The passphrase of backups.
fn passphrase(config: &Config) -> anyhow::Result<&Secret> {
    match &config.backup_passphrase {
        None => bail!(
            "BACKUP_PASSPHRASE is not set: the file is encrypted with it, give at least {PASSPHRASE_CHARS_MIN} characters"
        ),
        Some(given) if given.expose().chars().count() < PASSPHRASE_CHARS_MIN => {
            bail!("BACKUP_PASSPHRASE is too short: give at least {PASSPHRASE_CHARS_MIN} characters")
        }
        Some(given) => Ok(given),
    }
}

/// Opens the database. Its tables must be those of this program: it is not migrated here.
async fn open_current(config: &Config) -> anyhow::Result<Db> {
    let db = Db::open_as_is(&config.database(), &POOL).await.context("database cannot be opened")?;
    let Some(db) = db else { bail!("there is no database yet: nothing was set up") };
    let schema = db.schema().await.context("database cannot be read")?;
    let known = schema.known;
    match schema.version {
        None => bail!("the database is empty: nothing was set up"),
        Some(found) if found > known => bail!(
            "the database is at version {found}, this program knows up to {known}: use the Heddle that serves it"
        ),
        Some(found) if !schema.is_current() => bail!(
            "the database is at version {found}, this program at {known}: run 'heddle migrate' first, or use the Heddle that serves it"
        ),
        Some(_) => Ok(db),
    }
}

/// The same, opened for writing.
async fn open_current_writing(config: &Config) -> anyhow::Result<Db> {
    open_current(config).await?.close().await;
    Db::open(&config.database(), &POOL).await.context("database cannot be opened")
}
