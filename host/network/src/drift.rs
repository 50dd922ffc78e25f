//! Compares sites with their intent whenever one of their controllers was read, and appends an event for each difference that
//! is new or gone. Where several processes look at the same site, the first one that stores what it found goes on.
//!
//! Where the policy of a site says so, what resolves new differences is staged, once: changes that a person discards are not
//! staged again before the difference is another one. What could not be staged at that time is tried again later. Nothing is
//! applied.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use heddle_changes::Cause;
use heddle_core::event::{EventType, NewEvent};
use heddle_core::vlan::{OnDrift, VlanFault};
use heddle_core::{ControllerId, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_store::canonical_vlans::SaidVlan;
use heddle_store::site_brains::{self, SiteBrain};
use heddle_store::vlan_drift::{self, DRIFT_MAX, VlanDrift};
use heddle_store::{Scope, Tx, events, processes};
use serde_json::json;

use crate::align::domains_of;
use crate::author::author_of;
use crate::compare::expected::Expected;
use crate::compare::remedy::{Rules, remedy};
use crate::compare::{Finding, compare};
use crate::declarations::{VLAN_DRIFT_CHANGED, VLAN_DRIFTED, VLAN_SETTLED};
use crate::intent;
use crate::site::facts::Facts;
use crate::site::gathered::KINDS;
use crate::site::load;
use crate::staging::{By, stage, writable};

/// Name of the duty among those of all processes.
const DUTY: &str = "vlan_drift";
/// Time between two looks whether a site is due.
const INTERVAL: Duration = Duration::from_secs(5);
/// Sites of one look.
const SITES_MAX: i64 = 20;
/// Events of one comparison; with more there is one for all.
const EVENTS_MAX: usize = 200;
/// What the changes of a policy say.
const NOTES: &str = "Staged by the policy of the site: a controller differs from the intent of its VLANs.";

/// Looks for sites that are due until the service stops.
pub(crate) async fn watch(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if let Err(error) = look(&app).await {
            tracing::warn!(error = %error, "VLANs of sites were not compared; tried again later");
        }
    }
}

/// Compares the sites that are due, unless another process does.
async fn look(app: &SharedApp) -> Result<(), Error> {
    let Ok(term) = app.membership.term() else { return Ok(()) };
    let now = app.clock.now();
    let every = TimeDelta::from_std(INTERVAL / 2).unwrap_or_default();
    let mut tx = app.db.read().await?;
    if site_brains::due(&mut tx, now, 1).await?.is_empty() {
        return Ok(());
    }
    drop(tx);
    let mut tx = app.db.write().await?;
    let is_ours = processes::take_duty(&mut tx, DUTY, term.id, now, every).await?;
    tx.commit().await?;
    if !is_ours {
        return Ok(());
    }
    let mut tx = app.db.read().await?;
    let due = site_brains::due(&mut tx, now, SITES_MAX).await?;
    drop(tx);
    for brain in due {
        if app.tasks.stopping().is_cancelled() {
            break;
        }
        let site = brain.site_id;
        if let Err(error) = check(app, brain).await {
            tracing::warn!(site.id = %site, error = %error, "VLANs of site {site} were not compared; tried again later");
        }
    }
    Ok(())
}

/// A site as it was looked at.
struct Seen {
    facts: Facts,
    /// What the brain says; `None` where not all of it is known.
    said: Option<Vec<SaidVlan>>,
    findings: Vec<Finding>,
}

impl Seen {
    /// `intent` holds where the brain says nothing.
    fn of(facts: Facts, brain: &SiteBrain, intent: BTreeMap<u16, Option<String>>) -> Self {
        let said = intent::said(&facts, brain.controller_id);
        let vlans = said.as_deref().map_or(intent, intent::numbered);
        let expected = Expected::intent(vlans, intent::limbs(&facts, Some(brain)));
        let expected = expected.with_named(intent::named_limbs(&facts, Some(brain)));
        let findings = of_limbs(&facts, brain, &expected);
        Self { facts, said, findings }
    }
}

/// Compares one site, tells of what is new, and stages what its policy says.
async fn check(app: &SharedApp, brain: SiteBrain) -> Result<(), Error> {
    let at = app.clock.now();
    let mut tx = app.db.read().await?;
    let scope = Scope::organization(brain.org_id);
    let stored = load::stored(&mut tx, app, &scope, brain.site_id, &KINDS).await?;
    let intent = intent::stored(&mut tx, brain.site_id).await?;
    drop(tx);
    let of = brain.clone();
    let Seen { facts, said, mut findings } = task::block(move || Seen::of(stored.facts(), &of, intent)).await;

    let mut tx = app.db.write().await?;
    let held = site_brains::lock(&mut tx, &scope, brain.site_id).await?;
    // It was set anew, its intent was read, or another process compared the site: what was seen is old.
    if held.is_none_or(|held| held != brain) {
        return Ok(());
    }
    if let Some(said) = &said {
        intent::store(&mut tx, app, &brain, said, at).await?;
        site_brains::note_read(&mut tx, brain.site_id, at).await?;
    } else if brain.read_at.is_none() {
        // Nothing is known of the intent; a reading of the brain makes the site due again.
        site_brains::note_checked(&mut tx, brain.site_id, at).await?;
        tx.commit().await?;
        return Ok(());
    }
    let waiting = record(&mut tx, app, &brain, &rows(&facts, &findings, at)).await?;
    site_brains::note_checked(&mut tx, brain.site_id, at).await?;
    tx.commit().await?;
    findings.retain(|finding| waiting.contains(&key(&row(&facts, finding, at))));
    if !findings.is_empty() && brain.on_drift == OnDrift::Stage {
        stage_for(app, &brain, facts, findings).await?;
    }
    Ok(())
}

