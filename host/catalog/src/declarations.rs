//! Events of the catalogue.

use heddle_core::declared::SubscriptionAccess;
use heddle_plugins::PLUGIN_READ;

heddle_core::events! { pub(crate) EVENTS {
    CATALOG_UPDATED = "marketplace.catalog_updated", "plugin", Normal,
        { "catalog_version": "integer?", "previous_version": "integer?", "revocations": "integer" };
    CATALOG_FAILED = "marketplace.catalog_failed", "plugin", High,
        { "step": "string?", "reason": "string" };
    ADAPTER_REVOKED = "marketplace.adapter_revoked", "plugin", High,
        { "adapter": "string", "version": "string", "action": "string", "reason": "string" };
} }

/// The catalogue belongs to the whole service; what it brings is seen by those who see plugins.
pub(crate) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] =
    &[("marketplace", SubscriptionAccess::Permission(PLUGIN_READ))];
