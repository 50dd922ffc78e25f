//! What a package says of itself: files, needs, limits, and how to log in.
//!
//! Keys are kebab-case; unknown keys are refused, so that a typo in a limit or
//! a rule cannot pass for the default.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plugin::{
    Action, ConnectionTemplate, EventType, EventsCapability, FabricCapability, Hook, HttpTarget,
    KvCapability, PermissionRule, ScheduleCapability, Secrets, Tool, Trigger,
};
use crate::push::Channel;

/// What a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A component for one vendor family, called for a controller.
    Adapter,
    /// A component of a third party that has actions, called for an organization.
    Plugin,
}

impl Kind {
    /// The word of the manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adapter => "adapter",
            Self::Plugin => "plugin",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format: 1.
    pub schema: u32,
    /// `^[a-z][a-z0-9-]{2,40}$`. For an adapter, also the `vendor` of its controllers; for a plugin, part of the names of
    /// its actions, permissions and events.
    pub id: String,
    pub version: semver::Version,
    pub kind: Kind,
    /// Interface version it was built for, `major.minor`.
    pub api: String,
    pub name: String,
    pub publisher: String,
    pub license: String,
    /// Oldest host version that may run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_host: Option<String>,
    /// Every other file of the package.
    pub files: Vec<File>,
    /// Path of the component among `files`.
    pub component: String,
    #[serde(default)]
    pub capabilities: Capabilities,
    #[serde(default)]
    pub limits: Limits,
    /// JSON Schema of the `settings` of a controller, or of an organization that uses the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// Shapes of credentials that the adapter takes, by name. Without any, it takes every credential.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, Shape>,
    /// Managed login sessions, by name.
    #[serde(default)]
    pub auth: BTreeMap<String, Session>,
    /// Of an adapter: channels by which controllers say that something has to be read again, by name. They need the
    /// interface 1.1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub push: BTreeMap<String, Channel>,
    /// Requests other than GET and HEAD that change nothing at the device.
    #[serde(default)]
    pub reads: Vec<ReadRule>,
    /// Names of fields in JSON answers that hold secrets. The host replaces
    /// their values by references before the component sees them.
    #[serde(default)]
    pub secret_fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<PermissionRule>,
    /// Of a plugin: declares what `capabilities.events.emit` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<EventType>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Of a plugin: Connections that it proposes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<ConnectionTemplate>,
}

impl Manifest {
    /// The action with this id.
    #[must_use]
    pub fn action(&self, id: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// The trigger with this id.
    #[must_use]
    pub fn trigger(&self, id: &str) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.id == id)
    }

    /// The tool with this id.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.id == id)
    }

    /// The hook of this name.
    #[must_use]
    pub fn hook(&self, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.name == name)
    }

    /// The declared type of events with this name.
    #[must_use]
    pub fn event_type(&self, name: &str) -> Option<&EventType> {
        self.event_types.iter().find(|declared| declared.event_type == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    pub path: String,
    pub size: u64,
    /// Lower-case hex.
    pub sha256: String,
}

/// What the component may import beyond context, log, progress, clock and random.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Capabilities {
    /// HTTP to the controller that the call is for.
    #[serde(default)]
    pub controller_http: bool,
    /// Naming (never reading) secrets: of an adapter those of the controller's credential, of a plugin those listed here.
    #[serde(default)]
    pub secrets: Secrets,
    /// Of a plugin: the servers that it may send requests to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpTarget>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsCapability>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<FabricCapability>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv: Option<KvCapability>,
    /// Of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleCapability>,
}

impl Capabilities {
    /// The target of this name.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<&HttpTarget> {
        self.http.iter().find(|target| target.name == name)
    }

    /// The types of events that may be emitted.
    #[must_use]
    pub fn emitted(&self) -> &[String] {
        self.events.as_ref().map_or(&[], |events| &events.emit)
    }

    /// The types of events, and patterns of types, that call triggers.
    #[must_use]
    pub fn subscribed(&self) -> &[String] {
        self.events.as_ref().map_or(&[], |events| &events.subscribe)
    }

    /// The operations that may be called.
    #[must_use]
    pub fn called(&self) -> &[String] {
        self.fabric.as_ref().map_or(&[], |fabric| &fabric.call)
    }
}

