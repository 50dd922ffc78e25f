//! `heddle restore`: a backup becomes the contents of an empty database, or nothing happens.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use anyhow::{Context as _, bail};
use heddle_core::Clock;
use heddle_kernel::audit::kept;
use heddle_kernel::config::Config;
use heddle_kernel::feature::Features;
use heddle_kernel::keys::{KeyTexts, Keys, key_file};
use heddle_store::dump::{Cell, Table};
use heddle_store::{Db, Tx, service_secrets};

use super::container::Opener;
use super::contents::{Reader, Unfit, tables};
use super::rotate::{RotationReport, all_within, reason, reseal};
use super::{POOL, passphrase};

/// Rows in memory at once.
const BATCH_ROWS: usize = 200;
/// Tables that have rows once a database was set up.
const MARKS_OF_USE: [&str; 2] = ["setup", "organization"];

/// The keys with which the service continues.
struct Going {
    keys: Keys,
    /// The backup's own keys, where the target has none.
    kept: Option<KeyTexts>,
    /// Whether tokens that were signed before are still good.
    signs_alike: bool,
}

/// Restores a backup; the file is read to its end before anything is changed.
pub async fn restore(
    config: &Config,
    features: Features,
    source: &Path,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let tables = tables().await?;
    let refused = || format!("'{}' is not restored", source.display());
    let backup = verified(config, source, &tables).with_context(refused)?;
    refuse_used_target(config, &tables).await.with_context(refused)?;
    let going = going(config, &backup).with_context(refused)?;

    heddle_kernel::files::prepare(config)?;
    let db = Db::open(&config.database(), &POOL).await.context("database cannot be opened")?;
    let mut tx = db.write().await?;
    refuse_used(&mut tx, &tables).await?;
    // The backup brings its own secrets; stored ones belong to another database.
    service_secrets::clear(&mut tx).await?;
    kept::forget(config).context("'audit-heads.json' cannot be removed")?;
    let mut reader = open(config, source, &tables)?;
    let rows = insert(&mut tx, &mut reader).await?;
    let report =
        under_own_key(&mut tx, &going.keys, features).await.context("secrets cannot be sealed again")?;
    commit(config, tx, &going).await?;
    db.close().await;

    writeln!(
        out,
        "restored {rows} rows of {} tables from {}, written by Heddle {}",
        tables.len(),
        reader.manifest.created_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        reader.manifest.heddle
    )?;
    write_report(&going, &report, out)?;
    Ok(())
}

fn open(config: &Config, source: &Path, tables: &[Table]) -> anyhow::Result<Reader<BufReader<File>>> {
    let file = File::open(source).context("it cannot be read")?;
    let lines = Opener::new(BufReader::new(file), passphrase(config)?).map_err(Unfit::from)?;
    Ok(Reader::new(lines, tables, Db::known_version())?)
}

/// Reads every row; gives the service's keys.
fn verified(config: &Config, source: &Path, tables: &[Table]) -> anyhow::Result<KeyTexts> {
    let mut reader = open(config, source, tables)?;
    for (at, table) in reader.tables.clone().iter().enumerate() {
        for _ in 0..reader.manifest.tables[at].rows {
            reader.row(table)?;
        }
    }
    reader.end()?;
    KeyTexts::from_json(reader.manifest.keys.get().as_bytes())
        .map_err(|_| anyhow::anyhow!("it is damaged: its keys are not in their form"))
}

/// Checks the target without creating it.
async fn refuse_used_target(config: &Config, tables: &[Table]) -> anyhow::Result<()> {
    let db = Db::open_as_is(&config.database(), &POOL).await.context("database cannot be opened")?;
    let Some(db) = db else { return Ok(()) };
    let schema = db.schema().await.context("database cannot be read")?;
    match schema.version {
        Some(found) if found > schema.known => bail!(
            "the database is at version {found}, this program knows up to {}: use a newer Heddle",
            schema.known
        ),
        Some(_) => refuse_used(&mut db.read().await?, tables).await?,
        None => {}
    }
    db.close().await;
    Ok(())
}

