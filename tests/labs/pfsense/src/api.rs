//! From a request to its answer: who calls, which content types, which method, which route.

use heddle_lab::{Answer, Context, Request};
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::device::{Met, Pfsense};
use crate::facts::{Facts, Route};
use crate::release::Release;
use crate::reply::{Refusal, success};
use crate::store::is_true;
use crate::{access, actions, crud, graphql, php, removal, represent};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
pub(crate) const BINARY: &str = "application/octet-stream";

const LOGIN_PAGE: &str = "<!DOCTYPE html><html><head><title>pfSense - Login</title></head><body>\
    <form method=\"post\"><input name=\"usernamefld\"><input name=\"passwordfld\" type=\"password\"></form></body></html>";
const NOT_FOUND_PAGE: &str = "<html><head><title>404 Not Found</title></head><body><center><h1>404 Not Found</h1>\
    </center><hr><center>nginx</center></body></html>";
const BAD_GATEWAY_PAGE: &str = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway\
    </h1></center><hr><center>nginx</center></body></html>";

/// Answers one request on the web port.
pub(crate) fn answer(firewall: &mut Pfsense, request: &Request, context: &mut Context) -> Answer {
    if firewall.now < firewall.is_starting_until {
        return Answer::html(502, BAD_GATEWAY_PAGE);
    }
    let segments = request.segments();
    let ["api", "v2", rest @ ..] = segments.as_slice() else {
        let is_api = segments.first() == Some(&"api");
        return if is_api { Answer::html(404, NOT_FOUND_PAGE) } else { Answer::html(200, LOGIN_PAGE) };
    };
    let path = format!("/{}", rest.join("/"));
    let known = Facts::get().routes.get_key_value(&path);
    let is_installed = firewall.packages.contains("pfSense-pkg-RESTAPI");
    let Some((path, route)) = known.filter(|(_, route)| is_installed && route.exists_in(firewall.release))
    else {
        return Answer::html(404, NOT_FOUND_PAGE);
    };
    if context.fault("login_page", request).is_some() {
        return Answer::html(200, LOGIN_PAGE);
    }
    if context.fault("unavailable", request).is_some() {
        let text = "This resource is not installed or being updated.";
        return Refusal::unavailable("ENDPOINT_UNAVAILABLE", text, 5).answer();
    }
    let outcome = serve(firewall, path, route, request, context);
    firewall.met = Met::default();
    outcome.unwrap_or_else(Refusal::answer)
}

fn serve(
    firewall: &mut Pfsense,
    path: &'static str,
    route: &'static Route,
    request: &Request,
    context: &mut Context,
) -> Result<Answer, Refusal> {
    let settings = firewall.stored.single("RESTAPISettings");
    if !is_true(&settings, "enabled") && !route.ignore_enabled {
        let text = "The REST API is currently not enabled.";
        return Err(Refusal::unavailable("ENDPOINT_REST_API_IS_NOT_ENABLED", text, 5));
    }
    access::check_interface(firewall, route)?;
    let is_options = request.method == "OPTIONS";
    let user = if is_options {
        String::new()
    } else {
        access::authenticate(firewall, path, route, request, context)?
    };
    access::check_list(firewall, &user)?;
    accepted(request, route)?;
    if !is_options {
        check_method(path, route, &request.method, is_true(&settings, "read_only"))?;
    }
    let mut call = call_of(path, route, request, user)?;
    let prefers = request.header("prefer").unwrap_or_default().to_lowercase();
    call.steer(firewall.release, prefers.split(',').any(|token| token.trim() == "dry-run"))?;
    let is_write = request.method != "GET" && !is_options;
    let starts_job = is_write && (call.applies || path.ends_with("/apply"));
    firewall.met = Met {
        is_locked: is_write && context.fault("config_lock_busy", request).is_some(),
        is_overwritten: is_write && context.fault("lost_update", request).is_some(),
        is_queue_full: is_write && context.fault("queue_full", request).is_some(),
        is_reload_failing: starts_job && context.fault("reload_fails", request).is_some(),
    };
    if context.fault("php_error", request).is_some() {
        return Err(Refusal::unexpected("Unsupported operand types: string + int"));
    }
    if is_options {
        let methods = route.methods.join(", ");
        return Ok(success(json!([]), None).with_header("allow", &methods));
    }
    if let Some(own) = special(firewall, &call, request) {
        return own;
    }
    let data = act(firewall, &call)?;
    if accept(request) == BINARY {
        // The request is carried out before its answer is found to be no file.
        let text = "The requested resource cannot be encoded as a binary file.";
        return Err(Refusal::new(406, "BINARY_CONTENT_HANDLER_RESOURCE_NOT_SUPPORTED", text));
    }
    Ok(success(data, links(firewall, &call)))
}