/// Limits asked for; the host's maximum bounds each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Guest CPU per call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    /// HTTP requests per call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// Parallel requests per controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Largest request body a controller takes, in bytes: 8 MiB at most, 1 MiB when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u32>,
}

impl Limits {
    /// [`Self::memory_mib`] when absent.
    pub const MEMORY_MIB: u32 = 64;
    /// [`Self::cpu_ms`] when absent.
    pub const CPU_MS: u32 = 500;
    /// [`Self::requests`] when absent.
    pub const REQUESTS: u32 = 64;
    /// [`Self::parallel`] when absent.
    pub const PARALLEL: u32 = 4;
    /// [`Self::request_bytes`] when absent.
    pub const REQUEST_BYTES: u32 = 1 << 20;
}

/// Fields that a credential has to have, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shape {
    /// For people.
    pub title: String,
    pub fields: BTreeMap<String, FieldKind>,
}

/// What a field of a credential holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    /// What an answer may repeat, such as the name of a user or the id of a client.
    Text,
    /// What is taken out of every answer.
    Secret,
}

/// How fast requests to one controller follow each other, those of all callers together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pace {
    /// Least milliseconds after a read.
    #[serde(default)]
    pub read_gap_ms: u32,
    /// Least milliseconds after a write.
    #[serde(default)]
    pub write_gap_ms: u32,
    /// All windows hold, and the gaps too. Requests of a login count.
    #[serde(default)]
    pub windows: Vec<Window>,
}

/// At most so many requests within any span of this length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Window {
    pub calls: u32,
    pub window_ms: u32,
}

/// A request that reads although its method could write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadRule {
    pub method: String,
    /// Exact, or with `*` standing for one segment.
    pub path: String,
    /// JSON pointer to the values it may have there. All must fit. An array
    /// body is a batch: every element must fit some rule.
    #[serde(default)]
    pub json: BTreeMap<String, Vec<Value>>,
    /// The body is a form of exactly these fields, each once, with one of these values; `*` alone stands for any.
    #[serde(default)]
    pub form: BTreeMap<String, Vec<String>>,
    /// The query has exactly these parameters, each once, with one of these values; `*` alone stands for any. Without
    /// it, a request with a query does not fit. A rule of nothing else is for requests without a body.
    #[serde(default)]
    pub query: BTreeMap<String, Vec<String>>,
    /// Says that this path does nothing but read, whatever the body. Required of a rule without a condition, and
    /// refused where a login, a logout or another rule shows that the path does more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_reads: bool,
}

impl ReadRule {
    /// Whether the rule asks for more than method and path.
    #[must_use]
    pub fn has_condition(&self) -> bool {
        !(self.json.is_empty() && self.form.is_empty() && self.query.is_empty())
    }
}

/// A login that the host performs and keeps, or a credential that each request carries. Templates name
/// `{{secret.NAME}}`, `{{session.NAME}}` (captured before) and `{{settings.NAME}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Session {
    /// The shape of credential that it needs; any of the manifest's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// In order; a later step may use what an earlier one captured. Empty where the device knows no session: then
    /// `apply` names the secrets, and there is no `expired`, `logout` or `cookie-jar`.
    #[serde(default)]
    pub login: Vec<LoginStep>,
    /// How a request carries the session.
    pub apply: Vec<Apply>,
    /// Keeps the cookies that the device sets, and hides them from the component.
    #[serde(default)]
    pub cookie_jar: bool,
    /// Answers that mean the session is gone, or may be: one new login, one repeat.
    #[serde(default)]
    pub expired: Vec<Matcher>,
    /// `expired` proves that the request was not carried out.
    #[serde(default)]
    pub expired_before_effect: bool,
    /// Most seconds that the session is used after its login or last renewal.
    pub ttl_s: u32,
    /// Where the answer to the login, or to a renewal, says how long the session lives. It shortens `ttl-s` and never
    /// extends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_from: Option<TtlFrom>,
    /// Least milliseconds between the beginnings of two logins with one credential at one controller. A call that has
    /// no time to wait is answered `busy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_gap_ms: Option<u32>,
    /// What the host sends instead of a new login while the session is still good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<Renewal>,
    /// Captured values that the device may replace in any answer of the session. The first entry that an answer has
    /// for a capture counts.
    #[serde(default)]
    pub refresh: Vec<Refresh>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logout: Option<Request>,
}

