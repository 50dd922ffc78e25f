//! Files of organizations: what is known of them, their bytes in parts, and which changes need them.
//!
//! A file is complete when its digest is written. Until then, and while its bytes are being removed, it counts for the
//! limits of its organization and is found by nothing else.

use std::collections::{BTreeSet, HashMap};

use chrono::TimeDelta;
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub FileId,
}

/// Largest part of a file that is one row, in bytes. A backup holds hundreds of rows in memory at once.
const PART_BYTES: usize = 128 << 10;
/// Bytes that are written, and read, at once, sealed: eight parts.
pub const PIECE_BYTES: usize = PART_BYTES * PARTS_OF_PIECE as usize;
const PARTS_OF_PIECE: u8 = 8;
/// An upload writes a piece more often than this; what is older was left by a process that ended.
const ABANDONED_AFTER: TimeDelta = TimeDelta::hours(1);
/// Parts that one transaction sweeps: other writers do not wait long.
const SWEPT_AT_ONCE: u32 = 64;
/// Of files with the same contents, the one that lasts longest comes first.
const LASTING: &str = "f.expires_at DESC, f.id";
/// The same in reverse: of a map by digest, it stays.
const LASTING_LAST: &str = "f.expires_at, f.id DESC";
/// More files than an organization can have.
const COPIES_MAX: i64 = 10_000;
/// Changes that are named where they need a file.
const HOLDERS_MAX: i64 = 10;

const COLUMNS: &str = "SELECT f.id, f.org_id, f.secret, f.name, f.content_type, f.size_bytes, f.sha256, f.created_by, \
     f.created_at, f.expires_at, f.controller_id, f.site_id, f.kind";

/// A complete file.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct File {
    pub id: FileId,
    pub org_id: OrgId,
    /// The sealed key of the bytes.
    pub secret: Vec<u8>,
    pub name: String,
    pub content_type: String,
    pub size_bytes: i64,
    /// Of all bytes, in lower case hex.
    pub sha256: String,
    pub created_by: UserId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The controller that gave it; none where it was uploaded.
    pub controller_id: Option<ControllerId>,
    /// The site where that was then.
    pub site_id: Option<SiteId>,
    /// What it is at that controller.
    pub kind: Option<String>,
}

impl Sorted for File {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(f.name)"),
        Key::of("size_bytes", "f.size_bytes"),
        Key::of("created_at", "f.created_at"),
        Key::of("expires_at", "f.expires_at"),
    ];
    const DEFAULT: &'static str = "-created_at";
    const LAST: &'static [&'static str] = &["f.id"];
}

/// A file whose bytes are about to come.
#[derive(Debug, Clone)]
pub struct NewFile {
    pub id: FileId,
    pub org_id: OrgId,
    pub name: String,
    pub content_type: String,
    /// The sealed key of the bytes.
    pub secret: Vec<u8>,
    pub created_by: UserId,
    pub expires_at: Timestamp,
    pub now: Timestamp,
    /// What gives it; none where it is uploaded.
    pub source: Option<Source>,
}

/// The device that gives a file.
#[derive(Debug, Clone)]
pub struct Source {
    pub controller_id: ControllerId,
    /// The site whose rights count for the file.
    pub site_id: SiteId,
    /// What the file is at that controller.
    pub kind: String,
}

/// What the files of an organization take, those that are not complete among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Usage {
    pub files: i64,
    pub bytes: i64,
}

/// Begins a file: it has no bytes and no digest yet.
pub async fn begin(tx: &mut Tx, new: &NewFile) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO file (
            id, org_id, name, content_type, size_bytes, created_by, created_at, written_at, expires_at, secret,
            controller_id, site_id, kind)
        VALUES ($1, $2, $3, $4, 0, $5, $6, $6, $7, $8, $9, $10, $11)"
        )
        .bind(new.id)
        .bind(new.org_id)
        .bind(&new.name)
        .bind(&new.content_type)
        .bind(new.created_by)
        .bind(new.now)
        .bind(new.expires_at)
        .bind(&new.secret)
        .bind(new.source.as_ref().map(|source| source.controller_id))
        .bind(new.source.as_ref().map(|source| source.site_id))
        .bind(new.source.as_ref().map(|source| source.kind.as_str()))
    );
    Ok(())
}

