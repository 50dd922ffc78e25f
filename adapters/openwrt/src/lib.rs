//! The adapter for `OpenWrt`: ubus over HTTP, configuration in UCI.
//!
//! Everything is computed on a model of the configuration files; the device
//! only ever gets calls that a person could read beforehand. The session, its
//! token and all secrets stay with the host.

mod comments;
mod compare;
mod description;
mod features;
mod foreign;
mod identity;
mod inventory;
mod lifecycle;
mod model;
mod plan;
mod power;
mod read;
mod rpc;
mod stages;
#[cfg(test)]
mod tests;
mod token;
mod touch;
mod uci;
mod world;

use heddle_sdk::{
    Adapter, Change, ChangePlan, Comparison, DevicePage, DeviceProfile, Fault, Host, Listing, ModelChange,
    ModelPage, Object, ObjectPage, Outcome, Readiness, Response, Sent, Stage, register,
};

pub use description::description;

/// The adapter.
#[derive(Debug)]
pub struct OpenWrt;

impl Adapter for OpenWrt {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        lifecycle::check(host)
    }
    fn list_devices(
        host: &dyn Host,
        _site: Option<&str>,
        _cursor: Option<&str>,
    ) -> Result<DevicePage, Fault> {
        inventory::devices::list(host)
    }
    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        listing.refuse_filters_but(&[])?;
        inventory::objects::list(host, listing.kind, listing.cursor, listing.limit)
    }
    fn get_object(host: &dyn Host, kind: &str, _site: Option<&str>, key: &str) -> Result<Object, Fault> {
        inventory::objects::get(host, kind, key)
    }
    fn list_model(
        host: &dyn Host,
        kind: &str,
        _site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        model::list(host, kind, cursor)
    }
    fn express(host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        model::express(host, changes)
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        plan::plan(host, changes)
    }
    fn ready(
        host: &dyn Host,
        stage: Stage,
        _changes: &[Change],
        token: &[u8],
        left: u32,
    ) -> Result<Readiness, Fault> {
        stages::ready(host, stage, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _changes: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        stages::judge(host, call, answer, token)
    }
    fn poll(host: &dyn Host, task: &[u8]) -> Result<Outcome, Fault> {
        power::poll(host, task)
    }
    fn compare(host: &dyn Host, _changes: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        compare::compare(host, token)
    }
}

register!(OpenWrt);
