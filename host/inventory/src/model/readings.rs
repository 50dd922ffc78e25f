//! How the readings of a controller's objects went.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::adapter::{Completeness, Written};
use heddle_core::page::Page;
use heddle_core::{ControllerId, SiteId, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::list_query::ListQuery as _;
use heddle_kernel::list_query;
use heddle_runtime::Adapter;
use heddle_store::model_readings::{self, Shown};
use schemars::JsonSchema;
use serde::Serialize;

use crate::controllers::found_with_sites;

list_query! {
    pub(super) struct ListQuery of Shown {}
}

/// How the last reading of a kind at a controller, or at a vendor's site of it, went.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelReading")]
pub(super) struct Reading {
    /// Kind of the model, such as `vlan`.
    kind: String,
    /// The vendor's id of the site; null where the objects are the controller's.
    site_ref: Option<String>,
    /// The site that the objects belong to.
    site_id: SiteId,
    /// When the last reading began; null when one is due.
    begun_at: Option<Timestamp>,
    /// When a reading last came to the end of the list; null if never.
    read_at: Option<Timestamp>,
    /// Objects that are stored.
    #[schemars(range(min = 0))]
    objects: i64,
    /// Objects of the last reading that could not be stored.
    #[schemars(range(min = 0))]
    left_out: i64,
    /// Whether the last reading gave all that there is. Of a list that is not complete nothing that it lacks is removed.
    complete: Completeness,
    /// The first thing that was wrong with the last reading; null where nothing was.
    error: Option<String>,
    /// What can be asked of the objects, in the words of the model.
    writes: Vec<Written>,
}

impl Reading {
    fn of(Shown { row, site_id }: Shown, adapter: Option<&Adapter>) -> Self {
        let filled = adapter
            .and_then(|adapter| adapter.description().model.iter().find(|filled| filled.kind == row.kind));
        Self {
            writes: filled.map(|filled| filled.writes.clone()).unwrap_or_default(),
            kind: row.kind,
            site_ref: Some(row.site_ref).filter(|site_ref| !site_ref.is_empty()),
            site_id,
            begun_at: row.begun_at,
            read_at: row.read_at,
            objects: row.objects,
            left_out: row.left_out,
            complete: row.complete,
            error: row.error,
        }
    }
}

pub(super) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ControllerId>,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<Reading>>, Error> {
    let asked = query.listing()?;
    let mut tx = app.db.read().await?;
    let controller = found_with_sites(&mut tx, &caller, id).await?;
    let (items, total) = model_readings::page(&mut tx, &caller.scope(), controller.id, asked.order).await?;
    let adapter = app.adapter(&controller.vendor).ok();
    let items = items.into_iter().map(|shown| Reading::of(shown, adapter.as_ref()));
    Ok(Answer(asked.page.of(items.collect(), total)))
}
