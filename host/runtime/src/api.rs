//! What the server sees of the runtime: calls, their context, and why they fail.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use heddle_core::change::{Hole, HoleSource, HoleValues};
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, OrgId};
use hyper::body::Bytes;
use serde_json::Value;
use url::Url;

use crate::egress::held::OVERLOAD;
use crate::egress::holes;
use crate::egress::request::Response;

/// The controller that a call is for. The guest names it and cannot build one.
#[derive(Debug, Clone)]
pub struct Target {
    pub org_id: OrgId,
    pub controller_id: ControllerId,
    pub url: Url,
    pub tls: TlsPolicy,
    pub credential_id: CredentialId,
    /// Changes when the credential does; connections and sessions are kept per version.
    pub credential_version: i64,
    /// The controller's settings, validated against the manifest's schema.
    pub settings: Value,
    pub site_ref: Option<String>,
}

/// Bytes of a credential, by the names that manifests and components use: those of
/// [`heddle_marketplace::credentials::OWN_FIELDS`], and what else the organization gave it.
#[derive(Debug, Clone, Default)]
pub struct Credential {
    pub fields: Vec<(String, Secret)>,
}

/// What the runtime needs to know of secrets, implemented by the server.
#[async_trait::async_trait]
pub trait Vault: Send + Sync + 'static {
    /// Decrypts a credential, just before it is used.
    async fn credential(&self, org: OrgId, id: CredentialId) -> Result<Credential, VaultError>;
    /// Key of the references that stand for this controller's secrets (32 bytes).
    fn reference_key(&self, controller: ControllerId) -> [u8; 32];
}

/// Says why a credential cannot be read. The text goes to the log alone: the component and the client learn
/// only that the credential cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("credential cannot be read: {0}")]
pub struct VaultError(pub String);

/// Secrets by their reference (`hdl-secret:<32 hex>`), for one change.
#[derive(Debug, Clone, Default)]
pub struct SecretBook {
    pub entries: std::collections::BTreeMap<String, Secret>,
}

/// One call's surroundings.
#[derive(Clone)]
pub struct Call {
    pub target: Target,
    pub request_id: String,
    /// Wall time; the phase's default when `None`, bounded by the host's maximum.
    pub deadline: Option<Duration>,
    /// Where `progress.report` goes.
    pub progress: Option<Arc<dyn Fn(u8, String) + Send + Sync>>,
    pub urgency: Urgency,
}

/// Whether a call can be put off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Urgency {
    /// It waits where much is going on, and is refused where its component keeps failing.
    #[default]
    Ordinary,
    /// It belongs to a change that a device holds or may hold: to confirm, take back, compare or ask after it. No breaker
    /// refuses it, and it has slots that ordinary calls cannot take.
    UnderWay,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("target", &self.target)
            .field("request_id", &self.request_id)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// The bytes of an uploaded file. They are read anew, piece by piece, for each request that sends them.
#[derive(Clone)]
pub struct FileContent {
    pub size_bytes: u64,
    pub open: Arc<dyn Fn() -> FileStream + Send + Sync>,
}

/// Pieces of a file in their order: as many bytes as the file has, or an error.
pub type FileStream = BoxStream<'static, Result<Bytes, std::io::Error>>;

impl std::fmt::Debug for FileContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileContent").field("size_bytes", &self.size_bytes).finish_non_exhaustive()
    }
}

/// What a device says of a file before its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHead {
    /// Media type, in lower case and without parameters.
    pub content_type: Option<String>,
    /// What the device calls it, unchecked.
    pub name: Option<String>,
    /// Number of bytes, where the device says it before.
    pub size_bytes: Option<u64>,
}

/// A file that a sink took whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    pub size_bytes: u64,
    /// SHA-256 of the bytes, in lower case hex.
    pub sha256: String,
    /// Media type that the device gave, in lower case and without parameters.
    pub content_type: Option<String>,
}

