//! Payloads that an organization writes for its webhooks.

use heddle_core::{OrgId, Timestamp};
use serde_json::{Value, json};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::Scope;
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    /// Payload of deliveries, written by an organization.
    pub WebhookTemplateId,
}

/// The body of an organization's deliveries, with references to the event: a row of `webhook_template`.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Template {
    pub id: WebhookTemplateId,
    /// How often people have edited it.
    pub revision: i64,
    pub org_id: OrgId,
    /// Unique in the organization, whatever its case.
    pub name: String,
    payload: Value,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Sorted for Template {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(webhook_template.name)"),
        Key::of("created_at", "webhook_template.created_at"),
        Key::of("updated_at", "webhook_template.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["webhook_template.id"];
}

impl Template {
    /// Returns the body as people wrote it. The column holds it as the field `payload` of an object.
    pub fn payload(&self) -> &Value {
        &self.payload["payload"]
    }
}

/// A row of `webhook_template` about to be written. `payload` is the body with its references not filled in.
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

revised!(Template);

impl Object for Template {
    type Id = WebhookTemplateId;
    const TABLE: Table = table!(
        "webhook_template",
        "webhook_template.id, webhook_template.revision, webhook_template.org_id, webhook_template.name, webhook_template.payload,
        webhook_template.created_at, webhook_template.updated_at",
        org: "org_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// # Errors
/// [`crate::error::Error::Unique`] with [`NAME_INDEX`] when the name is taken.
pub async fn insert(tx: &mut Tx, new: &NewTemplate) -> Result<Template> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("name", &new.name)
        .with("payload", json!({ "payload": new.payload }));
    object::insert(tx, new.id, columns, new.now).await
}

/// Returns a page of the templates that are not removed, and how many there are on all pages.
/// The oldest come first unless the page names another order. `search` finds a part of the name.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Template>>,
) -> Result<(Vec<Template>, i64)> {
    object::live::<Template>(scope).search(&["webhook_template.name"], search).page(tx, page).await
}

/// # Errors
/// [`crate::error::Error::Unique`] with [`NAME_INDEX`] when the name is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: WebhookTemplateId,
    (name, payload): (Option<&str>, Option<&Value>),
    now: Timestamp,
) -> Result<Option<Template>> {
    let columns = Columns::default()
        .or_keep("name", name)
        .or_keep("payload", payload.map(|payload| json!({ "payload": payload })));
    object::update(tx, scope, id, columns, now).await
}

/// How many subscriptions use the template.
pub async fn uses(tx: &mut Tx, id: WebhookTemplateId) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT COUNT(*) FROM webhook_subscription WHERE template_id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_one(conn)
        .await)?)
}
