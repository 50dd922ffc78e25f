//! Many devices at once, each by itself, in a number of statements that does not grow with them.

use std::collections::{BTreeMap, HashMap};

use axum::Json as Answer;
use heddle_core::device::DeviceState;
use heddle_core::event::NewEvent;
use heddle_core::{DeviceId, OrgId, SiteLevel};
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::bulk::{ItemError, Outcomes, check_ids};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::resource::By;
use heddle_store::devices::{self, Device, Labels};
use heddle_store::{Tx, events};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::labels::{NOTES_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX, changed, check_notes, check_tags, retagged};
use super::state_changed;

/// Most devices of one request.
const IDS_MAX: usize = 200;

heddle_core::words! {
    pub enum DeviceBulkAction {
        Update = "update",
        Remove = "remove",
    }
}

heddle_core::words! {
    pub enum DeviceBulkStatus {
        Updated = "updated",
        Removed = "removed",
        /// It does not exist, or the caller may not see it.
        NotFound = "not_found",
        Error = "error",
    }
}

use DeviceBulkAction as Action;
use DeviceBulkStatus as Status;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeviceBulk")]
pub(super) struct BulkBody {
    action: Action,
    /// 1 to 200 different ones.
    #[schemars(length(min = 1, max = IDS_MAX))]
    ids: Vec<DeviceId>,
    /// With action `update` only: the same for all of them.
    #[serde(default, deserialize_with = "given")]
    update: Option<Update>,
}

/// What to change; absent keeps. Tags are taken off before others are put on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeviceBulkUpdate")]
struct Update {
    #[serde(default)]
    #[schemars(length(max = TAGS_MAX), inner(length(min = 1, max = TAG_CHARS_MAX)))]
    tags_add: Vec<String>,
    #[serde(default)]
    #[schemars(length(max = TAGS_MAX), inner(length(min = 1, max = TAG_CHARS_MAX)))]
    tags_remove: Vec<String>,
    #[serde(default, deserialize_with = "given")]
    state: Option<DeviceState>,
    /// Up to 2000 characters; `null` clears.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = NOTES_CHARS_MAX), extend("x-nullable" = true))]
    notes: Option<Option<String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeviceBulkItem")]
pub(super) struct Item {
    id: DeviceId,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

pub(super) type Done = Outcomes<Item>;

/// What a request does to each device.
#[derive(Debug)]
enum Deeds {
    Update(Update),
    Remove,
}

impl BulkBody {
    fn checked(self) -> Result<(Vec<DeviceId>, Deeds), Error> {
        let mut checks = Checks::default();
        check_ids(&mut checks, "ids", &self.ids, IDS_MAX);
        let deeds = match (self.action, self.update) {
            (Action::Remove, None) => Some(Deeds::Remove),
            (Action::Remove, Some(_)) => {
                checks.require(false, "update", "is only for action 'update'");
                None
            }
            (Action::Update, None) => {
                checks.require(false, "update", "action 'update' needs what to change");
                None
            }
            (Action::Update, Some(update)) => Some(Deeds::Update(update.checked(&mut checks))),
        };
        checks.done()?;
        let deeds = deeds.ok_or_else(|| Error::field("action", "must be 'update' or 'remove'"))?;
        Ok((self.ids, deeds))
    }
}

impl Update {
    fn checked(mut self, checks: &mut Checks) -> Self {
        self.tags_add = check_tags(checks, "update.tags_add", &self.tags_add);
        self.tags_remove = check_tags(checks, "update.tags_remove", &self.tags_remove);
        if let Some(Some(notes)) = &self.notes {
            check_notes(checks, "update.notes", notes);
        }
        let is_empty = self.tags_add.is_empty()
            && self.tags_remove.is_empty()
            && self.state.is_none()
            && self.notes.is_none();
        checks.require(!is_empty, "update", "give tags_add, tags_remove, state or notes");
        self
    }

