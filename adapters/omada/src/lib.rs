//! The adapter for TP-Link Omada controllers: their Open API, with the id of an application as the user name and its
//! secret as the password.
//!
//! What it manages stands in `description.json`, which `cargo xtask vendor omada` makes from facts about the API; the
//! strategies of the SDK carry it out; `model.json` says what it fills of the model. The code here knows what an answer
//! means, which site is meant, who the controller is, what is at its sites, and what the vendor's numbers mean to the
//! model.

mod answer;
mod clients;
mod devices;
mod model;
mod parts;
mod profile;
mod site;
#[cfg(test)]
mod tests;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Host, Listing, ModelChange,
    ModelPage, Object, ObjectPage, Outcome, Readiness, Response, Sent, SitePage, Stage, crud, register,
};

pub use answer::Omada as Vendor;

/// The adapter.
#[derive(Debug)]
pub struct Omada;

const VENDOR: Vendor = Vendor;

impl Adapter for Omada {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        profile::check(host)
    }
    fn list_devices(host: &dyn Host, site: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        devices::list(host, site)
    }
    fn list_sites(host: &dyn Host, _: Option<&str>) -> Result<SitePage, Fault> {
        site::list(host)
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
        crud::list_model(&VENDOR, host, kind, site, cursor)
    }
    fn express(host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        crud::express(&VENDOR, host, changes)
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        crud::plan(&VENDOR, host, changes)
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        crud::ready(&VENDOR, host, at, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        crud::judge(&VENDOR, host, call, answer, token)
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&VENDOR, host, token)
    }
}

register!(Omada);
