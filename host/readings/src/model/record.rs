//! Records parts of a list of the model as they come, and its end with the events that follow from it.
//!
//! Each transaction holds the controller's row first, and does nothing where the controller is another process's to read by
//! now, was removed, or is reached in another way.

use std::collections::HashSet;

use chrono::TimeDelta;
use heddle_core::adapter::Completeness;
use heddle_core::event::{EventType, NewEvent};
use heddle_core::{OrgId, ProcessId, SiteId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_marketplace::model::{self, ModelKind};
use heddle_store::controllers::{self, ControllerTarget, Held};
use heddle_store::model_objects::record::{self, Known, LOADED_MAX, List, ModelReadingId, Place};
use heddle_store::model_readings::{self, Row};
use heddle_store::push::wanted;
use heddle_store::{Tx, events, vendor_sites};
use serde_json::{Value, json};

use super::difference::{self, About, Counted};
use super::list::{End, ListReading, Part};
use super::plan::{OBJECTS_MAX, UNSEEN_DAYS};
use super::sorted::Sorted;
use crate::measures::Delays;
use heddle_inventory::model::declarations::{CONTROLLER_INVENTORY_CHANGED, OBJECT_CHANGED, object_changed};

/// Most differences of a list in one reading that have an event each; more are told together.
pub(super) const EVENTS_MAX: i64 = 200;

/// How many objects a list may have that begins now: what the other lists of its kind leave of [`OBJECTS_MAX`], and its
/// share in any case. What others have beyond their shares is cut when they are read.
pub(super) async fn room(app: &SharedApp, list: &List<'_>, share: usize) -> Result<usize, Error> {
    let others = record::stored_elsewhere(&mut app.db.single().await?, list).await?;
    let others = usize::try_from(others).unwrap_or_default();
    Ok(OBJECTS_MAX.saturating_sub(others).max(share))
}

/// Holds the controller, and finds the site of ours that the list is at. The inner `None` is a vendor's site that is no
/// longer read.
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
    let state = match model_readings::find(&mut tx, &list).await? {
        Some(state) => state,
        None => first_row(&mut tx, &list).await?,
    };
    let keys: Vec<&str> =
        part.objects.iter().map(|object| &object.key).chain(&part.unfit).map(String::as_str).collect();
    let stored = record::digests(&mut tx, &list, &keys).await?;
    let mut sorted = Sorted::new(reading, site_id, &state);
    let mut listed = HashSet::new();
    for objects in part.objects.chunks(LOADED_MAX) {
        let differ = objects.iter().filter(|object| sorted.looks_changed(object, stored.get(&object.key)));
        let differ: Vec<&str> = differ.map(|object| object.key.as_str()).collect();
        let known = record::known(&mut tx, &list, &differ).await?;
        for object in objects {
            let stored = stored.get(&object.key);
            let was_listed = stored.is_some_and(|stored| stored.reading_id == reading.id);
            if was_listed || !listed.insert(object.key.as_str()) {
                sorted.twice.push(object.key.clone());
                continue;
            }
            sorted.add(object, stored, known.get(&object.key));
        }
    }
    let unfit = part.unfit.iter().filter(|key| listed.insert(key)).filter_map(|key| stored.get(key));
    sorted.same.extend(unfit.map(|stored| stored.id));
    record::write(&mut tx, &list, &place, &sorted.written).await?;
    record::touch(&mut tx, &place, &sorted.same).await?;
    keep(&mut tx, &list, state, &sorted).await?;
    tx.commit().await?;
    Ok(Some(sorted.twice))
}

/// Adds the row of the list before its first objects. By this row `forget` finds the objects later, even if the reading
/// never ends.
async fn first_row(tx: &mut Tx, list: &List<'_>) -> Result<Row, Error> {
    let row = Row::new(list.kind, list.site_ref);
    model_readings::save(tx, list.controller_id, &row).await?;
    Ok(row)
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
    let gone = if end.is_whole() { i64::MAX } else { surplus(&mut tx, reading, end).await? };
    let told = remove_unseen(&mut tx, &list, kind, &mut state, (reading.id, gone)).await?;
    tell(&mut tx, app, (controller.org_id, site_id), &list, kind, &mut state, told).await?;
    // A list that was cut short comes first in the next reading.
    if !end.was_cut_short {
        state.begun_at = Some(reading.begun_at);
    }
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
    let told = if end.was_cut_short { &[] } else { reading.told };
    let told = wanted::settle(&mut tx, told, reading.begun_at).await?;
    tx.commit().await?;
    if end.is_read {
        Delays::of(app).note(app, controller, &told);
    }
    Ok(true)
}

/// How many of the objects that were not seen are not kept, although the list is not whole: those beyond its room and,
/// where the adapter gave all that it could, those that were not seen for days.
async fn surplus(tx: &mut Tx, reading: &ListReading<'_>, end: &End) -> Result<i64, Error> {
    let list = reading.list();
    let beyond = record::stored(tx, &list).await? - i64::try_from(reading.room).unwrap_or(i64::MAX);
    let since = reading.app.clock.now() - TimeDelta::days(UNSEEN_DAYS);
    let old = if end.is_read { record::unseen_since(tx, &list, reading.id, since).await? } else { 0 };
    // Both are what was seen longest ago.
    Ok(beyond.max(old))
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
        let told = remove_unseen(&mut tx, &list, kind, &mut state, (none, i64::MAX)).await?;
        tell(&mut tx, app, (controller.org_id, site_id), &list, kind, &mut state, told).await?;
    } else {
        record::remove_unseen(&mut tx, &list, none, i64::MAX).await?;
        model_readings::take_differences(&mut tx, &list).await?;
    }
    model_readings::remove(&mut tx, &list).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes what the reading did not see, at most as many as this; returns what events would say of it.
async fn remove_unseen(
    tx: &mut Tx,
    list: &List<'_>,
    kind: &'static ModelKind,
    state: &mut Row,
    (reading, most): (ModelReadingId, i64),
) -> Result<Vec<Value>, Error> {
    if most <= 0 {
        return Ok(Vec::new());
    }
    let room = (EVENTS_MAX - state.differences()).max(0);
    let gone = record::unseen(tx, list, reading, room.min(most)).await?;
    let removed = record::remove_unseen(tx, list, reading, most).await?;
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
