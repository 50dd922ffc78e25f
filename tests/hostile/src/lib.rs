//! A component that does what no component should: one behaviour for each kind
//! of object, so that a test asks for exactly one of them.
//!
//! Its package is sound, so that it loads. It is built for tests only and
//! is in no package that is delivered.

mod burn;
mod model;
mod reach;
mod script;
mod write;

use heddle_sdk::{
    Adapter, Auth, Change, ChangePlan, Comparison, Completeness, Device, DevicePage, DeviceProfile, Fault,
    Host, Listing, ModelPage, Object, ObjectPage, ObjectRef, Outcome, Readiness, Request, Response, Sent,
    SitePage, Stage, fault, register,
};
use serde_json::Value;

/// The guest.
#[derive(Debug)]
pub struct Hostile;

/// One thing to do; an array becomes one object for each element.
type Behaviour = fn(&dyn Host) -> Value;

const BEHAVIOURS: &[(&str, Behaviour)] = &[
    ("calm", reach::calm),
    ("bindings", reach::bindings),
    ("held-bindings", reach::held_bindings),
    ("spin", burn::spin),
    ("spin-in-host-calls", burn::spin_in_host_calls),
    ("memory", burn::memory),
    ("recursion", burn::recursion),
    ("stack", burn::stack),
    ("huge-text", burn::huge_text),
    ("huge-list", burn::huge_list),
    ("huge-argument", burn::huge_argument),
    ("handles", burn::handles),
    ("log-flood", burn::log_flood),
    ("panic", burn::panic),
    ("unreachable", burn::unreachable),
    ("exit", burn::exit),
    ("not-json", burn::not_json),
    ("request-flood", reach::request_flood),
    ("request-flood-at-once", reach::request_flood_at_once),
    ("patience", reach::patience),
    ("paths", reach::paths),
    ("headers", reach::headers),
    ("other-targets", reach::other_targets),
    ("writes-in-read", reach::writes_in_read),
    ("batches", reach::batches),
    ("duplicate-keys", reach::duplicate_keys),
    ("secret", reach::secret),
    ("secret-places", reach::secret_places),
    ("session", reach::session),
    ("gzip-bomb", reach::gzip_bomb),
    ("endless-body", reach::endless_body),
    ("slow-body", reach::slow_body),
    ("redirect", reach::redirect),
];

/// A body that is no JSON; the host checks what it receives.
const NOT_JSON: &str = "{\"a\":";

impl Adapter for Hostile {
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
        host.send(Request::get("/read"), Auth::None)?;
        Ok(DeviceProfile {
            product: "Hostile".into(),
            version: "1".into(),
            fingerprint: "hostile-1".into(),
            capabilities: vec![],
            facts: vec![],
        })
    }

    fn list_devices(host: &dyn Host, site: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        let Some(site) = site else {
            host.send(Request::get("/read"), Auth::None)?;
            let device = Device { kind: "router".into(), ..Device::named("hostile") };
            return Ok(DevicePage { items: vec![device], next: None, complete: Completeness::Complete });
        };
        model::devices(host, site)
    }

    fn list_sites(host: &dyn Host, _: Option<&str>) -> Result<SitePage, Fault> {
        model::sites(host)
    }

    fn list_model(
        host: &dyn Host,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        model::page(host, kind, site, cursor)
    }

    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        let kind = listing.kind;
        let behaviour = BEHAVIOURS.iter().find(|(id, _)| *id == kind);
        let (_, behaviour) =
            behaviour.ok_or_else(|| fault::unsupported(format!("there is no behaviour '{kind}'")))?;
        let items = match behaviour(host) {
            Value::Array(items) => items,
            item => vec![item],
        };
        Ok(ObjectPage {
            items: items.into_iter().enumerate().map(|(n, body)| object(kind, n, &body)).collect(),
            next: None,
            total: None,
            complete: Completeness::Complete,
        })
    }

    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        if write::is_scripted(changes) { script::plan(host) } else { write::plan(host, changes) }
    }
    fn ready(
        host: &dyn Host,
        stage: Stage,
        changes: &[Change],
        _: &[u8],
        left: u32,
    ) -> Result<Readiness, Fault> {
        if write::is_scripted(changes) {
            return script::ready(host, stage, left);
        }
        write::ready(host, changes, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        changes: &[Change],
        _: &[u8],
    ) -> Result<Outcome, Fault> {
        if write::is_scripted(changes) {
            return script::judge(host, call, answer);
        }
        write::judge(host, changes, answer)
    }
    fn poll(host: &dyn Host, _: &[u8]) -> Result<Outcome, Fault> {
        script::poll(host)
    }
    fn compare(host: &dyn Host, changes: &[Change], _: &[u8]) -> Result<Comparison, Fault> {
        if write::is_scripted(changes) {
            return script::compare(host);
        }
        write::compare(host, changes).map(Comparison::from)
    }
}

fn object(kind: &str, number: usize, body: &Value) -> Object {
    let body = if kind == "not-json" { NOT_JSON.to_owned() } else { body.to_string() };
    Object {
        reference: ObjectRef { kind: kind.to_owned(), site: None, key: number.to_string(), locators: vec![] },
        revision: None,
        body,
    }
}

register!(Hostile);