/// Takes the bytes that a device answers as a file. What it refuses ends the request, and nothing is kept.
#[async_trait::async_trait]
pub trait FileSink: Send + Sync + 'static {
    /// Whether an answer of JSON can be the file. If not, JSON is an ordinary answer.
    fn takes_json(&self) -> bool;
    /// Most bytes that are taken.
    fn bytes_max(&self) -> u64;
    /// Begins a file. Drops what an earlier one left.
    async fn begin(&self, head: FileHead) -> Result<(), Fault>;
    /// Takes the next bytes.
    async fn take(&self, bytes: Bytes) -> Result<(), Fault>;
    /// Ends the file. Returns its size in bytes and its SHA-256.
    async fn end(&self) -> Result<(u64, String), Fault>;
}

/// Files by the SHA-256 of their bytes, for one change.
#[derive(Debug, Clone, Default)]
pub struct FileBook {
    pub entries: std::collections::BTreeMap<String, FileContent>,
}

/// What fills the references in the calls of a plan.
#[derive(Debug, Clone)]
pub struct Filling {
    /// Fills `{{host.hold_secs}}`.
    pub hold_secs: u32,
    pub secrets: Arc<SecretBook>,
    /// The files that the calls send.
    pub files: Arc<FileBook>,
    /// The holes that the plan declares.
    pub holes: Arc<[Hole]>,
    /// What is known of them.
    pub values: HoleValues,
}

/// A call of a plan that was sent, or that the host tried to send.
#[derive(Debug)]
pub struct SentCall {
    /// The device's answer, for [`crate::Adapter::judge`] alone; or why there is none.
    pub answer: Result<Answer, Fault>,
    /// The call was handed to the connection and may have arrived. When false, the host itself saw that it did not.
    pub left: bool,
}

/// What a device answered to a call of a plan. Only the component that made the plan reads it.
#[derive(Debug)]
pub struct Answer(pub(crate) Response);

impl Answer {
    /// The values for those of the holes that the answer to the call `id` fills, or why one has none. The answer is
    /// parsed at most once; a secret is never a value.
    pub fn values<'a>(&self, id: &str, holes: &'a [Hole]) -> Vec<(&'a Hole, Result<Value, String>)> {
        let of_call = holes.iter().filter_map(|hole| match &hole.source {
            HoleSource::Answer { call, pointer } if call == id => Some((hole, pointer)),
            _ => None,
        });
        let body = std::cell::LazyCell::new(|| holes::readable(&self.0.body));
        of_call
            .map(|(hole, pointer)| {
                let value =
                    body.as_ref().map_err(Clone::clone).and_then(|body| holes::pick(hole, pointer, body));
                (hole, value)
            })
            .collect()
    }
}

/// How a call ended when it did not answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The component answered a fault, or the egress engine's own fault came through it.
    #[error("{0}")]
    Fault(Fault),
    /// The component trapped, ran out of a limit or broke the interface.
    #[error("{kind} {component} {version} stopped: {class} (reference {reference}){}", after(*effect))]
    Trap {
        kind: &'static str,
        component: String,
        version: String,
        class: TrapClass,
        reference: String,
        /// Whether a request left that can have changed something.
        effect: Effect,
    },
    /// The component has failed too often for this controller or altogether.
    #[error(
        "{kind} {component} is suspended after repeated failures; it is tried again in {retry_after_secs} s"
    )]
    Suspended { kind: &'static str, component: String, retry_after_secs: u64 },
    /// No slot was free in time. Nothing was done.
    #[error("too many calls of components are running; try again")]
    Overload,
    /// Fault of the host. Its cause is logged where it arises, and is shown to no caller: it can name files and
    /// addresses of this machine.
    #[error("internal error")]
    Host(String),
}

/// Code of the fault of a call that the host cut, because the component was taken out of service at once. No component
/// answers it.
pub const OUT_OF_SERVICE: &str = "out-of-service";

