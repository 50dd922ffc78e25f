//! A whole adapter that only reads: one device, asked by one request.

use heddle_sdk::prelude::*;

pub(crate) struct Acme;

impl Adapter for Acme {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        let about = host.send(Request::get("/about"), Auth::session("main"))?.json()?;
        let say = |pointer| json::text(&about, pointer).unwrap_or_default();
        Ok(DeviceProfile::new(say("/model"), say("/version")))
    }

    fn list_devices(host: &dyn Host, _: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        let about = host.send(Request::get("/about"), Auth::session("main"))?.json()?;
        let router = Device {
            kind: "router".to_owned(),
            status: Status::Online,
            attributes: about.to_string(),
            ..Device::named(json::text(&about, "/name").unwrap_or("acme"))
        };
        Ok(DevicePage { items: vec![router], next: None, complete: Completeness::Complete })
    }
}

register!(Acme);
