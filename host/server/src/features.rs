//! Every feature of this program. What is not in the list is not in the product.

use heddle_kernel::feature::Features;

/// In the order of the groups in the API document. A feature that needs what another one opened stands behind it.
pub const FEATURES: Features = Features::new(&[
    &heddle_kernel::http::health::Probes,
    &heddle_tenancy::setup::Setup,
    &heddle_identity::SignIn,
    &heddle_federation::sso::SingleSignOn,
    &heddle_federation::oauth2::Apps,
    &heddle_tenancy::Tenancy,
    &heddle_inventory::credentials::Credentials,
    &heddle_inventory::controllers::Controllers,
    &heddle_inventory::adapters::Adapters,
    &heddle_inventory::devices::Devices,
    &heddle_inventory::model::Inventory,
    &heddle_topology::Topology,
    &heddle_changes::Changes,
    &heddle_files::Files,
    &heddle_sets::Sets,
    &heddle_network::Network,
    &heddle_intent::Ledger,
    &heddle_intent::Documents,
    &heddle_kernel::events::Stream,
    &heddle_fabric::Fabric,
    &heddle_delivery::notifications::Notifications,
    &heddle_fabric::automation::Automation,
    &heddle_plugins::Plugins,
    &heddle_catalog::Marketplace,
    &heddle_kernel::audit::AuditLog,
    &heddle_kernel::logs::ServiceLog,
    &heddle_delivery::webhooks::Webhooks,
    &crate::access_control::AccessControl,
    &heddle_readings::Readings,
    &heddle_push::Push,
    &crate::reserved::Reserved,
]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use heddle_core::event::ENVELOPE;
    use heddle_store::dump::{self, Kind};
    use heddle_store::sealed::SealedColumn;

    use super::*;

    /// A new column of bytes is either sealed, and then rotated and checked, or named here. The bytes of files are sealed by a key
    /// of the file, and that one is in the list of sealed columns.
    #[tokio::test]
    async fn every_column_of_bytes_is_accounted_for() {
        const NOT_SEALED: &[&str] = &[
            "adapter_package_part.bytes",
            "change.plan_token",
            "file_part.bytes",
            "idempotency.response",
            "package_catalog_part.bytes",
            "plugin_value.bytes",
        ];
        let sealed: Vec<SealedColumn> = FEATURES.sealed_columns().collect();
        for table in dump::tables().await.unwrap() {
            for column in table.columns.iter().filter(|column| column.kind == Kind::Bytes) {
                let name = format!("{}.{}", table.name, column.name);
                let is_sealed = sealed.iter().any(|one| one.table == table.name && one.column == column.name);
                assert!(is_sealed || NOT_SEALED.contains(&name.as_str()), "{name} is in neither list");
            }
        }
    }

    #[test]
    fn steps_tell_kinds_of_object_and_what_reads_them_apart() {
        let (mut parameters, mut operations) = (BTreeSet::new(), BTreeSet::new());
        for object in FEATURES.step_objects() {
            assert!(parameters.insert(object.parameter), "'{}' is declared twice", object.parameter);
            for read in object.reads {
                assert!(operations.insert(read.id), "'{}' is declared twice", read.id);
            }
        }
        assert!(parameters.len() > 3 && operations.len() > 5, "{parameters:?} {operations:?}");
    }

    #[test]
    fn no_payload_has_a_field_that_an_envelope_has() {
        // Templates of webhooks that were written when `trigger` was the whole event are told apart by this.
        for event in FEATURES.declared().events.iter() {
            let schema = event.payload_schema();
            for name in ENVELOPE {
                assert!(schema["properties"].get(*name).is_none(), "{event} has '{name}'");
            }
        }
    }
}