/// What differs at the limbs. Subnets and orphans are no matter of one limb.
fn of_limbs(facts: &Facts, brain: &SiteBrain, expected: &Expected) -> Vec<Finding> {
    let limbs = intent::limbs(facts, Some(brain));
    let is_drift = |finding: &Finding| {
        let is_at_limb = limbs.contains(&finding.domain);
        let is_beside_limb =
            finding.link.is_some() && finding.other.is_some_and(|(other, _)| limbs.contains(&other));
        let is_of_site = matches!(finding.class, VlanFault::SubnetOverlaps | VlanFault::Orphan);
        !is_of_site && (is_at_limb || is_beside_limb)
    };
    compare(facts, expected).into_iter().filter(is_drift).collect()
}

/// A difference as it is stored.
fn row(facts: &Facts, finding: &Finding, at: Timestamp) -> VlanDrift {
    let domain = &facts.domains[finding.domain];
    let end = finding.link.map(|(link, side)| &facts.links[link].ends[side]);
    let place = end.map(|end| match &end.device {
        Some(device) => format!("{device} {}", end.port),
        None => end.port.clone(),
    });
    VlanDrift {
        controller_id: domain.controller_id,
        site_ref: domain.site_ref.clone().unwrap_or_default(),
        class: finding.class,
        vlan_id: i64::from(finding.vlan),
        place: place.unwrap_or_default(),
        expected: finding.expected.clone(),
        found: finding.found.clone(),
        since: at,
        staged_at: None,
    }
}

/// The differences as they are stored, each once.
fn rows(facts: &Facts, findings: &[Finding], at: Timestamp) -> Vec<VlanDrift> {
    let rows = findings.iter().map(|finding| row(facts, finding, at));
    let by_key: BTreeMap<Key, VlanDrift> = rows.map(|row| (key(&row), row)).collect();
    by_key.into_values().take(DRIFT_MAX).collect()
}

/// What tells a difference from the others of its site.
type Key = (ControllerId, String, VlanFault, i64, String);

fn key(drift: &VlanDrift) -> Key {
    let (controller, site, class, vlan, place) = drift.identity();
    (controller, site.to_owned(), class, vlan, place.to_owned())
}

/// How the differences of a site moved since the last comparison. A difference whose values changed
/// is in both `new` and `gone`.
struct Moved {
    kept: Vec<VlanDrift>,
    new: Vec<VlanDrift>,
    gone: Vec<VlanDrift>,
}

fn moved(known: Vec<VlanDrift>, found: &[VlanDrift]) -> Moved {
    let mut gone: BTreeMap<Key, VlanDrift> = known.into_iter().map(|drift| (key(&drift), drift)).collect();
    let (mut kept, mut new) = (Vec::new(), Vec::new());
    for drift in found {
        let key = key(drift);
        let is_same = |known: &VlanDrift| (&known.expected, &known.found) == (&drift.expected, &drift.found);
        if gone.get(&key).is_some_and(is_same) {
            kept.extend(gone.remove(&key));
        } else {
            new.push(drift.clone());
        }
    }
    Moved { kept, new, gone: gone.into_values().collect() }
}

/// Stores the differences of a site, and appends the events of what moved. Returns those for which nothing was staged by
/// policy yet.
async fn record(
    tx: &mut Tx,
    app: &SharedApp,
    brain: &SiteBrain,
    found: &[VlanDrift],
) -> Result<BTreeSet<Key>, Error> {
    let known = vlan_drift::of_site(tx, brain.site_id).await?;
    let Moved { kept, new, gone } = moved(known, found);
    let waiting = kept.iter().chain(&new).filter(|drift| drift.staged_at.is_none()).map(key).collect();
    if new.is_empty() && gone.is_empty() {
        return Ok(waiting);
    }
    let event = |event_type: EventType, drift: &VlanDrift| {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let payload = json!({
            "site_id": brain.site_id, "controller_id": drift.controller_id, "site_ref": some(&drift.site_ref),
            "vlan_id": drift.vlan_id, "class": drift.class, "place": some(&drift.place), "expected": drift.expected,
            "found": drift.found,
        });
        NewEvent {
            site_id: Some(brain.site_id),
            controller_id: Some(drift.controller_id),
            ..NewEvent::of(event_type, brain.org_id, payload)
        }
    };
    let news: Vec<NewEvent> = if new.len() + gone.len() > EVENTS_MAX {
        let payload = json!({ "site_id": brain.site_id, "drifted": new.len(), "settled": gone.len() });
        let of_all = NewEvent::of(VLAN_DRIFT_CHANGED, brain.org_id, payload);
        vec![NewEvent { site_id: Some(brain.site_id), ..of_all }]
    } else {
        let settled = gone.iter().map(|drift| event(VLAN_SETTLED, drift));
        settled.chain(new.iter().map(|drift| event(VLAN_DRIFTED, drift))).collect()
    };
    events::append_all(tx, brain.org_id, &news, &app.clock).await?;
    let now: Vec<VlanDrift> = kept.into_iter().chain(new).collect();
    vlan_drift::replace(tx, brain.site_id, &now).await?;
    Ok(waiting)
}

