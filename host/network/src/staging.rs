//! Stages what resolves differences, and makes sets of it: the one place in this room that asks for changes.
//!
//! All that was staged is one set, as far as the rules of sets allow: the controllers follow it together, or none does.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use heddle_changes::{Cause, Request, seam, step_of};
use heddle_core::change::Danger;
use heddle_core::vlan::VlanFault;
use heddle_core::{ChangeId, ControllerId, SiteId, SiteLevel};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_sets::{Member, Pack, Pending};
use heddle_store::ChangeRow;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::Finding;
use crate::compare::remedy::{Left, Remedy, Wanted, Writable};
use crate::site::facts::{Domain, Facts};

/// Most changes that one request stages: each has the adapter plan it at the controller.
pub(crate) const STAGED_MAX: usize = 100;
/// Controllers that are asked for plans at the same time.
const CONTROLLERS_AT_ONCE: usize = 4;
/// Features of the changes that are staged here.
const FEATURES: &[&str] = &["network.vlan", "network.port"];

/// What came of differences: changes that wait for a person to apply them, and what is left.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "VlanStaging")]
pub(crate) struct Staging {
    /// Changes that were staged.
    changes: Vec<StagedView>,
    /// Sets that they are in. A change alone is in none, and neither is one that has no plan yet.
    sets: Vec<SetView>,
    /// Changes that were pending already and do the same.
    pending: Vec<ChangeId>,
    /// Differences for which nothing was staged, with the reason.
    left: Vec<LeftView>,
    /// Those among them for which something can be staged later, though they stay as they are.
    #[serde(skip)]
    later: Vec<Finding>,
}

/// A staged change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanStagedChange")]
struct StagedView {
    change_id: ChangeId,
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the VLANs are the controller's.
    site_ref: Option<String>,
    /// Kind of the model: `vlan` or `port`.
    kind: String,
    /// What is done with the object: `create`, `update` or `delete`.
    verb: String,
    /// The VLANs that it is about.
    vlan_ids: Vec<u16>,
    danger: Danger,
    /// Whether there is no plan yet, because the controller could not be asked.
    is_unplanned: bool,
}

/// A set of staged changes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanStagedSet")]
struct SetView {
    set_id: ChangeId,
    /// The controllers that it is about.
    controller_ids: Vec<ControllerId>,
    change_ids: Vec<ChangeId>,
}

/// A difference that stays.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanLeft")]
struct LeftView {
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the VLANs are the controller's.
    site_ref: Option<String>,
    /// What differs; null where a change was refused that resolves several differences.
    class: Option<VlanFault>,
    /// Number in tags.
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: u16,
    /// Why nothing was staged.
    reason: String,
}

impl Staging {
    /// Whether anything was staged.
    pub(crate) fn staged(&self) -> usize {
        self.changes.len()
    }

    pub(crate) fn later(&self) -> &[Finding] {
        &self.later
    }

    fn leave(&mut self, facts: &Facts, left: Left) {
        let domain = &facts.domains[left.finding.domain];
        self.left.push(LeftView {
            controller_id: domain.controller_id,
            site_ref: domain.site_ref.clone(),
            class: Some(left.finding.class),
            vlan_id: left.finding.vlan,
            reason: left.reason,
        });
    }

    fn refuse(&mut self, domain: &Domain, wanted: &Wanted, reason: &str) {
        self.left.extend(wanted.vlans.iter().map(|vlan| LeftView {
            controller_id: domain.controller_id,
            site_ref: domain.site_ref.clone(),
            class: None,
            vlan_id: *vlan,
            reason: reason.to_owned(),
        }));
    }

    /// Refuses what may be possible at another time.
    fn postpone(&mut self, domain: &Domain, wanted: &Wanted, reason: &str) {
        self.later.extend(wanted.findings.iter().cloned());
        self.refuse(domain, wanted, reason);
    }
}

