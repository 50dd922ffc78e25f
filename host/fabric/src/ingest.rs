//! Events from outside: what an organization's own systems hand in.
//!
//! An answer says that the event entered the bus, not what follows from it.

use axum::extract::State;
use axum::response::Response;
use heddle_core::EventId;
use heddle_core::event::{EventType, NewEvent};
use heddle_core::redact::sanitize;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Json;
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::rate_limit::{self, Limit, Rate};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::metrics::RateWindow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::declarations::{EVENT_WRITE, INGEST_EXTERNAL};

/// Largest payload, as JSON without white space; in bytes.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
const PAYLOAD_VALUES_MAX: usize = 10_000;
/// Events that one organization may send in.
const RATE: Rate = Rate::per_minute(120);
const NAME_CHARS_MAX: usize = 64;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ingest")]
struct Body {
    /// Up to 64 characters. Made lower case; what is not a letter from a to z, a digit, `_` or `-` is left out.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// Up to 64 KiB and 10,000 values. Fields with the names of secrets are left out, as from every payload.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Map<String, Value>>")]
    payload: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ingested")]
struct Receipt {
    accepted: bool,
    event_type: EventType,
    /// As the event has it; empty where none was given.
    name: String,
    event_id: EventId,
}

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/fabric/ingest",
        Access::Permission(EVENT_WRITE),
        ingest,
        doc("Hand an event in from outside")
            .named("ingest_event")
            .body::<Body>()
            .answers::<Receipt>(202)
            .fails_with(413)
            .keyed(),
    )
}

async fn ingest(
    State(app): State<SharedApp>,
    caller: Caller,
    creation: Creation,
    Json(body): Json<Body>,
) -> Result<Response, Error> {
    // The event belongs to no site, and may start steps at any site.
    caller.require_all_sites()?;
    let limit = Limit { key: format!("ingest:{}", caller.org_id), rate: RATE };
    rate_limit::take_one(&app, limit, RateWindow::Ingest).await?;
    let name = plain_name(&body.name.unwrap_or_default())?;
    let mut data = Value::Object(body.payload.unwrap_or_default());
    let bytes = data.to_string().len();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(Error::TooLarge(format!(
            "payload has {bytes} bytes; an event takes at most {PAYLOAD_BYTES_MAX}"
        )));
    }
    let values = count(&data);
    if values > PAYLOAD_VALUES_MAX {
        let message = format!("has {values} values; an event takes at most {PAYLOAD_VALUES_MAX}");
        return Err(Error::field("payload", message));
    }
    // Secrets are removed before the event is written: nothing that reads events has a use for them.
    sanitize(&mut data);
    let new = NewEvent::of(INGEST_EXTERNAL, caller.org_id, json!({ "name": name, "data": data }));
    let mut tx = app.db.write().await?;
    let event = heddle_store::events::append(&mut tx, &new, &app.clock).await?;
    let receipt = Receipt { accepted: true, event_type: event.event_type, name, event_id: event.id };
    creation.accept(tx, &app, &receipt).await
}

/// Counts values at all depths: each costs far more memory than its one or two characters.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The name as events have it.
fn plain_name(text: &str) -> Result<String, Error> {
    if text.chars().count() > NAME_CHARS_MAX {
        return Err(Error::field("name", format!("must have at most {NAME_CHARS_MAX} characters")));
    }
    let is_kept = |letter: &char| matches!(letter, 'a'..='z' | '0'..='9' | '_' | '-');
    Ok(text.to_lowercase().chars().filter(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(plain_name(text).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn values_are_counted_at_all_depths() {
        assert_eq!(count(&json!({ "a": [1, [2], { "b": null }], "c": "x" })), 8);
    }

    #[test]
    fn a_name_is_lower_case_letters_digits_and_dashes() {
        check("Door Open!", Some("dooropen"));
        check("ci_build-7", Some("ci_build-7"));
        check("ÄÖ.x", Some("x"));
        check("", Some(""));
        check(&"n".repeat(64), Some(&"n".repeat(64)));
        check(&"n".repeat(65), None);
    }
}
