//! SAML: requests to the provider are supported, answers are not.
//!
//! A SAML answer is XML with a signature inside the signed document. Such signatures have often been forged, and a
//! partial implementation is not safe; so answers are not accepted at all.

use std::io::Write as _;

use axum::Json as Answer;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::SecondsFormat;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use heddle_core::secret::random_bytes;
use heddle_core::{ProviderKind, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Params;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::sso;
use heddle_store::sso::IdentityProviderId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::settings::{self, Saml};

/// Longest relay state (SAML bindings, section 3.4.3).
const RELAY_STATE_BYTES_MAX: usize = 80;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginQuery {
    provider_id: IdentityProviderId,
    /// Returned with the provider's answer; at most 80 bytes.
    relay_state: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SamlRedirect")]
struct Redirect {
    /// Address to which the browser is to be sent; it contains the request.
    redirect_url: String,
}

pub(super) fn routes() -> Routes {
    let callback = "/auth/sso/saml/callback";
    let not_there = || doc("Always 501: answers of SAML providers are not accepted").empty(501);
    Routes::default()
        .get(
            "/auth/sso/saml/login",
            Access::Public,
            login,
            doc("Where to send a browser that signs in at a SAML provider")
                .named("begin_saml_login")
                .query::<LoginQuery>()
                .answers::<Redirect>(200),
        )
        .get(callback, Access::Public, refuse, not_there().named("get_saml_callback"))
        .post(
            callback,
            Access::Public,
            refuse,
            not_there().named("post_saml_callback").changes_callers().own_proof(),
        )
}

async fn login(
    State(app): State<SharedApp>,
    Params(query): Params<LoginQuery>,
) -> Result<Answer<Redirect>, Error> {
    let relay = query.relay_state.unwrap_or_default();
    if relay.len() > RELAY_STATE_BYTES_MAX {
        return Err(Error::field("relay_state", "must not exceed 80 bytes"));
    }
    let mut tx = app.db.single().await?;
    let found = sso::find_usable(&mut tx, query.provider_id, ProviderKind::Saml).await?;
    let usable = found.ok_or(Error::NotFound("identity provider"))?;
    let saml: Saml = settings::read(&usable.provider.settings)?;
    let id = format!("_{}", hex::encode(random_bytes::<16>().as_slice()));
    let redirect_url = redirect(&saml, &request(&saml, &id, app.clock.now()), &relay)?;
    Ok(Answer(Redirect { redirect_url }))
}

async fn refuse() -> Error {
    Error::NotAvailable(
        "answers of SAML providers are not accepted: sign in by OpenID Connect, LDAP or a password",
    )
}

/// Returns the request, as SAML 2.0 core section 3.4.1 defines it.
pub(super) fn request(saml: &Saml, id: &str, now: Timestamp) -> String {
    let callback = saml.callback_url.as_deref().map_or_else(String::new, |url| {
        format!(
            " ProtocolBinding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\" AssertionConsumerServiceURL=\"{}\"",
            escaped(url)
        )
    });
    format!(
        "<samlp:AuthnRequest xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\" \
         xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" ID=\"{id}\" Version=\"2.0\" IssueInstant=\"{}\" \
         Destination=\"{}\"{callback}><saml:Issuer>{}</saml:Issuer></samlp:AuthnRequest>",
        now.to_rfc3339_opts(SecondsFormat::Secs, true),
        escaped(&saml.entry_point),
        escaped(&saml.entity_id),
    )
}

/// Returns the entry point with the request in its query (SAML bindings, section 3.4.4).
pub(super) fn redirect(saml: &Saml, request: &str, relay: &str) -> Result<String, Error> {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    deflated.write_all(request.as_bytes()).map_err(Error::internal)?;
    let deflated = deflated.finish().map_err(Error::internal)?;
    let mut url = Url::parse(&saml.entry_point).map_err(Error::internal)?;
    url.query_pairs_mut().append_pair("SAMLRequest", &STANDARD.encode(deflated));
    if !relay.is_empty() {
        url.query_pairs_mut().append_pair("RelayState", relay);
    }
    Ok(url.into())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_request_can_be_read_from_the_address() {
        let saml = Saml {
            entry_point: "https://id.example/sso?tenant=a&b=c".to_owned(),
            entity_id: "urn:heddle:\"<acme>\"".to_owned(),
            callback_url: Some("https://heddle.example/api/v1/auth/sso/saml/callback".to_owned()),
        };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let url = Url::parse(&redirect(&saml, &request(&saml, "_1", now), "next=/a b").unwrap()).unwrap();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        assert_eq!((pairs[0].0.as_str(), pairs[0].1.as_str()), ("tenant", "a"));
        assert_eq!((pairs[3].0.as_str(), pairs[3].1.as_str()), ("RelayState", "next=/a b"));
        assert_eq!(pairs[2].0, "SAMLRequest");
        let mut xml = String::new();
        let deflated = STANDARD.decode(&pairs[2].1).unwrap();
        flate2::read::DeflateDecoder::new(deflated.as_slice()).read_to_string(&mut xml).unwrap();
        for part in [
            "ID=\"_1\"",
            "IssueInstant=\"2026-11-21T12:00:00Z\"",
            "Destination=\"https://id.example/sso?tenant=a&amp;b=c\"",
            "AssertionConsumerServiceURL=\"https://heddle.example/api/v1/auth/sso/saml/callback\"",
            "<saml:Issuer>urn:heddle:&quot;&lt;acme&gt;&quot;</saml:Issuer>",
        ] {
            assert!(xml.contains(part), "{part} in {xml}");
        }
    }
}
