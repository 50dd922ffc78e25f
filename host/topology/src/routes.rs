//! The topology of a site, and what lies behind one of its objects.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::SiteId;
use heddle_core::blast_radius::BlastRadius;
use heddle_inventory::devices::declarations::DEVICE_READ;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Params;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::task;
use heddle_store::model_objects::ModelObjectId;
use heddle_store::object::Object as _;
use heddle_store::{Site, topology};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::losses::Losses;
use crate::site::What;
use crate::view::Topology;
use crate::{radius, read, touch};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SiteQuery {
    /// The site whose devices are meant.
    site_id: SiteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhatIfQuery {
    /// Object of the inventory that would be gone: a port, an interface, a VLAN, a wireless network, a radio, a route, a system,
    /// a client or a guest.
    object_id: ModelObjectId,
    /// Of a port: it would lose this VLAN alone.
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: Option<u16>,
}

pub(crate) fn routes() -> Routes {
    let read = Access::Permission(DEVICE_READ);
    Routes::default()
        .get(
            "/network/topology",
            read,
            show,
            doc("How the devices of a site are connected, each connection with what shows that it is there")
                .named("get_topology")
                .query::<SiteQuery>()
                .answers::<Topology>(200)
                .fails_with(404),
        )
        .get(
            "/network/topology/blast-radius",
            read,
            what_if,
            doc("What lies behind an object of the inventory, and what of it has no other path")
                .named("get_blast_radius")
                .query::<WhatIfQuery>()
                .answers::<BlastRadius>(200)
                .fails_with(404),
        )
}

async fn show(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<SiteQuery>,
) -> Result<Answer<Topology>, Error> {
    let mut tx = app.db.single().await?;
    let found = Site::find(&mut tx, &caller.scope(), query.site_id).await?;
    drop(tx);
    let found = found.ok_or(Error::NotFound("site"))?;
    let site = read::graph(&app, found.org_id, found.id).await?;
    Ok(Answer(task::block(move || Topology::of(&site, found.id)).await))
}

async fn what_if(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<WhatIfQuery>,
) -> Result<Answer<BlastRadius>, Error> {
    if query.vlan_id.is_some_and(|vlan| !(1..=4094).contains(&vlan)) {
        return Err(Error::field("vlan_id", "must be from 1 to 4094"));
    }
    let mut tx = app.db.single().await?;
    let place = topology::place_of(&mut tx, &caller.scope(), query.object_id).await?;
    drop(tx);
    let place = place.ok_or(Error::NotFound("object"))?;
    let site = read::graph(&app, place.org_id, place.site_id).await?;
    let known = site.known.iter().find(|known| known.id == query.object_id);
    if query.vlan_id.is_some() && known.is_some_and(|known| !matches!(known.what, What::Port(_))) {
        return Err(Error::field("vlan_id", "only a port loses one VLAN; leave vlan_id out for this object"));
    }
    let radius = task::block(move || {
        let known = site.known.iter().find(|known| known.id == query.object_id)?;
        let mut losses = Losses::default();
        if let (What::Port(port), Some(vlan)) = (&known.what, query.vlan_id) {
            losses.tagged.insert((*port, vlan));
            let native = site.ports[*port].vlans.as_ref().and_then(|vlans| vlans.native);
            losses.untagged.extend((native == Some(vlan)).then_some(*port));
        } else {
            touch::lose(known, &mut losses);
            if losses.is_empty() {
                return None;
            }
        }
        let label = format!("{} {}", known.kind, known.label);
        Some(radius::of_losses(&site, &losses, &label, Some(known.controller)))
    })
    .await;
    radius.map(Answer).ok_or_else(|| {
        Error::field("object_id", "objects of this kind carry no traffic, or it was not read yet; name a port, an interface, a VLAN \
            or another object that does")
    })
}
