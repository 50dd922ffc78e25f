//! What a comparison changes: what is wanted, the open differences, and the events that tell of them.

use std::collections::HashSet;

use heddle_core::bounds::is_small;
use heddle_core::drift::{DriftStatus, FieldDrift, WantedBasis};
use heddle_core::event::{EventType, NewEvent};
use heddle_core::{ChangeId, Timestamp, UserId, redact};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::drift::{self, Drift, Found, NewDrift, OPEN_MAX, Said};
use heddle_store::wanted::{self, Due, Listed, PART_MAX, Rewrite, WantedObject};
use heddle_store::{Tx, events};
use serde_json::{Map, Value, json};

use super::declarations::{DRIFT_CHANGED, DRIFT_CLOSED, DRIFT_COUNTED, DRIFT_FOUND};
use super::judge::{Evidence, Judged};

/// Most differences of one comparison that have an event each; more are counted.
const EVENTS_MAX: usize = 100;
/// Most bytes of one value in an event.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// What was judged of one object.
pub(super) struct Judgement<'m> {
    pub(super) key: &'m str,
    pub(super) label: &'m str,
    pub(super) device_key: Option<&'m str>,
    pub(super) digest: &'m str,
    pub(super) row: Option<&'m WantedObject>,
    pub(super) open: Option<&'m Drift>,
    pub(super) judged: Judged,
}

/// A difference that was not open before.
struct New<'m> {
    key: &'m str,
    label: &'m str,
    device_key: Option<&'m str>,
    basis: WantedBasis,
    wanted_change_id: Option<ChangeId>,
    found: Found,
}

