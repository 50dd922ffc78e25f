//! Where organizations have switched plugins on, with their settings and secrets.

use heddle_core::{OrgId, ProcessId, Timestamp, UserId};
use serde_json::Value;
use sqlx::FromRow;

use super::PluginUid;
use super::triggers::OF_ORG_MAX;
use crate::db::Tx;
use crate::error::Result;
use crate::object::revised;
use crate::select::{Bind, Select, affected};

heddle_core::ids! {
    /// What an organization set a plugin to.
    pub PluginOrganizationId,
    /// A secret that an organization gave a plugin.
    pub PluginSecretId,
}

/// More than a manifest can declare, and more plugins than there are.
const ROWS_MAX: i64 = 1_000;

/// What an organization set a plugin to.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct OrganizationRow {
    pub id: PluginOrganizationId,
    pub org_id: OrgId,
    pub plugin_uid: PluginUid,
    pub is_enabled: bool,
    pub settings: Value,
    /// Counts edits.
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The user who last set it. `None` in rows of older versions, which did not store the user.
    pub author_id: Option<UserId>,
    /// The package and the revision that the plugin was last told of.
    pub configured: String,
    /// Why it could not take the settings.
    pub problem: Option<String>,
    /// When it is told of them next.
    pub configure_at: Option<Timestamp>,
    /// Events up to this number came before it was switched on, or before the plugin became active again.
    pub after_seq: i64,
}

revised!(OrganizationRow);

/// A secret that an organization gave a plugin, sealed for `plugin_secret:{id}`.
#[derive(Clone, PartialEq, Eq, FromRow)]
pub struct SecretRow {
    pub id: PluginSecretId,
    pub org_id: OrgId,
    pub plugin_uid: PluginUid,
    pub name: String,
    /// Scheme, host and port that it was given for.
    pub origin: String,
    pub secret: Vec<u8>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Without the bytes.
impl std::fmt::Debug for SecretRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

fn of(org: OrgId, plugin: PluginUid) -> Select {
    Select::new("SELECT o.*", "FROM plugin_organization o")
        .and_bind("o.org_id = ?", Bind::Id(org.0))
        .and_bind("o.plugin_uid = ?", Bind::Id(plugin.0))
}

/// What an organization set a plugin to; `None` where it never did.
pub async fn find(tx: &mut Tx, org: OrgId, plugin: PluginUid) -> Result<Option<OrganizationRow>> {
    of(org, plugin).one(tx).await
}

/// The same, locked until the transaction ends: the plugin's values in the organization change one after the other.
pub async fn lock(tx: &mut Tx, org: OrgId, plugin: PluginUid) -> Result<Option<OrganizationRow>> {
    of(org, plugin).one_locked(tx, "o").await
}

/// Writes what an organization sets a plugin to. Where it was set before, the row keeps its id.
pub async fn set(tx: &mut Tx, row: &OrganizationRow) -> Result<OrganizationRow> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO plugin_organization (id, org_id, plugin_uid, is_enabled, settings, revision, created_at, updated_at,
            author_id, configure_at, after_seq)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (org_id, plugin_uid) DO UPDATE
        SET is_enabled = excluded.is_enabled, settings = excluded.settings,
            revision = plugin_organization.revision + 1, updated_at = excluded.updated_at,
            author_id = excluded.author_id, configure_at = excluded.configure_at, configure_owner = NULL,
            problem = NULL,
            after_seq = CASE WHEN plugin_organization.is_enabled
                THEN plugin_organization.after_seq ELSE excluded.after_seq END
        RETURNING *")
        .bind(row.id).bind(row.org_id).bind(row.plugin_uid).bind(row.is_enabled).bind(&row.settings)
        .bind(row.revision).bind(row.created_at).bind(row.updated_at).bind(row.author_id).bind(row.configure_at)
        .bind(row.after_seq)
        .fetch_one(conn)
        .await)?)
}