/// Adds the sealed piece of this number, of `size` plain bytes, to a file that is not complete. Every piece but the last
/// has [`PIECE_BYTES`]. Returns false when the file is gone, or its upload was taken for abandoned meanwhile.
pub async fn add(
    tx: &mut Tx,
    id: FileId,
    number: i64,
    (bytes, size): (&[u8], usize),
    now: Timestamp,
) -> Result<bool> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let found = affected!(
        tx,
        sqlx::query(
            "
        UPDATE file SET size_bytes = size_bytes + $2, written_at = $3
        WHERE id = $1 AND sha256 IS NULL AND written_at > $4"
        )
        .bind(id)
        .bind(size)
        .bind(now)
        .bind(now - ABANDONED_AFTER)
    );
    if found == 0 {
        return Ok(false);
    }
    on!(tx, conn => {
        let mut insert = QueryBuilder::new("INSERT INTO file_part (file_id, position, bytes) ");
        let parts = (number * i64::from(PARTS_OF_PIECE)..).zip(bytes.chunks(PART_BYTES));
        insert.push_values(parts, |mut row, (position, part)| {
            row.push_bind(id).push_bind(position).push_bind(part);
        });
        insert.build().execute(conn).await.map(|_| ())
    })?;
    Ok(true)
}

/// Makes a file complete and returns it; `None` when it is gone, or its upload was taken for abandoned meanwhile.
pub async fn complete(tx: &mut Tx, id: FileId, sha256: &str, now: Timestamp) -> Result<Option<File>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE file SET sha256 = $2, written_at = $3 WHERE id = $1 AND sha256 IS NULL AND written_at > $4
        RETURNING id, org_id, secret, name, content_type, size_bytes, sha256, created_by, created_at, expires_at,
            controller_id, site_id, kind")
        .bind(id).bind(sha256).bind(now).bind(now - ABANDONED_AFTER)
        .fetch_optional(conn)
        .await)?)
}

/// What the organization's files take.
pub async fn usage(tx: &mut Tx, org: OrgId) -> Result<Usage> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT COUNT(*) AS files, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS bytes FROM file WHERE org_id = $1")
        .bind(org)
        .fetch_one(conn)
        .await)?)
}

fn of(scope: &Scope) -> Select {
    Select::new(COLUMNS, "FROM file f").within(scope, "f.org_id", None).and("f.sha256 IS NOT NULL")
}

fn of_user(scope: &Scope, by: Option<UserId>) -> Select {
    of(scope).and_some("f.created_by = ?", by.map(|id| Bind::Id(id.0)))
}

/// A page of the complete files whose name contains the text, and how many there are; with a user only theirs.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    by: Option<UserId>,
    search: Option<&str>,
    page: impl Into<InOrder<File>>,
) -> Result<(Vec<File>, i64)> {
    of_user(scope, by).search(&["f.name"], search).page(tx, page).await
}

/// The complete file, or `None` when it does not exist or belongs to another organization, or to another user than this.
pub async fn find(tx: &mut Tx, scope: &Scope, by: Option<UserId>, id: FileId) -> Result<Option<File>> {
    of_user(scope, by).and_bind("f.id = ?", Bind::Id(id.0)).one(tx).await
}

fn of_digest(org: OrgId, sha256: &str) -> Select {
    of(&Scope::organization(org)).and_bind("f.sha256 = ?", Bind::Text(sha256.to_owned()))
}

/// Every complete file of the organization that has these contents, in the order of their ids. They stay until the
/// transaction ends.
pub async fn lock_copies(tx: &mut Tx, org: OrgId, sha256: &str) -> Result<Vec<File>> {
    of_digest(org, sha256).all_locked(tx, "f.id", COPIES_MAX, ("f", true)).await
}

/// The complete file of the organization that has these contents and lasts longest. It stays until the transaction ends.
pub async fn lock_by_digest(tx: &mut Tx, org: OrgId, sha256: &str) -> Result<Option<File>> {
    let found: Vec<File> = of_digest(org, sha256).all_locked(tx, LASTING, 1, ("f", true)).await?;
    Ok(found.into_iter().next())
}

/// By digest, the complete file of the organization that has these contents and lasts longest.
pub async fn find_by_digests(
    tx: &mut Tx,
    org: OrgId,
    digests: &BTreeSet<&str>,
) -> Result<HashMap<String, File>> {
    if digests.is_empty() {
        return Ok(HashMap::new());
    }
    let texts = digests.iter().map(|digest| Bind::Text((*digest).to_owned()));
    let named = of(&Scope::organization(org)).and_in("f.sha256", texts);
    let found: Vec<File> = named.all(tx, LASTING_LAST, COPIES_MAX).await?;
    Ok(found.into_iter().map(|file| (file.sha256.clone(), file)).collect())
}

