//! One comparison: what a reading of a list found, and what is wanted of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use heddle_core::adapter::{Completeness, Description, ObjectRef};
use heddle_core::bounds::is_small;
use heddle_core::drift::{DriftChange, WantedBasis};
use heddle_core::{ChangeId, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_marketplace::model::{self, ModelKind};
use heddle_store::changes::ChangeRow;
use heddle_store::drift::{self, Drift};
use heddle_store::model_objects::record;
use heddle_store::object::Object as _;
use heddle_store::wanted::{self as store, Due, Listed, PART_MAX, Unlisted, WantedObject};
use heddle_store::{Controller, Scope, Tx};
use serde_json::Value;

use super::judge::{self, Compared, Evidence};
use super::label;
use super::outcome::{Judgement, Outcome};
use super::own::{OwnChange, Subject};
use super::versions::{self, Versions};
use crate::settable::{self, Content};

/// Most bytes of what is wanted of one object. Of a larger one nothing is wanted until it is smaller.
const OBJECT_BYTES_MAX: usize = 16 << 10;

/// Compares a list that was read, in one transaction.
pub(super) async fn compare(app: &App, due: &Due) -> Result<(), Error> {
    // A vendor that is gone by now reads nothing more.
    let (Ok(adapter), Some(kind)) = (app.adapter(&due.vendor), model::find(&due.kind)) else { return Ok(()) };
    let Some(filled) = settable::filled(adapter.description(), kind.id) else { return Ok(()) };
    let mut tx = app.db.write().await?;
    // An apply locks the controller too, before the list. No change is applied while the list is compared.
    let scope = Scope::organization(due.org_id);
    if Controller::lock(&mut tx, &scope, due.controller_id).await?.is_none() {
        return Ok(());
    }
    let before = store::hold(&mut tx, &due.list()).await?;
    let is_known = before.as_ref().is_some_and(|before| before.read_at >= due.read_at);
    // A change may have been applied meanwhile, and what it made be read.
    if is_known || !store::is_due(&mut tx, due).await? {
        return Ok(());
    }
    let now_run = store::versions(&mut tx, due.controller_id).await?;
    let now_run = versions::collect(due.firmware.as_deref(), &now_run);
    let comparison = Comparison {
        app,
        due,
        kind,
        fields: settable::followed(kind, filled),
        description: adapter.description(),
        now: app.clock.now(),
    };
    let left_out = match before {
        None => comparison.begin(&mut tx).await?,
        Some(before) => {
            let is_read_anew = before.adapter != adapter.identity();
            comparison.go_on(&mut tx, &before, &now_run, is_read_anew).await?
        }
    };
    let compared = store::Compared {
        begun_at: due.begun_at,
        read_at: due.read_at,
        adapter: adapter.identity().to_owned(),
        versions: now_run,
        left_out,
    };
    store::save(&mut tx, &due.list(), &compared).await?;
    tx.commit().await?;
    if left_out > 0 {
        tracing::warn!(
            controller.id = %due.controller_id,
            "{left_out} objects of kind '{}' of controller {} are not followed: there are too many",
            due.kind, due.controller_id
        );
    }
    Ok(())
}

struct Comparison<'a> {
    app: &'a App,
    due: &'a Due,
    kind: &'static ModelKind,
    /// The fields that drift is about.
    fields: BTreeSet<&'static str>,
    description: &'a Description,
    now: Timestamp,
}

/// What was read of a list and differs from the comparison before.
#[derive(Default)]
struct Moved {
    listed: Vec<Listed>,
    wanted: HashMap<String, WantedObject>,
    unlisted: Vec<Unlisted>,
    open: HashMap<String, Drift>,
}

