//! `heddle keys rotate`: seals all secrets with the current encryption key.
//!
//! It can be killed at any moment and continues when it is called again: every row names the key that sealed it, and a
//! row is replaced only if it has not changed since it was read.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context as _, bail};
use heddle_core::Clock;
use heddle_core::secret::random_secret;
use heddle_kernel::config::Config;
use heddle_kernel::feature::{Features, Rekey, Sealing};
use heddle_kernel::keys::{KeyTexts, Keys, Unsealable};
use heddle_store::sealed::{self, Sealed, SealedColumn};
use heddle_store::{Db, Tx};
use uuid::Uuid;

use super::open_current_writing;

/// Rows of one transaction.
const BATCH_ROWS: i64 = 100;
/// How many times rows are read again because another process changed them meanwhile.
const ROUNDS_MAX: u32 = 20;

/// What a rotation did.
#[derive(Default)]
pub(super) struct RotationReport {
    /// Rows that are sealed with the current key now.
    pub(super) sealed: u64,
    /// Of them, those with a consequence that rows share, by its words.
    pub(super) counted: BTreeMap<&'static str, u64>,
    /// Of them, consequences for one row each.
    noted: Vec<String>,
    /// Rows that are in use and stay as they are, and why.
    pub(super) in_use: Vec<(SealedColumn, Sealed, String)>,
    /// Rows that no key opens.
    pub(super) unopenable: Vec<String>,
    /// Rows that another process changed meanwhile.
    moved: u64,
}

impl RotationReport {
    /// Keeps what has happened to rows that are sealed by now; what could not be sealed is found again.
    fn begin_round(&mut self) {
        self.in_use.clear();
        self.unopenable.clear();
        self.moved = 0;
    }

    /// Adds what was committed.
    fn add(&mut self, done: Self) {
        let Self { sealed, counted, noted, in_use, unopenable, moved } = done;
        self.sealed += sealed;
        for (consequence, rows) in counted {
            *self.counted.entry(consequence).or_default() += rows;
        }
        self.noted.extend(noted);
        self.in_use.extend(in_use);
        self.unopenable.extend(unopenable);
        self.moved += moved;
    }

    /// Writes the consequences for rows: those that rows share, with their numbers, then those for one row each.
    pub(super) fn write_consequences(&self, out: &mut dyn Write) -> std::io::Result<()> {
        self.counted.iter().try_for_each(|(consequence, rows)| writeln!(out, "{rows} {consequence}"))?;
        self.noted.iter().try_for_each(|consequence| writeln!(out, "{consequence}"))
    }
}

/// Rotates, and reports the outcome.
pub async fn rotate(config: &Config, features: Features, out: &mut dyn Write) -> anyhow::Result<()> {
    let found = KeyTexts::find(config)?;
    let Some(found) = found else { bail!("there are no keys yet: nothing is sealed with any") };
    let db = open_current_writing(config).await?;
    let keys = begin(config, found)?.keys();
    let mut report = RotationReport::default();
    let rotated = all(&db, &keys, features, &mut report).await;
    db.close().await;
    // Also when it ended early: rows that are sealed by now are not looked at again.
    let written = write_report(&report, out);
    rotated?;
    tracing::info!(rows = report.sealed, key.id = %keys.key_id(), "rotated the encryption key");
    written?;
    if !report.unopenable.is_empty() || !report.in_use.is_empty() {
        bail!(
            "the rotation is not finished: keep the previous key, mend what is named above, and run it again"
        );
    }
    if config.encryption_key.is_some() {
        writeln!(out, "everything is under ENCRYPTION_KEY: ENCRYPTION_KEY_PREVIOUS can be removed")?;
    } else {
        let kept = KeyTexts::kept(config)?.context("keys.json disappeared")?;
        KeyTexts { previous: None, ..kept }.keep(config)?;
        writeln!(out, "everything is under the new key in keys.json: restart a server that was running")?;
    }
    Ok(())
}

/// The keys to rotate with. In development the new one is generated, and the old one kept until the end.
fn begin(config: &Config, found: KeyTexts) -> anyhow::Result<KeyTexts> {
    if config.encryption_key.is_some() {
        match &found.previous {
            None => bail!(
                "ENCRYPTION_KEY_PREVIOUS is not set: set ENCRYPTION_KEY to the new key and \
                 ENCRYPTION_KEY_PREVIOUS to the old one, restart every server with both, and run this again"
            ),
            Some(previous) if *previous == found.encryption => {
                bail!(
                    "ENCRYPTION_KEY_PREVIOUS is the same as ENCRYPTION_KEY: set ENCRYPTION_KEY to a new key"
                )
            }
            Some(_) => return Ok(found),
        }
    }
    let kept = KeyTexts::kept(config)?.context("keys.json disappeared")?;
    if kept.previous.is_some() {
        // An interrupted rotation continues with the key that it generated.
        return Ok(found);
    }
    let fresh =
        KeyTexts { previous: Some(kept.encryption), encryption: random_secret(), secret: kept.secret };
    fresh.keep(config)?;
    Ok(fresh)
}

