//! Records parts of a list of the model as they come, and its end with the events that follow from it.
//!
//! Each transaction holds the controller's row first, and does nothing where the controller is another process's to read by
//! now, was removed, or is reached in another way.

use std::collections::HashSet;

use heddle_core::adapter::Completeness;
use heddle_core::event::{EventType, NewEvent};
use heddle_core::{OrgId, ProcessId, SiteId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_marketplace::model::{self, ModelKind};
use heddle_store::controllers::{self, ControllerTarget, Held};
use heddle_store::model_objects::ModelObjectId;
use heddle_store::model_objects::record::{self, Known, List, ModelReadingId, Place, Storable};
use heddle_store::model_readings::{self, Row};
use heddle_store::{Tx, events, vendor_sites};
use serde_json::{Value, json};

use super::difference::{self, About, Counted, Novelty};
use super::list::{End, ListReading, Part};
use crate::model::declarations::{CONTROLLER_INVENTORY_CHANGED, OBJECT_CHANGED, object_changed};

/// Most differences of a list in one reading that have an event each; more are told together.
const EVENTS_MAX: i64 = 200;

/// Holds the controller, and finds the site of ours that the list is at. The inner `None` is a vendor's site that is not
/// read any more.
async fn hold(
    tx: &mut Tx,
    controller: &ControllerTarget,
    owner: ProcessId,
    site_ref: &str,
) -> Result<Option<Option<SiteId>>, Error> {
    let held: Option<Held> = controllers::hold(tx, controller, owner).await?;
    let Some(held) = held else { return Ok(None) };
    if site_ref.is_empty() {
        return Ok(Some(Some(held.site_id)));
    }
    Ok(Some(vendor_sites::place(tx, controller.id, site_ref).await?))
}

/// Stores a part of a page. Answers the keys that were listed before; `None` where the reading is over.
pub(super) async fn part(reading: &ListReading<'_>, part: Part) -> Result<Option<Vec<String>>, Error> {
    let ListReading { app, controller, .. } = reading;
    let list = reading.list();
    let mut tx = app.db.write().await?;
    let Some(Some(site_id)) = hold(&mut tx, controller, reading.owner, list.site_ref).await? else {
        return Ok(None);
    };
    let place = Place { org_id: controller.org_id, site_id, reading_id: reading.id, now: app.clock.now() };
    let state = model_readings::find(&mut tx, &list).await?;
    let state = state.unwrap_or_else(|| Row::new(list.kind, list.site_ref));
    let keys: Vec<&str> =
        part.objects.iter().map(|object| &object.key).chain(&part.unfit).map(String::as_str).collect();
    let known = record::known(&mut tx, &list, &keys).await?;
    let mut sorted = Sorted::default();
    let mut listed = HashSet::new();
    for object in &part.objects {
        let known = known.get(&object.key);
        if known.is_some_and(|known| known.reading_id == reading.id) || !listed.insert(object.key.as_str()) {
            sorted.twice.push(object.key.clone());
            continue;
        }
        sorted.add(reading, site_id, &state, object, known);
    }
    let unfit = part.unfit.iter().filter(|key| listed.insert(key)).filter_map(|key| known.get(key));
    sorted.same.extend(unfit.map(|known| known.id));
    record::write(&mut tx, &list, &place, &sorted.written).await?;
    record::touch(&mut tx, &place, &sorted.same).await?;
    keep(&mut tx, &list, state, &sorted).await?;
    tx.commit().await?;
    Ok(Some(sorted.twice))
}

/// The objects of a part by what is done with them.
#[derive(Default)]
struct Sorted<'a> {
    written: Vec<(ModelObjectId, &'a Storable)>,
    same: Vec<ModelObjectId>,
    twice: Vec<String>,
    differences: Vec<Value>,
    created: i64,
    changed: i64,
}

impl<'a> Sorted<'a> {
    fn add(
        &mut self,
        reading: &ListReading<'_>,
        site_id: SiteId,
        state: &Row,
        object: &'a Storable,
        known: Option<&Known>,
    ) {
        let kind = reading.kind;
        let id = known.map_or_else(|| reading.app.clock.new_id(), |known| known.id);
        let about = About {
            kind,
            id,
            key: &object.key,
            label: &object.label,
            device_key: object.device_key.as_deref(),
            controller_id: reading.controller.id,
            site_id,
        };
        let has_room = state.differences() + self.created + self.changed < EVENTS_MAX;
        let before = match known.map(|known| (known, difference::compare(kind, known, object))) {
            Some((_, Novelty::Same)) => return self.same.push(id),
            Some((_, Novelty::Measured)) => return self.written.push((id, object)),
            // What a list that was never read to its end has is not news.
            None if state.read_at.is_none() => return self.written.push((id, object)),
            Some((known, Novelty::Changed)) => {
                self.changed += 1;
                Some(Counted::of_known(kind, known))
            }
            None => {
                self.created += 1;
                None
            }
        };
        self.written.push((id, object));
        if has_room {
            self.differences.push(difference::payload(&about, before, Some(Counted::of_seen(kind, object))));
        }
    }
}

/// Keeps the differences of a part until the list ends.
async fn keep(tx: &mut Tx, list: &List<'_>, mut state: Row, sorted: &Sorted<'_>) -> Result<(), Error> {
    if sorted.created + sorted.changed == 0 {
        return Ok(());
    }
    model_readings::keep_differences(tx, list, state.differences(), &sorted.differences).await?;
    state.created += sorted.created;
    state.changed += sorted.changed;
    Ok(model_readings::save(tx, list.controller_id, &state).await?)
}

/// Records how a list ended; false where the reading of the controller is over.
pub(super) async fn end(reading: &ListReading<'_>, end: &End) -> Result<bool, Error> {
    let ListReading { app, controller, kind, .. } = reading;
    let list = reading.list();
    let mut tx = app.db.write().await?;
    let site_id = match hold(&mut tx, controller, reading.owner, list.site_ref).await? {
        Some(Some(site_id)) => site_id,
        Some(None) => return Ok(true),
        None => return Ok(false),
    };
    let state = model_readings::find(&mut tx, &list).await?;
    let mut state = state.unwrap_or_else(|| Row::new(list.kind, list.site_ref));
    let mut told = Vec::new();
    if end.is_whole() {
        told = remove_unseen(&mut tx, &list, kind, &mut state, reading.id).await?;
    }
    tell(&mut tx, app, (controller.org_id, site_id), &list, kind, &mut state, told).await?;
    state.begun_at = Some(reading.begun_at);
    if end.is_read {
        state.read_at = Some(app.clock.now());
    }
    state.stopped_at = end.was_stopped.then(|| app.clock.now());
    state.objects = record::stored(&mut tx, &list).await?;
    state.left_out = end.left_out;
    let is_partial = end.left_out > 0 && end.complete == Completeness::Complete;
    state.complete = if is_partial { Completeness::Partial } else { end.complete };
    state.error.clone_from(&end.error);
    model_readings::save(&mut tx, controller.id, &state).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes a list that is read no more, with its objects; false where the reading of the controller is over.
pub(super) async fn forget(
    app: &SharedApp,
    controller: &ControllerTarget,
    owner: ProcessId,
    state: &Row,
) -> Result<bool, Error> {
    let mut tx = app.db.write().await?;
    let Some(held) = controllers::hold(&mut tx, controller, owner).await? else { return Ok(false) };
    let list = List { controller_id: controller.id, kind: &state.kind, site_ref: &state.site_ref };
    let mut state = state.clone();
    // No reading has this id: none of the objects was seen.
    let none: ModelReadingId = app.clock.new_id();
    if let Some(kind) = model::find(&state.kind) {
        let first = record::unseen(&mut tx, &list, none, 1).await?;
        let site_id = first.first().map_or(held.site_id, |known| known.site_id);
        let told = remove_unseen(&mut tx, &list, kind, &mut state, none).await?;
        tell(&mut tx, app, (controller.org_id, site_id), &list, kind, &mut state, told).await?;
    } else {
        record::remove_unseen(&mut tx, &list, none).await?;
        model_readings::take_differences(&mut tx, &list).await?;
    }
    model_readings::remove(&mut tx, &list).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes what the reading did not see; returns what events would say of it.
async fn remove_unseen(
    tx: &mut Tx,
    list: &List<'_>,
    kind: &'static ModelKind,
    state: &mut Row,
    reading: ModelReadingId,
) -> Result<Vec<Value>, Error> {
    let room = usize::try_from(EVENTS_MAX - state.differences()).unwrap_or_default();
    let gone = record::unseen(tx, list, reading, room).await?;
    let removed = record::remove_unseen(tx, list, reading).await?;
    if state.read_at.is_none() {
        return Ok(Vec::new());
    }
    state.removed += i64::try_from(removed).unwrap_or(i64::MAX);
    let payload = |known: &Known| {
        let about = About {
            kind,
            id: known.id,
            key: &known.key,
            label: &known.label,
            device_key: known.device_key.as_deref(),
            controller_id: list.controller_id,
            site_id: known.site_id,
        };
        difference::payload(&about, Some(Counted::of_known(kind, known)), None)
    };
    Ok(gone.iter().map(payload).collect())
}

/// Appends an event for each difference, or one for all where there are many.
async fn tell(
    tx: &mut Tx,
    app: &SharedApp,
    (org, site): (OrgId, SiteId),
    list: &List<'_>,
    kind: &'static ModelKind,
    state: &mut Row,
    removed: Vec<Value>,
) -> Result<(), Error> {
    if state.differences() == 0 {
        return Ok(());
    }
    let mut payloads = model_readings::take_differences(tx, list).await?;
    payloads.extend(removed);
    let event = |event_type: EventType, site_id: SiteId, payload: Value| NewEvent {
        site_id: Some(site_id),
        controller_id: Some(list.controller_id),
        ..NewEvent::of(event_type, org, payload)
    };
    let news: Vec<NewEvent> = if state.differences() > EVENTS_MAX {
        let payload = json!({
            "controller_id": list.controller_id,
            "site_id": site,
            "kind": kind.id,
            "created": state.created,
            "changed": state.changed,
            "removed": state.removed,
        });
        vec![event(CONTROLLER_INVENTORY_CHANGED, site, payload)]
    } else {
        let of = |payload: Value| {
            let at = serde_json::from_value(payload["site_id"].clone()).unwrap_or(site);
            event(object_changed(kind.event_prefix()).unwrap_or(OBJECT_CHANGED), at, payload)
        };
        payloads.into_iter().map(of).collect()
    };
    events::append_all(tx, org, &news, &app.clock).await?;
    (state.created, state.changed, state.removed) = (0, 0, 0);
    Ok(())
}
