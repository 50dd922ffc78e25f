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

use heddle_kernel::app::SharedApp;
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::Feature;
use heddle_kernel::feature::Names;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::resource::StepObject;

/// Organizations and what belongs to them.
pub struct Tenancy;

impl Feature for Tenancy {
    fn name(&self) -> &'static str {
        "tenancy"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                settings: &[SettingsOf::the::<declarations::TenancySettings>()],
                ..Names::of(declarations::PERMISSIONS, declarations::EVENTS, declarations::SUBSCRIPTIONS)
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::TENANCY
    }

    fn step_objects(&self) -> &'static [StepObject] {
        const { &[sites::IN_STEPS] }
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let who = organizations::routes().merge(site_access::routes()).merge(users::routes());
        who.changing_callers().merge(roles::routes()).merge(sites::routes())
    }
}
