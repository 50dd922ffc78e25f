//! How many objects an organization may have, by its tier.
//!
//! Only an object beyond the quota is refused; existing objects stay, also when a tier is lowered. Devices have no
//! quota: they are read from controllers, and a reading cannot be refused.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::{OrgId, Tier};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_store::dashboard::{self, Totals};
use heddle_store::object::Object as _;
use heddle_store::{Organization, Scope, Tx};
use schemars::JsonSchema;
use serde::Serialize;

use crate::declarations::TenancySettings;

heddle_core::words! {
    /// What a quota limits.
    pub enum Resource {
        Sites = "sites",
        Controllers = "controllers",
        Users = "users",
    }
}

/// One quota and what is used of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Quota {
    resource: Resource,
    /// `null` where the tier sets no limit.
    limit: Option<i64>,
    used: i64,
}

/// The quotas of an organization, and their use.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Quotas")]
pub(super) struct Quotas {
    organization_id: OrgId,
    tier: Tier,
    /// Whether objects beyond a quota are refused.
    enforced: bool,
    items: Vec<Quota>,
}

impl Resource {
    /// Returns the most that an organization of the tier may have; `None` where there is no limit. The only such table.
    const fn limit(self, tier: Tier) -> Option<i64> {
        match (tier, self) {
            (Tier::Free, Resource::Sites) => Some(3),
            (Tier::Free, Resource::Controllers) => Some(5),
            (Tier::Free, Resource::Users) => Some(10),
            (Tier::Standard, Resource::Sites) => Some(100),
            (Tier::Standard, Resource::Controllers) => Some(250),
            (Tier::Standard, Resource::Users) => Some(500),
            (Tier::Enterprise, _) => None,
        }
    }

    const fn used(self, totals: &Totals) -> i64 {
        match self {
            Resource::Sites => totals.sites,
            Resource::Controllers => totals.controllers,
            Resource::Users => totals.users,
        }
    }
}

impl Quota {
    pub(super) fn all(tier: Tier, totals: &Totals) -> Vec<Self> {
        let quota = |resource: &Resource| Self {
            resource: *resource,
            limit: resource.limit(tier),
            used: resource.used(totals),
        };
        Resource::ALL.iter().map(quota).collect()
    }
}

/// Refuses a newly created or restored object when its organization exceeds the quota.
///
/// Call it in the writing transaction once the row is written: the organization's row is locked before anything is
/// counted, so of two requests for the last place the second sees the first.
pub async fn check(tx: &mut Tx, app: &App, org: OrgId, resource: Resource) -> Result<(), Error> {
    if !app.config.of::<TenancySettings>().enforce_org_quotas {
        return Ok(());
    }
    let found = Organization::lock(tx, &Scope::organization(org), org).await?;
    let tier = found.ok_or(Error::NotFound("organization"))?.tier;
    let Some(limit) = resource.limit(tier) else { return Ok(()) };
    let used = resource.used(&dashboard::totals(tx, org).await?);
    if used <= limit {
        return Ok(());
    }
    Err(Error::Conflict {
        kind: "quota_exceeded",
        message: format!(
            "tier '{tier}' allows {limit} {resource} and the organization has {}: remove some, or ask for a higher tier",
            used - 1
        ),
    })
}

pub(super) async fn show(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<OrgId>,
) -> Result<Answer<Quotas>, Error> {
    caller.require_all_sites()?;
    let mut tx = app.db.read().await?;
    let found = Organization::find(&mut tx, &caller.scope(), id).await?;
    let tier = found.ok_or(Error::NotFound("organization"))?.tier;
    let items = Quota::all(tier, &dashboard::totals(&mut tx, id).await?);
    Ok(Answer(Quotas {
        organization_id: id,
        tier,
        enforced: app.config.of::<TenancySettings>().enforce_org_quotas,
        items,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_tier_never_allows_less() {
        for resource in Resource::ALL {
            let limits = Tier::ALL.iter().map(|tier| resource.limit(*tier).unwrap_or(i64::MAX));
            assert!(limits.is_sorted(), "{resource}");
        }
    }
}
