//! Layer 2: the VLANs that a site is to have. Its brain, a firewall, says them: they are taken from the brain's last reading,
//! and nothing is ever written to it. The other controllers, its limbs, follow.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::event::NewEvent;
use heddle_core::{ControllerId, SiteId, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_kernel::task;
use heddle_store::canonical_vlans::{self, CanonicalVlan, CanonicalVlanId, Place, SaidVlan};
use heddle_store::site_brains::{self, SiteBrain};
use heddle_store::{Scope, Tx, events};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::align::{self, Asked, With, domains_of};
use crate::declarations::VLAN_INTENT_CHANGED;
use crate::site::facts::{DEFAULT_VLAN, Domain, Facts};
use crate::site::load;
use crate::staging::Staging;

/// What reading the intent of a site came to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CanonicalVlansRead")]
pub(crate) struct IntentRead {
    site_id: SiteId,
    /// The brain.
    controller_id: ControllerId,
    /// When it was taken from the brain's readings.
    read_at: Timestamp,
    /// When the VLANs of the brain were last read from the device.
    observed_at: Option<Timestamp>,
    /// VLANs that are to be there now.
    #[schemars(range(min = 0))]
    total: usize,
    added: usize,
    changed: usize,
    removed: usize,
}

/// How the intent differs from what was stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) added: usize,
    pub(crate) changed: usize,
    pub(crate) removed: usize,
}

/// The numbers and names of the VLANs that a site is to have.
pub(crate) async fn stored(tx: &mut Tx, site: SiteId) -> Result<BTreeMap<u16, Option<String>>, Error> {
    let stored = canonical_vlans::of_site(tx, site).await?;
    let one = |vlan: CanonicalVlan| Some((u16::try_from(vlan.vlan_id).ok()?, vlan.name));
    Ok(stored.into_iter().filter_map(one).collect())
}

/// The same, of what the brain says now.
pub(crate) fn numbered(said: &[SaidVlan]) -> BTreeMap<u16, Option<String>> {
    let one = |vlan: &SaidVlan| Some((u16::try_from(vlan.vlan_id).ok()?, vlan.name.clone()));
    said.iter().filter_map(one).collect()
}

/// The domains that follow the brain.
pub(crate) fn limbs(facts: &Facts, brain: Option<&SiteBrain>) -> BTreeSet<usize> {
    let is_limb = |domain: &Domain| match brain {
        Some(brain) if domain.controller_id == brain.controller_id => false,
        Some(SiteBrain { limb_ids: Some(limbs), .. }) => limbs.contains(&domain.controller_id),
        _ => true,
    };
    facts.domains.iter().enumerate().filter(|(_, domain)| is_limb(domain)).map(|(at, _)| at).collect()
}

/// The domains that were named to follow: they do also where they have no VLAN yet.
pub(crate) fn named_limbs(facts: &Facts, brain: Option<&SiteBrain>) -> BTreeSet<usize> {
    let are_named = brain.is_some_and(|brain| brain.limb_ids.is_some());
    if are_named { limbs(facts, brain) } else { BTreeSet::new() }
}

/// What the brain says; `None` where not all of its VLANs are known.
pub(crate) fn said(facts: &Facts, brain: ControllerId) -> Option<Vec<SaidVlan>> {
    let domains: Vec<&Domain> = domains_of(facts, brain).iter().map(|at| &facts.domains[*at]).collect();
    if domains.is_empty() || !domains.iter().all(|domain| domain.knows_vlans) {
        return None;
    }
    let vlans: BTreeSet<u16> = domains.iter().flat_map(|domain| domain.vlans.keys().copied()).collect();
    let of = |vlan: u16| {
        let rows = || domains.iter().flat_map(move |domain| domain.rows(vlan));
        let subnets: BTreeSet<String> = rows().flat_map(|row| row.subnets.iter().cloned()).collect();
        SaidVlan {
            vlan_id: i64::from(vlan),
            name: rows().find_map(|row| row.name.clone()),
            subnets: subnets.into_iter().collect(),
            gateway: rows().find_map(|row| row.gateway.clone()),
            dhcp: rows().find_map(|row| row.dhcp.clone()),
        }
    };
    Some(vlans.into_iter().filter(|vlan| *vlan != DEFAULT_VLAN).map(of).collect())
}

