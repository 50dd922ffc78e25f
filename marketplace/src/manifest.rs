//! What a package says of itself: files, needs, limits, and how to log in.
//!
//! Keys are kebab-case; unknown keys are refused, so that a typo in a limit or
//! a rule cannot pass for the default.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Adapter,
    Plugin,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format: 1.
    pub schema: u32,
    /// `^[a-z][a-z0-9-]{2,40}$`. For an adapter, also the `vendor` of its controllers.
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
    /// JSON Schema of a controller's `settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// Managed login sessions, by name.
    #[serde(default)]
    pub auth: BTreeMap<String, Session>,
    /// Requests other than GET and HEAD that change nothing at the device.
    #[serde(default)]
    pub reads: Vec<ReadRule>,
    /// Names of fields in JSON answers that hold secrets. The host replaces
    /// their values by references before the component sees them.
    #[serde(default)]
    pub secret_fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    pub path: String,
    pub size: u64,
    /// Lower-case hex.
    pub sha256: String,
}

/// What the component may import beyond context, log, progress, clock and random.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Capabilities {
    /// HTTP to the controller that the call is for.
    #[serde(default)]
    pub controller_http: bool,
    /// Naming (never reading) the secrets of the controller's credential.
    #[serde(default)]
    pub secrets: bool,
}

/// Limits asked for; the host's maximum bounds each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Least distance between requests to one controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pace {
    pub read_gap_ms: u32,
    pub write_gap_ms: u32,
}

/// A request that reads although its method could write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadRule {
    pub method: String,
    /// Exact, or with `*` standing for one segment. A request with a query fits no rule.
    pub path: String,
    /// JSON pointer to the values it may have there. All must fit. An array
    /// body is a batch: every element must fit some rule.
    #[serde(default)]
    pub json: BTreeMap<String, Vec<Value>>,
    /// Says that this path does nothing but read, whatever the body. Required of a rule without `json`, and
    /// refused where a login, a logout or another rule shows that the path does more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_reads: bool,
}

/// A login that the host performs and keeps, or a credential that each request carries. Templates name
/// `{{secret.NAME}}`, `{{session.NAME}}` (captured before) and `{{settings.NAME}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Session {
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
    pub ttl_s: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logout: Option<Request>,
}

/// A request of a login or logout. It is a GET or HEAD without a body, fits a rule of `reads`, or declares its
/// `effect`; a package with any other request is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}

/// What a request of a login or logout changes at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The session and nothing else. Shown when the package is installed, and logged each time it is sent.
    Session,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoginStep {
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

/// All conditions that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CaptureFrom {
    Json(String),
    Header(String),
    Cookie(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Apply {
    pub to: ApplyTo,
    pub value: String,
    /// Only for these methods; all when empty.
    #[serde(default)]
    pub methods: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
