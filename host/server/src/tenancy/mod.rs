//! Organizations, users, roles, sites: what belongs to whom.

mod dashboard;
pub(crate) mod organizations;
pub(crate) mod quotas;
mod roles;
mod site_access;
pub(crate) mod sites;
pub(crate) mod users;

use crate::app::SharedApp;
use crate::feature::Feature;
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
