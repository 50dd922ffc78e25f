//! Every answer that a route can give, derived from the route table.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::parameters::{honours_if_match, path_names, query_names};
use super::schemas::Schemas;
use crate::http::access::Access;
use crate::http::routes::{Mark, Route, Routes};

/// Statuses with their component and what they mean.
const FAILURES: &[(u16, &str, &str)] = &[
    (400, "BadRequest", "A rule of the business is not met, or the request cannot be read"),
    (401, "Unauthenticated", "The credential is missing, expired or revoked"),
    (403, "Forbidden", "The caller may not do this; the message names what is missing"),
    (404, "NotFound", "Absent, removed, or not visible to the caller"),
    (409, "Conflict", "Something else stands against it; the type says what"),
    (412, "PreconditionFailed", "The object was changed since it was read"),
    (413, "TooLarge", "The body exceeds its limit"),
    (422, "Invalid", "A field, a parameter or a header is not valid; the details name it"),
    (423, "Locked", "The account is locked after repeated failures"),
    (429, "TooManyRequests", "A rate limit"),
    (500, "Internal", "A fault of the server; the log says which"),
    (501, "NotImplemented", "Not available on this server"),
    (
        502,
        "DeviceFailed",
        "The controller or the identity provider cannot be reached, refuses the credential, or failed",
    ),
    (503, "Unavailable", "A part that is needed gives no answer; try again"),
    (504, "DeviceTimeout", "The controller or the identity provider gave no answer in time"),
];

/// The 403 of routes that a platform switch can forbid.
const SWITCHED_OFF: &str = "ForbiddenOrSwitchedOff";
/// The 429 of routes that also pass on a controller's own limit.
const DEVICE_LIMIT: &str = "TooManyRequestsHereOrThere";
/// The 413 of routes with a limit of their own.
const OWN_SIZE: &str = "TooLargeForTheRoute";

/// The `responses` of an operation.
pub(super) fn of(table: &Routes, route: &Route, schemas: &mut Schemas) -> Value {
    let query = route.doc.query.map(|query| query_names(&schemas.asked(query))).unwrap_or_default();
    let mut responses = Map::new();
    // A route that never succeeds has a failure as its only outcome.
    let outcome = match route.doc.status {
        status @ 400.. => failure(route, status),
        _ => success(table, route, schemas),
    };
    responses.insert(route.doc.status.to_string(), outcome);
    for status in statuses(route, &query) {
        responses.insert(status.to_string(), failure(route, status));
    }
    for (status, answer) in &route.doc.also {
        let schema = schemas.answered(*answer);
        let is_failure = responses.contains_key(&status.to_string());
        let schema = if is_failure { json!({ "anyOf": [schema, reference("ApiError")] }) } else { schema };
        let response = json!({
            "description": "The same in another state, as the summary says",
            "headers": named_headers(&["X-Request-ID", "X-Response-Time"]),
            "content": { "application/json": { "schema": schema } },
        });
        responses.insert(status.to_string(), response);
    }
    for status in &route.doc.pages {
        let page = page(responses.get(&status.to_string()));
        responses.insert(status.to_string(), page);
    }
    responses.sort_keys();
    Value::Object(responses)
}

/// A page for people, as an alternative to the usual answer of the status.
fn page(otherwise: Option<&Value>) -> Value {
    let mut content = json!({ "text/html": { "schema": { "type": "string" } } });
    if let Some(other) = otherwise {
        let own = &other["content"]["application/json"]["schema"];
        let schema = if own.is_null() { reference("ApiError") } else { own.clone() };
        content["application/json"]["schema"] = schema;
    }
    json!({
        "description": "A page for people",
        "headers": named_headers(&["X-Request-ID", "X-Response-Time"]),
        "content": content,
    })
}

