//! What the manifest of a plugin declares beyond that of an adapter: targets, secrets, events, operations that it calls,
//! storage, permissions, actions, triggers, tools and hooks. The rules are in `plugin_rules.rs`.

mod occasions;
mod templates;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::plugin_rules::parse_origin;
use crate::session_rules;

pub use self::occasions::{
    Hook, HookEncoding, HookScheme, HookSignature, HookTimestamp, SignedPart, Tool, Trigger,
};
pub use self::templates::ConnectionTemplate;

/// Bytes that a plugin keeps for one organization when its manifest names no number: 1 MiB.
pub const KV_BYTES_DEFAULT: u64 = 1 << 20;
/// Most bytes that a plugin can ask for in one organization: 16 MiB.
pub const KV_BYTES_MAX: u64 = 16 << 20;

/// A server that the plugin sends requests to, named in `http.open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpTarget {
    /// `^[a-z][a-z0-9-]{0,31}$`.
    pub name: String,
    pub origin: Origin,
    /// Out of GET, HEAD, POST, PUT, PATCH and DELETE.
    pub methods: Vec<String>,
    /// Exact, with `*` for one whole segment, or with `/**` at the end for any depth.
    pub paths: Vec<String>,
    /// Whether its address may be in a private network. The installation's own rules hold as well.
    #[serde(default)]
    pub private: bool,
}

/// Where a target is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an origin is a text such as \"https://api.example.net\", or {\"setting\": \"NAME\"} with the name of a setting"
)]
pub enum Origin {
    /// Scheme, host and perhaps a port, and nothing else.
    Fixed(String),
    /// The organization says it in its settings.
    Setting(FromSetting),
}

impl HttpTarget {
    /// Where it is with these settings of an organization.
    ///
    /// # Errors
    /// Says what would be accepted.
    pub fn url_with(&self, settings: &Value) -> Result<Url, String> {
        let url = match &self.origin {
            Origin::Fixed(text) => parse_origin(text, self.private)?,
            Origin::Setting(FromSetting { setting }) => {
                let text = settings.get(setting).and_then(Value::as_str).ok_or_else(|| {
                    format!("the organization's settings have no '{setting}', the address of '{}'", self.name)
                })?;
                parse_origin(text, self.private)
                    .map_err(|problem| format!("the setting '{setting}' is no address: {problem}"))?
            }
        };
        if url.port() == Some(0) {
            return Err(format!("the address of '{}' has the port 0; name a port from 1", self.name));
        }
        Ok(url)
    }

    /// The same as scheme, host and port, the port written out: what secrets are bound to.
    ///
    /// # Errors
    /// As [`HttpTarget::url_with`].
    pub fn origin_with(&self, settings: &Value) -> Result<String, String> {
        self.url_with(settings).map(|url| with_port(&url))
    }
}

/// Scheme, host and port, the port written out.
pub(crate) fn with_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}", url.scheme())
}

/// The setting of an organization that holds an origin: a text of the format `uri` in `config-schema`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FromSetting {
    pub setting: String,
}

/// The secrets capability: a claim for adapters, a list for plugins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Secrets {
    /// An adapter names (and never reads) the secrets of the controller's credential.
    OfController(bool),
    /// An organization gives the plugin these; the host puts them into requests.
    Declared(Vec<SecretRule>),
}

impl Default for Secrets {
    fn default() -> Self {
        Self::OfController(false)
    }
}

impl Secrets {
    /// Whether any secret can be named.
    #[must_use]
    pub fn is_any(&self) -> bool {
        match self {
            Self::OfController(claimed) => *claimed,
            Self::Declared(rules) => !rules.is_empty(),
        }
    }

    /// The secrets of a plugin; empty for an adapter.
    #[must_use]
    pub fn rules(&self) -> &[SecretRule] {
        match self {
            Self::OfController(_) => &[],
            Self::Declared(rules) => rules,
        }
    }
}

impl<'de> Deserialize<'de> for Secrets {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = Secrets;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or false for an adapter, or a list of secrets for a plugin")
            }

            fn visit_bool<E: serde::de::Error>(self, claimed: bool) -> Result<Secrets, E> {
                Ok(Secrets::OfController(claimed))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, items: A) -> Result<Secrets, A::Error> {
                let rules = Deserialize::deserialize(serde::de::value::SeqAccessDeserializer::new(items))?;
                Ok(Secrets::Declared(rules))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A secret of an organization, and the only places that the host puts it into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretRule {
    /// As field names of credentials: `a-z` first, then `a-z`, `0-9` and `-`.
    pub name: String,
    /// The target that it is sent to.
    pub target: String,
    pub places: Vec<SecretPlace>,
}

/// A place of a request that takes a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum SecretPlace {
    /// `basic-password`: as the password of Basic authorization.
    BasicPassword,
    /// `basic-username`: as the user name of Basic authorization.
    BasicUsername,
    /// `bearer`: in the header `authorization` after `Bearer `.
    Bearer,
    /// `form:FIELD`
    Form(String),
    /// `header:NAME`; the name in lower case here.
    Header(String),
    /// `json:/POINTER`
    Json(String),
    /// `query:PARAMETER`
    Query(String),
}

