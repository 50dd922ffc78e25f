//! Organizations, users, roles, sites: the structure of tenants and ownership.

mod dashboard;
pub mod declarations;
mod glossary;
pub(crate) mod organizations;
pub mod quotas;
mod roles;
pub mod setup;
mod site_access;
pub mod sites;
pub mod users;

use heddle_core::Permission;
use heddle_core::declared::SubscriptionAccess;
use heddle_core::event::EventType;
use heddle_kernel::app::SharedApp;
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::Feature;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;

/// Organizations and what belongs to them.
pub struct Tenancy;

impl Feature for Tenancy {
    fn name(&self) -> &'static str {
        "tenancy"
    }

    fn settings(&self) -> &'static [SettingsOf] {
        const { &[SettingsOf::the::<declarations::TenancySettings>()] }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::TENANCY
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
