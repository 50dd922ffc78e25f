//! Organizations, users, roles, sites: what belongs to whom.

mod dashboard;
pub(crate) mod organizations;
pub(crate) mod quotas;
mod roles;
mod site_access;
pub(crate) mod sites;
pub(crate) mod users;

use heddle_core::OrgId;
use heddle_store::{Object as _, Organization, Scope, Tx};

use crate::app::SharedApp;
use crate::caller::Caller;
use crate::feature::Feature;
use crate::http::error::Error;
use crate::http::routes::Routes;

/// Organizations and what belongs to them.
pub(crate) struct Tenancy;

impl Feature for Tenancy {
    fn name(&self) -> &'static str {
        "tenancy"
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let who = organizations::routes().merge(site_access::routes()).merge(users::routes());
        who.changing_callers().merge(roles::routes()).merge(sites::routes())
    }
}

/// The organization that a new object belongs to: the caller's, or the one that it names and may see.
pub(crate) async fn owner(tx: &mut Tx, caller: &Caller, named: Option<OrgId>) -> Result<OrgId, Error> {
    let Some(named) = named.filter(|named| *named != caller.org_id) else { return Ok(caller.org_id) };
    let found = Organization::find(tx, &caller.scope(), named).await?;
    found.map(|found| found.id).ok_or_else(|| Error::field("organization_id", "organization not found"))
}

/// The caller's organization-wide view, for objects that site grants do not divide.
pub(crate) fn organization_scope(caller: &Caller) -> Scope {
    Scope { org: caller.scope().org, sites: heddle_store::SiteScope::All }
}