impl FromStr for SecretPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "'{}' is no place for a secret; write bearer, basic-username, basic-password, header:NAME, query:NAME, form:NAME or json:/POINTER",
                text.chars().take(120).collect::<String>()
            )
        };
        let named = |name: &str| {
            // The words of consent show it: it must not be able to look like more of them.
            let is_plain = |b: u8| b.is_ascii_graphic() && !b"'\",`\\".contains(&b);
            let is_sound = !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain);
            is_sound.then(|| name.to_owned()).ok_or_else(refused)
        };
        match text.split_once(':') {
            None if text == "bearer" => Ok(Self::Bearer),
            None if text == "basic-username" => Ok(Self::BasicUsername),
            None if text == "basic-password" => Ok(Self::BasicPassword),
            Some(("header", name)) => {
                session_rules::check_header(name)?;
                Ok(Self::Header(named(name)?.to_ascii_lowercase()))
            }
            Some(("query", name)) => Ok(Self::Query(named(name)?)),
            Some(("form", name)) => Ok(Self::Form(named(name)?)),
            Some(("json", pointer)) if !pointer.is_empty() && session_rules::is_pointer(pointer) => {
                Ok(Self::Json(named(pointer)?))
            }
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::BasicUsername => f.write_str("basic-username"),
            Self::BasicPassword => f.write_str("basic-password"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Json(pointer) => write!(f, "json:{pointer}"),
        }
    }
}

impl TryFrom<String> for SecretPlace {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SecretPlace> for String {
    fn from(place: SecretPlace) -> Self {
        place.to_string()
    }
}

/// Events that the plugin takes part in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventsCapability {
    /// Types that it emits, each declared in `event-types`.
    #[serde(default)]
    pub emit: Vec<String>,
    /// Types that call its triggers: exact ones, or `device.*` for all that begin with `device.`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribe: Vec<String>,
}

/// Timers of the plugin, separate for each organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScheduleCapability {
    /// Least seconds between two times of one timer: from 60.
    pub min_interval_s: u32,
}

/// Operations of the Fabric that the plugin calls, with the rights of the user on whose behalf it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FabricCapability {
    /// Exact ids.
    #[serde(default)]
    pub call: Vec<String>,
}

/// Storage of the plugin, separate for each organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KvCapability {
    /// Most bytes in one organization, of keys and values together: 16 MiB at most, 1 MiB when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The component exports `migration`: it is called when another version takes over what is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub migrates: bool,
}

impl KvCapability {
    /// The number of the manifest, or the default.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes.unwrap_or(KV_BYTES_DEFAULT)
    }
}

/// A permission that the plugin brings, to be used in roles and API keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PermissionRule {
    /// `plugin.<id>.<word>`.
    pub id: String,
    /// For people.
    pub title: String,
}

/// A type of events that the plugin emits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventType {
    /// `plugin.<id>.<word>`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// For people.
    pub title: String,
    /// JSON Schema of the payload, which is an object.
    pub payload_schema: Value,
}

/// Something that the plugin does when it is asked. Its id in the Fabric is `plugin.<plugin id>.<action id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Action {
    /// `^[a-z][a-z0-9-]{0,40}$`.
    pub id: String,
    /// For people.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub effect: ActionEffect,
    /// One of the plugin's own `permissions` that the caller must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// JSON Schema of the parameters, which are an object.
    pub params_schema: Value,
    /// JSON Schema of the answer, which is an object.
    pub output_schema: Value,
}

/// What an action changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionEffect {
    /// Nothing: it sends GET and HEAD, and calls operations that read.
    Read,
    /// It stages changes, which a person reviews: it sends GET and HEAD, and calls operations that read or stage.
    Stage,
    /// Something at its own targets: it sends every method that they declare, and calls operations that read.
    Outward,
}

impl ActionEffect {
    /// The word of the manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Stage => "stage",
            Self::Outward => "outward",
        }
    }
}

/// The id of an action in the Fabric.
#[must_use]
pub fn operation_id(plugin: &str, action: &str) -> String {
    format!("plugin.{plugin}.{action}")
}
