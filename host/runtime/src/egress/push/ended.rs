//! Why a channel is not open, in own words: never in those of the controller.

use heddle_core::fault::{Fault, FaultKind};

use super::limits::MESSAGE_BYTES_MAX;

/// Why a channel could not be opened, or has ended. The text is for people, and holds nothing that the controller said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The answer is the one that the manifest calls `unsupported`.
    #[error("the controller does not have this channel (status {status})")]
    Unsupported { status: u16 },
    /// None of the channel's `ways` holds.
    #[error("no way of the channel is for what the credential and the settings of the controller have")]
    NoWay,
    /// The login was refused, or the channel was refused (401, 403) with a new session too.
    #[error("{0}")]
    Refused(String),
    /// The certificate is not trusted, or the TLS policy cannot be used.
    #[error("{0}")]
    Untrusted(String),
    /// An own check refused the request: its address, its path, its headers.
    #[error("{0}")]
    Denied(String),
    /// The controller was not reached, or gave no answer in time.
    #[error("{0}")]
    Unreachable(String),
    /// Another answer than one that opens the channel.
    #[error("the controller answers the request for the channel with status {status}{}", redirect(*.status))]
    Unexpected { status: u16 },
    /// The answer says that the channel is open, and is none of its kind.
    #[error("the controller's answer is not what the channel is declared as")]
    NotThat,
    /// No sign of the controller for so many seconds.
    #[error("the controller gave no sign for {secs} s")]
    Silent { secs: u32 },
    /// The controller ended it.
    #[error("the controller closed the channel")]
    Closed,
    /// The connection broke, or broke the protocol.
    #[error("the connection of the channel broke")]
    Broken,
    /// A message, or an answer of a watch, has more bytes or values than are taken.
    #[error(
        "a message of the controller is larger than {MESSAGE_BYTES_MAX} bytes, or an answer too large to compare"
    )]
    TooLarge,
    /// So many frames that not even dropping them is worth it.
    #[error("the controller sends far more than a channel takes")]
    TooMuch,
    /// There are as many channels open as may be.
    #[error("{most} channels are open {whose}, which is the most")]
    NoPlace { whose: Whose, most: usize },
    /// The objects that have a connection each are others now. The channel is opened anew at once.
    #[error("the objects that the channel listens to have changed")]
    Changed,
    /// The manifest has no such channel, or it is one that controllers open.
    #[error("the package has no channel '{0}' that is opened")]
    Undeclared(String),
    /// The adapter was taken out of service, or the process stops.
    #[error("the adapter was taken out of service")]
    OutOfService,
}

/// Whose channels are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Process,
    Organization,
    Controller,
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Process => "in this process",
            Self::Organization => "of the organization",
            Self::Controller => "of the controller",
        })
    }
}

/// When it is worth opening a channel again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// At once.
    Now,
    /// Soon, and later each time that it does not work.
    Soon,
    /// In some minutes: more attempts could lock an account, or do nothing.
    Late,
    /// When the package, the release or the settings of the controller have changed, or a day has passed.
    Changed,
}

impl Ended {
    /// The controller took too long to open the channel, or to answer a request for it.
    pub(super) fn late() -> Self {
        Self::Unreachable("the controller did not open the channel in time".to_owned())
    }

    /// When it is worth opening the channel again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Changed => Retry::Now,
            Self::Unreachable(_)
            | Self::Unexpected { .. }
            | Self::NotThat
            | Self::Silent { .. }
            | Self::Closed
            | Self::Broken
            | Self::TooLarge
            | Self::OutOfService => Retry::Soon,
            Self::Refused(_)
            | Self::Untrusted(_)
            | Self::Denied(_)
            | Self::TooMuch
            | Self::NoPlace { .. } => Retry::Late,
            Self::Unsupported { .. } | Self::NoWay | Self::Undeclared(_) => Retry::Changed,
        }
    }

    /// Whether the same request may be answered as it should be in a moment.
    pub(super) fn may_pass(&self) -> bool {
        self.retry() == Retry::Soon
    }

    /// A word for counters.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported",
            Self::NoWay => "no_way",
            Self::Refused(_) => "refused",
            Self::Untrusted(_) => "untrusted",
            Self::Denied(_) => "denied",
            Self::Unreachable(_) => "unreachable",
            Self::Unexpected { .. } => "unexpected",
            Self::NotThat => "not_that",
            Self::Silent { .. } => "silent",
            Self::Closed => "closed",
            Self::Broken => "broken",
            Self::TooLarge => "too_large",
            Self::TooMuch => "too_much",
            Self::NoPlace { .. } => "no_place",
            Self::Changed => "changed",
            Self::Undeclared(_) => "undeclared",
            Self::OutOfService => "out_of_service",
        }
    }
}

/// The texts of the host's own faults name no secret and repeat no answer.
impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        match (fault.kind, fault.code.as_deref()) {
            (_, Some("tls-untrusted" | "tls-policy")) => Self::Untrusted(fault.message),
            (_, Some("response-too-large" | "answer-budget")) => Self::TooLarge,
            (FaultKind::Authentication, _) => Self::Refused(fault.message),
            (FaultKind::Denied, _) => Self::Denied(fault.message),
            _ => Self::Unreachable(fault.message),
        }
    }
}

fn redirect(status: u16) -> &'static str {
    if (300..400).contains(&status) { ", a redirect, which is not followed" } else { "" }
}