impl CallError {
    /// Logs the cause, which no caller sees.
    pub(crate) fn host(cause: String) -> Self {
        tracing::error!(error = %cause, "a call of a component failed in the host");
        Self::Host(cause)
    }

    /// Whether the call may have changed something.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Fault(fault) => fault.effect,
            Self::Trap { effect, .. } => *effect,
            Self::Suspended { .. } | Self::Overload | Self::Host(_) => Effect::None,
        }
    }

    /// The error of a call of which a request left that can have changed something: no error of it looks repeatable.
    pub(crate) fn after_effect(self) -> Self {
        let possible = |fault: Fault| Self::Fault(fault.with_effect(Effect::Possible));
        match self {
            Self::Fault(fault) if fault.effect == Effect::None => possible(fault),
            Self::Trap { kind, component, version, class, reference, effect: Effect::None } => {
                Self::Trap { kind, component, version, class, reference, effect: Effect::Possible }
            }
            Self::Overload => {
                let message = "there was no room for the answer, and the call may have changed something";
                possible(Fault::new(FaultKind::Generic, message).with_code(OVERLOAD))
            }
            Self::Host(_) => possible(Fault::new(FaultKind::Generic, "internal error")),
            other => other,
        }
    }
}

/// What a text about a stopped component adds for its effect.
fn after(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "",
        Effect::Possible | Effect::Certain => "; it may have changed something",
    }
}

/// Why a component was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrapClass {
    Panic,
    Bug,
    Abi,
    Cpu,
    Wall,
    Resource,
    /// More was handed over than the host takes. How much that is follows from the device.
    TooLarge,
    /// It ended its process, which a component does not have; with which status does not matter.
    Exit,
}

impl std::fmt::Display for TrapClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TrapClass::Panic => "panic",
            TrapClass::Bug => "bug",
            TrapClass::Abi => "abi",
            TrapClass::Cpu => "cpu",
            TrapClass::Wall => "wall",
            TrapClass::Resource => "memory",
            TrapClass::TooLarge => "too-large",
            TrapClass::Exit => "exit",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap(effect: Effect) -> CallError {
        let (component, version, reference) = ("acme".to_owned(), "1.0.0".to_owned(), "1".to_owned());
        CallError::Trap { kind: "plugin", component, version, class: TrapClass::Wall, reference, effect }
    }

    #[test]
    fn no_error_looks_repeatable_once_something_left() {
        let unchanged = Fault::new(FaultKind::Busy, "the server is busy");
        for error in [
            CallError::Fault(unchanged),
            trap(Effect::None),
            CallError::Overload,
            CallError::Host("a cause".to_owned()),
        ] {
            assert_eq!(error.effect(), Effect::None, "{error:?}");
            let after = error.after_effect();
            assert_eq!(after.effect(), Effect::Possible, "{after:?}");
            assert!(!matches!(after, CallError::Overload | CallError::Host(_)), "{after:?}");
        }
        let certain = Fault::new(FaultKind::Conflict, "it is there").with_effect(Effect::Certain);
        assert_eq!(CallError::Fault(certain).after_effect().effect(), Effect::Certain);
        assert!(trap(Effect::Possible).to_string().ends_with("; it may have changed something"));
        assert!(trap(Effect::None).to_string().ends_with("stopped: wall (reference 1)"));
    }
}

/// An event that a trigger is told of.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenEvent {
    /// The same whenever it comes again.
    pub id: String,
    /// Grows within the organization.
    pub seq: u64,
    pub event_type: String,
    /// Milliseconds since 1970.
    pub occurred_at_ms: u64,
    /// An object without secrets.
    pub payload: Value,
}

/// A request of others to a hook, whose proof was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRequest {
    /// A name of the manifest.
    pub hook: String,
    /// Names in lower case, without the proof.
    pub headers: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What a hook answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAnswer {
    /// 200 to 299, or 400 to 499.
    pub status: u16,
    /// `application/json` or `text/plain`.
    pub content_type: Option<&'static str>,
    pub body: Vec<u8>,
}
