//! Adapter packages that were installed over the API: which one serves, and the bytes of it and of the one before it.

use heddle_core::Timestamp;
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{affected, push_list};

/// Largest part of a package that is one row, in bytes. A backup holds hundreds of rows in memory at once.
const PART_BYTES: usize = 128 << 10;
/// More than there are adapters.
const INSTALLED_MAX: i64 = 1_000;
/// Packages of an adapter that are listed.
const HISTORY_MAX: i64 = 100;

/// The package of an adapter that every process takes from the database.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Installed {
    pub adapter_id: String,
    pub manifest_sha256: String,
    pub version: String,
    /// The package that served before it, whose bytes are kept, too.
    pub before_sha256: Option<String>,
    /// It serves although a newer version did.
    pub is_pinned: bool,
    pub changed_at: Timestamp,
}

/// A package whose bytes are kept from now on.
#[derive(Debug)]
pub struct NewKept<'a> {
    pub manifest_sha256: &'a str,
    pub adapter_id: &'a str,
    pub version: &'a str,
    /// The package as one ZIP archive.
    pub archive: &'a [u8],
    pub installed_at: Timestamp,
    /// Name of the user; `None` for a package of a folder.
    pub installed_by: Option<&'a str>,
}

/// A package that served at some time, and what is known of its installation.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Known {
    pub manifest_sha256: String,
    pub version: String,
    pub publisher: String,
    pub key_id: String,
    pub first_served_at: Timestamp,
    /// Absent where it was only ever in a folder.
    pub installed_at: Option<Timestamp>,
    pub installed_by: Option<String>,
    /// Whether its bytes are kept.
    pub is_kept: bool,
}

/// The installed package of every adapter that has one.
pub async fn all(tx: &mut Tx) -> Result<Vec<Installed>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT adapter_id, manifest_sha256, version, before_sha256, is_pinned, changed_at
        FROM adapter_installed
        ORDER BY adapter_id LIMIT CAST($1 AS BIGINT)")
        .bind(INSTALLED_MAX)
        .fetch_all(conn)
        .await)?)
}

/// The installed package of an adapter; `None` where it was never installed over the API.
pub async fn find(tx: &mut Tx, adapter_id: &str) -> Result<Option<Installed>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT adapter_id, manifest_sha256, version, before_sha256, is_pinned, changed_at
        FROM adapter_installed
        WHERE adapter_id = $1")
        .bind(adapter_id)
        .fetch_optional(conn)
        .await)?)
}

/// Writes which package of an adapter is installed.
pub async fn choose(tx: &mut Tx, installed: &Installed) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO adapter_installed (adapter_id, manifest_sha256, version, before_sha256, is_pinned, changed_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (adapter_id) DO UPDATE
        SET manifest_sha256 = excluded.manifest_sha256, version = excluded.version,
            before_sha256 = excluded.before_sha256, is_pinned = excluded.is_pinned, changed_at = excluded.changed_at"
        )
        .bind(&installed.adapter_id)
        .bind(&installed.manifest_sha256)
        .bind(&installed.version)
        .bind(&installed.before_sha256)
        .bind(installed.is_pinned)
        .bind(installed.changed_at)
    );
    Ok(())
}

/// Ends that an older package serves: a newer one does from now on.
pub async fn unpin(tx: &mut Tx, adapter_id: &str, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE adapter_installed SET is_pinned = FALSE, changed_at = $2
            WHERE adapter_id = $1 AND is_pinned"
        )
        .bind(adapter_id)
        .bind(now)
    );
    Ok(())
}

/// Keeps the bytes of a package. A package that was installed before gets the later time and user.
pub async fn keep(tx: &mut Tx, package: &NewKept<'_>) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO adapter_package_kept (manifest_sha256, adapter_id, version, installed_at, installed_by)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (manifest_sha256) DO UPDATE
        SET installed_at = excluded.installed_at, installed_by = excluded.installed_by"
        )
        .bind(package.manifest_sha256)
        .bind(package.adapter_id)
        .bind(package.version)
        .bind(package.installed_at)
        .bind(package.installed_by)
    );
    forget_parts(tx, package.manifest_sha256).await?;
    for (position, part) in (0_i64..).zip(package.archive.chunks(PART_BYTES)) {
        affected!(
            tx,
            sqlx::query(
                "INSERT INTO adapter_package_part (manifest_sha256, position, bytes) VALUES ($1, $2, $3)"
            )
            .bind(package.manifest_sha256)
            .bind(position)
            .bind(part)
        );
    }
    Ok(())
}

