//! One list of the model: its pages as the adapter gives them, and how it ends.

use std::time::{Duration, Instant};

use heddle_core::adapter::{Completeness, ModelPage};
use heddle_core::bounds::is_small;
use heddle_core::fault::FaultKind;
use heddle_core::{ProcessId, Timestamp, storable};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_marketplace::model::ModelKind;
use heddle_runtime::{Adapter, Call, CallError, LIGHT_BYTES};
use heddle_store::controllers::ControllerTarget;
use heddle_store::model_objects::record::{List, ModelReadingId, PART_MAX, Storable};
use heddle_store::push::wanted;

use super::MODEL_LIMIT;
use super::object::{self, Unfit};
use super::plan::{Due, OBJECTS_MAX};
use super::record;

/// Most pages of one list; with more, the component would never end.
const PAGES_MAX: usize = 1_000;

/// What is done after a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The next list is read.
    Next,
    /// The component was stopped in this one.
    Stopped,
    /// The reading is over: its time is, the controller is another's or reached in another way, or does not answer.
    Nothing,
    /// The same, because the controller takes no calls now.
    Refused,
}

/// How far the list was read, and what was wrong with it.
#[derive(Debug)]
pub(super) struct End {
    /// Whether its last page, or as many objects as are kept, came.
    pub(super) is_read: bool,
    pub(super) complete: Completeness,
    pub(super) left_out: i64,
    /// The first thing that was wrong.
    pub(super) error: Option<String>,
    pub(super) was_stopped: bool,
    /// Whether the time of the reading was over before the list had most of it: what messages ask for stays asked for.
    pub(super) was_cut_short: bool,
}

impl End {
    /// Whether what was not seen is gone. Objects that were left out were seen.
    pub(super) fn is_whole(&self) -> bool {
        self.is_read && self.complete == Completeness::Complete
    }

    fn say(&mut self, problem: &str) {
        self.error.get_or_insert_with(|| storable::message(problem));
    }

    fn is_partial(&mut self) {
        if self.complete == Completeness::Complete {
            self.complete = Completeness::Partial;
        }
    }
}

/// Part of a page, as it is recorded.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) objects: Vec<Storable>,
    /// Keys of objects that do not fit: what is stored of them stays.
    pub(super) unfit: Vec<String>,
}

/// Whether a call was not made at all: nothing was learned of the controller.
pub(crate) fn is_refused(error: &CallError) -> bool {
    matches!(error, CallError::Suspended { .. } | CallError::Overload | CallError::Host(_))
}

/// Whether a list that ended with the time of the reading had less than most of it.
fn is_cut_short(had: Duration) -> bool {
    had < MODEL_LIMIT / 2
}

pub(super) struct ListReading<'a> {
    pub(super) app: &'a SharedApp,
    pub(super) controller: &'a ControllerTarget,
    pub(super) owner: ProcessId,
    pub(super) kind: &'static ModelKind,
    pub(super) site_ref: Option<&'a str>,
    pub(super) id: ModelReadingId,
    pub(super) begun_at: Timestamp,
    /// Whether messages ask for the list.
    is_told: bool,
    /// What messages asked for that ends with it.
    pub(super) told: &'a [wanted::Row],
    share: usize,
    /// How many objects it may have; [`record::room`] says so when it begins.
    pub(super) room: usize,
    /// How many objects of that are listed.
    listed: usize,
    end: End,
}

impl<'a> ListReading<'a> {
    pub(super) fn new(
        app: &'a SharedApp,
        controller: &'a ControllerTarget,
        owner: ProcessId,
        due: &'a Due,
    ) -> Self {
        let end = End {
            is_read: false,
            complete: Completeness::Complete,
            left_out: 0,
            error: None,
            was_stopped: false,
            was_cut_short: false,
        };
        Self {
            app,
            controller,
            owner,
            kind: due.kind,
            site_ref: due.site_ref.as_deref(),
            id: app.clock.new_id(),
            begun_at: app.clock.now(),
            is_told: due.is_told,
            told: &due.told,
            share: due.share,
            room: 0,
            listed: 0,
            end,
        }
    }

