//! A file that a device gives: a backup, an export, a support bundle.
//!
//! The file can hold every secret of the device, and the host removes none of them. So a fetch needs the right to files and
//! the rights of a write in the area. The adapter gets no bytes of the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use heddle_core::SiteLevel;
use heddle_core::adapter::ObjectKind;
use heddle_core::change::Danger;
use heddle_files::{FILE_NAME_CHARS_MAX, Fetches, Sink, View, checked_name, completed, gone};
use heddle_inventory::adapters::call_for;
use heddle_inventory::controllers::releases::lacking;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_runtime::{Adapter, Call};
use heddle_store::files::Source;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::gates::feature_is_permitted;
use crate::live::kind_of;
use crate::place::{Asked, Place, controller_on_path};

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
    #[schemars(length(min = 1, max = FILE_NAME_CHARS_MAX))]
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
    let seen = controller_on_path(app, caller, asked).await?;
    let adapter = app.adapter(&seen.controller.vendor)?;
    let kind = kind_of(adapter.description(), area, kind, true)?.clone();
    if let Some(message) = lacking(&format!("file '{}'", kind.id), kind.releases.as_ref(), &seen.controller) {
        return Err(Error::Unknown(message));
    }
    let place = seen.place(caller, Asked { is_of_site: kind.is_of_site, ..asked })?;
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
        let source =
            Source { controller_id: place.controller.id, site_id: place.site_id, kind: kind.id.clone() };
        let sink = Arc::new(Sink::new((by.clone(), place.controller.org_id), body.name, file, source));
        let filter: Vec<(String, String)> = body.filter.into_iter().collect();
        let site = place.site_ref.as_deref();
        let stop = by.app.tasks.stopping();
        let came = tokio::select! {
            came = adapter.fetch_file(&call, (&kind.id, site), body.key.as_deref(), &filter, sink.clone()) => came,
            () = stop.cancelled() => {
                sink.clear().await?;
                return Err(Error::Unavailable("service stops; fetch the file again".to_owned()));
            }
        };
        let kept = match came {
            Ok(_) => complete(&by, &sink, creation).await,
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
async fn complete(by: &By, sink: &Sink, creation: Creation) -> Result<Response, Error> {
    let (id, sha256) = sink.whole().await.ok_or_else(gone)?;
    let mut tx = by.app.db.write().await?;
    let file = completed(&mut tx, by, (id, &sha256), "file.saved").await?;
    creation.finish_lasting(tx, &by.app, &format!("/files/{id}"), &View::from(file)).await
}