/// Collects what a comparison changes, and writes it.
pub(super) struct Outcome<'e, 'm> {
    app: &'e App,
    due: &'e Due,
    now: Timestamp,
    evidence: &'e Evidence,
    pub(super) left_out: i64,
    wanted: Vec<WantedObject>,
    /// Those of the wanted objects that were not wanted before.
    added: Vec<&'m str>,
    unwanted: Vec<&'m str>,
    learned: Vec<Rewrite>,
    new: Vec<New<'m>>,
    again: Vec<(&'m Drift, Found)>,
    closed: Vec<(&'m Drift, DriftStatus)>,
}

impl<'e, 'm> Outcome<'e, 'm> {
    pub(super) fn new(app: &'e App, due: &'e Due, now: Timestamp, evidence: &'e Evidence) -> Self {
        Self {
            app,
            due,
            now,
            evidence,
            left_out: 0,
            wanted: Vec::new(),
            added: Vec::new(),
            unwanted: Vec::new(),
            learned: Vec::new(),
            new: Vec::new(),
            again: Vec::new(),
            closed: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, of: Judgement<'m>) {
        let Judgement { key, label, device_key, digest, row, open, judged } = of;
        let Judged { wanted, written_by, learned, drift } = judged;
        let basis = match (written_by, row) {
            (Some(_), _) => WantedBasis::Applied,
            (None, Some(row)) => row.basis,
            (None, None) => WantedBasis::Observed,
        };
        let change_id = written_by.or(row.and_then(|row| row.change_id));
        if wanted.is_some() && row.is_none() {
            self.added.push(key);
        }
        match (&wanted, row) {
            (Some(content), _) => self.wanted.push(WantedObject {
                key: key.to_owned(),
                label: label.to_owned(),
                device_key: device_key.map(str::to_owned),
                basis,
                change_id,
                fields: content.to_value(),
                seen_digest: digest.to_owned(),
            }),
            (None, Some(_)) => self.unwanted.push(key),
            (None, None) => {}
        }
        self.learned.extend(learned);
        match (drift, open) {
            (Some(found), Some(open)) if !is_same(open, &found) => self.again.push((open, found)),
            (Some(_), Some(_)) | (None, None) => {}
            (Some(found), None) => {
                self.new.push(New { key, label, device_key, basis, wanted_change_id: change_id, found });
            }
            (None, Some(open)) => self.close(open),
        }
    }

    /// Notes an object that was, or is, too large to be followed: what there is of it is wanted, without a difference.
    pub(super) fn see(&mut self, object: &'m Listed, row: Option<&WantedObject>, fields: Option<Value>) {
        if row.is_none() {
            self.added.push(&object.key);
        }
        // Of one that grew, what was wanted of it before stays.
        let grown = row.filter(|row| fields.is_none() && !row.fields.is_null());
        self.wanted.push(WantedObject {
            key: object.key.clone(),
            label: object.label.clone(),
            device_key: object.device_key.clone(),
            basis: grown.map_or(WantedBasis::Observed, |row| row.basis),
            change_id: grown.and_then(|row| row.change_id),
            fields: grown.map(|row| row.fields.clone()).or(fields).unwrap_or_default(),
            seen_digest: object.digest.clone(),
        });
    }

    /// Removes the row of an object that was too large to be followed and is gone.
    pub(super) fn forget(&mut self, key: &'m str) {
        self.unwanted.push(key);
    }

    /// Closes a difference that the reading no longer shows. Its status is `put_back` where the change that was staged for that was
    /// applied, else `resolved`.
    pub(super) fn close(&mut self, open: &'m Drift) {
        let mut applied = self.evidence.changes.iter().filter(|change| change.is_applied());
        let is_put_back = applied.any(|change| Some(change.id) == open.put_back_id);
        let status = if is_put_back { DriftStatus::PutBack } else { DriftStatus::Resolved };
        self.closed.push((open, status));
    }

    /// Writes all of it. Returns how many objects are not followed.
    pub(super) async fn write(mut self, tx: &mut Tx) -> Result<i64, Error> {
        let list = self.due.list();
        self.cut(tx).await?;
        self.postpone(tx).await?;
        for rows in self.wanted.chunks(PART_MAX) {
            wanted::write(tx, &list, rows, self.now).await?;
        }
        for key in &self.unwanted {
            wanted::remove(tx, &list, key).await?;
        }
        for rewrite in &self.learned {
            wanted::learn(tx, &list, rewrite, self.now).await?;
        }
        let mut news = Vec::new();
        for (open, status) in &self.closed {
            drift::close(tx, open.id, *status, &Said::default(), self.now).await?;
            news.push(closed(open, *status, None));
        }
        for (open, found) in &self.again {
            drift::refind(tx, open.id, found, self.now).await?;
            let moved = Drift {
                change: found.change,
                label: found.label,
                differences: found.differences.clone(),
                ..(*open).clone()
            };
            news.push(told(DRIFT_CHANGED, &moved));
        }
        self.insert(tx, &mut news).await?;
        events::append_all(tx, self.due.org_id, &news, &self.app.clock).await?;
        Ok(self.left_out)
    }

    /// Leaves out new objects for which there is no room.
    async fn cut(&mut self, tx: &mut Tx) -> Result<(), Error> {
        if self.added.is_empty() {
            return Ok(());
        }
        let room = wanted::OBJECTS_MAX - wanted::count(tx, self.due.controller_id).await?;
        let room = usize::try_from(room).unwrap_or_default();
        let over: HashSet<&str> = self.added.iter().skip(room).copied().collect();
        self.left_out += i64::try_from(over.len()).unwrap_or(i64::MAX);
        self.wanted.retain(|object| !over.contains(object.key.as_str()));
        Ok(())
    }

    /// Leaves new differences out for which there is no room. Their objects count as not seen, so that a later comparison
    /// finds them again.
    async fn postpone(&mut self, tx: &mut Tx) -> Result<(), Error> {
        if self.new.is_empty() {
            return Ok(());
        }
        let room = OPEN_MAX - drift::open_at(tx, self.due.controller_id).await?;
        let room = usize::try_from(room).unwrap_or_default() + self.closed.len();
        if self.new.len() <= room {
            return Ok(());
        }
        let later: HashSet<&str> = self.new.split_off(room).iter().map(|new| new.key).collect();
        // What was not seen yet differs, whatever the reading says.
        let waiting = self.wanted.iter_mut().filter(|object| later.contains(object.key.as_str()));
        waiting.for_each(|object| object.seen_digest.clear());
        tracing::warn!(
            controller.id = %self.due.controller_id,
            "{} differences of kind '{}' of controller {} wait: {OPEN_MAX} are open",
            later.len(), self.due.kind, self.due.controller_id
        );
        Ok(())
    }

    /// Opens the new differences, and tells of them.
    async fn insert(&mut self, tx: &mut Tx, news: &mut Vec<NewEvent>) -> Result<(), Error> {
        let found = self.new.len();
        let mut opened = Vec::new();
        for new in self.new.drain(..) {
            let new = NewDrift {
                id: self.app.clock.new_id(),
                org_id: self.due.org_id,
                site_id: self.due.site_id,
                list: self.due.list(),
                key: new.key,
                object_label: new.label,
                device_key: new.device_key,
                basis: new.basis,
                wanted_change_id: new.wanted_change_id,
                found: &new.found,
                now: self.now,
            };
            opened.push(told(DRIFT_FOUND, &drift::insert(tx, &new).await?));
        }
        if found > EVENTS_MAX {
            news.push(self.counted(found));
        } else {
            news.extend(opened);
        }
        Ok(())
    }

    fn counted(&self, found: usize) -> NewEvent {
        let payload = json!({
            "controller_id": self.due.controller_id,
            "site_id": self.due.site_id,
            "kind": self.due.kind,
            "found": found,
        });
        NewEvent {
            site_id: Some(self.due.site_id),
            controller_id: Some(self.due.controller_id),
            ..NewEvent::of(DRIFT_COUNTED, self.due.org_id, payload)
        }
    }
}

/// Whether an open difference says already what was found. What people said of it does not count.
fn is_same(open: &Drift, found: &Found) -> bool {
    let values = |one: &FieldDrift| (one.field.clone(), one.wanted.clone(), one.observed.clone());
    open.change == found.change
        && open.differences.iter().map(values).eq(found.differences.iter().map(values))
}

/// The event of an open difference.
pub(super) fn told(event_type: EventType, of: &Drift) -> NewEvent {
    let side = |value: fn(&FieldDrift) -> Option<&Value>| -> Map<String, Value> {
        let shown = |one: &FieldDrift| {
            let shown = value(one).cloned().unwrap_or_default();
            if is_small(&shown, VALUE_BYTES_MAX) { shown } else { json!("…") }
        };
        of.differences.iter().map(|one| (one.field.clone(), shown(one))).collect()
    };
    let fields: Vec<&str> = of.differences.iter().map(|one| one.field.as_str()).collect();
    let payload = json!({
        "drift_id": of.id,
        "controller_id": of.controller_id,
        "site_id": of.site_id,
        "kind": of.kind,
        "key": of.key,
        "object_label": of.object_label,
        "device_key": of.device_key,
        "change": of.change,
        "label": of.label,
        "fields": fields,
        "before": side(|one| one.wanted.as_ref()),
        "after": side(|one| one.observed.as_ref()),
    });
    event(event_type, of, payload)
}

/// The event of a difference that was closed.
pub(super) fn closed(of: &Drift, status: DriftStatus, user: Option<UserId>) -> NewEvent {
    let payload = json!({
        "drift_id": of.id,
        "controller_id": of.controller_id,
        "site_id": of.site_id,
        "kind": of.kind,
        "key": of.key,
        "object_label": of.object_label,
        "device_key": of.device_key,
        "status": status,
        "label": of.label,
        "user_id": user,
    });
    event(DRIFT_CLOSED, of, payload)
}

fn event(event_type: EventType, of: &Drift, mut payload: Value) -> NewEvent {
    redact::sanitize(&mut payload);
    NewEvent {
        site_id: Some(of.site_id),
        controller_id: Some(of.controller_id),
        ..NewEvent::of(event_type, of.org_id, payload)
    }
}
