//! A fault of an identity provider, or its silence.
//!
//! The person who signs in learns the kind only. An administrator sees the rest in the log and in the provider's test.

use axum::http::StatusCode;
use heddle_core::fault::{Fault, FaultKind};
use heddle_kernel::http::error::Error;
use heddle_store::sso::IdentityProviderId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderFaultKind {
    /// No connection, or an untrusted one.
    Unreachable,
    /// The provider does not accept the client's secret, or the search account's password.
    Credentials,
    Silent,
    /// The provider's answer is invalid.
    Faulty,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .kind.message())]
pub(crate) struct ProviderFault {
    pub(crate) kind: ProviderFaultKind,
    /// For administrators: names addresses and certificates, never secrets.
    pub(crate) detail: String,
}

impl ProviderFaultKind {
    /// Status and `error.type` of the public API.
    pub(crate) const fn public(self) -> (u16, &'static str) {
        match self {
            Self::Unreachable => (502, "identity_provider_unreachable"),
            Self::Credentials => (502, "identity_provider_authentication_error"),
            Self::Faulty => (502, "identity_provider_error"),
            Self::Silent => (504, "identity_provider_timeout"),
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::Unreachable => {
                "the identity provider cannot be reached; try again or tell an administrator"
            }
            Self::Credentials => "the identity provider does not accept this service; tell an administrator",
            Self::Faulty => "the identity provider gave an answer that cannot be used; tell an administrator",
            Self::Silent => "the identity provider gave no answer in time; try again",
        }
    }
}

impl ProviderFault {
    pub(super) fn faulty(detail: impl Into<String>) -> Self {
        Self { kind: ProviderFaultKind::Faulty, detail: detail.into() }
    }

    pub(super) fn credentials(detail: impl Into<String>) -> Self {
        Self { kind: ProviderFaultKind::Credentials, detail: detail.into() }
    }

    pub(super) fn silent(detail: impl Into<String>) -> Self {
        Self { kind: ProviderFaultKind::Silent, detail: detail.into() }
    }

    /// Whether the detail says only that nothing was reached. An untrusted certificate was reached, and must be shown.
    pub(super) fn is_unreached(&self) -> bool {
        matches!(self.kind, ProviderFaultKind::Unreachable | ProviderFaultKind::Silent)
            && !heddle_kernel::unreached::shows_certificate(&self.detail)
    }

    /// Adds the name of the requested item.
    pub(super) fn at(mut self, what: &str) -> Self {
        self.detail = format!("{what}: {}", self.detail);
        self
    }

    /// Logs the details, which the answer does not contain.
    pub(super) fn logged(self, provider: IdentityProviderId) -> Self {
        tracing::warn!(
            identity_provider.id = %provider,
            error.kind = self.kind.public().1,
            "identity provider {provider} could not be used: {}",
            self.detail
        );
        self
    }
}

impl From<ProviderFault> for Error {
    fn from(fault: ProviderFault) -> Self {
        let (status, kind) = fault.kind.public();
        let status = StatusCode::from_u16(status).expect("the table holds valid codes");
        Error::Upstream { status, kind, message: fault.kind.message() }
    }
}

impl From<Fault> for ProviderFault {
    fn from(fault: Fault) -> Self {
        let kind = match fault.kind {
            FaultKind::Timeout => ProviderFaultKind::Silent,
            FaultKind::Generic => ProviderFaultKind::Faulty,
            _ => ProviderFaultKind::Unreachable,
        };
        Self { kind, detail: fault.message }
    }
}
