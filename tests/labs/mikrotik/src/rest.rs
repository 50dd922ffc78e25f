//! From a request to a command of the console: paths, verbs, content types, and the answers of each.

use std::collections::BTreeMap;

use heddle_lab::{Answer, Context, Request};
use serde_json::{Map, Value, json};

use crate::access::{self, Denied, Who};
use crate::call::{Call, Done, Output, id_of};
use crate::console;
use crate::device::{Met, Router};
use crate::facts::{Facts, Kind, Menu};
use crate::pace;
use crate::print;
use crate::refusal::{Refusal, refused};
use crate::store::{Record, parse_id};

/// What a browser gets.
const PAGE: &str =
    "<!doctype html><html><head><title>RouterOS</title></head><body><h1>RouterOS</h1></body></html>";
const FORBIDDEN: &str =
    "<html><head><title>Error 403: Forbidden</title></head><body><h1>Error 403: Forbidden</h1></body></html>";

/// Answers one request on the web port.
pub(crate) fn answer(router: &mut Router, request: &Request, context: &mut Context) -> Answer {
    let segments = request.segments();
    let Some((&"rest", path)) = segments.split_first() else {
        return if segments.is_empty() { Answer::html(200, PAGE) } else { refused(404, "Not Found", None) };
    };
    if context.fault("rest_off", request).is_some() || !is_switched_on(router) {
        return Answer::html(403, FORBIDDEN);
    }
    match request.method.as_str() {
        "HEAD" => return refused(501, "Not Implemented", None),
        "OPTIONS" => return refused(503, "Service Unavailable", None),
        _ => {}
    }
    let who = match access::of_request(router, request) {
        Ok(who) => who,
        Err(Denied::Unauthorized) => {
            return refused(401, "Unauthorized", None)
                .with_header("www-authenticate", "Basic realm=\"RouterOS REST API\"");
        }
        Err(Denied::NotAllowed) => {
            return refused(500, "Internal Server Error", Some("std failure: not allowed (9)"));
        }
    };
    if !request.body.is_empty() && !has_json(request) {
        return refused(415, "Unsupported Media Type", None);
    }
    router.met = Met {
        update_fails: context.fault("update_fails", request).is_some(),
        sign_fails: context.fault("sign_fails", request).is_some(),
    };
    let slow_secs = context.fault("command_takes", request).and_then(|args| args["secs"].as_u64());
    let denies_done = context.fault("applied_with_400", request).is_some();
    let is_cut = context.fault("session_closed", request).is_some();
    pace::paced(router, &who.name.clone(), |router| {
        let (answer, secs) = served(router, request, path, &who);
        if is_cut {
            return (Refusal::Cut.answer(), secs);
        }
        let answer = if denies_done {
            refused(400, "Bad Request", Some("missing or invalid resource identifier"))
        } else {
            answer
        };
        (answer, slow_secs.or(secs))
    })
}

/// Whether REST is switched on for the protocol of the request.
fn is_switched_on(router: &Router) -> bool {
    let name = if router.settings.is_secure { "rest-secure" } else { "rest-plain" };
    router.store.setting("ip/service/webserver", name) != "false"
}