impl Comparison<'_> {
    fn content(&self, listed: &Listed) -> Content {
        Content::of(&self.fields, &listed.fields)
    }

    /// Takes what is there for what is wanted. Returns for how many objects there was no room.
    async fn begin(&self, tx: &mut Tx) -> Result<i64, Error> {
        let list = self.due.list();
        let mut room = store::OBJECTS_MAX - store::count(tx, self.due.controller_id).await?;
        let (mut left_out, mut after) = (0, String::new());
        loop {
            let page = store::differing(tx, &list, &after).await?;
            let Some(end) = page.last() else { return Ok(left_out) };
            after.clone_from(&end.key);
            let mut rows = Vec::new();
            for object in &page {
                let fields = self.content(object).to_value();
                if room <= 0 {
                    left_out += 1;
                    continue;
                }
                // One that is too large is known, and nothing is wanted of it.
                let fields = if is_small(&fields, OBJECT_BYTES_MAX) { fields } else { Value::Null };
                room -= 1;
                rows.push(WantedObject {
                    key: object.key.clone(),
                    label: object.label.clone(),
                    device_key: object.device_key.clone(),
                    basis: WantedBasis::Observed,
                    change_id: None,
                    fields,
                    seen_digest: object.digest.clone(),
                });
            }
            store::write(tx, &list, &rows, self.now).await?;
        }
    }

    /// Judges all that moved since the comparison before. Returns for how many objects there was no room.
    async fn go_on(
        &self,
        tx: &mut Tx,
        before: &store::Compared,
        now_run: &Versions,
        is_read_anew: bool,
    ) -> Result<i64, Error> {
        let list = self.due.list();
        let rows =
            store::attempted_since(tx, self.due.controller_id, before.begun_at, self.due.begun_at).await?;
        let changes = self.own_changes(&rows);
        let moved = self.moved(tx, &changes).await?;
        if is_read_anew && self.is_renamed(tx, &moved).await? {
            // The package names objects in another way: none of them can be compared.
            store::forget_list(tx, &list).await?;
            let left_out = self.begin(tx).await?;
            let evidence = Evidence::default();
            let mut outcome = Outcome::new(self.app, self.due, self.now, &evidence);
            outcome.left_out = left_out;
            moved.open.values().for_each(|open| outcome.close(open));
            return outcome.write(tx).await;
        }
        let rewrites = store::rewrites(tx, self.due.controller_id, self.kind.id).await?;
        let is_upgraded = before.versions != *now_run;
        let common =
            if is_read_anew || is_upgraded { self.common(tx, &moved).await? } else { HashSet::new() };
        let evidence = Evidence {
            changes,
            rewrites: rewrites.into_iter().map(|rewrite| (rewrite.field, rewrite.digest)).collect(),
            is_read_anew,
            common,
        };
        let mut outcome = Outcome::new(self.app, self.due, self.now, &evidence);
        outcome.left_out = before.left_out;
        let upgrade = |device: Option<&str>| versions::upgrade(&before.versions, now_run, device);
        for object in &moved.listed {
            self.judge_listed(&mut outcome, &moved, object, &evidence, &upgrade);
        }
        for gone in &moved.unlisted {
            self.judge_gone(&mut outcome, &moved, gone, &evidence, &upgrade);
        }
        self.close_vanished(tx, &mut outcome, &moved).await?;
        outcome.write(tx).await
    }

    fn own_changes(&self, rows: &[ChangeRow]) -> Vec<OwnChange> {
        let sets: HashMap<ChangeId, &ChangeRow> =
            rows.iter().filter(|row| row.is_set).map(|row| (row.id, row)).collect();
        let members = rows.iter().filter(|row| !row.is_set);
        let set_of = |row: &ChangeRow| row.set_id.and_then(|id| sets.get(&id).copied());
        let own = members.filter_map(|row| OwnChange::of(row, set_of(row), self.description));
        own.map(|change| change.only(self.kind.id, &self.fields)).collect()
    }

    /// Loads what differs, and what is to be looked at again although it does not: objects with an open difference, and
    /// those that a change of ours names.
    async fn moved(&self, tx: &mut Tx, changes: &[OwnChange]) -> Result<Moved, Error> {
        let list = self.due.list();
        let mut moved = Moved::default();
        let mut after = String::new();
        loop {
            let page = store::differing(tx, &list, &after).await?;
            let Some(end) = page.last() else { break };
            after.clone_from(&end.key);
            moved.listed.extend(page);
            if moved.listed.len() > usize::try_from(store::OBJECTS_MAX).unwrap_or(usize::MAX) {
                break;
            }
        }
        moved.open = drift::open_of(tx, &list).await?.into_iter().map(|one| (one.key.clone(), one)).collect();
        let seen: HashSet<String> = moved.listed.iter().map(|object| object.key.clone()).collect();
        let named = changes.iter().flat_map(|change| change.keys(self.kind.id)).map(str::to_owned);
        let again: BTreeSet<String> =
            moved.open.keys().cloned().chain(named).filter(|key| !seen.contains(key)).collect();
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        for keys in again.chunks(PART_MAX) {
            moved.listed.extend(store::listed(tx, &list, keys).await?);
        }
        let keys: Vec<&str> = moved.listed.iter().map(|object| object.key.as_str()).collect();
        for keys in keys.chunks(PART_MAX) {
            moved.wanted.extend(store::wanted(tx, &list, keys).await?);
        }
        // Of a list that is not whole, nothing that it lacks is known to be gone.
        if self.due.complete == Completeness::Complete {
            moved.unlisted = store::unlisted(tx, &list).await?;
        }
        Ok(moved)
    }

    /// Whether no object has the key that it had.
    async fn is_renamed(&self, tx: &mut Tx, moved: &Moved) -> Result<bool, Error> {
        if moved.unlisted.is_empty() || moved.listed.is_empty() || !moved.wanted.is_empty() {
            return Ok(false);
        }
        let first = store::all_of(tx, &self.due.list(), "").await?;
        let unlisted: HashSet<&str> = moved.unlisted.iter().map(|gone| gone.wanted.key.as_str()).collect();
        Ok(first.iter().all(|object| unlisted.contains(object.key.as_str())))
    }

    /// The pairs of values that several objects went through, and none kept the first value.
    async fn common(&self, tx: &mut Tx, moved: &Moved) -> Result<HashSet<(String, String)>, Error> {
        let moving: HashSet<&str> = moved.listed.iter().map(|object| object.key.as_str()).collect();
        let (mut kept, mut after) = (HashSet::new(), String::new());
        loop {
            let objects = store::all_of(tx, &self.due.list(), &after).await?;
            let Some(last) = objects.last() else { break };
            after.clone_from(&last.key);
            for object in objects.iter().filter(|object| !moving.contains(object.key.as_str())) {
                let content = Content::from_value(&object.fields).only(&self.fields);
                let fields = self.fields.iter();
                kept.extend(fields.map(|field| label::value_key(field, content.get(field))));
            }
        }
        let pairs: Vec<(Content, Content)> = moved
            .listed
            .iter()
            .filter_map(|object| Some((self.wanted_of(moved.wanted.get(&object.key)?), self.content(object))))
            .collect();
        Ok(label::common(pairs.iter().map(|(wanted, observed)| (wanted, observed)), &kept))
    }

    fn wanted_of(&self, wanted: &WantedObject) -> Content {
        Content::from_value(&wanted.fields).only(&self.fields)
    }

    fn judge_listed<'m>(
        &self,
        outcome: &mut Outcome<'_, 'm>,
        moved: &'m Moved,
        object: &'m Listed,
        evidence: &Evidence,
        upgrade: &dyn Fn(Option<&str>) -> Option<(String, String)>,
    ) {
        let row = moved.wanted.get(&object.key);
        let open = moved.open.get(&object.key);
        // While some objects are not followed, one without a wanted state may be one of those.
        if row.is_none() && open.is_none() && outcome.left_out > 0 {
            return;
        }
        let observed = self.content(object);
        let is_followed = is_small(&observed.to_value(), OBJECT_BYTES_MAX);
        if !is_followed || row.is_some_and(|row| row.fields.is_null()) {
            outcome.see(object, row, is_followed.then(|| observed.to_value()));
            return;
        }
        let native: Option<ObjectRef> =
            object.native.as_ref().and_then(|native| serde_json::from_value(native.clone()).ok());
        let subject = Subject {
            kind: self.kind,
            key: &object.key,
            label: &object.label,
            native: native.as_ref(),
            fields: Some(&object.fields),
        };
        let compared = Compared {
            subject,
            wanted: row.map(|row| self.wanted_of(row)),
            observed: Some(observed),
            upgrade: upgrade(object.device_key.as_deref()),
            known: open.map(|open| open.differences.as_slice()).unwrap_or_default(),
        };
        let judged = judge::judge(&compared, evidence);
        outcome.add(Judgement {
            key: &object.key,
            label: &object.label,
            device_key: object.device_key.as_deref(),
            digest: &object.digest,
            row,
            open,
            judged,
        });
    }

    fn judge_gone<'m>(
        &self,
        outcome: &mut Outcome<'_, 'm>,
        moved: &'m Moved,
        gone: &'m Unlisted,
        evidence: &Evidence,
        upgrade: &dyn Fn(Option<&str>) -> Option<(String, String)>,
    ) {
        let row = &gone.wanted;
        if row.fields.is_null() {
            outcome.forget(&row.key);
            return;
        }
        let open = moved.open.get(&row.key);
        let mut wanted = Some(self.wanted_of(row));
        // The vendor made it, or it follows from other objects: nothing is wanted of such an object.
        if gone.is_listed {
            wanted = None;
        }
        let subject =
            Subject { kind: self.kind, key: &row.key, label: &row.label, native: None, fields: None };
        let compared = Compared {
            subject,
            wanted,
            observed: None,
            upgrade: upgrade(row.device_key.as_deref()),
            known: open.map(|open| open.differences.as_slice()).unwrap_or_default(),
        };
        let judged = judge::judge(&compared, evidence);
        outcome.add(Judgement {
            key: &row.key,
            label: &row.label,
            device_key: row.device_key.as_deref(),
            digest: &row.seen_digest,
            row: Some(row),
            open,
            judged,
        });
    }

    /// Closes the differences of objects that came and went again.
    async fn close_vanished<'m>(
        &self,
        tx: &mut Tx,
        outcome: &mut Outcome<'_, 'm>,
        moved: &'m Moved,
    ) -> Result<(), Error> {
        if self.due.complete != Completeness::Complete {
            return Ok(());
        }
        let created = moved.open.values().filter(|open| open.change == DriftChange::Created);
        let created: BTreeMap<&str, &Drift> = created.map(|open| (open.key.as_str(), open)).collect();
        let keys: Vec<&str> = created.keys().copied().collect();
        for keys in keys.chunks(PART_MAX) {
            let there = record::digests(tx, &self.due.list(), keys).await?;
            let vanished = keys.iter().filter(|key| !there.contains_key(**key));
            vanished.filter_map(|key| created.get(*key).copied()).for_each(|open| outcome.close(open));
        }
        Ok(())
    }
}