/// Returns the possible failures, in the order of the statuses.
fn statuses(route: &Route, query: &[String]) -> Vec<u16> {
    let is_public = route.access == Access::Public;
    let is_write = route.method != Method::GET;
    let has_body = route.doc.body.is_some() || route.doc.file.is_some();
    let has_path = path_names(&route.path).next().is_some();
    let names_object = has_path || query.iter().any(|name| name.ends_with("_id"));
    let claims = [
        (400, is_write || has_path || !query.is_empty()),
        (401, !is_public),
        (403, !is_public || is_write),
        (404, names_object || route.access == Access::ByFeature),
        (409, is_write),
        (412, honours_if_match(route)),
        (413, true),
        (422, has_body || has_path || is_write || !query.is_empty()),
        (429, true),
        (500, true),
        (502, route.doc.has(Mark::CallsAdapter)),
        (503, true),
        (504, route.doc.has(Mark::CallsAdapter)),
    ];
    let mut found: Vec<u16> =
        claims.into_iter().filter_map(|(status, applies)| applies.then_some(status)).collect();
    found.extend(route.doc.fails_with.iter().copied().filter(|status| *status >= 400));
    found
}

fn failure(route: &Route, status: u16) -> Value {
    let named = FAILURES.iter().find(|(known, ..)| *known == status);
    let name = match status {
        403 if route.doc.has(Mark::Switched) => SWITCHED_OFF,
        413 if route.doc.fails_with.contains(&413) => OWN_SIZE,
        429 if route.doc.has(Mark::CallsAdapter) => DEVICE_LIMIT,
        _ => named.map_or("Internal", |(_, name, _)| name),
    };
    json!({ "$ref": format!("#/components/responses/{name}") })
}

fn success(table: &Routes, route: &Route, schemas: &mut Schemas) -> Value {
    let mut headers =
        named_headers(&["X-Request-ID", "X-Response-Time", "X-RateLimit-Limit", "X-RateLimit-Remaining"]);
    if route.doc.status == 201 {
        headers["Location"] = json!({ "$ref": "#/components/headers/Location" });
    }
    if route.doc.status == 303 {
        let about = "Where the browser goes on: below this server, or at the app";
        headers["Location"] =
            json!({ "required": true, "description": about, "schema": { "type": "string" } });
    }
    if is_object(table, route) {
        headers["ETag"] = json!({ "$ref": "#/components/headers/ETag" });
    }
    let mut response = json!({ "description": route.doc.summary, "headers": headers });
    if let Some(answer) = route.doc.answer {
        response["content"]["application/json"]["schema"] = schemas.answered(answer);
    }
    if let Some(media) = route.doc.media {
        let is_text = media.starts_with("text/");
        response["content"][media]["schema"] = if is_text {
            json!({ "type": "string" })
        } else {
            json!({ "type": "string", "format": "binary" })
        };
    }
    response
}

/// One object that can be changed: its answers carry its `ETag`.
fn is_object(table: &Routes, route: &Route) -> bool {
    let changes: Vec<&str> =
        table.iter().filter(|other| other.method == Method::PATCH).map(|other| other.path.as_str()).collect();
    match (route.method.as_str(), route.doc.status) {
        _ if route.doc.has(Mark::Tagged) => true,
        ("GET" | "PATCH", 200) => changes.contains(&route.path.as_str()),
        ("POST", 201) => changes
            .iter()
            .any(|one| one.rsplit_once("/{").is_some_and(|(collection, _)| collection == route.path)),
        _ => false,
    }
}