fn has_json(request: &Request) -> bool {
    let kind = request.header("content-type").unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// A place in the tree of menus.
struct Place {
    path: &'static str,
    menu: &'static Menu,
    /// What follows the menu: nothing, a row, or a command.
    rest: Option<String>,
}

/// Finds the menu of a path, or says which part of it is unknown.
fn place(router: &Router, segments: &[&str]) -> Result<Place, Refusal> {
    let facts = Facts::get();
    let unknown = |segment: &str| Refusal::Unclear(format!("no such command or directory ({segment})"));
    let path_of = |depth: usize| segments[..depth].join("/");
    let depth = (1..=segments.len()).rev().find(|depth| router.has_directory(&path_of(*depth))).unwrap_or(0);
    let path = path_of(depth);
    let rest = &segments[depth..];
    if rest.len() > 1 {
        return Err(unknown(rest[0]));
    }
    let found = facts.menu(&path).filter(|(path, _)| path.is_empty() || router.has_menu(path));
    let Some((path, menu)) = found else {
        return Err(rest.first().map_or_else(|| Refusal::unclear("no such command"), |rest| unknown(rest)));
    };
    if let Some(rest) = rest.first() {
        // A menu that other releases, packages or boxes have is no name of a row.
        let below = path_of(depth + 1);
        let is_elsewhere = facts.menu(&below).is_some() || facts.below(&below).next().is_some();
        let is_command = is_general(rest) || menu.can(rest) || menu.command(rest, router.release).is_some();
        if is_elsewhere || (menu.kind_in(router.release) != Kind::List && !is_command) {
            return Err(unknown(rest));
        }
    }
    Ok(Place { path, menu, rest: rest.first().map(|rest| (*rest).to_owned()) })
}

/// Commands of every menu that holds anything.
fn is_general(command: &str) -> bool {
    ["print", "get", "getall", "listen"].contains(&command)
}

/// The answer, and the seconds that the command ran.
fn served(router: &mut Router, request: &Request, segments: &[&str], who: &Who) -> (Answer, Option<u64>) {
    // A star that is percent-encoded is read as a name.
    let is_encoded = request.path.contains("%2A") || request.path.contains("%2a");
    let place = match place(router, segments) {
        Ok(_) if is_encoded => return at_once(Refusal::unclear("no such command prefix").answer()),
        Ok(place) => place,
        Err(refusal) => return at_once(refusal.answer()),
    };
    let body = match body(request) {
        Ok(body) => body,
        Err(refusal) => return at_once(refusal.answer()),
    };
    match request.method.as_str() {
        "GET" => at_once(read(router, request, &place, who).unwrap_or_else(|refusal| refusal.answer())),
        "PUT" => at_once(create(router, &place, body, who).unwrap_or_else(|refusal| refusal.answer())),
        "PATCH" => at_once(update(router, &place, body, who)),
        "DELETE" => at_once(delete(router, &place, who)),
        "POST" => command(router, &place, body, who),
        _ => at_once(refused(405, "Method Not Allowed", None)),
    }
}

fn at_once(answer: Answer) -> (Answer, Option<u64>) {
    (answer, Some(0))
}

/// Fields of a body, with the words of a query and the names that rows are limited to.
#[derive(Default)]
struct Body {
    args: BTreeMap<String, String>,
    query: Vec<String>,
    proplist: Option<Vec<String>>,
}

fn body(request: &Request) -> Result<Body, Refusal> {
    if request.body.is_empty() {
        return Ok(Body::default());
    }
    let Some(Value::Object(fields)) = request.json() else {
        return Err(Refusal::unclear("invalid JSON"));
    };
    let mut out = Body::default();
    for (name, value) in fields {
        match name.as_str() {
            ".query" => out.query = texts(&value),
            ".proplist" => out.proplist = Some(texts(&value).iter().flat_map(|text| split(text)).collect()),
            _ => drop(out.args.insert(name.clone(), scalar(&name, &value)?)),
        }
    }
    Ok(out)
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect(),
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// A value as the console reads it. `null` clears a field, as an empty text does.
fn scalar(name: &str, value: &Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(on) => Ok(if *on { "yes" } else { "no" }.to_owned()),
        Value::Null => Ok(String::new()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
        // Numbers with an exponent or a fraction are refused.
        Value::Number(_) => Err(Refusal::invalid(name)),
        Value::Array(items) => {
            let parts = items.iter().map(|item| scalar(name, item)).collect::<Result<Vec<_>, _>>()?;
            Ok(parts.join(","))
        }
        Value::Object(_) => Err(Refusal::invalid(name)),
    }
}

fn read(router: &mut Router, request: &Request, place: &Place, who: &Who) -> Result<Answer, Refusal> {
    let no_command = || Refusal::unclear("no such command");
    let mut call = call(place, "print", Body::default(), who);
    access::check(&call)?;
    if let Some(rest) = &place.rest {
        if place.menu.kind_in(router.release) != Kind::List {
            return Err(no_command());
        }
        let id = row(router, place, rest)?;
        return Ok(json(200, &value_of(print::get(router, place.path, place.menu, who, id)?)));
    }
    if place.menu.kind_in(router.release) == Kind::None {
        return Err(no_command());
    }
    for (name, value) in request.query_pairs() {
        match name.as_str() {
            ".proplist" => call.proplist = Some(split(&value)),
            // Only a body takes a query.
            ".query" => {}
            _ => call.query.push(format!("={name}={value}")),
        }
    }
    let done = console::run(router, &call)?;
    Ok(json(200, &shown(done.output)))
}

/// A row by what the path says: an id, or a name where rows have one.
fn row(router: &Router, place: &Place, text: &str) -> Result<u64, Refusal> {
    if parse_id(text).is_some() {
        return id_of(router, place.path, text);
    }
    if place.menu.can(text) || place.menu.command(text, router.release).is_some() || is_general(text) {
        return Err(Refusal::unclear("no such command"));
    }
    if !place.menu.has_names() {
        return Err(Refusal::unclear("no such command prefix"));
    }
    print::id_by_name(router, place.path, text).ok_or(Refusal::NoSuchItem)
}

fn create(router: &mut Router, place: &Place, body: Body, who: &Who) -> Result<Answer, Refusal> {
    if place.rest.is_some() || place.menu.kind_in(router.release) != Kind::List || !place.menu.can("add") {
        return Err(Refusal::unclear("no such command"));
    }
    let done = console::run(router, &call(place, "add", body, who))?;
    let Output::Value(id) = done.output else { return Err(Refusal::failure("no id")) };
    let number = parse_id(&id).ok_or(Refusal::NoSuchItem)?;
    let created = print::get(router, place.path, place.menu, who, number)?;
    if !router.release.tells_created() {
        return Ok(json(200, &value_of(created)));
    }
    Ok(json(201, &value_of(created)).with_header("location", &format!("/rest/{}/{id}", place.path)))
}

fn missing_row() -> Answer {
    refused(400, "Bad Request", Some("missing or invalid resource identifier"))
}

fn update(router: &mut Router, place: &Place, mut body: Body, who: &Who) -> Answer {
    let Some(rest) = place.rest.as_ref().filter(|_| place.menu.kind_in(router.release) == Kind::List) else {
        return missing_row();
    };
    if !place.menu.can("set") {
        return Refusal::unclear("no such command").answer();
    }
    let id = match row(router, place, rest) {
        Ok(id) => id,
        Err(refusal) => return refusal.answer(),
    };
    body.args.insert(".id".to_owned(), crate::store::shown_id(id));
    let changed = console::run(router, &call(place, "set", body, who));
    let shown = changed.and_then(|_| print::get(router, place.path, place.menu, who, id));
    match shown {
        Ok(row) => json(200, &value_of(row)),
        Err(refusal) => refusal.answer_of_row(),
    }
}

fn delete(router: &mut Router, place: &Place, who: &Who) -> Answer {
    let Some(rest) = place.rest.as_ref().filter(|_| place.menu.kind_in(router.release) == Kind::List) else {
        return missing_row();
    };
    if !place.menu.can("remove") {
        return Refusal::unclear("no such command").answer();
    }
    let id = match row(router, place, rest) {
        Ok(id) => id,
        Err(refusal) => return refusal.answer(),
    };
    let body = Body { args: [(".id".to_owned(), crate::store::shown_id(id))].into(), ..Body::default() };
    match console::run(router, &call(place, "remove", body, who)) {
        Ok(_) if router.release.tells_created() => Answer::status(204),
        Ok(_) => Answer::status(200),
        Err(refusal) => refusal.answer_of_row(),
    }
}

fn command(router: &mut Router, place: &Place, body: Body, who: &Who) -> (Answer, Option<u64>) {
    let Some(name) = &place.rest else { return at_once(Refusal::unclear("no such command").answer()) };
    let is_known =
        is_general(name) || place.menu.can(name) || place.menu.command(name, router.release).is_some();
    if parse_id(name).is_some() || !is_known {
        return at_once(Refusal::unclear("no such command").answer());
    }
    match console::run(router, &call(place, name, body, who)) {
        Ok(Done { output, secs }) => (json(200, &shown(output)), secs),
        Err(refusal) => at_once(refusal.answer()),
    }
}

fn call<'a>(place: &Place, command: &'a str, body: Body, who: &'a Who) -> Call<'a> {
    let Body { args, query, proplist } = body;
    Call { path: place.path, menu: place.menu, command, args, query, proplist, who }
}

fn value_of(record: Record) -> Value {
    Value::Object(record.into_iter().map(|(name, value)| (name, json!(value))).collect::<Map<_, _>>())
}

fn shown(output: Output) -> Value {
    match output {
        Output::Nothing => json!([]),
        Output::Rows(rows) => Value::Array(rows.into_iter().map(value_of).collect()),
        Output::Object(row) => value_of(row),
        Output::Value(text) => json!({ "ret": text }),
    }
}

/// A body in which control characters stand as they are: the router escapes only line ends and tabs.
fn json(status: u16, value: &Value) -> Answer {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(c) => out.push(c),
                    None => out.push_str(&format!("\\u{digits}")),
                }
            }
            Some(escaped) => out.extend(['\\', escaped]),
            None => out.push('\\'),
        }
    }
    Answer::body(status, "application/json", out)
}