/// The request with its fields, before the parameters that steer it are taken out.
fn call_of(
    path: &'static str,
    route: &'static Route,
    request: &Request,
    user: String,
) -> Result<Call, Refusal> {
    let model = Facts::get().model(&route.model);
    let model = model.ok_or_else(|| Refusal::unexpected("the model is unknown"))?;
    let (data, items) = match decode(request)? {
        Value::Array(items) => (Map::new(), items),
        Value::Object(data) => (data, Vec::new()),
        _ => (Map::new(), Vec::new()),
    };
    if request.method == "PUT" && route.many && !data.is_empty() {
        let text = "PUT requests must contain an array of objects.";
        return Err(Refusal::invalid("ENDPOINT_REQUEST_DATA_MUST_BE_INDEXED_ARRAY", text));
    }
    Ok(Call {
        method: request.method.clone(),
        model,
        route,
        path: path.to_owned(),
        client: format!("{user}@{} (API)", access::CLIENT_ADDRESS),
        user,
        data,
        items,
        applies: false,
        is_async: true,
        is_dry_run: false,
        appends: false,
        removes: false,
        is_reversed: false,
        placement: None,
        limit: 0,
        offset: 0,
        sort_by: None,
        is_descending: false,
        sort_flags: None,
    })
}

/// Answers that are no envelope, or that only code of one route makes.
fn special(firewall: &mut Pfsense, call: &Call, request: &Request) -> Option<Result<Answer, Refusal>> {
    match call.path.as_str() {
        "/graphql" => Some(Ok(graphql::answer(call))),
        "/system/certificate/pkcs12/export" => Some(crate::trust::export(firewall, call)),
        "/vpn/openvpn/client_export" => {
            let wants_bytes = accept(request) == BINARY;
            Some(crate::vpn::export(firewall, call, wants_bytes))
        }
        _ => {
            actions::answer(firewall, call).map(|data| data.map(|data| success(data, links(firewall, call))))
        }
    }
}

fn act(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    if firewall.release == Release::V2_7 && is_defective(call) {
        return Err(Refusal::unexpected("Attempt to read property on null"));
    }
    match (call.method.as_str(), call.route.many) {
        ("GET", true) => crud::list(firewall, call),
        ("GET", false) => crud::read(firewall, call),
        ("POST", _) => crud::create(firewall, call),
        ("PATCH", _) => crud::update(firewall, call),
        ("PUT", _) => removal::replace_all(firewall, call),
        (_, true) => removal::delete_many(firewall, call),
        (_, false) => removal::delete(firewall, call),
    }
}

/// Routes of the oldest release that only fail.
fn is_defective(call: &Call) -> bool {
    match call.model.name.as_str() {
        "HAProxyDNSResolver" | "HAProxyEmailMailer" => !call.route.many,
        "TrafficShaperLimiterQueue" => call.method == "PATCH",
        _ => false,
    }
}

