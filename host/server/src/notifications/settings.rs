//! What each kind of channel is told, without its secret, and what is checked of it.

use heddle_core::redact::{HIDDEN_QUERY, shown_url};
use heddle_store::channels::Channel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::error::Error;
use crate::outgoing::check_url;
use crate::tenancy::checks::Checks;

const RECIPIENTS_MAX: usize = 20;
const URL_CHARS_MAX: usize = 2048;

/// Mails to these addresses, each by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EmailChannel")]
pub(super) struct Email {
    /// 1 to 20.
    pub(super) recipients: Vec<String>,
}

/// A JSON object by POST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WebhookChannel")]
pub(super) struct Webhook {
    /// Shown without its query, which may hold a secret: `?…` stands for one, and keeps it when it is sent back.
    pub(super) url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NtfyChannel")]
pub(super) struct Ntfy {
    /// Such as `https://ntfy.sh`.
    pub(super) server_url: String,
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
        let is_address = |text: &String| text.parse::<lettre::Address>().is_ok();
        let fits =
            (1..=RECIPIENTS_MAX).contains(&self.recipients.len()) && self.recipients.iter().all(is_address);
        checks.require(fits, "email.recipients", "must be 1 to 20 mail addresses");
    }
}

impl Webhook {
    pub(super) fn shown(&self) -> Self {
        Self { url: shown_url(&self.url) }
    }

    /// Whether this is what was shown of one with a query.
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
        let is_topic = (1..=64).contains(&self.topic.len())
            && self.topic.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        checks.require(is_topic, "ntfy.topic", "must have 1 to 64 letters, digits, '-' or '_'");
    }

    pub(super) fn address(&self) -> String {
        format!("{}/{}", self.server_url.trim_end_matches('/'), self.topic)
    }
}

/// An address that could be reached, as far as it can be told from its text.
pub(super) fn check_address(field: &str, url: &str, checks: &mut Checks) {
    checks.require(url.len() <= URL_CHARS_MAX, field, "must have at most 2048 characters");
    checks.keep(field, check_url(url).map(|_| ()));
}
