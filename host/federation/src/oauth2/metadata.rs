//! The description of this service for apps: its name and its abilities (RFC 8414, RFC 9207).

use axum::extract::{FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::routing::get;
use axum::{Json as Answer, Router};
use heddle_kernel::app::SharedApp;
use heddle_kernel::config::Environment;
use heddle_kernel::http::PREFIX;
use heddle_kernel::http::client::Client;
use heddle_kernel::http::error::Error;
use serde_json::{Value, json};
use url::Url;

/// As the issuer demands: at the root, without a suffix.
const PATH: &str = "/.well-known/oauth-authorization-server";

/// The name of this service: `PUBLIC_URL`, or, in development, the address that the request was sent to.
pub(super) struct Issuer(pub(super) String);

impl FromRequestParts<SharedApp> for Issuer {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Error> {
        if app.config.public_url.is_some() {
            return Ok(Self(app.config.link_base()));
        }
        if app.config.environment != Environment::Development {
            return Err(Error::NotAvailable(
                "apps cannot act for users until PUBLIC_URL says where this service is",
            ));
        }
        let is_https = parts.extensions.get::<Client>().is_some_and(|client| client.is_https);
        let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host =
            parts.uri.authority().map(axum::http::uri::Authority::as_str).or(named).unwrap_or_default();
        origin(is_https, host).map(Self).ok_or_else(|| Error::BadRequest {
            kind: "bad_request",
            message: "header 'Host' does not name this service; set PUBLIC_URL to be independent of it"
                .to_owned(),
        })
    }
}

/// The origin of a host with or without a port.
fn origin(is_https: bool, host: &str) -> Option<String> {
    let url = Url::parse(&format!("{}://{host}", if is_https { "https" } else { "http" })).ok()?;
    let is_plain =
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    (is_plain && url.has_host() && !host.ends_with('/')).then(|| url.origin().ascii_serialization())
}

pub(super) fn root_routes() -> Router<SharedApp> {
    Router::new().route(PATH, get(metadata))
}

async fn metadata(State(app): State<SharedApp>, Issuer(issuer): Issuer) -> Answer<Value> {
    let at = |path: &str| format!("{issuer}{PREFIX}/oauth2/{path}");
    let methods = ["client_secret_basic", "client_secret_post", "none"];
    Answer(json!({
        "issuer": issuer,
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "revocation_endpoint": at("revoke"),
        "introspection_endpoint": at("introspect"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": &methods[..2],
        "authorization_response_iss_parameter_supported": true,
        "scopes_supported": app.declared().permissions.iter().collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_an_origin_and_nothing_else() {
        assert_eq!(origin(false, "127.0.0.1:8080").as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(origin(true, "Heddle.example:443").as_deref(), Some("https://heddle.example"));
        for host in ["", "a b", "a/b", "a?b", "a#b", "u@a", "a/"] {
            assert_eq!(origin(true, host), None, "{host}");
        }
    }
}
