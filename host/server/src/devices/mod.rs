//! Devices, as the last reading of their controllers found them. Only reads.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::adapter::DeviceStatus;
use heddle_core::page::Page;
use heddle_core::{ControllerId, DeviceId, Permission, SiteId};
use heddle_store::devices::{self, Device, DeviceFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::SharedApp;
use crate::auth::Caller;
use crate::http::access::Access;
use crate::http::conditional::One;
use crate::http::error::Error;
use crate::http::extract::{At, PER_PAGE_MAX, Params, page_request};
use crate::http::routes::{Routes, doc};
use crate::tenancy::checks::search;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    site_id: Option<SiteId>,
    controller_id: Option<ControllerId>,
    kind: Option<String>,
    status: Option<DeviceStatus>,
    /// Part of the name or of another identifying field.
    search: Option<String>,
}

pub(crate) fn routes() -> Routes {
    let read = Access::Permission(Permission::DeviceRead);
    Routes::default()
        .get("/devices", read, list, doc("Devices").query::<ListQuery>().answers::<Page<Device>>(200))
        .get("/devices/{device_id}", read, get, doc("One device").answers::<Device>(200))
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<Device>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let filter = DeviceFilter {
        site_id: query.site_id,
        controller_id: query.controller_id,
        kind: query.kind,
        status: query.status,
        search: search(query.search)?,
    };
    let mut tx = app.db.read().await?;
    let (items, total) = devices::list(&mut tx, &caller.scope(), &filter, page).await?;
    Ok(Answer(page.of(items, total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<DeviceId>,
) -> Result<One<Device>, Error> {
    let mut tx = app.db.read().await?;
    devices::find(&mut tx, &caller.scope(), id).await?.map(One).ok_or(Error::NotFound("device"))
}