    pub(super) fn list(&self) -> List<'a> {
        List {
            controller_id: self.controller.id,
            kind: self.kind.id,
            site_ref: self.site_ref.unwrap_or_default(),
        }
    }

    /// Reads the list until it ends or fails, and records how that went.
    pub(super) async fn read(
        &mut self,
        adapter: &Adapter,
        call: &Call,
        until: Instant,
    ) -> Result<After, Error> {
        let begun = Instant::now();
        self.room = record::room(self.app, &self.list(), self.share).await?;
        let mut cursor: Option<String> = None;
        let mut after = After::Next;
        for page in 0.. {
            if page == PAGES_MAX {
                self.fails(&format!("the list has more than {PAGES_MAX} pages"));
                break;
            }
            let asked = adapter.list_model(call, self.kind.id, self.site_ref, cursor.as_deref());
            let Ok(answer) = tokio::time::timeout_at(until.into(), asked).await else {
                self.fails("the list was not read to its end: reading the controller's objects took more than 2 minutes");
                self.end.was_cut_short = self.is_told && is_cut_short(begun.elapsed());
                after = After::Nothing;
                break;
            };
            let next = match answer {
                Ok(page) => page,
                // Nothing was learned of the list: it is read with the next reading.
                Err(error) if is_refused(&error) => return Ok(After::Refused),
                Err(error) => {
                    after = self.fault(error);
                    break;
                }
            };
            let following = next.next.clone();
            if !self.take(next).await? {
                return Ok(After::Nothing);
            }
            if self.end.is_read || following.is_none() {
                self.end.is_read = true;
                break;
            }
            if following == cursor {
                self.fails("a page of the list names itself as the next one");
                break;
            }
            cursor = following;
        }
        let is_kept = record::end(self, &self.end).await?;
        self.log();
        Ok(if is_kept { after } else { After::Nothing })
    }

    fn fails(&mut self, problem: &str) {
        self.end.say(problem);
        self.end.is_partial();
    }

    /// Notes a failure of the adapter.
    fn fault(&mut self, error: CallError) -> After {
        let is_stopped = matches!(error, CallError::Trap { .. });
        let kind = if let CallError::Fault(fault) = &error { Some(fault.kind) } else { None };
        if kind == Some(FaultKind::Denied) {
            self.end.complete = Completeness::RightsLimited;
        }
        self.fails(&Error::from(error).to_string());
        self.end.was_stopped = is_stopped;
        match kind {
            // The reading of its devices says whether it is offline.
            Some(FaultKind::Connection | FaultKind::Timeout | FaultKind::NotReady) => After::Nothing,
            _ if is_stopped => After::Stopped,
            _ => After::Next,
        }
    }

    /// Records a page; false when this process reads the controller no more.
    async fn take(&mut self, page: ModelPage) -> Result<bool, Error> {
        if page.complete != Completeness::Complete {
            self.end.complete = page.complete;
        }
        let (kind, mut items) = (self.kind, page.items);
        let left = self.room - self.listed;
        let is_over = items.len() > left;
        items.truncate(left);
        self.listed += items.len();
        let bytes =
            items.iter().map(|item| if is_small(&item.fields, LIGHT_BYTES) { 1 << 10 } else { LIGHT_BYTES });
        let bytes = bytes.sum();
        let work = move || items.into_iter().map(|item| object::storable(kind, item)).collect();
        let fitted: Result<Vec<Result<Storable, Unfit>>, _> =
            self.app.runtime.apart(self.controller.org_id, bytes, work).await;
        // Too much is going on: the list is read with the next reading.
        let Ok(fitted) = fitted else { return Ok(false) };
        let mut fitted = fitted.into_iter().peekable();
        while fitted.peek().is_some() {
            let mut part = Part::default();
            for one in fitted.by_ref().take(PART_MAX) {
                match one {
                    Ok(object) => part.objects.push(object),
                    Err(unfit) => {
                        self.leave_out(1, &unfit.problem);
                        part.unfit.extend(unfit.key);
                    }
                }
            }
            let Some(twice) = record::part(self, part).await? else { return Ok(false) };
            if let Some(key) = twice.first() {
                self.leave_out(twice.len(), &format!("object '{key}' is listed twice"));
            }
        }
        if is_over {
            self.fails(&format!(
                "the controller has more than {OBJECTS_MAX} objects of this kind; the rest is left out"
            ));
            self.end.is_read = true;
        }
        Ok(true)
    }

    fn leave_out(&mut self, count: usize, problem: &str) {
        self.end.left_out += i64::try_from(count).unwrap_or(i64::MAX);
        self.end.say(problem);
    }

    fn log(&self) {
        let Some(error) = &self.end.error else { return };
        tracing::warn!(
            controller.id = %self.controller.id, error,
            "objects of kind '{}' of controller {} are not all read", self.kind.id, self.controller.id
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_began_late_is_asked_for_again() {
        assert!(is_cut_short(Duration::from_secs(1)));
        assert!(!is_cut_short(MODEL_LIMIT), "it is too long for any reading");
    }
}
