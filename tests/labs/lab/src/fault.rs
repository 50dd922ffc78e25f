//! The faults that a test or a demo can order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Certificate, Request};

/// A fault, and the requests that it meets. Without methods and path every request, without `times` every time,
/// without `for_ms` until faults are cleared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Fault {
    /// What happens.
    #[serde(flatten)]
    pub kind: FaultKind,
    /// Methods that it meets; empty for all.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Path that it meets, without the query; `*` stands for any text, slashes included.
    #[serde(default)]
    pub path: Option<String>,
    /// How many requests that it would meet pass first.
    #[serde(default)]
    pub skip: u32,
    /// How many requests it meets.
    #[serde(default)]
    pub times: Option<u32>,
    /// How long it lasts on the lab's clock, in milliseconds.
    #[serde(default)]
    pub for_ms: Option<u64>,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// The request is read, but neither executed nor answered; the connection closes when the fault ends.
    Hang,
    /// The path is cut: every connection is closed, and new ones at once. The controller itself lives on.
    Cut,
    /// The connection closes when so many bytes of a form with parts have come. Other requests lose their connection.
    CutRequest { after_bytes: u64 },
    /// The connection closes before the request is executed.
    LoseRequest {
        #[serde(default)]
        then: Option<Then>,
    },
    /// The request is executed, and the connection closes without an answer.
    LoseAnswer {
        #[serde(default)]
        then: Option<Then>,
    },
    /// The request is executed; the connection closes after half of the body.
    CutBody,
    /// The request is executed; half of the body is sent as if it were all.
    Truncate,
    /// The request is executed at once; its answer comes this much real time later.
    Slow { ms: u64 },
    /// A page as a proxy or a login portal sends it; the request is not executed.
    Html {
        #[serde(default = "ok")]
        status: u16,
    },
    /// The controller's own form of an error; the request is not executed. 429 is a rate limit.
    Status {
        status: u16,
        #[serde(default)]
        retry_after_secs: Option<u64>,
    },
    /// Every session ends before the request is executed.
    EndSessions,
    /// New connections get another certificate, and old ones are closed.
    Certificate { which: Certificate },
    /// A fault that the simulator defines.
    Vendor {
        name: String,
        #[serde(default)]
        args: Value,
    },
}

/// What becomes of the controller after a lost request or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// As [`FaultKind::Cut`].
    Cut {
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// It restarts: what lives in memory is gone, and for this long it is away.
    Boot { for_ms: u64 },
}

fn ok() -> u16 {
    200
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self { kind, methods: Vec::new(), path: None, skip: 0, times: None, for_ms: None }
    }
}

impl Fault {
    /// [`FaultKind::Hang`].
    pub fn hang() -> Self {
        FaultKind::Hang.into()
    }

    /// [`FaultKind::Cut`].
    pub fn cut() -> Self {
        FaultKind::Cut.into()
    }

    /// [`FaultKind::LoseRequest`], with nothing after it.
    pub fn lose_request() -> Self {
        FaultKind::LoseRequest { then: None }.into()
    }

    /// [`FaultKind::LoseAnswer`], with nothing after it.
    pub fn lose_answer() -> Self {
        FaultKind::LoseAnswer { then: None }.into()
    }

    /// [`FaultKind::Slow`].
    pub fn slow(ms: u64) -> Self {
        FaultKind::Slow { ms }.into()
    }

    /// [`FaultKind::Html`].
    pub fn html(status: u16) -> Self {
        FaultKind::Html { status }.into()
    }

    /// [`FaultKind::Status`] 429.
    pub fn rate_limit(retry_after_secs: u64) -> Self {
        FaultKind::Status { status: 429, retry_after_secs: Some(retry_after_secs) }.into()
    }

    /// [`FaultKind::Vendor`].
    pub fn vendor(name: &str, args: Value) -> Self {
        FaultKind::Vendor { name: name.to_owned(), args }.into()
    }

