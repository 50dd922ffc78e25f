//! What people write on one device.

use heddle_core::DeviceId;
use heddle_core::device::DeviceState;
use heddle_kernel::audit::entry::{self};
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::resource::{self, By, Resource as _};
use heddle_store::devices::{self, Device, Labels};
use heddle_store::events;
use heddle_store::object::Object as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::labels::{NOTES_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX, changed, check_notes, check_tags};
use super::{Devices, state_changed};

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

pub(super) async fn update(
    by: By,
    At(id): At<DeviceId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Device>, Error> {
    let By { app, caller, .. } = &by;
    let mut checks = Checks::default();
    let display_name = body.display_name.map(|name| name.map(|name| checks.name("display_name", &name)));
    if let Some(Some(notes)) = &body.notes {
        check_notes(&mut checks, "notes", notes);
    }
    let tags = body.tags.map(|tags| check_tags(&mut checks, "tags", &tags));
    checks.done()?;
    let mut tx = app.db.write().await?;
    let device = resource::locked::<Devices>(&mut tx, &by, id, &if_match).await?;
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
    by.record::<Devices>(&mut tx, &device, Devices::ACTIONS.updated, detail).await?;
    events::append(&mut tx, &state_changed(&device, &changed), &app.clock).await?;
    let device = Device::find(&mut tx, &caller.scope(), id).await?.ok_or(Error::NotFound("device"))?;
    tx.commit().await?;
    Ok(One(device))
}