/// The pages before and after, where the firewall is set to tell them.
fn links(firewall: &Pfsense, call: &Call) -> Option<Map<String, Value>> {
    if !firewall.has_links() {
        return None;
    }
    let mut out = Map::new();
    if call.route.many {
        let href = |offset: usize| json!({ "href": format!("/api/v2{}?offset={offset}&limit={}", call.path, call.limit), "method": "GET" });
        out.insert("prev".to_owned(), href(call.offset.saturating_sub(call.limit)));
        out.insert("next".to_owned(), href(call.offset + call.limit));
    }
    Some(out)
}

fn check_method(path: &str, route: &Route, method: &str, is_read_only: bool) -> Result<(), Refusal> {
    if !route.methods.iter().any(|own| own == method) {
        let text = format!("Resource at /api/v2{path} does not support the HTTP method '{method}'");
        return Err(Refusal::new(405, "ENDPOINT_METHOD_NOT_ALLOWED", &text));
    }
    if is_read_only && !route.ignore_read_only && method != "GET" {
        let text = format!("Resource at /api/v2{path} does not support `{method}` in read-only mode.");
        return Err(Refusal::new(405, "ENDPOINT_METHOD_NOT_ALLOWED_IN_READ_ONLY_MODE", &text));
    }
    Ok(())
}

/// The one type that the client takes. A list of types is compared as a whole, and then no known one.
fn accept(request: &Request) -> String {
    let accept = request.header("accept").unwrap_or_default().to_lowercase();
    let first = accept.split(';').next().unwrap_or_default().to_owned();
    if accept.is_empty() || accept == "*/*" { JSON.to_owned() } else { first }
}

fn accepted(request: &Request, route: &Route) -> Result<(), Refusal> {
    let kind = accept(request);
    let handler = match kind.as_str() {
        JSON => "JSONContentHandler",
        BINARY => "BinaryContentHandler",
        FORM => {
            let text = format!("Content handler `{kind}` cannot format a response.");
            return Err(Refusal::new(406, "CONTENT_HANDLER_CANNOT_ENCODE_CONTENT", &text));
        }
        _ => {
            let text = format!("No content handler exists for `{kind}`.");
            return Err(Refusal::new(406, "CONTENT_HANDLER_ENCODE_NOT_FOUND", &text));
        }
    };
    if !route.answers.is_empty() && !route.answers.iter().any(|own| own == handler) {
        let text = format!("The Accept value '{kind}' is not supported by this endpoint.");
        return Err(Refusal::new(406, "ENDPOINT_ACCEPT_NOT_SUPPORTED", &text));
    }
    Ok(())
}

/// The parameters of the query, or those of the body: the content type alone decides which.
fn decode(request: &Request) -> Result<Value, Refusal> {
    let sent = request.header("content-type").unwrap_or_default().to_lowercase();
    let usual = if ["GET", "DELETE", "OPTIONS"].contains(&request.method.as_str()) { FORM } else { JSON };
    let sent = sent.split(';').next().unwrap_or_default().trim();
    match if sent.is_empty() { usual } else { sent } {
        FORM => {
            let pairs = if request.query.is_empty() { request.form() } else { request.query_pairs() };
            Ok(Value::Object(php::query(pairs)))
        }
        JSON if request.body.is_empty() => Ok(json!({})),
        JSON => request.json().ok_or_else(|| {
            let text = "Request body could not be decoded as JSON.";
            Refusal::invalid("JSON_CONTENT_HANDLER_COULD_NOT_DECODE_JSON", text)
        }),
        BINARY => {
            let text = "Content handler `application/octet-stream` does not support decoding content.";
            Err(Refusal::new(415, "CONTENT_HANDLER_CANNOT_DECODE_CONTENT", text))
        }
        kind => {
            let text = format!("No content handler exists for `{kind}`.");
            Err(Refusal::new(415, "CONTENT_HANDLER_DECODE_NOT_FOUND", &text))
        }
    }
}

/// The shown form of rows.
pub(crate) fn shown(firewall: &Pfsense, call: &Call, rows: &[represent::Row]) -> Value {
    rows.iter().map(|row| represent::shown(firewall, call.model, row)).collect()
}