/// What each domain can be asked to change.
pub(crate) fn writable(app: &App, facts: &Facts) -> Vec<Writable> {
    let adapters = app.runtime.adapters();
    let of_domain = |domain: &Domain| {
        let Some(adapter) = adapters.iter().find(|adapter| adapter.id() == domain.vendor) else {
            return Writable::default();
        };
        let fields = |kind: &str, verb: &str| {
            let written = adapter.description().written(kind, verb);
            written.map(|written| written.fields.iter().cloned().collect())
        };
        Writable {
            create_vlan: fields("vlan", "create"),
            update_vlan: fields("vlan", "update"),
            delete_vlan: adapter.description().written("vlan", "delete").is_some(),
            update_port: fields("port", "update"),
        }
    };
    facts.domains.iter().map(of_domain).collect()
}

/// For whom changes of a site are staged.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) cause: Cause<'a>,
    pub(crate) site: SiteId,
    pub(crate) notes: Option<&'a str>,
}

/// What staging one change came to.
enum Ended {
    Staged(Box<ChangeRow>),
    Refused(String),
    /// Refused as things are now.
    Postponed(String),
}

/// Stages the changes of a remedy, those of one controller one after the other, and makes sets of them. What is pending
/// already is not staged again; what a controller refuses is told, and does not keep others from being staged.
///
/// # Errors
/// The caller may not write at the site; or the database, or a part of the service, gives no answer.
pub(crate) async fn stage(app: &App, by: By<'_>, facts: &Facts, remedy: Remedy) -> Result<Staging, Error> {
    by.caller.require_level(by.site, SiteLevel::Write)?;
    let mut staging = Staging::default();
    remedy.left.into_iter().for_each(|left| staging.leave(facts, left));
    let pending = Pending::load(app, by.caller, by.site, FEATURES).await?;
    let mut of_domains: BTreeMap<usize, Vec<(Wanted, Request)>> = BTreeMap::new();
    // A policy stages no more than people can look at; what is left follows once that is applied or discarded.
    let waiting = if matches!(by.cause, Cause::Policy) { pending.len() } else { 0 };
    let mut room = STAGED_MAX.saturating_sub(waiting);
    for wanted in remedy.wanted {
        let domain = &facts.domains[wanted.domain];
        let Some(request) = request(app, by, domain, &wanted) else {
            staging.postpone(domain, &wanted, "the adapter of its vendor is not installed any more");
            continue;
        };
        if let Some(known) = pending.find(app, &request) {
            staging.pending.push(known);
        } else if let Some(other) = pending.of_same_object(&request) {
            let reason = format!("change {other} of the same object waits; apply or discard it first");
            staging.postpone(domain, &wanted, &reason);
        } else if room == 0 {
            let reason =
                format!("a request stages at most {STAGED_MAX} changes; ask again when these are applied");
            staging.postpone(domain, &wanted, &reason);
        } else {
            room -= 1;
            of_domains.entry(wanted.domain).or_default().push((wanted, request));
        }
    }
    let each: Vec<_> = of_domains.into_values().map(|asked| stage_at(app, by, asked)).collect();
    let ended: Vec<_> = futures::stream::iter(each).buffered(CONTROLLERS_AT_ONCE).collect().await;
    let mut staged = Vec::new();
    for of_domain in ended {
        for (wanted, ended) in of_domain? {
            let domain = &facts.domains[wanted.domain];
            match ended {
                Ended::Refused(reason) => staging.refuse(domain, &wanted, &reason),
                Ended::Postponed(reason) => staging.postpone(domain, &wanted, &reason),
                Ended::Staged(row) => {
                    staging.changes.push(staged_view(&row, &wanted));
                    staged.push(row);
                }
            }
        }
    }
    sets(app, by, &staged, &mut staging).await?;
    Ok(staging)
}

fn staged_view(row: &ChangeRow, wanted: &Wanted) -> StagedView {
    StagedView {
        change_id: row.id,
        controller_id: row.controller_id,
        site_ref: row.site_ref.clone(),
        kind: wanted.kind.to_owned(),
        verb: wanted.verb.to_owned(),
        vlan_ids: wanted.vlans.iter().copied().collect(),
        danger: row.danger,
        is_unplanned: row.plan.is_none(),
    }
}

