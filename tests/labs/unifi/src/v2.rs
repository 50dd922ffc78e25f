//! The second interface: `/v2/api/…`, bare arrays and objects.

mod collections;
mod firewall;
mod views;

pub(crate) use firewall::{add_zone, delete_zone, write_zone};

use heddle_lab::{Answer, Request};
use serde_json::{Value, json};

use crate::access::Who;
use crate::console::Console;
use crate::reply::{Outcome, Refusal};
use crate::row::Row;

/// One call below a site.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) site: &'a str,
    pub(crate) body: Value,
}

impl Call<'_> {
    pub(crate) fn fields(&self) -> Outcome<&Row> {
        self.body.as_object().ok_or_else(|| Refusal::new("InvalidPayload"))
    }
}

/// Answers a call of the second interface: the parts after `/v2/api`.
pub(crate) fn answer(own: &mut Console, request: &Request, parts: &[&str], who: &Who) -> Answer {
    let done = match parts {
        ["site", site, rest @ ..] if own.store.has_site(site) => below(own, request, site, rest, who),
        ["fingerprint_devices", _] if request.method == "GET" => Ok(views::fingerprints()),
        _ => Err(Refusal::not_found()),
    };
    match done {
        Ok(value) => Answer::json(200, &value),
        Err(refusal) if refusal.status == 405 => Answer::status(405),
        Err(refusal) => refusal.v2(),
    }
}

fn below(own: &mut Console, request: &Request, site: &str, parts: &[&str], who: &Who) -> Outcome<Value> {
    let is_reading = request.method == "GET" || matches!(parts, ["system-log" | "traffic-flows", ..]);
    if !who.may_write && !is_reading {
        return Err(Refusal::read_only());
    }
    let body = match request.json() {
        Some(body) => body,
        None if request.body.is_empty() => json!({}),
        None => return Err(Refusal::new("InvalidPayload")),
    };
    let call = Call { request, site, body };
    match parts {
        ["firewall-policies" | "firewall", ..] => firewall::answer(own, &call, parts),
        _ => match views::answer(own, &call, parts) {
            Some(done) => done,
            None => collections::answer(own, &call, parts),
        },
    }
}