async fn refuse_used(tx: &mut Tx, tables: &[Table]) -> anyhow::Result<()> {
    for table in tables.iter().filter(|table| MARKS_OF_USE.contains(&table.name.as_str())) {
        if table.count(tx).await? > 0 {
            bail!(
                "the database is in use (it has rows in '{}'), and a backup is only restored onto an empty one: \
                 give an empty DATA_DIR, or another DATABASE_URL",
                table.name
            );
        }
    }
    Ok(())
}

fn going(config: &Config, backup: &KeyTexts) -> anyhow::Result<Going> {
    let own = KeyTexts::find(config)?;
    let kept = own.is_none().then(|| backup.clone());
    let texts = own.unwrap_or_else(|| backup.clone().under(config));
    let signs_alike = texts.secret == backup.secret;
    let mut keys = texts.keys().also_opening(backup.encryption.expose());
    if let Some(previous) = &backup.previous {
        keys = keys.also_opening(previous.expose());
    }
    Ok(Going { keys, kept, signs_alike })
}

async fn insert(tx: &mut Tx, reader: &mut Reader<BufReader<File>>) -> anyhow::Result<i64> {
    let mut inserted = 0;
    for (at, table) in reader.tables.clone().iter().enumerate() {
        let failed = || format!("rows of '{}' cannot be inserted; nothing was restored", table.name);
        let mut batch: Vec<Vec<Cell>> = Vec::with_capacity(BATCH_ROWS);
        for _ in 0..reader.manifest.tables[at].rows {
            batch.push(reader.row(table)?);
            if batch.len() == BATCH_ROWS {
                table.insert(tx, &batch).await.with_context(failed)?;
                batch.clear();
            }
            inserted += 1;
        }
        table.insert(tx, &batch).await.with_context(failed)?;
    }
    reader.end()?;
    Ok(inserted)
}

/// What was sealed with the backup's key is sealed with the target's.
async fn under_own_key(tx: &mut Tx, keys: &Keys, features: Features) -> anyhow::Result<RotationReport> {
    let mut report = all_within(tx, keys, &Clock::default(), features).await?;
    // What was in use is taken up where it stood: only its seal is another.
    for (column, row, _) in std::mem::take(&mut report.in_use) {
        match reseal(tx, keys, column, &row).await? {
            Ok(true) => report.sealed += 1,
            Ok(false) => {
                bail!("a row of '{}' changed while it was restored; nothing was restored", column.table)
            }
            Err(_) => report.unopenable.push(reason(keys, column, &row)),
        }
    }
    Ok(report)
}

/// Writes the keys before the commit: without them, the secrets of a restored database cannot be opened.
async fn commit(config: &Config, tx: Tx, going: &Going) -> anyhow::Result<()> {
    if let Some(kept) = &going.kept {
        kept.keep(config)?;
    }
    let committed = tx.commit().await;
    if committed.is_err() && going.kept.is_some() {
        // The keys belong to data that was not restored.
        std::fs::remove_file(key_file(config)).ok();
    }
    committed.context("nothing was restored: the database did not take it")
}

fn write_report(going: &Going, report: &RotationReport, out: &mut dyn Write) -> std::io::Result<()> {
    if going.kept.is_some() {
        writeln!(out, "the backup's keys are in keys.json now")?;
    }
    if report.sealed > 0 {
        writeln!(out, "{} rows were sealed again with this service's ENCRYPTION_KEY", report.sealed)?;
    }
    report.write_consequences(out)?;
    if !going.signs_alike {
        writeln!(out, "SECRET_KEY is another than the backup's: everybody has to log in again")?;
    }
    for row in &report.unopenable {
        writeln!(out, "warning: it could not be opened where the backup was made either: {row}")?;
    }
    Ok(())
}
