//! The adapter for UniFi Network: consoles with UniFi OS, by an API key or a local account, and self-hosted controllers.
//!
//! What it manages stands in `description.json`, which `cargo xtask vendor unifi` makes from facts about the interfaces;
//! the strategies of the SDK carry it out; `model.json` says what it fills of the model. The code here knows what an answer
//! means, below which path a controller is asked, how an element of a list is written, what a reviewer must be told beside
//! the plan, and what is at a site.

mod answer;
mod beside;
mod clients;
mod devices;
mod login;
mod model;
mod parts;
mod profile;
mod review;
mod site;
#[cfg(test)]
mod tests;
mod wire;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Fetching, Host, Listing,
    ModelChange, ModelPage, Object, ObjectPage, Outcome, Readiness, Response, SavedFile, Sent, SitePage,
    Stage, crud, register,
};

pub use answer::Unifi as Vendor;
use wire::Wire;

/// The adapter.
#[derive(Debug)]
pub struct Unifi;

impl Adapter for Unifi {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        profile::check(&Wire::of(host))
    }
    fn list_devices(host: &dyn Host, site: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        devices::list(&Wire::of(host), site)
    }
    fn list_sites(host: &dyn Host, _: Option<&str>) -> Result<SitePage, Fault> {
        site::list(&Wire::of(host))
    }
    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        crud::list_objects(&Vendor::of(host), &Wire::of(host), listing)
    }
    fn get_object(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
        crud::get_object(&Vendor::of(host), &Wire::of(host), kind, site, key)
    }
    fn fetch_file(host: &dyn Host, fetching: &Fetching<'_>) -> Result<SavedFile, Fault> {
        crud::fetch(&Vendor::of(host), &Wire::of(host), fetching)
    }
    fn list_model(
        host: &dyn Host,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        let wire = Wire::of(host);
        let mut page = crud::list_model(&Vendor::beside(&wire, kind, site)?, &wire, kind, site, cursor)?;
        model::rank(kind, &mut page.items);
        Ok(page)
    }
    fn express(host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        let wire = Wire::of(host);
        let one = |change: &ModelChange| {
            let vendor = Vendor::beside(&wire, &change.kind, change.site.as_deref())?;
            Ok(crud::express(&vendor, &wire, std::slice::from_ref(change))?.into_iter().flatten().collect())
        };
        changes.iter().map(one).collect()
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        let wire = Wire::of(host);
        let whole = parts::whole(&wire, changes)?;
        let mut plan = crud::plan(&Vendor::of(host), &wire, &whole.changes)?;
        whole.tell(&mut plan);
        review::complete(&wire, &mut plan, changes)?;
        wire.finish(&mut plan)?;
        Ok(plan)
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        crud::ready(&Vendor::of(host), &Wire::of(host), at, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        crud::judge(&Vendor::of(host), &Wire::of(host), call, answer, token)
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&Vendor::of(host), &Wire::of(host), token)
    }
}

register!(Unifi);
