//! Devices, as the last reading of their controllers found them, and what people write on them.
//!
//! Nothing here reaches a device.

mod bulk;
pub mod declarations;
mod edit;
mod labels;

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::adapter::DeviceStatus;
use heddle_core::declared::SubscriptionAccess;
use heddle_core::device::DeviceState;
use heddle_core::event::{EventType, NewEvent};
use heddle_core::page::Page;
use heddle_core::{ControllerId, DeviceId, Permission, Role, SiteId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::search;
use heddle_kernel::feature::Feature;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::One;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::devices::{self, Device, DeviceFilter};
use heddle_store::object::Object as _;
use heddle_store::{InOrder, Sort};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::devices::declarations::{DEVICE_READ, DEVICE_STATE_CHANGED, DEVICE_WRITE};

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
    /// Id of the adapter of its controller.
    vendor: Option<String>,
    kind: Option<String>,
    status: Option<DeviceStatus>,
    state: Option<DeviceState>,
    /// Exactly one of the device's tags.
    tag: Option<String>,
    /// Part of one of its names or of another identifying field.
    search: Option<String>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<Device>>,
}

/// What the readings of controllers found.
pub struct Devices;

impl Feature for Devices {
    fn name(&self) -> &'static str {
        "devices"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::DEVICES
    }

    fn permissions(&self) -> &'static [Permission] {
        declarations::PERMISSIONS
    }

    fn events(&self) -> &'static [EventType] {
        declarations::EVENTS
    }

    fn subscriptions(&self) -> &'static [(&'static str, SubscriptionAccess)] {
        declarations::SUBSCRIPTIONS
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let one = "/devices/{device_id}";
        let read = Access::Permission(DEVICE_READ);
        let write = Access::Permission(DEVICE_WRITE);
        Routes::default()
            .get("/devices", read, list, doc("Devices").query::<ListQuery>().answers::<Page<Device>>(200))
            .get(one, read, get, doc("One device").answers::<Device>(200))
            .patch(
                one,
                write,
                edit::update,
                doc("Name, tag and annotate a device, or take it into maintenance, in which it may go offline \
                     without a device.offline event")
                .body::<edit::UpdateBody>()
                .answers::<Device>(200),
            )
            .delete(
                one,
                write,
                edit::remove,
                doc("Remove a device that is gone; one that its controller still reports comes back with the next \
                     reading, with its id and all that was written on it")
                .empty(204),
            )
            .post(
                &format!("{one}/restore"),
                Access::RoleWith(Role::OrgAdmin, DEVICE_WRITE),
                edit::restore,
                doc("Bring a removed device back").answers::<Device>(200),
            )
            .post(
                "/devices/bulk",
                write,
                bulk::run,
                doc("Change or remove up to 200 devices, each by itself").named("change_devices")
                    .body::<bulk::BulkBody>()
                    .answers::<bulk::Done>(200),
            )
    }
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
        vendor: query.vendor,
        kind: query.kind,
        status: query.status,
        state: query.state,
        tag: query.tag,
        search: search(query.search)?,
    };
    let mut tx = app.db.read().await?;
    let (items, total) =
        devices::list(&mut tx, &caller.scope(), &filter, InOrder::by(page, query.sort)).await?;
    Ok(Answer(page.of(items, total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<DeviceId>,
) -> Result<One<Device>, Error> {
    let mut tx = app.db.single().await?;
    Device::find(&mut tx, &caller.scope(), id).await?.map(One).ok_or(Error::NotFound("device"))
}

/// Returns the event that these fields of a device changed.
fn state_changed(device: &Device, changed: &[&'static str]) -> NewEvent {
    NewEvent {
        event_type: DEVICE_STATE_CHANGED,
        org_id: device.org_id,
        site_id: Some(device.site_id),
        controller_id: Some(device.controller_id),
        device_id: Some(device.id),
        causation_id: None,
        run_id: None,
        payload: json!({
            "device_id": device.id,
            "controller_id": device.controller_id,
            "site_id": device.site_id,
            "changed": changed,
        }),
    }
}
