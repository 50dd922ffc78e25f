//! The objects of a part of a list, sorted by what is done with them.

use heddle_core::SiteId;
use heddle_store::model_objects::ModelObjectId;
use heddle_store::model_objects::record::{Digests, Known, Storable};
use heddle_store::model_readings::Row;
use serde_json::Value;

use super::difference::{self, About, Counted};
use super::list::ListReading;
use super::record::EVENTS_MAX;

/// The objects of a part by what is done with them.
pub(super) struct Sorted<'a> {
    reading: &'a ListReading<'a>,
    site_id: SiteId,
    /// Differences that were found before this part.
    found: i64,
    /// False until the list was read to its end once: until then its objects make no events.
    is_news: bool,
    pub(super) written: Vec<(ModelObjectId, &'a Storable)>,
    pub(super) same: Vec<ModelObjectId>,
    pub(super) twice: Vec<String>,
    pub(super) differences: Vec<Value>,
    pub(super) created: i64,
    pub(super) changed: i64,
}

impl<'a> Sorted<'a> {
    pub(super) fn new(reading: &'a ListReading<'a>, site_id: SiteId, state: &Row) -> Self {
        Self {
            reading,
            site_id,
            found: state.differences(),
            is_news: state.read_at.is_some(),
            written: Vec::new(),
            same: Vec::new(),
            twice: Vec::new(),
            differences: Vec::new(),
            created: 0,
            changed: 0,
        }
    }

    /// Whether what is stored of the object has to be compared with what was seen.
    pub(super) fn looks_changed(&self, object: &Storable, stored: Option<&Digests>) -> bool {
        self.is_news && stored.is_some_and(|stored| stored.digest != object.digest)
    }

    /// `known` is loaded where the object looks changed.
    pub(super) fn add(&mut self, object: &'a Storable, stored: Option<&Digests>, known: Option<&Known>) {
        let Some(stored) = stored else {
            let id = self.reading.app.clock.new_id();
            self.written.push((id, object));
            if self.is_news {
                self.tell(id, object, None);
                self.created += 1;
            }
            return;
        };
        if stored.digest == object.digest && stored.contents_digest == object.contents_digest {
            return self.same.push(stored.id);
        }
        self.written.push((stored.id, object));
        let kind = self.reading.kind;
        if let Some(known) = known.filter(|known| difference::is_changed(kind, known, object)) {
            self.tell(stored.id, object, Some(Counted::of_known(kind, known)));
            self.changed += 1;
        }
    }

    fn tell(&mut self, id: ModelObjectId, object: &Storable, before: Option<Counted>) {
        if self.found + self.created + self.changed >= EVENTS_MAX {
            return;
        }
        let kind = self.reading.kind;
        let about = About {
            kind,
            id,
            key: &object.key,
            label: &object.label,
            device_key: object.device_key.as_deref(),
            controller_id: self.reading.controller.id,
            site_id: self.site_id,
        };
        self.differences.push(difference::payload(&about, before, Some(Counted::of_seen(kind, object))));
    }
}
