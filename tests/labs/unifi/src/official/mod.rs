//! The official interface: `/integration/v1/…`, ids of its own, pages, filters, whole objects.

mod acl;
mod check;
mod collections;
mod filter;
mod firewall;
mod inventory;
mod networks;
mod page;
mod policy;
mod wifi;

use heddle_lab::{Answer, Context, Request};
use serde_json::{Map, Value, json};

use crate::access::Who;
use crate::console::Console;
use crate::facts::{Facts, Route};
use crate::reply::{Outcome, Refusal, inner_path};
use crate::row::{Row, is_uuid, text};
use crate::store::GLOBAL;

/// One call of a known route.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) route: &'static Route,
    /// The short name of the site; the controller's own scope where the route has none.
    pub(crate) site: String,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) body: Row,
}

impl Call<'_> {
    /// A parameter of the path.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The id of the object that the path names.
    pub(crate) fn id(&self) -> &str {
        self.parameters.values().next().and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn is_forced(&self) -> bool {
        self.request.query("force").as_deref() == Some("true")
    }
}

/// What a call answers with success: JSON, or nothing.
pub(crate) type Answered = Outcome<Value>;

/// Answers a call of the official interface: the parts after `/integration/v1`.
pub(crate) fn answer(
    own: &mut Console,
    request: &Request,
    parts: &[&str],
    who: &Who,
    is_lacking: bool,
    context: &mut Context,
) -> Answer {
    // Sessions of persons belong to the older interfaces.
    if !who.has_key {
        return crate::reply::console(401, "Unauthorized");
    }
    let path = inner_path(request).to_owned();
    let done = match find(own, request, parts, is_lacking) {
        Ok(Found::Route(route, place, parameters)) => {
            carry_out(own, request, route, place, parameters, context)
        }
        Ok(Found::OtherMethod(allowed)) => {
            let page = "<html><body><h1>405 Method Not Allowed</h1></body></html>";
            return Answer::html(405, page).with_header("allow", &allowed);
        }
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok((status, Value::Null)) => Answer::status(status),
        Ok((status, value)) => Answer::json(status, &value),
        Err(refusal) => refusal.official(&path, own.now),
    }
}

enum Found {
    /// The route, the id of the site, and the other parameters.
    Route(&'static Route, Option<String>, Map<String, Value>),
    /// The methods that the path has.
    OtherMethod(String),
}

fn find(own: &Console, request: &Request, parts: &[&str], is_lacking: bool) -> Outcome<Found> {
    let (place, rest) = match parts {
        ["sites", id, rest @ ..] if !rest.is_empty() => (Some((*id).to_owned()), rest),
        _ => (None, parts),
    };
    let matching = Facts::get()
        .official()
        .filter(|route| route.is_of_site == place.is_some() && own.settings.release.is_from(&route.since));
    let mut allowed = Vec::new();
    let mut best: Option<(&'static Route, Map<String, Value>)> = None;
    for route in matching {
        let Some(parameters) = parameters(route, rest) else { continue };
        allowed.push(route.method.as_str());
        let is_closer = best.as_ref().is_none_or(|(_, found)| parameters.len() < found.len());
        if route.method == request.method && is_closer {
            best = Some((route, parameters));
        }
    }
    match best {
        Some((route, parameters)) if !is_lacking => Ok(Found::Route(route, place, parameters)),
        None if !allowed.is_empty() && !is_lacking => Ok(Found::OtherMethod(allowed.join(", "))),
        _ => {
            let message = format!("No endpoint {} {}.", request.method, inner_path(request));
            Err(Refusal::of(404, "api.request.error", &message))
        }
    }
}

/// The parameters of a route, when the path is one of it.
fn parameters(route: &Route, parts: &[&str]) -> Option<Map<String, Value>> {
    let names: Vec<&str> = route.path.split('/').collect();
    if names.len() != parts.len() {
        return None;
    }
    let mut found = Map::new();
    for (name, part) in names.into_iter().zip(parts) {
        match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => drop(found.insert(name.to_owned(), json!(part))),
            None if name == *part => {}
            None => return None,
        }
    }
    Some(found)
}

fn carry_out(
    own: &mut Console,
    request: &Request,
    route: &'static Route,
    place: Option<String>,
    parameters: Map<String, Value>,
    context: &mut Context,
) -> Outcome<(u16, Value)> {
    let site = match place {
        None => GLOBAL.to_owned(),
        Some(id) => {
            is_id("siteId", &id)?;
            let site = own.store.by_uuid(GLOBAL, "site", &id).ok_or_else(|| absent("site", &id))?;
            text(site, "name").to_owned()
        }
    };
    for (name, value) in &parameters {
        let value = value.as_str().unwrap_or_default();
        match name.as_str() {
            "portIdx" if value.parse::<i64>().is_err() => return Err(mismatch(name, value)),
            "portIdx" => {}
            _ => is_id(name, value)?,
        }
    }
    let body = match request.json() {
        Some(Value::Object(body)) => body,
        None if request.body.is_empty() && route.body.is_empty() => Row::new(),
        _ => return Err(Refusal::of(400, "api.request.unreadable-body", "Request body is not readable")),
    };
    let body = if route.body.is_empty() { body } else { check::whole(own, route, body)? };
    let call = Call { request, route, site, parameters, body };
    let value = dispatch(own, &call, context)?;
    Ok((route.status, value))
}

fn dispatch(own: &mut Console, call: &Call<'_>, context: &mut Context) -> Answered {
    let (head, _) = call.route.path.split_once("/{").unwrap_or((&call.route.path, ""));
    match head {
        "networks" => networks::answer(own, call),
        "wifi/broadcasts" => wifi::answer(own, call),
        "firewall/zones" | "firewall/policies" | "firewall/policies/ordering" => firewall::answer(own, call),
        "acl-rules" | "acl-rules/ordering" => acl::answer(own, call),
        "dns/policies" | "traffic-matching-lists" | "hotspot/vouchers" => collections::answer(own, call),
        "devices" | "clients" | "pending-devices" => inventory::devices_and_clients(own, call, context),
        _ => inventory::answer(own, call),
    }
}

fn is_id(name: &str, value: &str) -> Outcome<()> {
    if is_uuid(value) { Ok(()) } else { Err(mismatch(name, value)) }
}

fn mismatch(name: &str, value: &str) -> Refusal {
    Refusal::of(
        400,
        "api.request.argument-type-mismatch",
        &format!("'{value}' is not a valid '{name}' value"),
    )
}

/// What an id that leads nowhere gets. No source names the code of it.
pub(crate) fn absent(what: &str, id: &str) -> Refusal {
    Refusal::of(404, "api.request.not-found", &format!("{what} '{id}' was not found"))
}

/// A value that the form lets pass and the controller does not. No source names the code of it.
pub(crate) fn invalid(message: &str) -> Refusal {
    Refusal::of(400, "api.request.invalid-value", message)
}

/// An object that is not the user's to change.
pub(crate) fn locked(what: &str) -> Refusal {
    Refusal::of(400, "api.request.not-modifiable", &format!("{what} is not user-defined"))
}

/// A refusal of the older interfaces in the words of this one.
pub(crate) fn translated(refusal: Refusal) -> Refusal {
    match refusal.code.strip_prefix("api.err.") {
        None => refusal,
        Some(code) => {
            let message = if refusal.message.is_empty() { code.to_owned() } else { refusal.message.clone() };
            let status = if refusal.status == 404 { 404 } else { 400 };
            Refusal::of(status, &refusal.code, &message)
        }
    }
}
