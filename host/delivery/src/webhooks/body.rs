//! Bodies that create or change a subscription, and their checks.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::secret::{Secret, random_secret};
use heddle_core::{Declared, OrgId, SiteId};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::events::patterns::PATTERN_CHARS_MAX;
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::outgoing::{self, HEADER_VALUE_BYTES_MAX, HEADERS_MAX, URL_BYTES_MAX};
use heddle_store::webhooks::templates::WebhookTemplateId;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::rights::why_not;

const PATTERNS_MAX: usize = 50;
const SECRET_CHARS_MIN: usize = 16;
const SECRET_CHARS_MAX: usize = 512;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewWebhook")]
pub(super) struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub(super) name: String,
    /// Full URL on the public network, or on a host that the operator has listed. Its query is not shown again. At most
    /// 2048 bytes.
    #[schemars(length(min = 1, max = URL_BYTES_MAX))]
    pub(super) url: String,
    /// 1 to 50 types or patterns such as `device.*`; each must cover a declared type that the caller may read. An
    /// administrator of the organization may have all of its events except those of `admin.*` and `system.*`.
    #[schemars(length(min = 1, max = PATTERNS_MAX), inner(length(min = 1, max = PATTERN_CHARS_MAX)))]
    pub(super) events: Vec<String>,
    /// Only events of this site.
    pub(super) site_id: Option<SiteId>,
    /// Template of the body that is sent in place of the event.
    pub(super) template_id: Option<WebhookTemplateId>,
    /// Signs every delivery: 16 to 512 visible ASCII characters. Generated when absent; shown in this answer only.
    #[schemars(extend("minLength" = SECRET_CHARS_MIN, "maxLength" = SECRET_CHARS_MAX))]
    pub(super) signing_secret: Option<Secret>,
    /// Sent with every delivery: up to 50, each value of at most 4096 bytes. Only the names are shown again.
    #[serde(default)]
    #[schemars(transform = say_headers)]
    pub(super) headers: BTreeMap<String, Secret>,
    /// True when absent.
    pub(super) is_enabled: Option<bool>,
    /// Another organization than the own one; for `super_admin`.
    pub(super) organization_id: Option<OrgId>,
}

/// The changes; absent fields stay as they are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WebhookUpdate")]
pub(super) struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub(super) name: Option<String>,
    /// The whole URL. The shown URL, with `?…` for its query, keeps the stored one. When the subscription has headers,
    /// a URL of another host needs them again. At most 2048 bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = URL_BYTES_MAX))]
    pub(super) url: Option<String>,
    /// The user that changes them becomes the author; events are sent with the author's rights.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = PATTERNS_MAX), inner(length(min = 1, max = PATTERN_CHARS_MAX)))]
    pub(super) events: Option<Vec<String>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true))]
    #[schemars(with = "Option<SiteId>")]
    pub(super) site_id: Option<Option<SiteId>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true))]
    #[schemars(with = "Option<WebhookTemplateId>")]
    pub(super) template_id: Option<Option<WebhookTemplateId>>,
    /// All headers; they replace the stored ones.
    #[serde(default, deserialize_with = "given")]
    #[schemars(transform = say_headers)]
    pub(super) headers: Option<BTreeMap<String, Secret>>,
    /// Events that occur while it is false are not sent later; deliveries that were queued before are.
    #[serde(default, deserialize_with = "given")]
    pub(super) is_enabled: Option<bool>,
}

/// Adds to the document what [`check_headers`] accepts.
fn say_headers(schema: &mut Schema) {
    schema.insert("maxProperties".to_owned(), json!(HEADERS_MAX));
    if let Some(Value::Object(value)) = schema.get_mut("additionalProperties") {
        value.insert("maxLength".to_owned(), json!(HEADER_VALUE_BYTES_MAX));
    }
}

pub(super) fn check_url(checks: &mut Checks, text: &str) -> String {
    checks.keep("url", outgoing::check_url(text).map(|url| url.to_string()))
}

/// Returns the patterns without repetitions. Each must cover declared types that the caller may read.
pub(super) fn check_events(
    checks: &mut Checks,
    declared: &Declared,
    caller: &Caller,
    patterns: &[String],
) -> Vec<String> {
    let fits = (1..=PATTERNS_MAX).contains(&patterns.len());
    checks.require(fits, "events", &format!("must have 1 to {PATTERNS_MAX} entries such as 'device.*'"));
    for (at, pattern) in patterns.iter().enumerate().take(PATTERNS_MAX) {
        let field = format!("events[{at}]");
        if let Some(why) = heddle_kernel::events::patterns::fault(&declared.events, pattern) {
            checks.require(false, &field, &why);
        } else if let Some(why) = why_not(declared, caller, pattern) {
            checks.require(false, &field, &why);
        }
    }
    patterns.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

pub(super) fn check_headers(checks: &mut Checks, given: BTreeMap<String, Secret>) -> Vec<(String, Secret)> {
    let fits = given.len() <= HEADERS_MAX;
    checks.require(fits, "headers", &format!("must not have more than {HEADERS_MAX} entries"));
    let mut names = BTreeSet::new();
    let mut headers = Vec::new();
    for (name, value) in given.into_iter().take(HEADERS_MAX) {
        match outgoing::header(&name, value.expose()) {
            Ok((parsed, _)) => {
                let is_new = names.insert(parsed.to_string());
                checks.require(is_new, "headers", "must not have a name twice, whatever its case");
                headers.push((parsed.to_string(), value));
            }
            Err(why) => checks.require(false, "headers", &why),
        }
    }
    headers
}

/// Returns the given secret, or a new one.
pub(super) fn check_secret(checks: &mut Checks, given: Option<Secret>) -> Secret {
    let Some(secret) = given else { return random_secret() };
    let text = secret.expose();
    let fits = (SECRET_CHARS_MIN..=SECRET_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_graphic());
    let message = format!("must have {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} visible ASCII characters");
    checks.require(fits, "signing_secret", &message);
    secret
}
