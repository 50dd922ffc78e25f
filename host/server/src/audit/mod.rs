//! The audit log: who did what, in a hash chain per organization.
//!
//! Entries belong to no site, so only who has access to all sites reads them.

use axum::Json;
use axum::extract::State;
use heddle_core::page::Page;
use heddle_core::{OrgId, Permission, Role, Timestamp, UserId};
use heddle_store::audit::{self, AuditEntry, AuditFilter, Validation};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::app::SharedApp;
use crate::auth::Caller;
use crate::http::access::Access;
use crate::http::error::Error;
use crate::http::extract::{PER_PAGE_MAX, Params, page_request};
use crate::http::routes::{Routes, doc};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    actor_id: Option<UserId>,
    /// Exact: `change.applied`.
    action: Option<String>,
    target_type: Option<String>,
    target_id: Option<Uuid>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValidateQuery {
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

pub(crate) fn routes() -> Routes {
    let read = Access::Permission(Permission::AuditRead);
    Routes::default()
        .get(
            "/audit",
            read,
            list,
            doc("Audit entries, newest first").query::<ListQuery>().answers::<Page<AuditEntry>>(200),
        )
        .get(
            "/audit/validate",
            read,
            validate,
            doc("Recompute the hash chain").query::<ValidateQuery>().answers::<Validation>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Json<Page<AuditEntry>>, Error> {
    caller.require_all_sites()?;
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let filter = AuditFilter {
        actor_id: query.actor_id,
        action: query.action,
        target_type: query.target_type,
        target_id: query.target_id,
        since: query.since,
        until: query.until,
    };
    let mut tx = app.db.read().await?;
    let (items, total) = audit::list(&mut tx, &caller.scope(), &filter, page).await?;
    Ok(Json(page.of(items, total)))
}

async fn validate(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ValidateQuery>,
) -> Result<Json<Validation>, Error> {
    caller.require_all_sites()?;
    let org = query.organization_id.unwrap_or(caller.org_id);
    if org != caller.org_id && caller.role != Role::SuperAdmin {
        return Err(Error::NotFound("organization"));
    }
    let mut tx = app.db.read().await?;
    Ok(Json(audit::validate(&mut tx, org).await?))
}
