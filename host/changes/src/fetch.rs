//! A file that a device gives: a backup, an export, a support bundle.
//!
//! It can hold every secret of the device, and nobody searches it for them. So it needs what a write of the area needs,
//! beside the right to files. No bytes of it reach the adapter.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use heddle_core::SiteLevel;
use heddle_core::adapter::ObjectKind;
use heddle_core::change::Danger;
use heddle_inventory::adapters::call_for;
use heddle_inventory::controllers::releases::lacking;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::nearest::nearest;
use heddle_kernel::resource::By;
use heddle_runtime::{Adapter, Call};
use heddle_store::files;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::{Fetches, Sink, View, checked_name, detail, gone};
use crate::gates::feature_is_permitted;
use crate::place::{Asked, Place, controller_on_path, place_on_path};

const FILTERS_MAX: usize = 16;
/// Most characters of a key, and of a value that a filter gives.
const TEXT_CHARS_MAX: usize = 512;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchBody {
    /// Which file, where the controller has several of this kind.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS_MAX))]
    key: Option<String>,
    /// What the file is about, such as a device: up to 16 values by name. The adapter refuses a name that it does not know.
    #[serde(default)]
    #[schemars(extend(
        "maxProperties" = FILTERS_MAX,
        "additionalProperties" = serde_json::json!({ "type": "string", "maxLength": TEXT_CHARS_MAX })
    ))]
    filter: BTreeMap<String, String>,
    /// What the file is to be called: 1 to 255 characters, without a path. What the device calls it when absent.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    name: Option<String>,
}

impl FetchBody {
    fn check(&mut self) -> Result<(), Error> {
        if let Some(name) = self.name.take() {
            self.name = Some(checked_name(name)?);
        }
        if self.filter.len() > FILTERS_MAX {
            return Err(Error::field("filter", format!("filter has at most {FILTERS_MAX} names")));
        }
        let is_long = |text: &str| text.chars().count() > TEXT_CHARS_MAX;
        if self.key.as_deref().is_some_and(is_long) {
            return Err(Error::field("key", format!("must have at most {TEXT_CHARS_MAX} characters")));
        }
        match self.filter.iter().find(|(name, value)| is_long(name) || is_long(value)) {
            Some(_) => Err(Error::field(
                "filter",
                format!("names and values must have at most {TEXT_CHARS_MAX} characters"),
            )),
            None => Ok(()),
        }
    }
}

/// Returns the kind that a path names, in this area, where it is a file.
fn kind_of<'d>(kinds: &'d [ObjectKind], area: &str, id: &str) -> Result<&'d ObjectKind, Error> {
    let of_area = || kinds.iter().filter(|kind| kind.area == area);
    let Some(kind) = of_area().find(|kind| kind.id == id) else {
        let files = of_area().filter(|kind| kind.file.is_some()).map(|kind| kind.id.as_str());
        let meant = nearest(id, files).map(|kind| format!("; nearest is '{kind}'"));
        return Err(Error::Unknown(format!("file not found in area '{area}'{}", meant.unwrap_or_default())));
    };
    if kind.file.is_none() {
        return Err(Error::Unknown(format!("'{id}' is no file; its objects are listed")));
    }
    Ok(kind)
}

/// A fetch that passed every check.
struct Fetch {
    by: By,
    adapter: Adapter,
    call: Call,
    kind: ObjectKind,
    place: Place,
    body: FetchBody,
}

/// Has the controller give a file, and keeps it. `asked` names the controller and, by its area, the kind.
///
/// It goes on in a task of its own: when the client breaks off, the file is kept all the same.
pub(crate) async fn fetch(
    by: By,
    asked: Asked<'_>,
    (area, kind): (&str, &str),
    mut body: FetchBody,
    creation: Creation,
) -> Result<Response, Error> {
    body.check()?;
    let By { app, caller, origin } = &by;
    let controller = controller_on_path(app, caller, asked).await?;
    let adapter = app.adapter(&controller.vendor)?;
    let kind = kind_of(&adapter.description().kinds, area, kind)?.clone();
    if let Some(message) = lacking(&format!("file '{}'", kind.id), kind.releases.as_ref(), &controller) {
        return Err(Error::Unknown(message));
    }
    let place = place_on_path(app, caller, Asked { is_of_site: kind.is_of_site, ..asked }).await?;
    caller.require_level(place.site_id, SiteLevel::Write)?;
    feature_is_permitted(caller, &place.controller.vendor, Danger::Normal)?;
    let fetching = Fetches::of(app).begin(place.controller.org_id, place.controller.id)?;
    let call = call_for(&place.controller, &origin.request_id)?;
    let tasks = app.tasks.clone();
    let work = async move {
        let _fetching = fetching;
        Fetch { by, adapter, call, kind, place, body }.carry_out(creation).await
    };
    tasks.spawn("files.fetch", work).await.map_err(Error::internal)?
}

impl Fetch {
    async fn carry_out(self, creation: Creation) -> Result<Response, Error> {
        let Self { by, adapter, call, kind, place, body } = self;
        let file = kind.file.clone().ok_or_else(|| Error::internal("the kind is no file"))?;
        let source = (place.controller.id, kind.id.clone());
        let sink = Arc::new(Sink::new((by.clone(), place.controller.org_id), body.name, file, source));
        let filter: Vec<(String, String)> = body.filter.into_iter().collect();
        let site = place.site_ref.as_deref();
        let stop = by.app.tasks.stopping();
        let came = tokio::select! {
            came = adapter.fetch_file(&call, (&kind.id, site), body.key.as_deref(), &filter, sink.clone()) => came,
            () = stop.cancelled() => {
                sink.clear().await?;
                return Err(Error::conflict("the service stops; fetch the file again"));
            }
        };
        let kept = match came {
            Ok(kept) => complete(&by, &sink, &kept.sha256, creation).await,
            Err(error) => Err(sink.refusal().unwrap_or_else(|| error.into())),
        };
        if kept.is_err()
            && let Err(error) = sink.clear().await
        {
            tracing::warn!(error = %error, "what came of a file was not removed; it is removed later");
        }
        kept
    }
}

/// Makes the file complete, with its audit entry and the answer for the request's key.
async fn complete(by: &By, sink: &Sink, sha256: &str, creation: Creation) -> Result<Response, Error> {
    let By { app, caller, origin } = by;
    let id = sink.id().await.ok_or_else(gone)?;
    let mut tx = app.db.write().await?;
    let file = files::complete(&mut tx, id, sha256, app.clock.now()).await?.ok_or_else(gone)?;
    let entry = NewEntry {
        org: file.org_id,
        actor: caller.actor(),
        action: "file.saved",
        target: ("file", id.0),
        detail: detail(&file),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tracing::info!(file.id = %id, user.id = %caller.user_id, body.bytes = file.size_bytes, "file {id} was fetched");
    creation.finish_lasting(tx, app, &format!("/files/{id}"), &View::from(file)).await
}
