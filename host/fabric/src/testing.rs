//! The features below this one, and its own.

use heddle_kernel::feature::Features;

pub(crate) const FEATURES: Features = Features::new(&[
    &heddle_identity::SignIn,
    &heddle_tenancy::Tenancy,
    &heddle_inventory::credentials::Credentials,
    &heddle_inventory::controllers::Controllers,
    &heddle_inventory::adapters::Adapters,
    &heddle_inventory::devices::Devices,
    &heddle_changes::Changes,
    &crate::Fabric,
    &heddle_delivery::notifications::Notifications,
    &crate::automation::Automation,
]);