/// The sealed piece of this number of a complete file; empty behind the last one, and when the file is gone.
pub async fn piece(tx: &mut Tx, id: FileId, number: i64) -> Result<Vec<u8>> {
    let of_each = i64::from(PARTS_OF_PIECE);
    let parts: Vec<Vec<u8>> = on!(tx, conn => sqlx::query_scalar("
        SELECT part.bytes
        FROM file_part part JOIN file ON file.id = part.file_id
        WHERE part.file_id = $1 AND part.position >= $2 AND part.position < $3 AND file.sha256 IS NOT NULL
        ORDER BY part.position")
        .bind(id).bind(number * of_each).bind((number + 1) * of_each)
        .fetch_all(conn)
        .await)?;
    Ok(parts.concat())
}

/// Notes that the calls of a change send these contents.
pub async fn hold(tx: &mut Tx, change: ChangeId, org: OrgId, sha256: &str) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO change_file (change_id, org_id, sha256) VALUES ($1, $2, $3)
            ON CONFLICT (change_id, sha256) DO NOTHING"
        )
        .bind(change)
        .bind(org)
        .bind(sha256)
    );
    Ok(())
}

/// Changes that may still send these contents: at most ten.
pub async fn holders(tx: &mut Tx, org: OrgId, sha256: &str) -> Result<Vec<ChangeId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT c.id
        FROM change_file held JOIN change c ON c.id = held.change_id
        WHERE held.org_id = $1 AND held.sha256 = $2 AND (c.status = 'pending' OR c.apply_step <> 'idle')
        ORDER BY c.staged_at, c.id LIMIT CAST($3 AS BIGINT)")
        .bind(org).bind(sha256).bind(HOLDERS_MAX)
        .fetch_all(conn)
        .await)?)
}

/// Takes a file out of use; [`clear`] removes its bytes. Its row looks abandoned from now on.
pub async fn withdraw(tx: &mut Tx, id: FileId, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE file SET sha256 = NULL, written_at = $2 WHERE id = $1")
            .bind(id)
            .bind(now - ABANDONED_AFTER)
    );
    Ok(())
}

/// Removes up to so many parts of a file that is not in use, and its row once there are none. Returns true when nothing
/// is left.
pub async fn clear(tx: &mut Tx, id: FileId, parts: u32) -> Result<bool> {
    let removed = affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM file_part WHERE file_id = $1 AND position IN (
            SELECT part.position
            FROM file_part part JOIN file ON file.id = part.file_id
            WHERE part.file_id = $1 AND file.sha256 IS NULL
            ORDER BY part.position LIMIT CAST($2 AS BIGINT))"
        )
        .bind(id)
        .bind(i64::from(parts))
    );
    if removed >= u64::from(parts) {
        return Ok(false);
    }
    affected!(tx, sqlx::query("DELETE FROM file WHERE id = $1 AND sha256 IS NULL").bind(id));
    Ok(true)
}

/// Takes out of use up to so many files that ended before this time and that no change needs. Returns their number.
pub async fn expire(tx: &mut Tx, before: Timestamp, rows: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        UPDATE file SET sha256 = NULL, written_at = $2 WHERE id IN (
            SELECT f.id
            FROM file f
            WHERE f.expires_at < $1 AND f.sha256 IS NOT NULL AND NOT EXISTS (
                SELECT 1
                FROM change_file held JOIN change c ON c.id = held.change_id
                WHERE held.org_id = f.org_id AND held.sha256 = f.sha256
                  AND (c.status = 'pending' OR c.apply_step <> 'idle'))
            ORDER BY f.expires_at, f.id LIMIT CAST($3 AS BIGINT))"
        )
        .bind(before)
        .bind(before - ABANDONED_AFTER)
        .bind(i64::from(rows))
    ))
}

/// Removes up to so many parts, and not more than 64, of files that are not in use and to which nothing was added for an
/// hour, and the rows of those without parts. Returns zero when nothing was left.
pub async fn sweep(tx: &mut Tx, now: Timestamp, rows: u32) -> Result<u64> {
    let (before, limit) = (now - ABANDONED_AFTER, i64::from(rows.min(SWEPT_AT_ONCE)));
    let parts = affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM file_part WHERE (file_id, position) IN (
            SELECT part.file_id, part.position
            FROM file_part part JOIN file f ON f.id = part.file_id
            WHERE f.sha256 IS NULL AND f.written_at <= $1
            ORDER BY part.file_id, part.position LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(limit)
    );
    let files = affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM file WHERE id IN (
            SELECT f.id
            FROM file f
            WHERE f.sha256 IS NULL AND f.written_at <= $1
              AND NOT EXISTS (SELECT 1 FROM file_part part WHERE part.file_id = f.id)
            ORDER BY f.id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(limit)
    );
    Ok(parts.max(files))
}

#[cfg(test)]
mod tests;
