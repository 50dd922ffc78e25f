//! Adapter packages that served, and which key each adapter is bound to.

use heddle_core::{OrgId, Role, Timestamp};
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// The key that provides an adapter, and the highest version that served.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Binding {
    pub adapter_id: String,
    pub publisher: String,
    pub key_id: String,
    pub version: String,
    /// Of the package that served last in this version.
    pub manifest_sha256: String,
}

/// A package that serves.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Package {
    pub manifest_sha256: String,
    pub adapter_id: String,
    pub version: String,
    pub component_sha256: String,
    pub publisher: String,
    pub key_id: String,
    /// What it may do at a device, in words: a list of texts.
    pub rules: Value,
    pub first_served_at: Timestamp,
}

/// The key that an adapter is bound to; `None` when it never served.
pub async fn find_binding(tx: &mut Tx, adapter_id: &str) -> Result<Option<Binding>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT adapter_id, publisher, key_id, version, manifest_sha256
        FROM adapter_binding
        WHERE adapter_id = $1")
        .bind(adapter_id)
        .fetch_optional(conn)
        .await)?)
}

/// Binds an adapter to a package's key, unless it is bound already, and returns what it is bound to. Other
/// processes wait for this transaction.
pub async fn hold_binding(tx: &mut Tx, package: &Package) -> Result<Binding> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO adapter_binding (adapter_id, publisher, key_id, version, manifest_sha256, bound_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (adapter_id) DO UPDATE SET adapter_id = excluded.adapter_id
        RETURNING adapter_id, publisher, key_id, version, manifest_sha256")
        .bind(&package.adapter_id)
        .bind(&package.publisher)
        .bind(&package.key_id)
        .bind(&package.version)
        .bind(&package.manifest_sha256)
        .bind(package.first_served_at)
        .fetch_one(conn)
        .await)?)
}

/// Writes what an adapter is bound to from now on.
pub async fn rebind(tx: &mut Tx, binding: &Binding, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE adapter_binding
        SET publisher = $2, key_id = $3, version = $4, manifest_sha256 = $5, bound_at = $6
        WHERE adapter_id = $1"
        )
        .bind(&binding.adapter_id)
        .bind(&binding.publisher)
        .bind(&binding.key_id)
        .bind(&binding.version)
        .bind(&binding.manifest_sha256)
        .bind(now)
    );
    Ok(())
}

/// Records a package that serves. False when it was recorded before.
pub async fn record(tx: &mut Tx, package: &Package) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO adapter_package (manifest_sha256, adapter_id, version, component_sha256, publisher, key_id,
            rules, first_served_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (manifest_sha256) DO NOTHING"
        )
        .bind(&package.manifest_sha256)
        .bind(&package.adapter_id)
        .bind(&package.version)
        .bind(&package.component_sha256)
        .bind(&package.publisher)
        .bind(&package.key_id)
        .bind(&package.rules)
        .bind(package.first_served_at)
    );
    Ok(rows == 1)
}

/// Marks a package as written to the audit log; its installation wrote the entry.
pub async fn mark_audited(tx: &mut Tx, manifest_sha256: &str, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE adapter_package SET audited_at = $2 WHERE manifest_sha256 = $1 AND audited_at IS NULL"
        )
        .bind(manifest_sha256)
        .bind(now)
    );
    Ok(())
}

/// Marks packages as written to the audit log, and returns those that were not yet. At most 100, the oldest first.
pub async fn take_unaudited(tx: &mut Tx, now: Timestamp) -> Result<Vec<Package>> {
    let mut packages: Vec<Package> = on!(tx, conn => sqlx::query_as("
        UPDATE adapter_package SET audited_at = $1
        WHERE audited_at IS NULL AND manifest_sha256 IN (
            SELECT manifest_sha256 FROM adapter_package WHERE audited_at IS NULL
            ORDER BY first_served_at, manifest_sha256 LIMIT 100)
        RETURNING manifest_sha256, adapter_id, version, component_sha256, publisher, key_id, rules, first_served_at")
        .bind(now)
        .fetch_all(conn)
        .await)?;
    packages.sort_by(|a, b| {
        (a.first_served_at, &a.manifest_sha256).cmp(&(b.first_served_at, &b.manifest_sha256))
    });
    Ok(packages)
}

/// The organization whose audit log also holds what concerns the whole service: that of the first `super_admin`.
/// `None` before the setup.
pub async fn platform_organization(tx: &mut Tx) -> Result<Option<OrgId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT u.org_id
        FROM app_user u
        JOIN organization o ON o.id = u.org_id
        WHERE u.role = $1 AND u.deleted_at IS NULL AND o.deleted_at IS NULL
        ORDER BY u.created_at, u.id
        LIMIT 1")
        .bind(Role::SuperAdmin)
        .fetch_optional(conn)
        .await)?)
}

#[cfg(test)]
mod tests;
