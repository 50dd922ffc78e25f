//! `heddle keys rotate`: everything that is sealed comes under the current encryption key.
//!
//! It can be killed at any moment and goes on when it is called again: every row
//! says which key sealed it, and a row is replaced only if it is still as it was read.

use std::io::Write;

use anyhow::{Context as _, bail};
use heddle_core::secret::random_secret;
use heddle_core::{ChangeId, Clock};
use heddle_store::sealed::{self, CHANGE, PLACES, Place, Sealed};
use heddle_store::{Db, Tx};
use uuid::Uuid;

use super::open_current_writing;
use crate::config::Config;
use crate::keys::{KeyTexts, Keys, Unsealable};
use crate::staging::{Rekey, rekey};

/// Rows of one transaction.
const BATCH_ROWS: i64 = 100;
/// How often rows are looked for again that somebody changed meanwhile.
const ROUNDS_MAX: u32 = 20;

/// What a rotation did.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Rows that are under the current key now.
    pub(super) sealed: u64,
    /// Of them, changes that must be planned again.
    pub(super) plans_dropped: u64,
    /// Of them, changes whose device has to be looked at.
    pub(super) unsettled: Vec<ChangeId>,
    /// Changes that are being applied: they stay as they are.
    pub(super) under_way: Vec<ChangeId>,
    /// Rows that no key opens.
    pub(super) unopenable: Vec<String>,
    /// Rows that somebody changed meanwhile.
    moved: u64,
}

/// Rotates, and says what became of it.
pub async fn rotate(config: &Config, out: &mut dyn Write) -> anyhow::Result<()> {
    let found = KeyTexts::find(config)?;
    let Some(found) = found else { bail!("there are no keys yet: nothing is sealed with any") };
    let db = open_current_writing(config).await?;
    let keys = begin(config, found)?.keys();
    let tally = all(&db, &keys).await?;
    db.close().await;
    tracing::info!(rows = tally.sealed, key.id = %keys.key_id(), "rotated the encryption key");
    report(&tally, out)?;
    if !tally.unopenable.is_empty() || !tally.under_way.is_empty() {
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
        // One that was interrupted goes on with the key that it generated.
        return Ok(found);
    }
    let fresh =
        KeyTexts { previous: Some(kept.encryption), encryption: random_secret(), secret: kept.secret };
    fresh.keep(config)?;
    Ok(fresh)
}

fn report(tally: &Tally, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{} rows were sealed with the current key", tally.sealed)?;
    if tally.plans_dropped > 0 {
        writeln!(out, "{} pending changes hold secrets and must be planned again", tally.plans_dropped)?;
    }
    for id in &tally.unsettled {
        writeln!(
            out,
            "change {id}: its outcome is not known; look at the device, then verify or discard it"
        )?;
    }
    for id in &tally.under_way {
        writeln!(out, "change {id} is being applied and was left: run this again when it has ended")?;
    }
    for row in &tally.unopenable {
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// Everything, in small transactions.
async fn all(db: &Db, keys: &Keys) -> anyhow::Result<Tally> {
    let (clock, mut tally) = (Clock::default(), Tally::default());
    for round in 0..ROUNDS_MAX {
        tally = Tally { sealed: tally.sealed, plans_dropped: tally.plans_dropped, ..Tally::default() };
        for place in PLACES {
            let mut after = None;
            loop {
                let mut tx = db.write().await?;
                // Changes refer to each other: their locks are never held together.
                let rows = if *place == CHANGE { 1 } else { BATCH_ROWS };
                after = batch(&mut tx, keys, &clock, *place, after, rows, &mut tally).await?;
                tx.commit().await?;
                if after.is_none() {
                    break;
                }
            }
        }
        if tally.moved == 0 {
            return Ok(tally);
        }
        tracing::info!(rows = tally.moved, round, "rows were changed meanwhile; looking again");
    }
    bail!("rows change faster than they are sealed: run this again when less is written");
}

/// Everything, within one transaction.
pub(super) async fn all_within(tx: &mut Tx, keys: &Keys, clock: &Clock) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for place in PLACES {
        let mut after = None;
        loop {
            after = batch(tx, keys, clock, *place, after, BATCH_ROWS, &mut tally).await?;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(tally)
}

/// Some rows behind `after`; gives the last one's id, `None` when there was none left.
async fn batch(
    tx: &mut Tx,
    keys: &Keys,
    clock: &Clock,
    place: Place,
    after: Option<Uuid>,
    rows: i64,
    tally: &mut Tally,
) -> anyhow::Result<Option<Uuid>> {
    let found = sealed::under_others(tx, place, &keys.mark(), after, rows).await?;
    for row in &found {
        if place == CHANGE {
            let id = ChangeId(row.id);
            match rekey(tx, keys, clock, id).await? {
                Rekey::Done => tally.sealed += 1,
                Rekey::PlanDropped => {
                    (tally.sealed, tally.plans_dropped) = (tally.sealed + 1, tally.plans_dropped + 1);
                }
                Rekey::Unsettled => {
                    tally.sealed += 1;
                    tally.unsettled.push(id);
                }
                Rekey::UnderWay => tally.under_way.push(id),
                Rekey::Unopenable => tally.unopenable.push(reason(keys, place, row)),
                Rekey::Moved => tally.moved += 1,
            }
            continue;
        }
        match reseal(tx, keys, place, row).await? {
            Ok(true) => tally.sealed += 1,
            Ok(false) => tally.moved += 1,
            Err(_) => tally.unopenable.push(reason(keys, place, row)),
        }
    }
    Ok(found.last().map(|row| row.id))
}

/// Seals a row's bytes with the current key; false when somebody changed them meanwhile.
pub(super) async fn reseal(
    tx: &mut Tx,
    keys: &Keys,
    place: Place,
    row: &Sealed,
) -> anyhow::Result<Result<bool, Unsealable>> {
    let context = format!("{}:{}", place.table, row.id);
    let plain = match keys.open_sealed(&context, &row.bytes) {
        Ok(plain) => plain,
        Err(error) => return Ok(Err(error)),
    };
    let new = keys.seal(&context, &plain);
    Ok(Ok(sealed::replace(tx, place, row, &new, &keys.key_id()).await?))
}

/// Why a row does not open.
pub(super) fn reason(keys: &Keys, place: Place, row: &Sealed) -> String {
    let context = format!("{}:{}", place.table, row.id);
    match keys.open_sealed(&context, &row.bytes) {
        Err(error) => format!("{} {}: {error}", place.table, row.id),
        Ok(_) => format!("{} {}: what was sealed is not in its form", place.table, row.id),
    }
}