    /// Meets this method on this path only.
    pub fn on(mut self, method: &str, path: &str) -> Self {
        self.methods.push(method.to_owned());
        self.path = Some(path.to_owned());
        self
    }

    /// Meets requests that are not `GET`, `HEAD` or `OPTIONS` only.
    pub fn on_writes(mut self) -> Self {
        self.methods = ["POST", "PUT", "PATCH", "DELETE"].map(str::to_owned).to_vec();
        self
    }

    /// Meets this path only.
    pub fn on_path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Lets this many requests pass first.
    pub fn skip(mut self, requests: u32) -> Self {
        self.skip = requests;
        self
    }

    /// Meets this many requests.
    pub fn times(mut self, requests: u32) -> Self {
        self.times = Some(requests);
        self
    }

    /// Lasts this long on the lab's clock.
    pub fn for_ms(mut self, ms: u64) -> Self {
        self.for_ms = Some(ms);
        self
    }

    /// What becomes of the controller; for lost requests and answers only.
    pub fn then(mut self, next: Then) -> Self {
        if let FaultKind::LoseRequest { then } | FaultKind::LoseAnswer { then } = &mut self.kind {
            *then = Some(next);
        }
        self
    }

    /// Whether it meets every request while it lasts.
    pub(crate) fn meets_all(&self) -> bool {
        self.is_anywhere() && self.skip == 0 && self.times.is_none()
    }

    /// Whether it concerns no method and no path.
    pub(crate) fn is_anywhere(&self) -> bool {
        self.methods.is_empty() && self.path.is_none()
    }

    /// Whether the two do the same to every request, so that one replaces the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let is_same_kind = match (&self.kind, &other.kind) {
            (FaultKind::Vendor { name: own, .. }, FaultKind::Vendor { name, .. }) => own == name,
            (own, kind) => own.name() == kind.name(),
        };
        is_same_kind && self.meets_all() && other.meets_all()
    }

    pub(crate) fn meets(&self, request: &Request) -> bool {
        let has_method = self.methods.is_empty()
            || self.methods.iter().any(|method| method.eq_ignore_ascii_case(&request.method));
        has_method && self.path.as_ref().is_none_or(|pattern| is_like(pattern, &request.path))
    }

    /// Whether it acts on connections, not on requests.
    pub(crate) fn concerns_connections(&self) -> bool {
        matches!(self.kind, FaultKind::Cut | FaultKind::Certificate { .. })
    }

    /// What is wrong with the order, if anything.
    pub(crate) fn check(&self, vendor_faults: &[&str]) -> Result<(), String> {
        match &self.kind {
            _ if self.concerns_connections() && !self.meets_all() => {
                Err("cut and certificate concern connections: methods, path, skip and times do not apply"
                    .to_owned())
            }
            FaultKind::Vendor { name, .. } if !vendor_faults.contains(&name.as_str()) => {
                Err(format!("fault '{name}' is unknown, known are {vendor_faults:?}"))
            }
            FaultKind::Html { status } | FaultKind::Status { status, .. }
                if !(200..=999).contains(status) =>
            {
                Err(format!("'{status}' is no status, use 200 to 999"))
            }
            _ if self.times == Some(0) => Err("a fault meets at least one request".to_owned()),
            _ => Ok(()),
        }
    }
}

impl FaultKind {
    /// Its name in orders and in the record.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Hang => "hang",
            Self::Cut => "cut",
            Self::CutRequest { .. } => "cut_request",
            Self::LoseRequest { .. } => "lose_request",
            Self::LoseAnswer { .. } => "lose_answer",
            Self::CutBody => "cut_body",
            Self::Truncate => "truncate",
            Self::Slow { .. } => "slow",
            Self::Html { .. } => "html",
            Self::Status { .. } => "status",
            Self::EndSessions => "end_sessions",
            Self::Certificate { .. } => "certificate",
            Self::Vendor { .. } => "vendor",
        }
    }
}

/// Whether `text` is of the form of `pattern`, in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| is_like(rest, &text[at..]))
}