/// Stages what resolves the differences, with the rights of the user that set the policy. A difference that cannot be
/// resolved is noted as well, so that it is not tried again at each reading. One that may be resolved at another time is
/// not.
async fn stage_for(
    app: &SharedApp,
    brain: &SiteBrain,
    facts: Facts,
    findings: Vec<Finding>,
) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    let author = author_of(&mut tx, brain).await?;
    drop(tx);
    let site = brain.site_id;
    let author = match author {
        Ok(author) => author,
        Err(reason) => {
            tracing::warn!(site.id = %site, "the policy of site {site} stages nothing: {reason}");
            return Ok(());
        }
    };
    let of_brain = domains_of(&facts, brain.controller_id);
    let rules = Rules { read_only: of_brain.clone(), right: of_brain, removes_extra: false };
    let writable = writable(app, &facts);
    let (facts, findings, remedy) = task::block(move || {
        let remedy = remedy(&facts, &findings, &writable, &rules);
        (facts, findings, remedy)
    })
    .await;
    let by = By { caller: &author, cause: Cause::Policy, site, notes: Some(NOTES) };
    let staging = match stage(app, by, &facts, remedy).await {
        Ok(staging) => staging,
        Err(error @ (Error::Forbidden(_) | Error::ForbiddenRole(_) | Error::Refused { .. })) => {
            tracing::warn!(site.id = %site, error = %error, "the policy of site {site} stages nothing");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    vlan_drift::note_staged(&mut tx, site, &done(&facts, &findings, staging.later(), now), now).await?;
    tx.commit().await?;
    let (staged, later) = (staging.staged(), staging.later().len());
    if staged > 0 {
        tracing::info!(site.id = %site, staged, later, "the policy of site {site} staged {staged} changes");
    }
    Ok(())
}

/// The differences for which nothing is to be staged any more: all but those that are tried again.
fn done(facts: &Facts, findings: &[Finding], later: &[Finding], at: Timestamp) -> Vec<VlanDrift> {
    let later: BTreeSet<Key> = later.iter().map(|finding| key(&row(facts, finding, at))).collect();
    let all = rows(facts, findings, at).into_iter();
    all.filter(|drift| !later.contains(&key(drift))).collect()
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;
    use crate::site::facts::{Domain, Ssids};

    fn drift(controller_id: ControllerId, vlan_id: i64, found: &str) -> VlanDrift {
        VlanDrift {
            controller_id,
            site_ref: String::new(),
            class: VlanFault::NameDiffers,
            vlan_id,
            place: String::new(),
            expected: Some("Guests".to_owned()),
            found: Some(found.to_owned()),
            since: Clock::default().now(),
            staged_at: None,
        }
    }

    #[test]
    fn a_difference_is_told_once_and_again_when_it_is_another_one() {
        let controller = Clock::default().new_id();
        let of = |vlan: i64, found: &str| drift(controller, vlan, found);
        let known = vec![of(10, "a"), of(20, "a"), of(30, "a")];
        let Moved { kept, new, gone } = moved(known.clone(), &[of(10, "a"), of(20, "b"), of(40, "a")]);
        let vlans = |all: &[VlanDrift]| all.iter().map(|drift| drift.vlan_id).collect::<Vec<_>>();
        assert_eq!((vlans(&kept), vlans(&new), vlans(&gone)), (vec![10], vec![20, 40], vec![20, 30]));
        assert_eq!(kept[0].since, known[0].since, "it is as old as it was");
    }

    #[test]
    fn what_is_tried_again_is_not_done() {
        let domain = Domain {
            controller_id: Clock::default().new_id(),
            site_ref: None,
            name: "switches".to_owned(),
            site_name: None,
            vendor: "acme".to_owned(),
            read_at: None,
            knows_vlans: true,
            knows_ports: true,
            ssids: Ssids::Unknown,
            vlans: BTreeMap::new(),
            unnumbered: 0,
            ports: Vec::new(),
            named_by_ports: BTreeSet::new(),
        };
        let facts = Facts { domains: vec![domain], links: Vec::new(), are_whole: true };
        let expected = Expected::intent([(10, None), (20, None)].into(), [0].into());
        let findings = compare(&facts, &expected.with_named([0].into()));
        assert_eq!(findings.len(), 2);
        let done = done(&facts, &findings, &findings[1..], Clock::default().now());
        assert_eq!(done.iter().map(|drift| drift.vlan_id).collect::<Vec<_>>(), [10]);
    }
}
