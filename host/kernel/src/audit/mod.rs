//! The audit log: who did what, in a hash chain per organization.
//!
//! Entries belong to no site, so only a caller with access to all sites reads them.

pub mod declarations;
pub mod entry;
pub(crate) mod keeping;
pub mod kept;
pub mod key;
pub mod packages;

use crate::feature::Names;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use heddle_core::page::{Cursor, CursorPage};
use heddle_core::{OrgId, Role, Timestamp, UserId};
use heddle_store::audit::{self, AuditEntry, AuditFilter, ChainWalk, Head, Validation};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::app::SharedApp;
use crate::audit::declarations::AUDIT_READ;
use crate::caller::Caller;
use crate::feature::Feature;
use crate::http::access::{Access, Unscoped};
use crate::http::error::Error;
use crate::http::extract::Params;
use crate::http::glossary::Glossary;
use crate::http::routes::{Routes, doc};
use crate::walk_query;

/// The longest that one request checks the chain; the answer says how far it got.
const VALIDATE_LIMIT: Duration = Duration::from_secs(20);

walk_query! {
    struct ListQuery of AuditEntry {
        actor_id: Option<UserId>,
        /// Exact: `change.applied`.
        action: Option<String>,
        target_type: Option<String>,
        target_id: Option<Uuid>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValidateQuery {
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
    /// Continues after this entry, which is trusted: the `checked_to_seq` of the previous answer.
    after_seq: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HeadQuery {
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

const GLOSSARY: Glossary = Glossary {
    groups: &[(
        "audit",
        "Audit log",
        "Who did what, when and from where, as a chain of hashes that shows what was altered.",
    )],
    nouns: &[("/audit", "audit_entry", "audit_entries")],
    ..Glossary::EMPTY
};

/// The audit log.
pub struct AuditLog;

impl Feature for AuditLog {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                permissions: declarations::PERMISSIONS,
                subscriptions: declarations::SUBSCRIPTIONS,
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &GLOSSARY
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let read = Access::Permission(AUDIT_READ);
        Routes::default()
            .get(
                "/audit",
                read,
                list,
                doc("Audit entries, newest first")
                    .query::<ListQuery>()
                    .answers::<CursorPage<AuditEntry>>(200),
            )
            .get(
                "/audit/head",
                Access::Role(
                    Role::OrgAdmin,
                    Unscoped("the end of the log is kept by a person who answers for the organization"),
                ),
                head,
                doc("The end of the log: keep it elsewhere, and a cut or replaced log shows")
                    .named("get_audit_head")
                    .query::<HeadQuery>()
                    .answers::<Head>(200),
            )
            .get(
                "/audit/validate",
                Access::RoleWith(Role::OrgAdmin, AUDIT_READ),
                validate,
                doc("Recompute the hash chain, for up to 20 seconds")
                    .named("validate_audit_log")
                    .query::<ValidateQuery>()
                    .answers::<Validation>(200),
            )
    }
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Json<CursorPage<AuditEntry>>, Error> {
    caller.require_all_sites()?;
    let request = query.walk()?;
    let filter = AuditFilter {
        actor_id: query.actor_id,
        action: query.action,
        target_type: query.target_type,
        target_id: query.target_id,
        since: query.since,
        until: query.until,
    };
    let mut tx = app.db.read().await?;
    let walked = audit::walk(&mut tx, &caller.scope(), &filter, request).await?;
    let cursor =
        |entry: &AuditEntry| Cursor { occurred_at: entry.occurred_at, seq: entry.seq, id: entry.id.0 };
    Ok(Json(request.of(walked, cursor)))
}

/// Returns the caller's own organization, or another one if the caller may see all.
fn organization(caller: &Caller, asked: Option<OrgId>) -> Result<OrgId, Error> {
    let org = asked.unwrap_or(caller.org_id);
    if org != caller.org_id && caller.role != Role::SuperAdmin {
        return Err(Error::NotFound("organization"));
    }
    Ok(org)
}

async fn head(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<HeadQuery>,
) -> Result<Json<Head>, Error> {
    caller.require_all_sites()?;
    let org = organization(&caller, query.organization_id)?;
    let head = audit::head(&mut app.db.read().await?, org).await?;
    head.map(Json).ok_or(Error::NotFound("audit log"))
}

async fn validate(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ValidateQuery>,
) -> Result<Json<Validation>, Error> {
    caller.require_all_sites()?;
    let org = organization(&caller, query.organization_id)?;
    let after_seq = query.after_seq.unwrap_or_default();
    if after_seq < 0 {
        return Err(Error::field("after_seq", "after_seq is 0 or the number of an entry"));
    }
    let (started, stop) = (Instant::now(), app.tasks.stopping());
    let mut tx = app.db.read().await?;
    let begun = ChainWalk::begin(&mut tx, org, after_seq, &app.audit_key, app.audit_kept.of(org)).await?;
    drop(tx);
    let mut walk = begun
        .ok_or_else(|| Error::field("after_seq", "after_seq is not the number of an entry; begin with 0"))?;
    loop {
        let mut tx = app.db.read().await?;
        let is_more = walk.step(&mut tx).await?;
        if !is_more || stop.is_cancelled() || started.elapsed() >= VALIDATE_LIMIT {
            return Ok(Json(walk.result()));
        }
    }
}
