//! Organizations, users, roles, sites: the structure of tenants and ownership.

mod dashboard;
pub(crate) mod declarations;
pub(crate) mod organizations;
pub(crate) mod quotas;
mod roles;
mod site_access;
pub(crate) mod sites;
pub(crate) mod users;

use heddle_core::Permission;
use heddle_core::declared::SubscriptionAccess;
use heddle_core::event::EventType;

use crate::app::SharedApp;
use crate::feature::Feature;
use crate::http::routes::Routes;

/// Organizations and what belongs to them.
pub(crate) struct Tenancy;

impl Feature for Tenancy {
    fn name(&self) -> &'static str {
        "tenancy"
    }

    fn permissions(&self) -> &'static [Permission] {
        declarations::PERMISSIONS
    }

    fn events(&self) -> &'static [EventType] {
        declarations::EVENTS
    }

    fn subscriptions(&self) -> &'static [(&'static str, SubscriptionAccess)] {
        declarations::SUBSCRIPTIONS
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let who = organizations::routes().merge(site_access::routes()).merge(users::routes());
        who.changing_callers().merge(roles::routes()).merge(sites::routes())
    }
}