/// What is asked of the changes; `None` where the vendor cannot express it any more.
fn request(app: &App, by: By<'_>, domain: &Domain, wanted: &Wanted) -> Option<Request> {
    let adapter = app.runtime.adapter(&domain.vendor)?;
    let written = adapter.description().written(wanted.kind, wanted.verb)?;
    let feature = adapter.description().feature(&written.feature)?;
    Some(Request {
        controller_id: domain.controller_id,
        site_id: None,
        site_ref: domain.site_ref.clone(),
        vendor: None,
        area: feature.area.clone(),
        feature: feature.id.clone(),
        operation: written.operation,
        payload: wanted.payload.clone(),
        also: Vec::new(),
        notes: by.notes.map(str::to_owned),
    })
}

async fn stage_at(
    app: &App,
    by: By<'_>,
    asked: Vec<(Wanted, Request)>,
) -> Result<Vec<(Wanted, Ended)>, Error> {
    let mut ended = Vec::with_capacity(asked.len());
    for (wanted, request) in asked {
        let end = match stage_one(app, by, request).await {
            Ok(row) => Ended::Staged(Box::new(row)),
            Err(error) if may_pass(&error) => Ended::Postponed(reason(error)?),
            Err(error) => Ended::Refused(reason(error)?),
        };
        ended.push((wanted, end));
    }
    Ok(ended)
}

/// Stages a change. A step of a run stages several: each has a key of its own.
async fn stage_one(app: &App, by: By<'_>, request: Request) -> Result<ChangeRow, Error> {
    match by.cause {
        Cause::Run(step) => {
            let own = step_of(step, &request);
            seam::stage(app, by.caller, Cause::Run(&own), request).await
        }
        cause => seam::stage(app, by.caller, cause, request).await,
    }
}

/// Whether the same change may be staged at another time: a right, a state or an answer was missing. What the vendor cannot do
/// is not asked for again.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Adapter(_) => may_pass_at_vendor(error.kind()),
        Error::BadRequest { .. }
        | Error::Unknown(_)
        | Error::TooLarge(_)
        | Error::Validation(_)
        | Error::NotAvailable(_) => false,
        _ => true,
    }
}

fn may_pass_at_vendor(kind: &str) -> bool {
    !matches!(kind, "adapter_error" | "adapter_not_found" | "validation_error")
}

/// Why a change was refused, in words. A fault of the service itself is none of the change.
fn reason(error: Error) -> Result<String, Error> {
    match error {
        Error::Internal(_) | Error::Unavailable(_) | Error::Unauthenticated(_) => Err(error),
        Error::Validation(details) => {
            let told = details.iter().map(|detail| format!("{}: {}", detail.field, detail.message));
            Ok(told.collect::<Vec<_>>().join("; "))
        }
        other => Ok(other.to_string()),
    }
}

/// Makes sets of what was staged and planned: a controller that gives no answer does not keep the others waiting. A set that
/// cannot be made leaves its changes as they are: each can be applied alone.
async fn sets(app: &App, by: By<'_>, staged: &[Box<ChangeRow>], staging: &mut Staging) -> Result<(), Error> {
    let planned = staged.iter().filter(|row| row.plan.is_some());
    let packs = heddle_sets::packed(planned.map(|row| Member::from(&**row)));
    for pack in packs {
        if !pack.is_set() {
            continue;
        }
        match heddle_sets::make(app, by.caller, by.cause, &pack.change_ids).await {
            Ok(set_id) => {
                let Pack { controller_ids, change_ids } = pack;
                staging.sets.push(SetView { set_id, controller_ids, change_ids });
            }
            Err(error) => {
                let why = reason(error)?;
                tracing::info!(site.id = %by.site, "changes of VLANs stay without a set: {why}");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