/// The same for a plugin by the id of its manifest; `None` where it is not active, or not switched on there.
pub async fn in_use(tx: &mut Tx, org: OrgId, plugin_id: &str) -> Result<Option<OrganizationRow>> {
    Select::new("SELECT o.*", "FROM plugin_organization o JOIN plugin p ON p.id = o.plugin_uid")
        .and_bind("o.org_id = ?", Bind::Id(org.0))
        .and_bind("p.plugin_id = ?", Bind::Text(plugin_id.to_owned()))
        .and("o.is_enabled AND p.state = 'active'")
        .one(tx)
        .await
}

/// Plugins whose settings in an organization are to be told to them: by turns among the plugins, and of each the longest
/// waiting first; a few of each organization.
pub async fn to_configure(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<OrganizationRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT q.* FROM (
            SELECT o.*, ROW_NUMBER() OVER (PARTITION BY o.org_id ORDER BY o.configure_at, o.id) AS place,
                ROW_NUMBER() OVER (PARTITION BY o.plugin_uid ORDER BY o.configure_at, o.id) AS turn
            FROM plugin_organization o WHERE o.configure_at IS NOT NULL AND o.configure_at <= $1) q
        WHERE q.place <= $2 ORDER BY q.turn, q.configure_at, q.org_id, q.place LIMIT CAST($3 AS BIGINT)")
        .bind(now)
        .bind(OF_ORG_MAX)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await)?)
}

/// Has a plugin told of its settings again in every organization that uses it, unless this package was told of them and no
/// other is being told, and nothing kept it from taking them.
pub(super) async fn configure_again(
    tx: &mut Tx,
    plugin: PluginUid,
    manifest_sha256: &str,
    now: Timestamp,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_organization SET configure_at = $3, configure_owner = NULL, problem = NULL
            WHERE plugin_uid = $1 AND is_enabled
                AND (configured NOT LIKE $2 || ':%' OR configure_at IS NOT NULL OR problem IS NOT NULL)"
        )
        .bind(plugin)
        .bind(manifest_sha256)
        .bind(now)
    );
    Ok(())
}

/// Has a plugin that becomes active hear of what happens from now on, in every organization that uses it.
pub(super) async fn listen_from_now(tx: &mut Tx, plugin: PluginUid) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_organization SET after_seq = COALESCE(
                (SELECT h.seq FROM event_head h WHERE h.org_id = plugin_organization.org_id), after_seq)
            WHERE plugin_uid = $1 AND is_enabled"
        )
        .bind(plugin)
    );
    Ok(())
}

/// Takes settings that are to be told until a time; false when they were set anew, or another process did.
pub async fn claim(tx: &mut Tx, row: &OrganizationRow, owner: ProcessId, until: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_organization SET configure_at = $4, configure_owner = $5
        WHERE id = $1 AND revision = $2 AND configure_at = $3"
        )
        .bind(row.id)
        .bind(row.revision)
        .bind(row.configure_at)
        .bind(until)
        .bind(owner)
    );
    Ok(rows == 1)
}

/// Whether the claim on these settings still holds. It ends when the settings are changed, when another process claims them,
/// and when another package begins to serve. It cannot end before this transaction does.
pub async fn is_claimed(tx: &mut Tx, row: &OrganizationRow) -> Result<bool> {
    let Some(until) = row.configure_at else { return Ok(false) };
    let found: Option<OrganizationRow> = of(row.org_id, row.plugin_uid)
        .and_bind("o.id = ?", Bind::Id(row.id.0))
        .and_bind("o.revision = ?", Bind::Number(row.revision))
        .and_bind("o.configure_at = ?", Bind::Time(until))
        .one_locked(tx, "o")
        .await?;
    Ok(found.is_some())
}

/// Writes how a plugin took its settings, and when it is told of them again; false when they were set anew, or another
/// process tells it.
pub async fn configured(
    tx: &mut Tx,
    row: &OrganizationRow,
    configured: &str,
    (problem, configure_at): (Option<&str>, Option<Timestamp>),
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_organization SET configured = $4, problem = $5, configure_at = $6, configure_owner = NULL
        WHERE id = $1 AND revision = $2 AND configure_at = $3"
        )
        .bind(row.id)
        .bind(row.revision)
        .bind(row.configure_at)
        .bind(configured)
        .bind(problem)
        .bind(configure_at)
    );
    Ok(rows == 1)
}

