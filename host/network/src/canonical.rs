//! Canonical VLANs as a kind of object: clients and steps read lists of them. Only the reading of an intent writes them.

use heddle_core::SiteId;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::list_query;
use heddle_kernel::resource::{Actions, Listed, ReadOperation, Resource, Rows, StepObject, Takes, actions};
use heddle_store::Tx;
use heddle_store::canonical_vlans::{self, CanonicalVlan};
use serde_json::{Value, json};

list_query! {
    /// Part of the name.
    pub(crate) struct ListQuery of CanonicalVlan {
        site_id: Option<SiteId>,
        /// Number in tags.
        vlan_id: Option<i64>,
    }
}

/// The VLANs that sites are to have.
pub(crate) struct CanonicalVlans;

impl Resource for CanonicalVlans {
    type Row = CanonicalVlan;
    const NOUN: &'static str = "canonical VLAN";
    const PATH: &'static str = "/network/canonical-vlans";
    const ACTIONS: Actions = actions!("canonical_vlan");
    type View = CanonicalVlan;

    fn view(vlan: CanonicalVlan, _: &App) -> Result<CanonicalVlan, Error> {
        Ok(vlan)
    }

    fn detail(vlan: &CanonicalVlan) -> Value {
        json!({ "site_id": vlan.site_id, "vlan_id": vlan.vlan_id, "name": vlan.name })
    }
}

impl Listed for CanonicalVlans {
    type Query = ListQuery;

    async fn page(
        tx: &mut Tx,
        caller: &Caller,
        query: ListQuery,
        asked: Listing<CanonicalVlan>,
    ) -> Rows<CanonicalVlan> {
        let filter = (query.site_id, query.vlan_id);
        Ok(canonical_vlans::list(tx, &caller.scope(), filter, asked.search.as_deref(), asked.order).await?)
    }
}

/// Canonical VLANs in steps.
pub(crate) const IN_STEPS: StepObject = StepObject {
    reads: &[ReadOperation::list::<CanonicalVlans>(
        "canonical-vlans.list",
        "VLANs that sites are to have",
        CONTROLLER_READ,
        &[("site_id", Takes::Id), ("search", Takes::Text)],
    )],
    ..StepObject::named::<CanonicalVlans>("canonical_vlan_id")
};