fn named_headers(names: &[&str]) -> Value {
    let header = |name: &&str| {
        let component = name.replace('-', "");
        ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{component}") }))
    };
    Value::Object(names.iter().map(header).collect())
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The `responses` of the components.
pub(super) fn components() -> Value {
    let mut found = Map::new();
    for (status, name, about) in FAILURES {
        found.insert((*name).to_owned(), component(*status, about, failure_schema(*status)));
    }
    let refusal = json!({ "anyOf": [reference("ApiError"), reference("Refusal")] });
    found.insert(
        SWITCHED_OFF.to_owned(),
        component(403, "The caller may not do this, or the platform has it switched off", refusal),
    );
    let size = json!({ "anyOf": [reference("ApiError"), reference("Refusal")] });
    found.insert(OWN_SIZE.to_owned(), component(413, "The body, or a part of it, exceeds its limit", size));
    let limit = json!({ "anyOf": [reference("ApiError"), reference("RateLimited")] });
    found.insert(
        DEVICE_LIMIT.to_owned(),
        component(429, "A rate limit of this server, or of the controller", limit),
    );
    Value::Object(found)
}

fn component(status: u16, about: &str, schema: Value) -> Value {
    let mut headers = named_headers(&["X-Request-ID", "X-Response-Time"]);
    match status {
        401 => headers["WWW-Authenticate"] = json!({ "$ref": "#/components/headers/WWWAuthenticate" }),
        429 => headers["Retry-After"] = json!({ "$ref": "#/components/headers/RetryAfter" }),
        _ => {}
    }
    json!({
        "description": about,
        "headers": headers,
        "content": { "application/json": { "schema": schema } },
    })
}

fn failure_schema(status: u16) -> Value {
    match status {
        413 => reference("Refusal"),
        422 => reference("ApiValidationError"),
        // A few routes have limits of their own, in the envelope.
        429 => json!({ "anyOf": [reference("ApiError"), reference("RateLimited")] }),
        _ => reference("ApiError"),
    }
}

/// The `headers` of the components.
pub(super) fn headers() -> Value {
    let header = |required: bool, about: &str, schema: Value| json!({ "required": required, "description": about, "schema": schema });
    let count = json!({ "type": "integer", "minimum": 0 });
    json!({
        "XRequestID": header(true, "Id of the request: the client's own when it is well formed", json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$" })),
        "XResponseTime": header(true, "Milliseconds", json!({ "type": "string", "pattern": "^[0-9]+\\.[0-9]+$" })),
        "XRateLimitLimit": header(false, "Requests per minute", count.clone()),
        "XRateLimitRemaining": header(false, "Requests that are left of them", count.clone()),
        "RetryAfter": header(false, "Seconds until another try can succeed", count),
        "ETag": header(true, "The object as it is now, for If-Match", json!({ "type": "string", "pattern": "^\"[0-9a-f]+\"$" })),
        "Location": header(true, "Where the new object is", json!({ "type": "string", "pattern": "^/api/v1/" })),
        "WWWAuthenticate": header(true, "How to authenticate", json!({ "type": "string", "const": "Bearer" })),
    })
}

/// The bodies of failures.
pub(super) fn schemas() -> Map<String, Value> {
    let mut found = Map::new();
    found.insert(
        "ApiError".to_owned(),
        envelope(&json!({ "type": "integer", "minimum": 400, "maximum": 599 })),
    );
    found.insert("ApiValidationError".to_owned(), envelope(&json!({ "type": "integer", "const": 422 })));
    found.insert(
        "ErrorDetail".to_owned(),
        json!({
            "type": "object",
            "properties": {
                "field": { "type": "string", "description": "JSON pointer of the field, such as `/payload/dest_port`, or of the object at the device that moved." },
                "message": { "type": "string", "description": "What is wrong with it, and what would be right." },
                "type": { "type": "string", "description": "A stable word for programs, such as `missing` or `unknown_field`." },
            },
            "required": ["field", "message", "type"],
            "additionalProperties": false,
        }),
    );
    found.insert(
        "Refusal".to_owned(),
        json!({
            "type": "object",
            "properties": { "detail": { "type": "string", "description": "What was refused, for people." } },
            "required": ["detail"],
            "additionalProperties": false,
        }),
    );
    found.insert(
        "RateLimited".to_owned(),
        json!({
            "type": "object",
            "properties": {
                "detail": { "type": "string", "description": "What was refused, for people." },
                "retry_after": { "type": "integer", "minimum": 1, "description": "Seconds until another try can succeed." },
            },
            "required": ["detail", "retry_after"],
            "additionalProperties": false,
        }),
    );
    found
}

fn envelope(code: &Value) -> Value {
    let error = json!({
        "type": "object",
        "properties": {
            "code": code,
            "message": { "type": "string", "description": "What went wrong, for people. It may change; programs go by `type`." },
            "request_id": { "type": "string", "description": "Id of the request, as `X-Request-ID` and the log have it." },
            "type": { "type": "string", "description": "A stable word for programs, such as `not_found`." },
            // Not required: a controller may refuse a payload as a whole.
            "details": {
                "type": "array", "items": reference("ErrorDetail"),
                "description": "Each field that is wrong, all of them at once; of a plan that is outdated, what moved.",
            },
        },
        "required": ["code", "message", "request_id", "type"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": { "error": error },
        "description": "What every failure is answered with.",
        "required": ["error"],
        "additionalProperties": false,
    })
}