/// A request that prolongs the session, sent within it. Whatever the device answers other than `expect`, one ordinary
/// login follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Renewal {
    /// Seconds since the login or the last renewal, less than `ttl-s`.
    pub after_s: u32,
    /// Seconds since the login after which the session is not renewed any more: 7 days at most, and when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u32>,
    pub request: Request,
    /// The answer of a renewal that worked.
    pub expect: Matcher,
    /// Replaces captures of the login. All must be there, else the renewal did not work.
    #[serde(default)]
    pub capture: Vec<Refresh>,
}

/// Replaces a value that the login captured and does not expose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Refresh {
    #[serde(rename = "as")]
    pub name: String,
    pub from: CaptureFrom,
}

/// A place of an answer that holds the session's lifetime: a number, or a text with one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TtlFrom {
    /// A place in JSON or a header; no cookie.
    pub from: CaptureFrom,
    pub unit: TtlUnit,
}

/// What the number of a lifetime means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TtlUnit {
    Seconds,
    Milliseconds,
    /// The second of the end, counted from 1970; compared with the answer's `Date` header where it has one.
    AtSeconds,
    /// The millisecond of the end, in the same way.
    AtMilliseconds,
}

/// A request of a login, renewal or logout. It is a GET or HEAD without a body, fits a rule of `reads`, or declares its
/// `effect`; a package with any other request is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Request {
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<BTreeMap<String, String>>,
    /// Values are templates. Refused are headers of the connection, headers that say how the body is read, and headers that
    /// make a server take the request for another one.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<Basic>,
}

/// Basic authorization; both are templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Basic {
    pub username: String,
    pub password: String,
}

/// What a request of a login or logout changes at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The session and nothing else. Shown when the package is installed, and logged each time it is sent.
    Session,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoginStep {
    /// The step is left out where this does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    pub request: Request,
    /// The answer of a login that worked.
    pub expect: Matcher,
    /// The answer of a device that refuses the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Matcher>,
    /// All must be there, else the login did not work.
    #[serde(default)]
    pub capture: Vec<Capture>,
}

/// When a step of a login is carried out. All conditions that are given must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct When {
    /// The credential has this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The controller has this setting, with one of the values in `is` where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    #[serde(default)]
    pub is: Vec<Value>,
}

/// All conditions that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Matcher {
    #[serde(default)]
    pub status: Vec<u16>,
    /// JSON pointer to accepted values. In an answer that is an array, one
    /// element that fits is enough.
    #[serde(default)]
    pub json: BTreeMap<String, Vec<Value>>,
    /// Beginning of the content type, lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Headers of the answer by their names.
    #[serde(default)]
    pub header: BTreeMap<String, HeaderIs>,
    /// Whether the body is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<bool>,
}

/// What a header of an answer has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderIs {
    Values(Vec<String>),
    /// The beginning of its value. An empty one fits wherever the header is there.
    Prefix(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Capture {
    #[serde(rename = "as")]
    pub name: String,
    pub from: CaptureFrom,
    /// The component may read it (`session-facts`): an id, never a token. Up to 8 captures of a session, none of
    /// which comes from a cookie or is used by `apply`. A value is withheld when it is longer than 256 bytes, has
    /// characters other than visible ASCII without quotes and `\\`, or holds a field of the credential or another
    /// captured value.
    #[serde(default)]
    pub expose: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CaptureFrom {
    Json(String),
    Header(String),
    Cookie(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Apply {
    pub to: ApplyTo,
    pub value: String,
    /// Only for these methods; all when empty.
    #[serde(default)]
    pub methods: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ApplyTo {
    /// As Basic authorization: the template of the user name, with the password in `value`.
    Basic(String),
    Header(String),
    Cookie(String),
    /// Into every element of a batch.
    JsonPointer(String),
    FormField(String),
    Query(String),
}
