//! Stages differences: one change each, and one set of all, as far as the rules of sets allow.

use std::collections::BTreeSet;

use heddle_changes::seam::{self, InModel};
use heddle_changes::{Cause, Request};
use heddle_core::{ChangeId, SiteId};
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::resource::By;
use heddle_sets::{Member, Pack, Pending};

use super::bounds::below;
use super::diff::{Difference, ObjectAction};
use super::model::{Place, path_of};
use super::plan::StagedView;

/// A difference of an object at a place.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) kind: String,
    pub(super) difference: Difference,
}

impl Item {
    /// The object's place in the document.
    fn path(&self) -> String {
        below(&path_of(&self.place, &self.kind), &self.difference.key)
    }
}

/// What was staged.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// A change for each difference, in their order, and whether it waited already.
    pub(super) changes: Vec<(ChangeId, bool)>,
    pub(super) groups: Vec<StagedView>,
}

/// Stages all differences, or none: where one is refused, those before it are discarded. What waits already is not staged
/// again.
pub(super) async fn stage(by: &By, site: SiteId, items: &[Item]) -> Result<Staged, Error> {
    let mut staged = Staged::default();
    match stage_each(by, site, items, &mut staged).await {
        Ok(()) => Ok(staged),
        Err(error) => {
            discard(by, &staged).await;
            Err(error)
        }
    }
}

async fn stage_each(by: &By, site: SiteId, items: &[Item], staged: &mut Staged) -> Result<(), Error> {
    let mut asked = Vec::with_capacity(items.len());
    for item in items {
        asked.push(request(by, item).await.map_err(|error| located(error, &item.path()))?);
    }
    let features: BTreeSet<&str> = asked.iter().map(|request| request.feature.as_str()).collect();
    let features: Vec<&str> = features.into_iter().collect();
    let pending = Pending::load(&by.app, &by.caller, site, &features).await?;
    let known: Vec<Option<ChangeId>> = asked.iter().map(|request| pending.find(&by.app, request)).collect();
    // Nothing is staged where a part of it would be refused.
    for ((item, request), known) in items.iter().zip(&asked).zip(&known) {
        if let Some(other) = pending.of_same_object(request).filter(|_| known.is_none()) {
            let message = format!(
                "change {other} of the same object waits; apply or discard it first: {}",
                item.path()
            );
            return Err(Error::Conflict { kind: "staged_already", message });
        }
    }
    let mut rows = Vec::with_capacity(items.len());
    for ((item, request), known) in items.iter().zip(asked).zip(known) {
        if let Some(known) = known {
            staged.changes.push((known, true));
            continue;
        }
        let cause = Cause::Request(&by.origin);
        let row = seam::stage(&by.app, &by.caller, cause, request).await;
        let row = row.map_err(|error| located(error, &item.path()))?;
        staged.changes.push((row.id, false));
        rows.push(row);
    }
    let packs = heddle_sets::packed(rows.iter().map(Member::from));
    for pack in packs {
        let (is_set, Pack { controller_ids, change_ids }) = (pack.is_set(), pack);
        let change_set_id = if is_set {
            let cause = Cause::Request(&by.origin);
            Some(heddle_sets::make(&by.app, &by.caller, cause, &change_ids).await?)
        } else {
            None
        };
        staged.groups.push(StagedView { controller_ids, change_set_id, change_ids });
    }
    Ok(())
}

async fn request(by: &By, item: &Item) -> Result<Request, Error> {
    let Difference { action, label, payload, .. } = &item.difference;
    let done = match action {
        ObjectAction::Create => "Creates",
        ObjectAction::Update => "Changes",
        ObjectAction::Delete => "Deletes",
    };
    let asked = InModel {
        controller_id: item.place.controller_id,
        site_ref: Some(item.place.site_ref.clone()).filter(|site_ref| !site_ref.is_empty()),
        kind: &item.kind,
        verb: action.as_str(),
        payload: payload.clone(),
        notes: Some(format!("{done} {} '{label}', as a document of intent says", item.kind)),
    };
    seam::request(&by.app, &by.caller, asked).await
}

/// Takes back what was staged. A change that cannot be discarded now expires by itself.
async fn discard(by: &By, staged: &Staged) {
    for id in staged.groups.iter().filter_map(|group| group.change_set_id) {
        if let Err(error) = heddle_sets::give_up(by, id).await {
            tracing::warn!(change.id = %id, error = %error, "a set of a document that was refused is left pending");
        }
    }
    let in_sets: Vec<ChangeId> = staged
        .groups
        .iter()
        .filter(|group| group.change_set_id.is_some())
        .flat_map(|group| group.change_ids.iter().copied())
        .collect();
    let new = staged.changes.iter().filter(|(_, waited)| !waited).map(|(id, _)| *id);
    for id in new.filter(|id| !in_sets.contains(id)) {
        if let Err(error) = seam::discard(by, id).await {
            tracing::warn!(change.id = %id, error = %error, "a change of a document that was refused is left pending");
        }
    }
}

/// Names the place in the document, where the request's own fields are named.
fn located(error: Error, path: &str) -> Error {
    let Error::Validation(details) = error else { return error };
    let detail = |detail: Detail| {
        let inner = detail.field.trim_start_matches('/').replace('.', "/");
        let inner = inner.strip_prefix("payload").unwrap_or_default();
        Detail { field: format!("{path}{inner}"), ..detail }
    };
    Error::Validation(details.into_iter().map(detail).collect())
}
