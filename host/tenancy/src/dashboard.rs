//! An organization at a glance: its objects, their state, and recent actions.
//!
//! The counts cover every site, so a user with grants for some sites only does not see them.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use chrono::TimeDelta;
use heddle_core::adapter::DeviceStatus;
use heddle_core::change::OutcomeState;
use heddle_core::{OrgId, Role, Tier, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::declarations::AUDIT_READ;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_store::dashboard::{
    self as counts, ChangeCount, Horizon, KindCount, RoleCount, StatusCount, Totals,
};
use heddle_store::object::Object as _;
use heddle_store::{AuditEntry, Organization, audit};
use schemars::JsonSchema;
use serde::Serialize;

use super::quotas::Quota;

/// Most kinds of devices that are shown by name.
const KINDS_MAX: u32 = 20;
const AUDIT_ENTRIES: u32 = 10;
/// Hours within which a change expires soon.
const EXPIRES_SOON_HOURS: i64 = 24;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Dashboard {
    organization_id: OrgId,
    name: String,
    tier: Tier,
    generated_at: Timestamp,
    sites: Sites,
    controllers: Controllers,
    devices: Devices,
    users: Users,
    changes: Changes,
    quotas: Vec<Quota>,
    /// The newest entries of the audit log, the newest first; absent without `audit:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent_audit: Option<Vec<AuditEntry>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DashboardSites")]
struct Sites {
    total: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DashboardControllers")]
struct Controllers {
    total: i64,
    by_status: BTreeMap<&'static str, i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DashboardDevices")]
struct Devices {
    total: i64,
    by_status: BTreeMap<&'static str, i64>,
    /// The 20 kinds with the most devices, those with the most first.
    by_kind: Vec<Kind>,
    /// Devices of all other kinds.
    of_other_kinds: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DashboardKind")]
struct Kind {
    kind: String,
    count: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DashboardUsers")]
struct Users {
    total: i64,
    active: i64,
    /// Active and inactive users.
    by_role: BTreeMap<&'static str, i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DashboardChanges")]
struct Changes {
    pending: i64,
    /// Pending changes, by the outcome of the last attempt.
    pending_by_outcome: BTreeMap<&'static str, i64>,
    /// Pending changes whose last attempt failed; the device is proved unchanged.
    failed: i64,
    /// Pending changes that expire within 24 hours.
    expiring_soon: i64,
    applied_last_24_hours: i64,
    applied_last_7_days: i64,
}

/// Runs eight statements, whatever the organization holds.
pub(super) async fn show(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<OrgId>,
) -> Result<Answer<Dashboard>, Error> {
    caller.require_all_sites()?;
    let now = app.clock.now();
    let horizon = Horizon {
        day_ago: now - TimeDelta::hours(24),
        week_ago: now - TimeDelta::days(7),
        expiring_before: now + TimeDelta::hours(EXPIRES_SOON_HOURS),
    };
    let mut tx = app.db.read().await?;
    let found = Organization::find(&mut tx, &caller.scope(), id).await?;
    let organization = found.ok_or(Error::NotFound("organization"))?;
    let totals = counts::totals(&mut tx, id).await?;
    let recent_audit =
        if caller.holds(AUDIT_READ) { Some(audit::latest(&mut tx, id, AUDIT_ENTRIES).await?) } else { None };
    let devices = counts::devices_by_status(&mut tx, id).await?;
    Ok(Answer(Dashboard {
        organization_id: id,
        name: organization.name,
        tier: organization.tier,
        generated_at: now,
        sites: Sites { total: totals.sites },
        controllers: Controllers::of(&totals, &counts::controllers_by_status(&mut tx, id).await?),
        devices: Devices::of(&devices, counts::devices_by_kind(&mut tx, id, KINDS_MAX).await?),
        users: Users::of(&totals, &counts::users_by_role(&mut tx, id).await?),
        changes: Changes::of(&counts::changes_by_outcome(&mut tx, id, &horizon).await?),
        quotas: Quota::all(organization.tier, &totals),
        recent_audit,
    }))
}

fn by_status(rows: &[StatusCount]) -> BTreeMap<&'static str, i64> {
    let mut counts: BTreeMap<_, _> = DeviceStatus::ALL.iter().map(|status| (status.as_str(), 0)).collect();
    counts.extend(rows.iter().map(|row| (row.status.as_str(), row.count)));
    counts
}

impl Controllers {
    fn of(totals: &Totals, rows: &[StatusCount]) -> Self {
        Self { total: totals.controllers, by_status: by_status(rows) }
    }
}

impl Devices {
    fn of(rows: &[StatusCount], kinds: Vec<KindCount>) -> Self {
        let total: i64 = rows.iter().map(|row| row.count).sum();
        let named: i64 = kinds.iter().map(|row| row.count).sum();
        let by_kind = kinds.into_iter().map(|row| Kind { kind: row.kind, count: row.count }).collect();
        Self { total, by_status: by_status(rows), by_kind, of_other_kinds: total - named }
    }
}

impl Users {
    fn of(totals: &Totals, rows: &[RoleCount]) -> Self {
        let mut by_role: BTreeMap<_, _> = Role::ALL.iter().map(|role| (role.as_str(), 0)).collect();
        for row in rows {
            *by_role.entry(row.role.as_str()).or_default() += row.count;
        }
        let active = rows.iter().filter(|row| row.is_active).map(|row| row.count).sum();
        Self { total: totals.users, active, by_role }
    }
}

impl Changes {
    fn of(rows: &[ChangeCount]) -> Self {
        let mut by_outcome: BTreeMap<_, _> =
            OutcomeState::ALL.iter().map(|state| (state.as_str(), 0)).collect();
        by_outcome.extend(rows.iter().map(|row| (row.outcome_state.as_str(), row.pending)));
        let sum = |count: fn(&ChangeCount) -> i64| rows.iter().map(count).sum();
        Self {
            pending: sum(|row| row.pending),
            failed: by_outcome[OutcomeState::Failed.as_str()],
            pending_by_outcome: by_outcome,
            expiring_soon: sum(|row| row.expiring),
            applied_last_24_hours: sum(|row| row.applied_day),
            applied_last_7_days: sum(|row| row.applied_week),
        }
    }
}
