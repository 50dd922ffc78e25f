//! An adapter that reads and writes: what it manages is data in `description.json`, the strategies of the SDK carry it
//! out, and the code knows what an answer means and who the device is.

use heddle_sdk::crud::{Purpose, Vendor, Written};
use heddle_sdk::{
    Adapter, Auth, Change, ChangePlan, Comparison, Completeness, Device, DevicePage, DeviceProfile, Effect,
    Fault, FaultExt, Host, Listing, Object, ObjectPage, Outcome, Readiness, Request, Response, Sent, Stage,
    Status, crud, fault, json, register,
};
use serde_json::Value;

/// The session that the manifest declares below `auth`.
const SESSION: &str = "api";

pub(crate) struct Acme;

/// What answers of the device mean.
struct Api;

impl Vendor for Api {
    fn session(&self) -> &'static str {
        SESSION
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        match response.status {
            200 => response.json(),
            401 => Err(fault::authentication("the device refuses the user name or the password")),
            404 => Err(fault::not_found("the device has no such object")),
            status => Err(fault::generic(format!("the device answered status {status}"))),
        }
    }

    fn written(&self, _: Purpose, response: &Response) -> Result<Written, Fault> {
        match response.status {
            200 | 201 | 204 => Ok(Written::Done),
            // Refused before anything was changed: the effect of a new fault is none.
            401 => Err(fault::authentication("the device refuses the user name or the password")),
            409 => Err(fault::conflict("the name is taken")),
            422 => Err(refused(response)),
            status => Err(fault::generic(format!("the device answered status {status}"))
                .with_upstream_status(status)
                .with_effect(Effect::Possible)),
        }
    }
}

/// `{"fields": {"address": "is not an address"}}`
fn refused(response: &Response) -> Fault {
    let answer = response.json().unwrap_or_default();
    let fields = answer["fields"].as_object().into_iter().flatten();
    fields.fold(fault::invalid("the device does not accept the values"), |fault, (name, message)| {
        fault.with_field(format!("/{name}"), message.as_str().unwrap_or("is not accepted"))
    })
}

fn about(host: &dyn Host) -> Result<Value, Fault> {
    Api.content(&host.send(Request::get("/about"), Auth::session(SESSION))?)
}

impl Adapter for Acme {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        let about = about(host)?;
        let say = |pointer| json::text(&about, pointer).unwrap_or_default();
        Ok(DeviceProfile::new(say("/model"), say("/version")))
    }

    fn list_devices(host: &dyn Host, _: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        let about = about(host)?;
        let gateway = Device {
            kind: "router".to_owned(),
            status: Status::Online,
            ..Device::named(json::text(&about, "/name").unwrap_or("acme"))
        };
        Ok(DevicePage { items: vec![gateway], next: None, complete: Completeness::Complete })
    }

    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        crud::list_objects(&Api, host, listing)
    }

    fn get_object(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
        crud::get_object(&Api, host, kind, site, key)
    }

    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        crud::plan(&Api, host, changes)
    }

    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        crud::ready(&Api, host, at, token, left)
    }

    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        crud::judge(&Api, host, call, answer, token)
    }

    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&Api, host, token)
    }
}

register!(Acme);