/// Stores what the brain says, and appends an event where that is something else than before.
pub(crate) async fn store(
    tx: &mut Tx,
    app: &App,
    brain: &SiteBrain,
    said: &[SaidVlan],
    now: Timestamp,
) -> Result<Moved, Error> {
    let place =
        Place { org_id: brain.org_id, site_id: brain.site_id, controller_id: brain.controller_id, now };
    let stored = canonical_vlans::of_site(tx, brain.site_id).await?;
    let mut gone: BTreeMap<i64, CanonicalVlan> =
        stored.into_iter().map(|vlan| (vlan.vlan_id, vlan)).collect();
    let mut new: Vec<(CanonicalVlanId, &SaidVlan)> = Vec::new();
    let mut changed: Vec<(CanonicalVlanId, &SaidVlan)> = Vec::new();
    for vlan in said {
        match gone.remove(&vlan.vlan_id) {
            None => new.push((app.clock.new_id(), vlan)),
            Some(known) if vlan.is_as(&known) && known.controller_id == brain.controller_id => {}
            Some(known) => changed.push((known.id, vlan)),
        }
    }
    let moved = Moved { added: new.len(), changed: changed.len(), removed: gone.len() };
    canonical_vlans::insert(tx, &place, &new).await?;
    canonical_vlans::update(tx, &place, &changed).await?;
    let gone: Vec<CanonicalVlanId> = gone.into_values().map(|vlan| vlan.id).collect();
    canonical_vlans::remove(tx, &gone, now).await?;
    if moved != Moved::default() {
        let payload = json!({
            "site_id": brain.site_id, "controller_id": brain.controller_id, "added": moved.added,
            "changed": moved.changed, "removed": moved.removed,
        });
        let event = NewEvent {
            site_id: Some(brain.site_id),
            controller_id: Some(brain.controller_id),
            ..NewEvent::of(VLAN_INTENT_CHANGED, brain.org_id, payload)
        };
        events::append(tx, &event, &app.clock).await?;
    }
    Ok(moved)
}

/// The refusal where a site has no brain.
pub(crate) fn no_brain() -> Error {
    Error::Conflict {
        kind: "no_brain",
        message: "the site has no controller that holds the intent: set one at PUT /sites/{site_id}/brain"
            .to_owned(),
    }
}

/// The refusal where the VLANs of the brain are not known.
fn not_read() -> Error {
    Error::Conflict {
        kind: "not_read",
        message: "the VLANs of the site's brain were not read to the end yet, or not all of them may be read: look at \
                  /controllers/{controller_id}/inventory"
            .to_owned(),
    }
}

/// Takes the intent of a site from the last reading of its brain. The device is not asked.
///
/// # Errors
/// The caller may not write at the site; the site has no brain; or not all VLANs of the brain are known.
pub(crate) async fn read(by: &By, site: SiteId) -> Result<IntentRead, Error> {
    let By { app, caller, .. } = by;
    align::admit(app, caller, site).await?;
    let mut tx = app.db.read().await?;
    let brain = site_brains::find(&mut tx, &caller.scope(), site).await?.ok_or_else(no_brain)?;
    let stored = load::stored(&mut tx, app, &Scope::organization(brain.org_id), site, &["vlan"]).await?;
    drop(tx);
    let controller = brain.controller_id;
    let (said, observed) = task::block(move || {
        let facts = stored.facts();
        let read_at = |at: &usize| facts.domains[*at].read_at;
        let observed = domains_of(&facts, controller).iter().filter_map(read_at).min();
        (said(&facts, controller), observed)
    })
    .await;
    let said = said.ok_or_else(not_read)?;

    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let held = site_brains::lock(&mut tx, &caller.scope(), site).await?;
    let is_same = |held: &SiteBrain| held.revision == brain.revision;
    let brain =
        held.filter(is_same).ok_or_else(|| Error::conflict("the brain was set anew meanwhile; try again"))?;
    let moved = store(&mut tx, app, &brain, &said, now).await?;
    site_brains::note_read(&mut tx, site, now).await?;
    let detail = json!({
        "controller_id": brain.controller_id, "added": moved.added, "changed": moved.changed, "removed": moved.removed,
    });
    by.record_of(&mut tx, (brain.org_id, "site", site.0), "site.vlan_intent_read", detail).await?;
    tx.commit().await?;
    Ok(IntentRead {
        site_id: site,
        controller_id: brain.controller_id,
        read_at: now,
        observed_at: observed,
        total: said.len(),
        added: moved.added,
        changed: moved.changed,
        removed: moved.removed,
    })
}

/// Stages what brings the limbs of a site to its intent.
///
/// # Errors
/// The caller may not write at the site; or its intent was not read.
pub(crate) async fn distribute(app: &App, caller: &Caller, asked: &Asked<'_>) -> Result<Staging, Error> {
    align::admit(app, caller, asked.site).await?;
    let mut tx = app.db.single().await?;
    let brain = site_brains::find(&mut tx, &caller.scope(), asked.site).await?;
    drop(tx);
    if brain.ok_or_else(no_brain)?.read_at.is_none() {
        return Err(Error::Conflict {
            kind: "not_read",
            message: "the intent of the site was not read yet: POST /network/canonical-vlans/read".to_owned(),
        });
    }
    align::align(app, caller, asked, With::IntentOrMajority).await
}
