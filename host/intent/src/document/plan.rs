//! Plans a document: what differs from the last readings, and the changes that bring it about.

use std::collections::BTreeSet;

use axum::response::Response;
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, SiteLevel};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_kernel::task;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::bounds::{CHANGES_MAX, Problem, below, refused};
use super::diff::{self, Compared, Difference, FieldChange, ObjectAction};
use super::format::Sent;
use super::live::{self, Freshness, Live, Part};
use super::model::{self, Document, Place, path_of};
use super::stage::{self, Item};

/// How a document is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) stages: bool,
    pub(super) removes: bool,
}

/// A difference as clients see it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IntentDifference")]
struct DifferenceView {
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the object is the controller's.
    site_ref: Option<String>,
    kind: String,
    /// Key of the object; of one that is created, as the document calls it.
    key: String,
    /// The object, as people call it.
    label: String,
    /// What is done with it.
    action: ObjectAction,
    fields: Vec<FieldChange>,
    /// Whether a secret is set, too. Secrets are never read, so that one with a value always differs.
    sets_secret: bool,
    /// The change that brings it about; null where nothing was staged.
    change_id: Option<ChangeId>,
    /// Whether that change was pending already, so that nothing was staged for it.
    is_pending: bool,
}

/// Changes that were staged together.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IntentStaged")]
pub(super) struct StagedView {
    /// The controllers that they are for.
    pub(super) controller_ids: Vec<ControllerId>,
    /// The set that they are reviewed and applied as; null where there is one change only.
    pub(super) change_set_id: Option<ChangeId>,
    /// The changes; those of one controller are in the order in which they are sent.
    pub(super) change_ids: Vec<ChangeId>,
}

/// What a document differs in, and what was staged.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct IntentPlan {
    site_id: SiteId,
    /// Whether the differences were only compared.
    dry_run: bool,
    differences: Vec<DifferenceView>,
    /// How old what the document was compared with is.
    compared_with: Vec<Freshness>,
    /// What was staged. It is one set, unless it is for several of the vendor's sites of one controller.
    staged: Vec<StagedView>,
}

/// Plans a document that was sent for a site.
pub(super) async fn plan(
    by: &By,
    site: SiteId,
    how: How,
    creation: Creation,
    sent: &Sent,
) -> Result<Response, Error> {
    let (app, caller) = (&by.app, &by.caller);
    // Differences show what the controllers have.
    caller.require(CONTROLLER_READ)?;
    if !caller.may_access_site(site) {
        return Err(Error::NotFound("site"));
    }
    caller.require_level(site, SiteLevel::Write)?;
    let value = sent.read().map_err(|problem| refused(&[problem]))?;
    let document = model::parse(&value).map_err(|problems| refused(&problems))?;
    if document.site_id.is_some_and(|named| named != site) {
        let message = "the document is of another site than the path";
        return Err(refused(&[Problem::at("/site/id", message, "value_error")]));
    }
    let part = Part { lists: Some(lists_of(&document)), ..Part::default() };
    let live = live::load(app, caller, site, &part).await?;
    let compared = task::block(move || (compare(&document, &live, how), live));
    let (items, live) = compared.await;
    let items = items.map_err(|problems| refused(&problems))?;
    if how.stages && items.len() > CHANGES_MAX {
        let message = format!(
            "the document differs in {} objects, and {CHANGES_MAX} can be staged at once; plan a part of it, or compare \
             all with dry_run",
            items.len()
        );
        return Err(refused(&[Problem::at("", message, "too_large")]));
    }
    let staged = if how.stages { stage::stage(by, site, &items).await? } else { stage::Staged::default() };
    let views = items.into_iter().enumerate();
    let shown = IntentPlan {
        site_id: site,
        dry_run: !how.stages,
        differences: views.map(|(at, item)| view(item, staged.changes.get(at).copied())).collect(),
        compared_with: live.lists.into_values().map(|list| list.freshness).collect(),
        staged: staged.groups,
    };
    finish(by, live.org_id, creation, &shown).await
}

/// Notes in the audit log what was staged, and answers.
async fn finish(by: &By, org: OrgId, creation: Creation, shown: &IntentPlan) -> Result<Response, Error> {
    let (app, site) = (&by.app, shown.site_id);
    let mut tx = app.db.write().await?;
    let changes: Vec<ChangeId> = shown.staged.iter().flat_map(|group| group.change_ids.clone()).collect();
    if !changes.is_empty() {
        let detail = json!({ "differences": shown.differences.len(), "change_ids": changes });
        by.record_of(&mut tx, (org, "site", site.0), "intent.planned", detail).await?;
    }
    creation.finish_lasting(tx, app, &format!("/sites/{site}/intent"), shown).await
}

fn view(item: Item, change: Option<(ChangeId, bool)>) -> DifferenceView {
    let Item { place, kind, difference } = item;
    let Difference { action, key, label, fields, sets_secret, .. } = difference;
    DifferenceView {
        controller_id: place.controller_id,
        site_ref: Some(place.site_ref).filter(|site_ref| !site_ref.is_empty()),
        kind,
        key,
        label,
        action,
        fields,
        sets_secret,
        change_id: change.map(|(id, _)| id),
        is_pending: change.is_some_and(|(_, waited)| waited),
    }
}

/// The lists that a document names.
fn lists_of(document: &Document) -> BTreeSet<(Place, String)> {
    let places = document.places.iter();
    places.flat_map(|(place, kinds)| kinds.keys().map(|kind| (place.clone(), kind.clone()))).collect()
}

/// Compares a document with what was read, in the order in which the changes are staged.
fn compare(document: &Document, live: &Live, how: How) -> Result<Vec<Item>, Vec<Problem>> {
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    for (place, kinds) in &document.places {
        if !live.controllers.contains_key(&place.controller_id) {
            let path = below("/controllers", &place.controller_id.to_string());
            let message = format!("nothing of controller {} was read at this site", place.controller_id);
            problems.push(Problem::at(path, message, "not_found"));
            continue;
        }
        let mut of_place = Vec::new();
        for (kind, wanted) in kinds {
            let path = path_of(place, kind);
            let Some(list) = live.lists.get(&(place.clone(), kind.clone())) else {
                let message = format!(
                    "the controller has no list of the kind '{kind}' here of which something can be set"
                );
                problems.push(Problem::at(path, message, "not_writable"));
                continue;
            };
            if !list.is_read() {
                let message = "the list was never read to its end: read the controller first";
                problems.push(Problem::at(path, message, "not_read"));
                continue;
            }
            let compared = Compared {
                kind: list.kind,
                can: &list.can,
                path: &path,
                wanted,
                live: &list.objects,
                removes: how.removes && list.is_whole(),
            };
            match diff::diff(&compared) {
                Ok(found) => of_place.extend(found.into_iter().map(|difference| Item {
                    place: place.clone(),
                    kind: kind.clone(),
                    difference,
                })),
                Err(found) => problems.extend(found),
            }
        }
        // What others name is made first and goes last.
        of_place.sort_by_key(|item| {
            let rank = isize::try_from(diff::rank(&item.kind)).unwrap_or(isize::MAX);
            if item.difference.action == ObjectAction::Delete { (1, -rank) } else { (0, rank) }
        });
        items.extend(of_place);
    }
    if problems.is_empty() { Ok(items) } else { Err(problems) }
}
