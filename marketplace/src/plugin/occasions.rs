//! What a plugin does beside its actions: triggers, which events and times call, tools, and hooks, which others call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ActionEffect;

/// Something that the plugin does by itself: when events come that it names, or when one of its timers has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trigger {
    /// `^[a-z][a-z0-9-]{0,40}$`.
    pub id: String,
    /// For people.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub effect: ActionEffect,
    /// Types of events that call it, out of `capabilities.events.subscribe`. One without any is called by timers only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

/// A question that a program may ask on behalf of a person. It reads, and its id in the Fabric is that of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tool {
    /// `^[a-z][a-z0-9-]{0,40}$`; no action has the same.
    pub id: String,
    /// For people.
    pub title: String,
    /// What it answers, and when to ask it: for people and for language models.
    pub description: String,
    /// One of the plugin's own `permissions` that the caller must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// JSON Schema of the arguments, which are an object.
    pub params_schema: Value,
    /// JSON Schema of the answer, which is an object.
    pub output_schema: Value,
}

/// An address at which others call the plugin. Each organization that uses the plugin has its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hook {
    /// `^[a-z][a-z0-9-]{0,40}$`: the last part of the address.
    pub name: String,
    /// For people.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub effect: ActionEffect,
    pub signature: HookSignature,
}

/// How the host knows that a request is of the one who has the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HookSignature {
    pub scheme: HookScheme,
    /// Name of the secret, which organizations set as those of `capabilities.secrets`. The plugin cannot name it.
    pub secret: String,
    /// The header that has the signature, or the token.
    pub header: String,
    /// What the value begins with, such as `sha256=`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// How the bytes of a signature are written.
    #[serde(default)]
    pub encoding: HookEncoding,
    /// What is signed: a text with `{body}` once and perhaps `{header.NAME}`, such as `v0:{header.x-time}:{body}`. The body
    /// alone when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
    /// The signed header that says when the request was sent. Without one, the same request may come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<HookTimestamp>,
}

/// How a request proves where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookScheme {
    /// HMAC with SHA-256.
    HmacSha256,
    /// The header has the secret itself.
    Token,
}

/// How bytes are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookEncoding {
    #[default]
    Hex,
    Base64,
}

/// When a request was sent: seconds since 1970, in this header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HookTimestamp {
    pub header: String,
    /// Most seconds between it and the host's clock: 1 to 900.
    pub tolerance_s: u32,
}

/// A part of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedPart {
    Text(String),
    /// A header by its name in lower case.
    Header(String),
    Body,
}

impl HookSignature {
    /// What is signed, in order.
    ///
    /// # Errors
    /// Says what would be accepted.
    pub fn parts(&self) -> Result<Vec<SignedPart>, String> {
        let text = self.signed.as_deref().unwrap_or("{body}");
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) =
                behind.split_once('}').ok_or_else(|| format!("'{text}' has a '{{' without a '}}'"))?;
            if !before.is_empty() {
                parts.push(SignedPart::Text(before.to_owned()));
            }
            parts.push(match name.split_once('.') {
                None if name == "body" => SignedPart::Body,
                Some(("header", header)) if !header.is_empty() => {
                    SignedPart::Header(header.to_ascii_lowercase())
                }
                _ => return Err(format!("'{{{name}}}' is not known; write {{body}} or {{header.NAME}}")),
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(SignedPart::Text(rest.to_owned()));
        }
        match parts.iter().filter(|part| **part == SignedPart::Body).count() {
            1 => Ok(parts),
            _ => Err(format!("'{text}' has to have {{body}} once")),
        }
    }
}
