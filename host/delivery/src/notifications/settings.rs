//! The settings of each kind of channel, without its secret, and their checks.

use heddle_core::redact::{HIDDEN_QUERY, shown_url};
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_kernel::names::EMAIL_BYTES_MIN;
use heddle_kernel::outgoing::{URL_BYTES_MAX, check_url};
use heddle_store::channels::Channel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const RECIPIENTS_MAX: usize = 20;
/// 64 before the `@` and 255 behind it: what RFC 5321 allows at most.
const RECIPIENT_BYTES_MAX: usize = 320;
const TOPIC_CHARS_MAX: usize = 64;

/// Sends a separate mail to each of these addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EmailChannel")]
pub(super) struct Email {
    /// 1 to 20, each of at most 320 bytes.
    #[schemars(length(min = 1, max = RECIPIENTS_MAX), inner(length(min = EMAIL_BYTES_MIN, max = RECIPIENT_BYTES_MAX)))]
    pub(super) recipients: Vec<String>,
}

/// Sends a JSON object by POST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WebhookChannel")]
pub(super) struct Webhook {
    /// Shown without its query, which may hold a secret: `?…` stands for one, and keeps it when it is sent back.
    /// At most 2048 bytes.
    #[schemars(length(min = 1, max = URL_BYTES_MAX + 1))]
    pub(super) url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NtfyChannel")]
pub(super) struct Ntfy {
    /// Such as `https://ntfy.sh`. At most 2048 bytes.
    #[schemars(length(min = 1, max = URL_BYTES_MAX))]
    pub(super) server_url: String,
    #[schemars(length(min = 1, max = TOPIC_CHARS_MAX), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub(super) topic: String,
}

/// Settings as they were stored.
pub(super) fn read<T: serde::de::DeserializeOwned>(channel: &Channel) -> Result<T, Error> {
    T::deserialize(&channel.settings).map_err(Error::internal)
}

/// Settings as they are stored.
pub(super) fn stored<T: Serialize>(settings: &T) -> Value {
    serde_json::to_value(settings).expect("settings are JSON")
}

impl Email {
    pub(super) fn check(&self, checks: &mut Checks) {
        let fits = (1..=RECIPIENTS_MAX).contains(&self.recipients.len());
        checks.require(fits, "email.recipients", &format!("must be 1 to {RECIPIENTS_MAX} mail addresses"));
        for (at, text) in self.recipients.iter().enumerate().take(RECIPIENTS_MAX) {
            let is_address = text.len() <= RECIPIENT_BYTES_MAX && text.parse::<lettre::Address>().is_ok();
            let message = format!("must be a mail address of at most {RECIPIENT_BYTES_MAX} bytes");
            checks.require(is_address, &format!("email.recipients[{at}]"), &message);
        }
    }
}

impl Webhook {
    pub(super) fn shown(&self) -> Self {
        Self { url: shown_url(&self.url) }
    }

    /// Whether this is the shown form of a URL with a query.
    pub(super) fn is_shown(&self) -> bool {
        self.url.ends_with(HIDDEN_QUERY)
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        check_address("webhook.url", &self.url, checks);
    }
}

impl Ntfy {
    pub(super) fn check(&self, checks: &mut Checks) {
        check_address("ntfy.server_url", &self.server_url, checks);
        let is_plain = !self.server_url.contains(['?', '#']);
        checks.require(is_plain, "ntfy.server_url", "must have no query and no fragment");
        let is_topic = (1..=TOPIC_CHARS_MAX).contains(&self.topic.len())
            && self.topic.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let message = format!("must have 1 to {TOPIC_CHARS_MAX} letters, digits, '-' or '_'");
        checks.require(is_topic, "ntfy.topic", &message);
    }

    pub(super) fn address(&self) -> String {
        format!("{}/{}", self.server_url.trim_end_matches('/'), self.topic)
    }
}

/// Checks an address, as far as its text allows.
pub(super) fn check_address(field: &str, url: &str, checks: &mut Checks) {
    checks.keep(field, check_url(url).map(|_| ()));
}
