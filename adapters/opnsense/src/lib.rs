//! The adapter for `OPNsense`: its HTTP API, with a key as the user name and its secret as the password.
//!
//! What it manages stands in `description.json`, which `cargo xtask vendor opnsense` makes from facts about the API;
//! the strategies of the SDK carry it out. The code here knows what an answer means, who the firewall is, and what is
//! behind it.

mod acted;
mod answer;
mod clients;
mod devices;
mod jobs;
mod model;
mod profile;
#[cfg(test)]
mod tests;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Fetching, Host, Listing,
    ModelChange, ModelPage, Object, ObjectPage, Outcome, Readiness, Response, SavedFile, Sent, Stage, crud,
    register,
};

pub use answer::Opnsense as Vendor;

/// The adapter.
#[derive(Debug)]
pub struct Opnsense;

const VENDOR: Vendor = Vendor;

impl Adapter for Opnsense {
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
    fn fetch_file(host: &dyn Host, fetching: &Fetching<'_>) -> Result<SavedFile, Fault> {
        crud::fetch(&VENDOR, host, fetching)
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
        crud::plan(&VENDOR, host, changes)
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        crud::ready(&VENDOR, host, at, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        changes: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        crud::judge(&VENDOR, host, call, answer, token).map(|outcome| jobs::judged(outcome, changes))
    }
    fn poll(host: &dyn Host, _: &[u8]) -> Result<Outcome, Fault> {
        jobs::poll(host)
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&VENDOR, host, token)
    }
}

register!(Opnsense);
