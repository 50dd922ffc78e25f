//! Lists of objects of a kind, and one of them.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::adapter::Origin;
use heddle_core::page::Page;
use heddle_core::{ControllerId, SiteId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::list_query::ListQuery as _;
use heddle_kernel::list_query;
use heddle_store::model_objects::{self, ModelFilter, ModelObject, ModelObjectId};
use serde::Deserialize;

use super::kinds::{OnKind, admit, kind_of};

list_query! {
    /// Part of its label, its key or a text among its fields.
    pub(super) struct ListQuery of ModelObject {
        site_id: Option<SiteId>,
        controller_id: Option<ControllerId>,
        /// Id of the adapter of its controller.
        vendor: Option<String>,
        /// Identity of the device that it belongs to: its `device_key`.
        device: Option<String>,
        /// Who made it.
        origin: Option<Origin>,
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct OnObject {
    model_kind: String,
    model_object_id: ModelObjectId,
}

pub(super) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<OnKind>,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<ModelObject>>, Error> {
    let kind = kind_of(path.kind())?;
    admit(&app, &caller, kind)?;
    let asked = query.listing()?;
    let filter = ModelFilter {
        site_id: query.site_id,
        controller_id: query.controller_id,
        vendor: query.vendor,
        device: query.device,
        origin: query.origin,
        search: asked.search,
    };
    let mut tx = app.db.read().await?;
    let (items, total) = model_objects::list(&mut tx, &caller.scope(), kind.id, &filter, asked.order).await?;
    Ok(Answer(asked.page.of(items, total)))
}

pub(super) async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<OnObject>,
) -> Result<Answer<ModelObject>, Error> {
    found(&app, &caller, &path.model_kind, path.model_object_id).await.map(Answer)
}

pub(super) async fn found(
    app: &App,
    caller: &Caller,
    kind: &str,
    id: ModelObjectId,
) -> Result<ModelObject, Error> {
    let kind = kind_of(kind)?;
    admit(app, caller, kind)?;
    let mut tx = app.db.single().await?;
    let found = model_objects::find(&mut tx, &caller.scope(), kind.id, id).await?;
    found.ok_or(Error::NotFound("object"))
}