fn write_report(report: &RotationReport, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{} rows were sealed with the current key", report.sealed)?;
    report.write_consequences(out)?;
    for (.., why) in &report.in_use {
        writeln!(out, "{why}")?;
    }
    for row in &report.unopenable {
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// Everything, in small transactions. The report is true also where this fails.
async fn all(db: &Db, keys: &Keys, features: Features, report: &mut RotationReport) -> anyhow::Result<()> {
    let clock = Clock::default();
    for round in 0..ROUNDS_MAX {
        report.begin_round();
        for sealing in features.sealed() {
            let mut after = None;
            loop {
                let mut tx = db.write().await?;
                // A row that takes others along is committed by itself: such locks are never held together.
                let rows = if sealing.rekey.is_some() { 1 } else { BATCH_ROWS };
                let mut done = RotationReport::default();
                after = batch(&mut tx, keys, &clock, sealing, after, rows, &mut done).await?;
                tx.commit().await?;
                report.add(done);
                if after.is_none() {
                    break;
                }
            }
        }
        if report.moved == 0 {
            return Ok(());
        }
        tracing::info!(rows = report.moved, round, "rows were changed meanwhile; looking again");
    }
    bail!("rows change faster than they are sealed: run this again when less is written");
}

/// Everything, within one transaction.
pub(super) async fn all_within(
    tx: &mut Tx,
    keys: &Keys,
    clock: &Clock,
    features: Features,
) -> anyhow::Result<RotationReport> {
    let mut report = RotationReport::default();
    for sealing in features.sealed() {
        let mut after = None;
        loop {
            after = batch(tx, keys, clock, sealing, after, BATCH_ROWS, &mut report).await?;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(report)
}

/// Rotates some rows after `after`. Returns the id of the last one; `None` when no row was left.
async fn batch(
    tx: &mut Tx,
    keys: &Keys,
    clock: &Clock,
    sealing: Sealing,
    after: Option<Uuid>,
    rows: i64,
    report: &mut RotationReport,
) -> anyhow::Result<Option<Uuid>> {
    let column = sealing.column;
    let found = sealed::under_others(tx, column, &keys.mark(), after, rows).await?;
    for row in &found {
        let outcome = match sealing.rekey {
            Some(rekey) => rekey(tx, keys, clock, row.id).await?,
            None => match reseal(tx, keys, column, row).await? {
                Ok(true) => Rekey::Done,
                Ok(false) => Rekey::Moved,
                Err(_) => Rekey::Unopenable,
            },
        };
        match outcome {
            Rekey::Done => report.sealed += 1,
            Rekey::Counted(consequence) => {
                report.sealed += 1;
                *report.counted.entry(consequence).or_default() += 1;
            }
            Rekey::Noted(consequence) => {
                report.sealed += 1;
                report.noted.push(consequence);
            }
            Rekey::InUse(why) => report.in_use.push((column, row.clone(), why)),
            Rekey::Unopenable => report.unopenable.push(reason(keys, column, row)),
            Rekey::Moved => report.moved += 1,
        }
    }
    Ok(found.last().map(|row| row.id))
}

/// Seals a row's bytes with the current key. False when another process changed them meanwhile.
pub(super) async fn reseal(
    tx: &mut Tx,
    keys: &Keys,
    column: SealedColumn,
    row: &Sealed,
) -> anyhow::Result<Result<bool, Unsealable>> {
    let context = format!("{}:{}", column.table, row.id);
    let plain = match keys.open_sealed(&context, &row.bytes) {
        Ok(plain) => plain,
        Err(error) => return Ok(Err(error)),
    };
    let new = keys.seal(&context, &plain);
    Ok(Ok(sealed::replace(tx, column, row, &new, &keys.key_id()).await?))
}

/// Why a row does not open.
pub(super) fn reason(keys: &Keys, column: SealedColumn, row: &Sealed) -> String {
    let context = format!("{}:{}", column.table, row.id);
    match keys.open_sealed(&context, &row.bytes) {
        Err(error) => format!("{} {}: {error}", column.table, row.id),
        Ok(_) => format!("{} {}: what was sealed is not in its form", column.table, row.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_round_forgets_no_consequence_of_a_row_that_is_sealed() {
        let row = Sealed { id: Uuid::nil(), bytes: Vec::new() };
        let mut report = RotationReport::default();
        report.add(RotationReport {
            sealed: 3,
            counted: BTreeMap::from([("changes must be planned again", 2)]),
            noted: vec!["change 7: look at the device".to_owned()],
            in_use: vec![(SealedColumn::of("change"), row, "change 8 is being applied".to_owned())],
            unopenable: vec!["change 9: no key".to_owned()],
            moved: 1,
        });
        report.begin_round();
        let mut written = Vec::new();
        write_report(&report, &mut written).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "3 rows were sealed with the current key\n2 changes must be planned again\nchange 7: look at the device\n"
        );
        assert_eq!(report.moved, 0);
    }
}