    fn of(&self, before: &Labels) -> Result<Labels, Error> {
        Ok(Labels {
            display_name: before.display_name.clone(),
            notes: self.notes.clone().unwrap_or_else(|| before.notes.clone()),
            tags: retagged(&before.tags, &self.tags_add, &self.tags_remove)?,
            state: self.state.unwrap_or(before.state),
        })
    }
}

/// What a request does, collected before any of it is written.
#[derive(Default)]
struct Work {
    items: HashMap<DeviceId, Item>,
    written: Vec<(DeviceId, Labels)>,
    removed: Vec<DeviceId>,
    /// What happened in each organization: one organization, unless the caller sees them all.
    news: BTreeMap<OrgId, Vec<(DeviceId, NewEvent)>>,
}

impl Work {
    fn take(&mut self, caller: &Caller, device: &Device, deeds: &Deeds) {
        let (status, error) = match self.plan(caller, device, deeds) {
            Ok(status) => (status, None),
            Err(error) => (Status::Error, Some(error.into())),
        };
        self.items.insert(device.id, Item { id: device.id, status, error });
    }

    fn plan(&mut self, caller: &Caller, device: &Device, deeds: &Deeds) -> Result<Status, Error> {
        caller.require_level(device.site_id, SiteLevel::Write)?;
        let (status, changed) = match deeds {
            Deeds::Remove => {
                self.removed.push(device.id);
                (Status::Removed, vec!["deleted_at"])
            }
            Deeds::Update(update) => {
                let before = device.labels();
                let after = update.of(&before)?;
                let changed = changed(&before, &after);
                if !changed.is_empty() {
                    self.written.push((device.id, after));
                }
                (Status::Updated, changed)
            }
        };
        if !changed.is_empty() {
            let event = state_changed(device, &changed);
            self.news.entry(device.org_id).or_default().push((device.id, event));
        }
        Ok(status)
    }

    /// Returns the items in the order of the request; those that were not found are marked as such.
    fn into_results(mut self, ids: &[DeviceId]) -> Done {
        let absent = |id| Item { id, status: Status::NotFound, error: None };
        let items = ids.iter().map(|id| self.items.remove(id).unwrap_or_else(|| absent(*id))).collect();
        Outcomes::of(items, |item| matches!(item.status, Status::Updated | Status::Removed))
    }
}

pub(super) async fn run(by: By, Json(body): Json<BulkBody>) -> Result<Answer<Done>, Error> {
    let By { app, caller, origin } = &by;
    let (ids, deeds) = body.checked()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let mut work = Work::default();
    for device in devices::lock_all(&mut tx, &caller.scope(), &ids).await? {
        work.take(caller, &device, &deeds);
    }
    devices::set_labels(&mut tx, &work.written, now).await?;
    devices::remove_all(&mut tx, &work.removed, now).await?;
    tell(&mut tx, app, (caller, origin), &deeds, &work.news).await?;
    tx.commit().await?;
    Ok(Answer(work.into_results(&ids)))
}

/// Records one audit entry per organization for the whole request, and appends an event for each device.
async fn tell(
    tx: &mut Tx,
    app: &App,
    (caller, origin): (&Caller, &Origin),
    deeds: &Deeds,
    news: &BTreeMap<OrgId, Vec<(DeviceId, NewEvent)>>,
) -> Result<(), Error> {
    for (org, of_devices) in news {
        let ids: Vec<DeviceId> = of_devices.iter().map(|(id, _)| *id).collect();
        let (action, detail) = match deeds {
            Deeds::Remove => ("device.bulk_removed", json!({ "ids": ids })),
            Deeds::Update(update) => (
                "device.bulk_updated",
                json!({
                    "ids": ids, "tags_add": update.tags_add, "tags_remove": update.tags_remove,
                    "state": update.state, "changes_notes": update.notes.is_some(),
                }),
            ),
        };
        let target = ("organization", org.0);
        entry::record(tx, app, origin, NewEntry { org: *org, actor: caller.actor(), action, target, detail })
            .await?;
        let events: Vec<NewEvent> = of_devices.iter().map(|(_, event)| event.clone()).collect();
        events::append_all(tx, *org, &events, &app.clock).await?;
    }
    Ok(())
}
