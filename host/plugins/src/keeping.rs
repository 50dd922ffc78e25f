//! Values that a plugin keeps for an organization: read, listed, and changed all together or not at all.

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::fault::{Fault, FaultKind};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_runtime::{KvChange, KvEntry, KvExpected, KvListed, KvOp, KvPage};
use heddle_store::plugins::values::{self, Generation, ROW_BYTES, ValueRow};
use heddle_store::plugins::{organizations, storage};

use crate::services::ours;

pub(crate) async fn get(app: &App, of: Generation, key: &str) -> Result<Option<KvEntry>, Error> {
    let mut tx = app.db.single().await?;
    let found = values::find(&mut tx, of, key, app.clock.now()).await?;
    Ok(found.map(|row| KvEntry { version: unsigned(row.version), value: row.bytes }))
}

pub(crate) async fn list(
    app: &App,
    of: Generation,
    (prefix, after): (&str, Option<&str>),
    limit: u32,
) -> Result<KvPage, Error> {
    let mut tx = app.db.single().await?;
    let found = values::list(&mut tx, of, (prefix, after), limit.saturating_add(1), app.clock.now()).await?;
    let mut items: Vec<KvListed> = found
        .into_iter()
        .map(|one| KvListed {
            size_bytes: unsigned(one.size_bytes).saturating_sub(wide(one.name.len() + ROW_BYTES)),
            version: unsigned(one.version),
            key: one.name,
        })
        .collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| last.key.clone());
    Ok(KvPage { items, next })
}

/// Carries out all changes, or none: false where one of them found something other than it expected.
///
/// # Errors
/// What is kept would have more bytes than the manifest asks for.
pub(crate) async fn apply(
    app: &App,
    of: Generation,
    bytes_max: u64,
    ops: Vec<KvOp>,
) -> Result<Result<bool, Fault>, Fault> {
    change(app, of, bytes_max, ops).await.map_err(ours)
}

async fn change(
    app: &App,
    of: Generation,
    bytes_max: u64,
    ops: Vec<KvOp>,
) -> Result<Result<bool, Fault>, Error> {
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    // The changes of one plugin in one organization follow each other.
    let switched = organizations::lock(&mut tx, of.keeper.org, of.keeper.plugin).await?;
    if !switched.is_some_and(|switched| switched.is_enabled) {
        let message = "the plugin is not switched on in the organization any more";
        return Ok(Err(Fault::new(FaultKind::Denied, message).with_code("switched-off")));
    }
    let stored = storage::find(&mut tx, of.keeper).await?;
    if stored.is_some_and(|stored| stored.draft_generation.unwrap_or(stored.generation) != of.number) {
        let message = "another version of the plugin takes over its storage; ask again when it has";
        return Ok(Err(Fault::new(FaultKind::NotReady, message).with_code("taken-over")));
    }
    let names: Vec<&str> = ops.iter().map(|op| op.key.as_str()).collect();
    let there = values::find_all(&mut tx, of, &names, now).await?;
    let found = |key: &str| there.iter().find(|row| row.name == key);
    if !ops.iter().all(|op| is_as_expected(op.expected, found(&op.key))) {
        return Ok(Ok(false));
    }
    let removed: Vec<&str> =
        ops.iter().filter(|op| op.change == KvChange::Delete).map(|op| op.key.as_str()).collect();
    let put: Vec<ValueRow> = ops.iter().filter_map(|op| written(op, found(&op.key), now)).collect();
    let replaced: usize = there.iter().map(ValueRow::size_bytes).sum();
    let added: usize = put.iter().map(ValueRow::size_bytes).sum();
    // What takes no more than before fits, and the rest need not be added up.
    let after = if added > replaced {
        let used = unsigned(values::used_bytes(&mut tx, of, now).await?);
        used.saturating_sub(wide(replaced)).saturating_add(wide(added))
    } else {
        0
    };
    if after > bytes_max {
        let message = format!(
            "the plugin would keep {after} bytes for the organization, and may keep {bytes_max}; delete keys first"
        );
        return Ok(Err(Fault::new(FaultKind::Generic, message).with_code("quota")));
    }
    values::remove(&mut tx, of, &removed).await?;
    values::put(&mut tx, of, &put, now).await?;
    tx.commit().await?;
    Ok(Ok(true))
}

fn is_as_expected(expected: KvExpected, found: Option<&ValueRow>) -> bool {
    match expected {
        KvExpected::Any => true,
        KvExpected::Absent => found.is_none(),
        KvExpected::Version(version) => found.is_some_and(|row| unsigned(row.version) == version),
    }
}

/// The row that a change writes. Its version is larger than any that the key had: it goes by the time, so that a key that
/// was deleted in between does not begin anew.
fn written(op: &KvOp, found: Option<&ValueRow>, now: Timestamp) -> Option<ValueRow> {
    let KvChange::Set { value, ttl_secs } = &op.change else { return None };
    let last = found.map_or(0, |row| row.version);
    Some(ValueRow {
        name: op.key.clone(),
        bytes: value.clone(),
        version: now.timestamp_micros().max(last + 1),
        expires_at: ttl_secs.map(|secs| now + TimeDelta::seconds(i64::from(secs))),
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn row(version: i64) -> ValueRow {
        ValueRow { name: "a".to_owned(), bytes: vec![1], version, expires_at: None }
    }

    #[test]
    fn a_change_is_made_where_it_finds_what_it_expects() {
        let row = row(7);
        for (expected, found, fits) in [
            (KvExpected::Any, None, true),
            (KvExpected::Any, Some(&row), true),
            (KvExpected::Absent, None, true),
            (KvExpected::Absent, Some(&row), false),
            (KvExpected::Version(7), Some(&row), true),
            (KvExpected::Version(6), Some(&row), false),
            (KvExpected::Version(7), None, false),
        ] {
            assert_eq!(is_as_expected(expected, found), fits, "{expected:?} {found:?}");
        }
    }

    #[test]
    fn a_version_grows_with_each_change_whatever_the_clock_says() {
        let now = Clock::default().now();
        let change = KvChange::Set { value: vec![2], ttl_secs: Some(5) };
        let op = KvOp { key: "a".to_owned(), expected: KvExpected::Any, change };
        let first = written(&op, None, now).unwrap();
        assert_eq!(first.expires_at, Some(now + TimeDelta::seconds(5)));
        let second = written(&op, Some(&first), now).unwrap();
        assert!(second.version > first.version);
        let deleted = KvOp { change: KvChange::Delete, ..op };
        assert_eq!(written(&deleted, Some(&first), now), None);
    }
}
