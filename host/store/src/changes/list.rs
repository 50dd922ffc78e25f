//! Lists of changes, and how many there are of each kind. The row of a set is no change.

use heddle_core::change::{ChangeStatus, OutcomeState};
use heddle_core::{ChangeId, ControllerId, SiteId, UserId};
use sqlx::FromRow;

use super::{ChangeRow, FROM, SELECT};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select};
use crate::sort::{InOrder, Key, Sorted};

impl Sorted for ChangeRow {
    const KEYS: &'static [Key] = &[
        Key::of("staged_at", "c.staged_at"),
        Key::nullable("applied_at", "c.applied_at"),
        Key::of("expires_at", "c.expires_at"),
        Key::of("status", "c.status"),
        Key::of("vendor", "c.vendor"),
        Key::of("feature", "c.feature"),
    ];
    const DEFAULT: &'static str = "-staged_at";
    const LAST: &'static [&'static str] = &["c.id"];
}

/// Which changes are asked for.
#[derive(Debug, Clone, Default)]
pub struct ChangeFilter {
    pub controller_id: Option<ControllerId>,
    pub site_id: Option<SiteId>,
    pub area: Option<String>,
    pub status: Option<ChangeStatus>,
    pub outcome: Option<OutcomeState>,
    pub vendor: Option<String>,
    pub feature: Option<String>,
    pub author: Option<UserId>,
    pub set_id: Option<ChangeId>,
}

/// How many changes there are of one status and outcome.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ChangeCount {
    pub status: ChangeStatus,
    pub outcome_state: OutcomeState,
    pub count: i64,
}

impl ChangeFilter {
    /// Everything but what the counts tell apart.
    fn conditions(&self, select: Select) -> Select {
        select
            .and("NOT c.is_set")
            .and_some("c.controller_id = ?", self.controller_id.map(|id| Bind::Id(id.0)))
            .and_some("c.site_id = ?", self.site_id.map(|id| Bind::Id(id.0)))
            .and_some("c.area = ?", self.area.clone().map(Bind::Text))
            .and_some("c.vendor = ?", self.vendor.clone().map(Bind::Text))
            .and_some("c.feature = ?", self.feature.clone().map(Bind::Text))
            .and_some("c.staged_by = ?", self.author.map(|id| Bind::Id(id.0)))
            .and_some("? IN (c.set_id, c.saga_id)", self.set_id.map(|id| Bind::Id(id.0)))
    }
}

/// A page of changes, the newest first.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &ChangeFilter,
    page: impl Into<InOrder<ChangeRow>>,
) -> Result<(Vec<ChangeRow>, i64)> {
    filter
        .conditions(Select::new(SELECT, FROM).within(scope, "c.org_id", Some("c.site_id")))
        .and_some("c.status = ?", filter.status.map(|status| Bind::Text(status.to_string())))
        .and_some("c.outcome_state = ?", filter.outcome.map(|state| Bind::Text(state.to_string())))
        .page(tx, page)
        .await
}

/// How many there are by status and outcome, whatever status and outcome the filter names.
pub async fn counts(tx: &mut Tx, scope: &Scope, filter: &ChangeFilter) -> Result<Vec<ChangeCount>> {
    let head = "SELECT c.status, c.outcome_state, COUNT(*) AS count";
    filter
        .conditions(Select::new(head, FROM).within(scope, "c.org_id", Some("c.site_id")))
        .grouped(tx, "c.status, c.outcome_state")
        .await
}