async fn forget_parts(tx: &mut Tx, manifest_sha256: &str) -> Result<()> {
    affected!(
        tx,
        sqlx::query("DELETE FROM adapter_package_part WHERE manifest_sha256 = $1").bind(manifest_sha256)
    );
    Ok(())
}

/// Removes the bytes of all packages of an adapter except those of the installed one and of the one before it. The
/// packages stay on record.
pub async fn trim(tx: &mut Tx, adapter_id: &str) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM adapter_package_part WHERE manifest_sha256 IN (
            SELECT kept.manifest_sha256
            FROM adapter_package_kept kept
            JOIN adapter_installed installed ON installed.adapter_id = kept.adapter_id
            WHERE kept.adapter_id = $1
              AND kept.manifest_sha256 <> installed.manifest_sha256
              AND kept.manifest_sha256 IS DISTINCT FROM installed.before_sha256)"
        )
        .bind(adapter_id)
    );
    Ok(())
}

/// Removes the bytes of all packages of this id but those with these SHA-256 of their manifests.
pub async fn keep_only(tx: &mut Tx, adapter_id: &str, manifests: &[&str]) -> Result<()> {
    on!(tx, conn => {
        let mut delete = QueryBuilder::new(
            "DELETE FROM adapter_package_part WHERE manifest_sha256 IN (
                SELECT kept.manifest_sha256 FROM adapter_package_kept kept WHERE kept.adapter_id = ",
        );
        delete.push_bind(adapter_id);
        if !manifests.is_empty() {
            delete.push(" AND kept.manifest_sha256 NOT IN (");
            push_list!(delete, manifests);
            delete.push(")");
        }
        delete.push(")");
        delete.build().execute(conn).await.map(drop)
    })?;
    Ok(())
}

/// The packages of this id whose bytes are kept, by the SHA-256 of their manifests.
pub async fn kept_of(tx: &mut Tx, adapter_id: &str) -> Result<Vec<String>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT kept.manifest_sha256 FROM adapter_package_kept kept
        WHERE kept.adapter_id = $1 AND EXISTS (SELECT 1 FROM adapter_package_part part
            WHERE part.manifest_sha256 = kept.manifest_sha256)
        ORDER BY kept.manifest_sha256 LIMIT CAST($2 AS BIGINT)")
        .bind(adapter_id)
        .bind(HISTORY_MAX)
        .fetch_all(conn)
        .await)?)
}

/// The package as one ZIP archive; `None` where its bytes are not kept.
pub async fn archive(tx: &mut Tx, manifest_sha256: &str) -> Result<Option<Vec<u8>>> {
    let parts: Vec<Vec<u8>> = on!(tx, conn => sqlx::query_scalar("
        SELECT bytes FROM adapter_package_part WHERE manifest_sha256 = $1 ORDER BY position")
        .bind(manifest_sha256)
        .fetch_all(conn)
        .await)?;
    Ok(if parts.is_empty() { None } else { Some(parts.concat()) })
}

/// Every package of an adapter that served, the latest first: at most 100.
pub async fn history(tx: &mut Tx, adapter_id: &str) -> Result<Vec<Known>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT package.manifest_sha256, package.version, package.publisher, package.key_id, package.first_served_at,
            kept.installed_at, kept.installed_by,
            EXISTS (SELECT 1 FROM adapter_package_part part
                WHERE part.manifest_sha256 = package.manifest_sha256) AS is_kept
        FROM adapter_package package
        LEFT JOIN adapter_package_kept kept ON kept.manifest_sha256 = package.manifest_sha256
        WHERE package.adapter_id = $1
        ORDER BY package.first_served_at DESC, package.manifest_sha256
        LIMIT CAST($2 AS BIGINT)")
        .bind(adapter_id)
        .bind(HISTORY_MAX)
        .fetch_all(conn)
        .await)?)
}

#[cfg(test)]
mod tests;
