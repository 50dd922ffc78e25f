//! The adapter for `RouterOS` 7: its REST API, with the name and password of a user.
//!
//! What it manages stands in `description.json`, which `cargo xtask vendor mikrotik` makes from facts about the API; the
//! strategies of the SDK carry it out. The code here knows what an answer means, who the router is, and what its rows are in
//! the words of the model.

mod answer;
mod away;
mod clients;
mod devices;
mod hold;
mod model;
mod order;
mod profile;
#[cfg(test)]
mod tests;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Host, Listing, ModelChange,
    ModelPage, Object, ObjectPage, Outcome, Readiness, Response, Sent, Stage, crud, register,
};

pub use answer::RouterOs as Vendor;

/// The adapter.
#[derive(Debug)]
pub struct Mikrotik;

const VENDOR: Vendor = Vendor;

impl Adapter for Mikrotik {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        profile::check(host)
    }
    fn list_devices(host: &dyn Host, _: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        devices::list(host)
    }
    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        crud::list_objects(&VENDOR, host, listing)
    }
    fn get_object(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
        crud::get_object(&VENDOR, host, kind, site, key)
    }
    fn list_model(
        host: &dyn Host,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        model::list(host, kind, site, cursor)
    }
    fn express(host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        crud::express(&VENDOR, host, changes)
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        away::alone(changes)?;
        order::once(changes)?;
        let plan = crud::plan(&VENDOR, host, &order::by_id(host, changes)?)?;
        Ok(hold::complete(host, changes, plan))
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        hold::ready(host, at, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        changes: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        if let Some(outcome) = away::judged(&answer, changes) {
            return Ok(outcome);
        }
        hold::judge(host, call, answer, token)
    }
    fn poll(host: &dyn Host, _: &[u8]) -> Result<Outcome, Fault> {
        away::poll(host)
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        hold::compare(host, token)
    }
}

register!(Mikrotik);
