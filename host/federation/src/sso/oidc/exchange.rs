//! Exchanges a code for tokens, and an access token for claims of its person.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::secret::Secret;
use heddle_runtime::OwnAnswer;
use http::{HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::super::fault::ProviderFault;
use super::attempt::Taken;
use super::documents::{Metadata, ask, json};
use super::id_token::Unproved;
use super::{Client, Stop};

const FORM: &str = "application/x-www-form-urlencoded";

#[derive(Debug, Deserialize)]
pub(super) struct Tokens {
    pub(super) id_token: Secret,
    pub(super) access_token: Option<Secret>,
}

/// An error of the token endpoint (RFC 6749 section 5.2).
#[derive(Debug, Default, Deserialize)]
struct TokenError {
    #[serde(default)]
    error: String,
}

impl Client<'_> {
    /// Redeems the code with which the browser returned.
    pub(super) async fn redeem(
        &self,
        metadata: &Metadata,
        code: &Secret,
        taken: &Taken,
    ) -> Result<Tokens, Stop> {
        let verifier = taken.proofs.verifier.expose();
        let answer = self.ask_tokens(metadata, code.expose(), &taken.redirect_uri, verifier).await?;
        if answer.status == 200 {
            return json(&answer).map_err(|fault: ProviderFault| fault.at("tokens").into());
        }
        match refusal(&answer).as_str() {
            "invalid_grant" => Err(Unproved::Code.into()),
            _ => Err(fault(&answer).into()),
        }
    }

    /// Fetches claims that are not in the ID token; `None` where the provider has no such endpoint.
    pub(super) async fn user_info(
        &self,
        metadata: &Metadata,
        access_token: &Secret,
    ) -> Result<Option<Map<String, Value>>, ProviderFault> {
        let Some(endpoint) = &metadata.userinfo_endpoint else { return Ok(None) };
        let headers = vec![(header::AUTHORIZATION, sensitive(&format!("Bearer {}", access_token.expose()))?)];
        let what = "userinfo endpoint";
        let answer = ask(self.app, self.settings, Method::GET, endpoint, headers, Vec::new())
            .await
            .map_err(|fault| fault.at(what))?;
        if answer.status != 200 {
            return Err(ProviderFault::faulty(format!("the answer has status {}", answer.status)).at(what));
        }
        json(&answer).map(Some).map_err(|fault| fault.at(what))
    }

    async fn ask_tokens(
        &self,
        metadata: &Metadata,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<OwnAnswer, ProviderFault> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let mut headers: Vec<(HeaderName, HeaderValue)> =
            vec![(header::CONTENT_TYPE, HeaderValue::from_static(FORM))];
        let id = &self.settings.client_id;
        match &self.secret {
            Some(secret) if takes_basic(metadata) => {
                headers.push((header::AUTHORIZATION, basic(id, secret)?));
            }
            Some(secret) => {
                form.extend([("client_id", id.as_str()), ("client_secret", secret.expose())]);
            }
            None => {
                form.push(("client_id", id));
            }
        }
        let body = Serializer::new(String::new()).extend_pairs(form).finish().into_bytes();
        ask(self.app, self.settings, Method::POST, &metadata.token_endpoint, headers, body)
            .await
            .map_err(|fault| fault.at("token endpoint"))
    }
}

/// Checks whether the provider knows this client: it is asked to redeem a code that it never issued.
pub(in crate::sso) async fn try_client(
    client: &Client<'_>,
    metadata: &Metadata,
) -> Result<(), ProviderFault> {
    let redirect_uri = client.settings.redirect_uris.first().map(String::as_str).unwrap_or_default();
    // A verifier has at least 43 characters.
    let answer =
        client.ask_tokens(metadata, "connection-test", redirect_uri, &"connection-test-".repeat(4)).await?;
    match refusal(&answer).as_str() {
        "invalid_grant" => Ok(()),
        _ => Err(fault(&answer)),
    }
}

/// Whether to use `client_secret_basic`: yes, unless the provider lists only other methods.
fn takes_basic(metadata: &Metadata) -> bool {
    let methods = metadata.token_endpoint_auth_methods_supported.as_ref();
    methods.is_none_or(|methods| {
        methods.iter().any(|method| method == "client_secret_basic")
            || !methods.iter().any(|method| method == "client_secret_post")
    })
}

/// RFC 6749 section 2.3.1: both halves are encoded before they are joined.
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, ProviderFault> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Secret::new(format!("{}:{}", encoded(id), encoded(secret.expose())));
    sensitive(&format!("Basic {}", STANDARD.encode(pair.expose())))
}

fn sensitive(text: &str) -> Result<HeaderValue, ProviderFault> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| ProviderFault::faulty("a token has characters that a header cannot carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the code of an error, and nothing else of it.
fn refusal(answer: &OwnAnswer) -> String {
    let error = serde_json::from_slice::<TokenError>(&answer.body).unwrap_or_default().error;
    error.chars().filter(|c| c.is_ascii_lowercase() || *c == '_').take(40).collect()
}

fn fault(answer: &OwnAnswer) -> ProviderFault {
    let (status, word) = (answer.status, refusal(answer));
    let said = if word.is_empty() { String::new() } else { format!(" and error '{word}'") };
    let detail = format!("token endpoint answers with status {status}{said}");
    match word.as_str() {
        "invalid_client" | "unauthorized_client" => ProviderFault::credentials(detail),
        _ if status == 401 => ProviderFault::credentials(detail),
        _ => ProviderFault::faulty(detail),
    }
}