/// Ids of the active plugins that are switched on in an organization.
pub async fn switched_on(tx: &mut Tx, org: OrgId) -> Result<Vec<String>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT p.plugin_id FROM plugin_organization o JOIN plugin p ON p.id = o.plugin_uid
        WHERE o.org_id = $1 AND o.is_enabled AND p.state = 'active'
        ORDER BY p.plugin_id LIMIT CAST($2 AS BIGINT)")
        .bind(org)
        .bind(ROWS_MAX)
        .fetch_all(conn)
        .await)?)
}

/// Plugins that are switched on in an organization, whether they are active or not.
pub async fn enabled_in(tx: &mut Tx, org: OrgId) -> Result<Vec<PluginUid>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT o.plugin_uid FROM plugin_organization o WHERE o.org_id = $1 AND o.is_enabled
        ORDER BY o.plugin_uid LIMIT CAST($2 AS BIGINT)")
        .bind(org)
        .bind(ROWS_MAX)
        .fetch_all(conn)
        .await)?)
}

/// The same with the number up to which events came before each was switched on, or became active again.
pub async fn listening_in(tx: &mut Tx, org: OrgId) -> Result<Vec<(PluginUid, i64)>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT o.plugin_uid, o.after_seq FROM plugin_organization o WHERE o.org_id = $1 AND o.is_enabled
        ORDER BY o.plugin_uid LIMIT CAST($2 AS BIGINT)")
        .bind(org)
        .bind(ROWS_MAX)
        .fetch_all(conn)
        .await)?)
}

/// Writes a secret; where one of this name was there, it keeps its id, for which the bytes must be sealed.
pub async fn put_secret(tx: &mut Tx, row: &SecretRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO plugin_secret (id, org_id, plugin_uid, name, origin, secret, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (id) DO UPDATE
        SET origin = excluded.origin, secret = excluded.secret, updated_at = excluded.updated_at"
        )
        .bind(row.id)
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.name)
        .bind(&row.origin)
        .bind(&row.secret)
        .bind(row.created_at)
        .bind(row.updated_at)
    );
    Ok(())
}

/// The secrets that an organization gave a plugin, by name.
pub async fn secrets(tx: &mut Tx, org: OrgId, plugin: PluginUid) -> Result<Vec<SecretRow>> {
    Select::new("SELECT s.*", "FROM plugin_secret s")
        .and_bind("s.org_id = ?", Bind::Id(org.0))
        .and_bind("s.plugin_uid = ?", Bind::Id(plugin.0))
        .all(tx, "s.name", ROWS_MAX)
        .await
}

/// The same for a plugin by the id of its manifest, where it is switched on in the organization: what its requests may carry.
pub async fn secrets_in_use(tx: &mut Tx, org: OrgId, plugin_id: &str) -> Result<Vec<SecretRow>> {
    let from = "FROM plugin_secret s
        JOIN plugin p ON p.id = s.plugin_uid
        JOIN plugin_organization o ON o.plugin_uid = s.plugin_uid AND o.org_id = s.org_id";
    Select::new("SELECT s.*", from)
        .and_bind("s.org_id = ?", Bind::Id(org.0))
        .and_bind("p.plugin_id = ?", Bind::Text(plugin_id.to_owned()))
        .and("o.is_enabled AND p.state = 'active'")
        .all(tx, "s.name", ROWS_MAX)
        .await
}

/// Removes a secret; false when there was none.
pub async fn remove_secret(tx: &mut Tx, org: OrgId, plugin: PluginUid, name: &str) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("DELETE FROM plugin_secret WHERE org_id = $1 AND plugin_uid = $2 AND name = $3")
            .bind(org)
            .bind(plugin)
            .bind(name)
    );
    Ok(rows == 1)
}
