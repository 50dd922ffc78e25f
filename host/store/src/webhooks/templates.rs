//! Payloads that an organization writes for its webhooks.

use heddle_core::{OrgId, Timestamp, WebhookTemplateId};
use serde_json::{Value, json};
use sqlx::FromRow;

use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Tx};

#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Template {
    pub id: WebhookTemplateId,
    pub org_id: OrgId,
    /// Unique in the organization, whatever its case.
    pub name: String,
    payload: Value,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Sorted for Template {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(t.name)"),
        Key::of("created_at", "t.created_at"),
        Key::of("updated_at", "t.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["t.id"];
}

impl Template {
    pub fn payload(&self) -> &Value {
        &self.payload["payload"]
    }
}

#[derive(Debug, Clone)]
pub struct NewTemplate {
    pub id: WebhookTemplateId,
    pub org_id: OrgId,
    pub name: String,
    pub payload: Value,
    pub now: Timestamp,
}

/// Index that keeps names of one organization apart.
pub const NAME_INDEX: &str = "webhook_template_name";

const SELECT: &str = "SELECT t.id, t.org_id, t.name, t.payload, t.created_at, t.updated_at";
const FROM: &str = "FROM webhook_template t";

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "t.org_id", None).and("t.deleted_at IS NULL")
}

/// # Errors
/// [`crate::Error::Unique`] with [`NAME_INDEX`] when the name is taken.
pub async fn insert(tx: &mut Tx, new: &NewTemplate) -> Result<Template> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO webhook_template (id, org_id, name, payload, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5)
        RETURNING id, org_id, name, payload, created_at, updated_at")
        .bind(new.id).bind(new.org_id).bind(&new.name).bind(json!({ "payload": new.payload })).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: WebhookTemplateId) -> Result<Option<Template>> {
    within(scope).and_bind("t.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The template as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: WebhookTemplateId) -> Result<Option<Template>> {
    within(scope).and_bind("t.id = ?", Bind::Id(id.0)).one_locked(tx, "t").await
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Template>>,
) -> Result<(Vec<Template>, i64)> {
    within(scope).search(&["t.name"], search).page(tx, page).await
}

/// # Errors
/// [`crate::Error::Unique`] with [`NAME_INDEX`] when the name is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: WebhookTemplateId,
    (name, payload): (Option<&str>, Option<&Value>),
    now: Timestamp,
) -> Result<Option<Template>> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(None);
    }
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_template
        SET name = COALESCE($2, name), payload = COALESCE($3, payload), updated_at = $4
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(name)
        .bind(payload.map(|payload| json!({ "payload": payload })))
        .bind(now)
    );
    find(tx, scope, id).await
}

/// How many subscriptions use the template.
pub async fn uses(tx: &mut Tx, id: WebhookTemplateId) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT COUNT(*) FROM webhook_subscription WHERE template_id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_one(conn)
        .await)?)
}

/// Hides the template; its name is free again.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: WebhookTemplateId, now: Timestamp) -> Result<bool> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(false);
    }
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE webhook_template SET deleted_at = $2, updated_at = $2 WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}
