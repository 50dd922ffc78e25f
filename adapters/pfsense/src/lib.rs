//! The adapter for pfSense, by the REST API package that is installed on it.
//!
//! What it manages stands in `description.json`, which `cargo xtask vendor pfsense` makes from facts about the API; the
//! strategies of the SDK carry it out. The code here knows what an answer means, who the firewall is, and what is behind it.
//!
//! Ids are places in lists, and each write can move them. An object is known by its natural key: its place is looked up
//! before every call that names it, and the call has a hole for it.

mod answer;
mod clients;
mod devices;
mod model;
mod profile;
#[cfg(test)]
mod tests;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Host, Listing, ModelChange,
    ModelPage, Object, ObjectPage, Outcome, Readiness, Response, Sent, Stage, crud, fault, register,
};

pub use answer::Pfsense as Vendor;

/// The adapter.
#[derive(Debug)]
pub struct Pfsense;

impl Adapter for Pfsense {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        profile::check(host)
    }
    fn list_devices(host: &dyn Host, _: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        devices::list(host)
    }
    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        crud::list_objects(&Vendor::of(host), host, listing)
    }
    fn get_object(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
        crud::get_object(&Vendor::of(host), host, kind, site, key)
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
        crud::express(&Vendor::of(host), host, changes)
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        crud::plan(&Vendor::of(host), host, changes)
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        crud::ready(&Vendor::of(host), host, at, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        crud::judge(&Vendor::of(host), host, call, answer, token)
    }
    fn poll(_: &dyn Host, _: &[u8]) -> Result<Outcome, Fault> {
        Err(fault::unsupported("the firewall tells of no job"))
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&Vendor::of(host), host, token)
    }
}

register!(Pfsense);
