//! Every feature of this program. What is not in the list is not in the product.

use crate::feature::Feature;

/// In the order of the groups in the API document. A feature that needs what another one opened stands behind it.
pub(crate) static ALL: &[&dyn Feature] = &[
    &crate::http::health::Probes,
    &crate::setup::Setup,
    &crate::auth::SignIn,
    &crate::sso::SingleSignOn,
    &crate::oauth2::Apps,
    &crate::tenancy::Tenancy,
    &crate::credentials::Credentials,
    &crate::controllers::Controllers,
    &crate::adapters::Adapters,
    &crate::devices::Devices,
    &crate::staging::Changes,
    &crate::events::Stream,
    &crate::fabric::Fabric,
    &crate::notifications::Notifications,
    &crate::automation::Automation,
    &crate::audit::AuditLog,
    &crate::logs::ServiceLog,
    &crate::webhooks::Webhooks,
    &crate::access_control::AccessControl,
    &crate::sync::Readings,
];
