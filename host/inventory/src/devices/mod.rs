//! Devices, as the last reading of their controllers found them, and what people write on them.
//!
//! Nothing here reaches a device.

mod bulk;
pub mod declarations;
mod edit;
mod labels;

use heddle_core::adapter::DeviceStatus;
use heddle_core::device::DeviceState;
use heddle_core::event::NewEvent;
use heddle_core::{ControllerId, Role, SiteId, SiteLevel};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::feature::Feature;
use heddle_kernel::feature::Names;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::{
    self, Actions, By, Done, Listed, ReadOperation, Resource, Rows, StepObject, Takes, Verbs, actions,
};
use heddle_store::devices::{self, Device, DeviceFilter};
use heddle_store::object::Object as _;
use heddle_store::{Controller, Scope, Tx, vendor_sites};
use serde_json::{Value, json};

use crate::devices::declarations::{DEVICE_READ, DEVICE_STATE_CHANGED, DEVICE_WRITE};

list_query! {
    /// Part of one of its names or of another identifying field.
    pub struct ListQuery of Device {
        site_id: Option<SiteId>,
        controller_id: Option<ControllerId>,
        /// Id of the adapter of its controller.
        vendor: Option<String>,
        kind: Option<String>,
        status: Option<DeviceStatus>,
        state: Option<DeviceState>,
        /// Exactly one of the device's tags.
        tag: Option<String>,
    }
}

/// What the readings of controllers found.
pub struct Devices;

impl Feature for Devices {
    fn name(&self) -> &'static str {
        "devices"
    }

    fn declares(&self) -> &'static Names {
        const { &Names::of(declarations::PERMISSIONS, declarations::EVENTS, declarations::SUBSCRIPTIONS) }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::DEVICES
    }

    fn step_objects(&self) -> &'static [StepObject] {
        const { &[IN_STEPS] }
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let write = Access::Permission(DEVICE_WRITE);
        Verbs::<Devices>::of("device_id", Access::Permission(DEVICE_READ), write)
            .listed("Devices")
            .get(resource::get::<Devices>, "One device")
            .update::<edit::UpdateBody, _, _>(
                edit::update,
                "Name, tag and annotate a device, or take it into maintenance, in which it may go offline without a \
                 device.offline event",
            )
            .remove(
                resource::remove::<Devices>,
                "Remove a device that is gone; one that its controller still reports comes back with the next \
                 reading, with its id and all that was written on it",
            )
            .writing(Access::RoleWith(Role::OrgAdmin, DEVICE_WRITE))
            .restore(resource::restore::<Devices>, "Bring a removed device back")
            .routes()
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

impl Resource for Devices {
    type Row = Device;
    const NOUN: &'static str = "device";
    const PATH: &'static str = "/devices";
    const ACTIONS: Actions = actions!("device");
    type View = Device;

    fn view(device: Device, _: &App) -> Result<Device, Error> {
        Ok(device)
    }

    fn detail(device: &Device) -> Value {
        json!({ "name": device.name, "identity": device.identity })
    }

    /// An edit says itself what it changed.
    fn event(done: Done, device: &Device, _: &By) -> Option<NewEvent> {
        match done {
            Done::Removed | Done::Restored => Some(state_changed(device, &["deleted_at"])),
            Done::Created | Done::Updated => None,
        }
    }

    /// The level at its site decides.
    fn admit(_: &Caller) -> Result<(), Error> {
        Ok(())
    }

    fn site(device: &Device) -> Option<(SiteId, SiteLevel)> {
        Some((device.site_id, SiteLevel::Write))
    }

    async fn may_restore(device: &Device, tx: &mut Tx, _: &By) -> Result<(), Error> {
        let scope = Scope::organization(device.org_id);
        if Controller::find(tx, &scope, device.controller_id).await?.is_none() {
            return Err(Error::conflict("controller of the device was removed: restore it first"));
        }
        let Some(site_ref) = &device.site_ref else { return Ok(()) };
        match vendor_sites::find(tx, device.controller_id, site_ref).await? {
            Some(site) if site.is_ignored => Err(Error::conflict(format!(
                "site '{}' of the device's controller is ignored; change that at \
                 /controllers/{}/vendor-sites/{site_ref}",
                site.name, device.controller_id
            ))),
            _ => Ok(()),
        }
    }
}

impl Listed for Devices {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, query: ListQuery, asked: Listing<Device>) -> Rows<Device> {
        let filter = DeviceFilter {
            site_id: query.site_id,
            controller_id: query.controller_id,
            vendor: query.vendor,
            kind: query.kind,
            status: query.status,
            state: query.state,
            tag: query.tag,
            search: asked.search,
        };
        Ok(devices::list(tx, &caller.scope(), &filter, asked.order).await?)
    }
}

/// Devices in steps.
const IN_STEPS: StepObject = StepObject {
    reads: &[
        ReadOperation::list::<Devices>(
            "devices.list",
            "Devices as they were last seen",
            DEVICE_READ,
            &[
                ("site_id", Takes::Id),
                ("controller_id", Takes::Id),
                ("status", Takes::WordOf(|| json!(DeviceStatus::ALL))),
                ("search", Takes::Text),
            ],
        ),
        ReadOperation::one::<Devices>("devices.get", "One device as it was last seen", DEVICE_READ),
    ],
    ..StepObject::named::<Devices>("device_id")
};

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
