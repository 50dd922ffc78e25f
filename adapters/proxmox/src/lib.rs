//! The adapter for Proxmox VE: its JSON API, by API token or by ticket, as the controller's settings say.
//!
//! What it manages stands in `description.json`, which `cargo xtask vendor proxmox` makes from facts about the API; the
//! strategies of the SDK carry it out; `model.json` says what it fills of the model. The code here knows what an answer
//! means, how a task ends, which reads need a filter, what a reviewer must be told beside the plan, which nodes, guests
//! and storages there are, and what texts of the vendor mean to the model.

mod answer;
mod asked;
mod devices;
mod model;
mod names;
mod objects;
mod order;
mod profile;
mod review;
mod task;
#[cfg(test)]
mod tests;
mod wire;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Host, Listing, ModelChange,
    ModelPage, Object, ObjectPage, Outcome, Readiness, Response, Sent, Stage, crud, register,
};

pub use answer::Proxmox as Vendor;

/// The adapter.
#[derive(Debug)]
pub struct Proxmox;

impl Adapter for Proxmox {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        profile::check(host)
    }
    fn list_devices(host: &dyn Host, _: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        devices::list(host)
    }
    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        objects::list(host, listing)
    }
    fn get_object(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
        objects::get(host, kind, site, key)
    }
    fn list_model(
        host: &dyn Host,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        let mut page = crud::list_model(&Vendor::of(host), host, kind, site, cursor)?;
        model::distinguish(kind, &mut page.items);
        Ok(page)
    }
    fn express(host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        crud::express(&Vendor::of(host), host, changes)
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        let mut plan = crud::plan(&Vendor::of(host), host, changes)?;
        names::complete(host, &mut plan, changes);
        review::complete(&mut plan, changes);
        order::complete(host, &mut plan, changes)?;
        wire::complete(&mut plan);
        Ok(plan)
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        order::ready(host, at, token, left)
            .unwrap_or_else(|| crud::ready(&Vendor::of(host), host, at, &order::inner(token), left))
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        order::judge(host, (call.stage, call.index), &answer, token)
            .unwrap_or_else(|| crud::judge(&Vendor::of(host), host, call, answer, &order::inner(token)))
    }
    fn poll(host: &dyn Host, task: &[u8]) -> Result<Outcome, Fault> {
        task::poll(host, task)
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&Vendor::of(host), host, &order::inner(token))
    }
}

register!(Proxmox);
