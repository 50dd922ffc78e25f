//! What people write on one device; removing it, and bringing it back.

use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::device::DeviceState;
use heddle_core::{DeviceId, SiteLevel};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_store::devices::{self, Device, Labels};
use heddle_store::object::Object as _;
use heddle_store::{Controller, Scope, Tx, events};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::labels::{NOTES_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX, changed, check_notes, check_tags};
use super::state_changed;

/// What to change; absent keeps, `null` clears.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeviceUpdate")]
pub(super) struct UpdateBody {
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX), extend("x-nullable" = true))]
    display_name: Option<Option<String>>,
    /// Up to 2000 characters.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = NOTES_CHARS_MAX), extend("x-nullable" = true))]
    notes: Option<Option<String>>,
    /// All of them, in order: up to 32 different ones of 1 to 64 characters.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(max = TAGS_MAX), inner(length(min = 1, max = TAG_CHARS_MAX)))]
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    state: Option<DeviceState>,
}

/// Locks and returns the device, which this caller may change.
async fn locked(tx: &mut Tx, caller: &Caller, id: DeviceId) -> Result<Device, Error> {
    let device = Device::lock(tx, &caller.scope(), id).await?.ok_or(Error::NotFound("device"))?;
    caller.require_level(device.site_id, SiteLevel::Write)?;
    Ok(device)
}

pub(super) async fn update(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<DeviceId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Device>, Error> {
    let mut checks = Checks::default();
    let display_name = body.display_name.map(|name| name.map(|name| checks.name("display_name", &name)));
    if let Some(Some(notes)) = &body.notes {
        check_notes(&mut checks, "notes", notes);
    }
    let tags = body.tags.map(|tags| check_tags(&mut checks, "tags", &tags));
    checks.done()?;
    let mut tx = app.db.write().await?;
    let device = locked(&mut tx, &caller, id).await?;
    if_match.check(&device)?;
    let before = device.labels();
    let mut after = before.clone();
    after.display_name = display_name.unwrap_or(after.display_name);
    after.notes = body.notes.unwrap_or(after.notes);
    after.tags = tags.unwrap_or(after.tags);
    after.state = body.state.unwrap_or(after.state);
    let changed = changed(&before, &after);
    if changed.is_empty() {
        return Ok(One(device));
    }
    let detail = json!({
        "changed": changed, "display_name": after.display_name, "tags": after.tags, "state": after.state,
    });
    // Notes may contain personal data, and audit entries cannot be edited: only the length is logged.
    let told = |labels: &Labels| {
        let notes = labels.notes.as_ref().map(|notes| json!({ "omitted_bytes": notes.len() }));
        json!({ "display_name": labels.display_name, "notes": notes, "tags": labels.tags, "state": labels.state })
    };
    let detail = entry::with_difference(detail, &told(&before), &told(&after));
    devices::set_labels(&mut tx, &[(id, after)], app.clock.now()).await?;
    tell(&mut tx, &app, (&caller, &origin), &device, ("device.updated", detail), &changed).await?;
    let device = Device::find(&mut tx, &caller.scope(), id).await?.ok_or(Error::NotFound("device"))?;
    tx.commit().await?;
    Ok(One(device))
}

pub(super) async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<DeviceId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    let mut tx = app.db.write().await?;
    let device = locked(&mut tx, &caller, id).await?;
    if_match.check(&device)?;
    devices::remove_all(&mut tx, &[id], app.clock.now()).await?;
    let detail = json!({ "name": device.name, "identity": device.identity });
    tell(&mut tx, &app, (&caller, &origin), &device, ("device.removed", detail), &["deleted_at"]).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn restore(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<DeviceId>,
) -> Result<One<Device>, Error> {
    let mut tx = app.db.write().await?;
    let restored = Device::restore(&mut tx, &caller.scope(), id, app.clock.now()).await?;
    let device = restored.ok_or(Error::NotFound("device"))?;
    caller.require_level(device.site_id, SiteLevel::Write)?;
    let scope = Scope::organization(device.org_id);
    if Controller::find(&mut tx, &scope, device.controller_id).await?.is_none() {
        return Err(Error::conflict("controller of the device was removed: restore it first"));
    }
    let restored = ("device.restored", json!({}));
    tell(&mut tx, &app, (&caller, &origin), &device, restored, &["deleted_at"]).await?;
    tx.commit().await?;
    Ok(One(device))
}

/// Records the audit entry and the event of what was done to one device.
async fn tell(
    tx: &mut Tx,
    app: &App,
    (caller, origin): (&Caller, &Origin),
    device: &Device,
    (action, detail): (&'static str, Value),
    changed: &[&'static str],
) -> Result<(), Error> {
    let target = ("device", device.id.0);
    let entry = NewEntry { org: device.org_id, actor: caller.actor(), action, target, detail };
    entry::record(tx, app, origin, entry).await?;
    events::append(tx, &state_changed(device, changed), &app.clock).await?;
    Ok(())
}
