//! Errors for apps in the form of their protocol (RFC 6749, section 5.2).

use axum::http::StatusCode;
use heddle_kernel::http::error::{Error, Shaped};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

heddle_core::words! {
    /// Why an app is not given what it asked for (RFC 6749 section 5.2).
    pub enum OauthError {
        InvalidRequest = "invalid_request",
        InvalidClient = "invalid_client",
        InvalidGrant = "invalid_grant",
        InvalidScope = "invalid_scope",
        UnsupportedGrantType = "unsupported_grant_type",
    }
}

/// An error for an app in the form of its protocol.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OAuth2Error")]
pub(crate) struct OauthRefusal {
    pub error: OauthError,
    pub error_description: String,
}

impl From<OauthRefusal> for Error {
    fn from(refusal: OauthRefusal) -> Self {
        let is_unknown_client = refusal.error == OauthError::InvalidClient;
        Error::Shaped(Box::new(Shaped {
            status: if is_unknown_client { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST },
            kind: refusal.error.as_str(),
            body: json!({ "error": refusal.error, "error_description": refusal.error_description }),
            challenge: is_unknown_client.then_some("Basic realm=\"heddle\", charset=\"UTF-8\""),
        }))
    }
}
