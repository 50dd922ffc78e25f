//! `fabric.webhook`: sends a request to an address of the author's choice, once.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::operation::StepErrorCode;
use heddle_core::redact::sanitize;
use heddle_core::template::is_template;
use heddle_kernel::declarations::SETTINGS_WRITE;
use heddle_kernel::outgoing::{self, Answered, HEADERS_MAX, Outgoing, Undelivered};
use http::{HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::sink;
use crate::declarations::FabricSettings;
use crate::operation::{Declaration, Operation, StepCall, StepError, object_schema, params_of};
use crate::signing;

pub(crate) struct Webhook(Declaration);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    url: String,
    #[serde(default)]
    method: Verb,
    payload: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Post,
    Put,
    Patch,
    Get,
}

impl From<Verb> for Method {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Get => Method::GET,
        }
    }
}

impl Webhook {
    pub(crate) fn new() -> Self {
        let words = (
            "fabric.webhook",
            "Webhook",
            "Sends the payload to a URL, once; an answer other than 2xx fails the step.",
        );
        let params = json!({
            "url": {
                "type": "string", "description": "Full URL with scheme, of the public network",
                "examples": ["https://hooks.example.org/heddle"],
            },
            "method": { "type": "string", "enum": ["POST", "PUT", "PATCH", "GET"], "default": "POST" },
            "payload": {
                "description": "Sent as JSON; the event when absent",
                "examples": [{ "text": "a device went offline" }],
            },
            "headers": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Beside those that the service sets",
                "examples": [{ "authorization": "Bearer of-the-receiver" }],
                "maxProperties": HEADERS_MAX,
            },
        });
        let output = json!({
            "status_code": { "type": "integer", "description": "Status of the receiver's answer" },
            "body": {
                "examples": [{ "ticket": { "id": 4711 } }],
                "description": "The answer, at most 16 KiB: parsed where its content type says JSON and it \
                    can be read as such, a text otherwise",
            },
            "truncated": { "type": "boolean", "description": "There was more; the body is a text then" },
            "duration_ms": { "type": "integer", "description": "From the first look-up to the last byte" },
        });
        let params = object_schema(params, &["url"]);
        let output = object_schema(output, &["status_code", "body", "truncated", "duration_ms"]);
        Self(sink(words, SETTINGS_WRITE, &params, output))
    }
}

impl Operation for Webhook {
    fn declaration(&self) -> &Declaration {
        &self.0
    }

    fn value_faults(&self, params: &Value) -> Vec<(String, String)> {
        let fixed = |value: &Value| value.as_str().filter(|text| !is_template(text)).map(str::to_owned);
        let mut faults = Vec::new();
        if let Some(Err(message)) = fixed(&params["url"]).map(|url| outgoing::check_url(&url)) {
            faults.push(("url".to_owned(), message));
        }
        for (name, value) in params["headers"].as_object().into_iter().flatten() {
            // Names are never templates.
            let value = fixed(value).unwrap_or_default();
            if let Err(message) = outgoing::header(name, &value) {
                faults.push((format!("headers.{name}"), message));
            }
        }
        faults
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        async move {
            let mut request = request(call, params_of(params)?)?;
            request.organization_secrets = signing::secrets(call.app, call.author.org_id)
                .await
                .map_err(|error| StepError::new(StepErrorCode::Internal, error.to_string()))?;
            match outgoing::send(call.app, request).await {
                Ok(answered) => outcome(&answered),
                Err(Undelivered::Blocked(why)) => Err(StepError::new(StepErrorCode::SsrfBlocked, why)),
                Err(Undelivered::Unreached(why) | Undelivered::Failed(why)) => {
                    Err(StepError::new(StepErrorCode::DeliveryError, why))
                }
            }
        }
        .boxed()
    }
}

fn request(call: &StepCall<'_>, params: Params) -> Result<Outgoing, StepError> {
    let invalid = |why: String| StepError::new(StepErrorCode::InvalidParams, why);
    outgoing::check_url(&params.url).map_err(invalid)?;
    let headers = headers(&params.headers).map_err(invalid)?;
    let body = body(params.method, params.payload, call);
    Ok(Outgoing {
        method: params.method.into(),
        url: params.url,
        headers,
        body,
        signing_secret: call.app.config.of::<FabricSettings>().webhook_signing_secret.clone(),
        organization_secrets: Vec::new(),
        is_path_secret: false,
    })
}

/// Returns the body. A GET without a payload carries none.
fn body(method: Verb, payload: Option<Value>, call: &StepCall<'_>) -> Vec<u8> {
    let payload = match payload {
        None if method == Verb::Get => return Vec::new(),
        None => call.event.map_or_else(|| json!({}), |event| json!(event)),
        Some(payload) => payload,
    };
    let mut payload = payload;
    sanitize(&mut payload);
    payload.to_string().into_bytes()
}

fn headers(given: &BTreeMap<String, String>) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    if given.len() > HEADERS_MAX {
        return Err(format!("headers has more than {HEADERS_MAX} entries"));
    }
    let mut headers: Vec<(HeaderName, HeaderValue)> =
        given.iter().map(|(name, value)| outgoing::header(name, value)).collect::<Result<_, _>>()?;
    if !headers.iter().any(|(name, _)| name == header::CONTENT_TYPE) {
        headers.push((header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
    }
    Ok(headers)
}

fn outcome(answered: &Answered) -> Result<Value, StepError> {
    let output = json!({
        "status_code": answered.status,
        "body": answered.json().unwrap_or_else(|| json!(answered.text)),
        "truncated": answered.is_truncated,
        "duration_ms": answered.duration_ms(),
    });
    if answered.is_success() {
        return Ok(output);
    }
    let message = format!("the receiver answered with status {}", answered.status);
    Err(StepError { output: Some(output), ..StepError::new(StepErrorCode::BadStatus, message) })
}

#[cfg(test)]
mod tests;
