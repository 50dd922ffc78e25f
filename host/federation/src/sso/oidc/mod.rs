//! Signing in at an `OpenID` provider: authorization code with PKCE, in a page of the user interface.
//!
//! The page asks where to send the browser, and later sends the parameters with which the browser returned. Only the
//! browser that began a sign-in can end it, once, and only with an ID token that was made for it.

mod attempt;
mod claims;
mod documents;
mod exchange;
mod id_token;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heddle_core::secret::Secret;
use heddle_core::{ProviderKind, Timestamp};
use heddle_identity::admission::{Admission, AdmissionAnswer, Way};
use heddle_identity::outcomes;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::sso::{self, IdentityProviderId, Provider, Usable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use self::attempt::Began;
use self::claims::Claims;
use self::documents::Metadata;
pub(super) use self::documents::{Documents, fetch_keys, fetch_metadata};
pub(super) use self::exchange::try_client;
use self::id_token::{Expected, Unproved};
use super::account::{self, Emails, Person};
use super::fault::ProviderFault;
use super::settings::{self, Oidc, TEXT_CHARS_MAX};
use super::{records, secret};

/// Most bytes of a parameter with which the browser returns from a provider.
const TEXT_BYTES_MAX: usize = 4096;

const NOT_PROVED: Error = Error::Unauthenticated(
    "the identity provider's answer does not prove who signs in; start the sign-in again",
);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OidcAuthorize")]
struct AuthorizeBody {
    provider_id: IdentityProviderId,
    /// One of the provider's `redirect_uris`, character for character.
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    redirect_uri: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OidcAuthorization")]
struct AuthorizeAnswer {
    /// Address to which the browser is to be sent.
    authorization_url: String,
    /// Returned with the code; valid for ten minutes.
    state: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OidcCallback")]
struct CallbackBody {
    /// At most 4096 bytes.
    #[schemars(extend("minLength" = 1, "maxLength" = TEXT_BYTES_MAX))]
    code: Secret,
    /// At most 4096 bytes.
    #[schemars(extend("minLength" = 1, "maxLength" = TEXT_BYTES_MAX))]
    state: Secret,
    /// The provider's own name, where it was returned with the code. At most 4096 bytes.
    #[schemars(length(max = TEXT_BYTES_MAX))]
    iss: Option<String>,
    /// The provider that the address names to which the browser returned. Needed where the provider does not send
    /// `iss`: its `redirect_uris` must then contain its id, so that another provider's answer is not accepted as its
    /// own.
    provider_id: Option<IdentityProviderId>,
}

/// An `OpenID` provider that is being asked.
pub(super) struct Client<'a> {
    pub(super) app: &'a App,
    pub(super) id: IdentityProviderId,
    /// Identifies the state of the settings to which cached data belongs.
    pub(super) updated_at: Timestamp,
    pub(super) settings: &'a Oidc,
    pub(super) secret: Option<Secret>,
}

/// Why a sign-in ends without a person.
#[derive(Debug)]
enum Stop {
    Unproved(Unproved),
    Provider(ProviderFault),
}

impl From<ProviderFault> for Stop {
    fn from(fault: ProviderFault) -> Self {
        Self::Provider(fault)
    }
}

impl From<Unproved> for Stop {
    fn from(unproved: Unproved) -> Self {
        Self::Unproved(unproved)
    }
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .post(
            "/auth/sso/oidc/authorize",
            Access::Public,
            authorize,
            doc("Begin a sign-in at an OpenID provider; the browser that began it ends it")
                .named("begin_oidc_login")
                .body::<AuthorizeBody>()
                .answers::<AuthorizeAnswer>(200)
                .fails_with(404)
                .fails_with(502)
                .fails_with(504),
        )
        .post(
            "/auth/sso/oidc/callback",
            Access::Public,
            callback,
            doc("End a sign-in with what the browser came back with")
                .named("finish_oidc_login")
                .body::<CallbackBody>()
                .answers::<AdmissionAnswer>(200)
                .fails_with(401)
                .fails_with(404)
                .fails_with(502)
                .fails_with(504)
                .changes_callers()
                .own_proof(),
        )
}

async fn authorize(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<AuthorizeBody>,
) -> Result<Response, Error> {
    refuse_longer("redirect_uri", &body.redirect_uri, TEXT_CHARS_MAX)?;
    let usable = {
        let mut tx = app.db.single().await?;
        sso::find_usable(&mut tx, body.provider_id, ProviderKind::Oidc).await?
    };
    let usable = usable.ok_or(Error::NotFound("identity provider"))?;
    let settings: Oidc = settings::read(&usable.provider.settings)?;
    if !settings.redirect_uris.contains(&body.redirect_uri) {
        return Err(Error::field("redirect_uri", "is not one of those that the identity provider has here"));
    }
    let client = client(&app, &usable, &settings)?;
    let metadata = client.metadata().await.map_err(|fault| fault.logged(client.id))?;
    let began = attempt::begin(&app, usable.provider.id, &body.redirect_uri).await?;
    let authorization_url = authorization_url(&metadata, &settings, &body.redirect_uri, &began)?;
    let answer = AuthorizeAnswer { authorization_url, state: began.state.expose().to_owned() };
    began.respond(&app, &origin, &answer)
}

fn client<'a>(app: &'a App, usable: &Usable, settings: &'a Oidc) -> Result<Client<'a>, Error> {
    let provider = &usable.provider;
    let secret = usable.secret.as_deref().map(|sealed| secret::open(&app.keys, provider.id, sealed));
    Ok(Client {
        app,
        id: provider.id,
        updated_at: provider.updated_at,
        settings,
        secret: secret.transpose()?,
    })
}

fn authorization_url(
    metadata: &Metadata,
    settings: &Oidc,
    redirect_uri: &str,
    began: &Began,
) -> Result<String, Error> {
    let mut url = Url::parse(&metadata.authorization_endpoint).map_err(Error::internal)?;
    let scope = std::iter::once("openid").chain(settings.scopes.iter().map(String::as_str));
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(began.proofs.verifier.expose().as_bytes()));
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &settings.client_id)
        .append_pair("redirect_uri", redirect_uri)
        .append_pair("scope", &scope.collect::<Vec<_>>().join(" "))
        .append_pair("state", began.state.expose())
        .append_pair("nonce", began.proofs.nonce.expose())
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    Ok(url.into())
}

async fn callback(
    State(app): State<SharedApp>,
    origin: Origin,
    headers: HeaderMap,
    Json(body): Json<CallbackBody>,
) -> Result<Response, Error> {
    for (field, text) in [("code", body.code.expose()), ("state", body.state.expose())] {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(Error::field(field, format!("must have 1 to {TEXT_BYTES_MAX} bytes")));
        }
    }
    if body.iss.as_ref().is_some_and(|iss| iss.len() > TEXT_BYTES_MAX) {
        return Err(Error::field("iss", format!("must not have more than {TEXT_BYTES_MAX} bytes")));
    }
    let result = finish(&app, &origin, &headers, &body).await;
    outcomes::count(&app, &result);
    let response = result?.respond(&app, &origin)?;
    attempt::forget(&app, &origin, &body.state, response)
}

async fn finish(
    app: &App,
    origin: &Origin,
    headers: &HeaderMap,
    body: &CallbackBody,
) -> Result<Admission, Error> {
    let taken = attempt::take(app, headers, &body.state).await?;
    let usable = {
        let mut tx = app.db.single().await?;
        sso::find_usable(&mut tx, taken.provider_id, ProviderKind::Oidc).await?
    };
    let usable = usable.ok_or(Error::NotFound("identity provider"))?;
    let provider = &usable.provider;
    let settings: Oidc = settings::read(&provider.settings)?;
    let client = client(app, &usable, &settings)?;
    let emails = if settings.require_verified_email { Emails::Verified } else { Emails::Any };
    match person(&client, provider, body, &taken).await {
        Ok(person) => account::admit(app, origin, provider, person, emails, Way::Oidc).await,
        Err(Stop::Provider(fault)) => Err(fault.logged(provider.id).into()),
        Err(Stop::Unproved(unproved)) => {
            tracing::warn!(
                identity_provider.id = %provider.id,
                reason = unproved.as_str(),
                "refused a sign-in at identity provider {}: {unproved}", provider.id
            );
            records::record_refusal(app, origin, provider, unproved.as_str()).await;
            Err(NOT_PROVED)
        }
    }
}

/// Whether the address to which the browser returned belongs to this provider alone (RFC 9700 section 4.4.2.2).
fn is_named_by_address(body: &CallbackBody, taken: &attempt::Taken) -> bool {
    body.provider_id == Some(taken.provider_id) && taken.redirect_uri.contains(&taken.provider_id.to_string())
}

/// Returns the person for whom the code was issued, when all of it is valid.
async fn person(
    client: &Client<'_>,
    provider: &Provider,
    body: &CallbackBody,
    taken: &attempt::Taken,
) -> Result<Person, Stop> {
    let metadata = client.metadata().await?;
    // Rejects another provider's answer (mix-up attack, RFC 9207).
    match &body.iss {
        Some(issuer) if *issuer != client.settings.issuer => return Err(Unproved::Issuer.into()),
        None if metadata.authorization_response_iss_parameter_supported => {
            return Err(Unproved::Issuer.into());
        }
        None if !is_named_by_address(body, taken) => return Err(Unproved::Issuer.into()),
        _ => {}
    }
    if body.provider_id.is_some_and(|named| named != taken.provider_id) {
        return Err(Unproved::Issuer.into());
    }
    let tokens = client.redeem(&metadata, &body.code, taken).await?;
    let now = client.app.clock.now().timestamp();
    let expected = Expected {
        issuer: &client.settings.issuer,
        client_id: &client.settings.client_id,
        nonce: taken.proofs.nonce.expose(),
        access_token: tokens.access_token.as_ref().map(Secret::expose),
        now,
    };
    let keys = client.keys(&metadata).await?;
    let proved = match id_token::verify(tokens.id_token.expose(), &keys, &expected) {
        // The provider may sign with newer keys than the cached ones.
        Err(Unproved::Key) => {
            let keys = client.newer_keys(&metadata).await?;
            id_token::verify(tokens.id_token.expose(), &keys, &expected)
        }
        other => other,
    }?;
    let mut claims = Claims::of(proved);
    let maps_groups = provider.role_mapping.as_object().is_some_and(|mapping| !mapping.is_empty());
    if claims.lack(client.settings, maps_groups)
        && let Some(access_token) = &tokens.access_token
        && let Some(more) = client.user_info(&metadata, access_token).await?
    {
        let is_same = |subject: &str| bool::from(subject.as_bytes().ct_eq(claims.subject().as_bytes()));
        if !more.get("sub").and_then(serde_json::Value::as_str).is_some_and(is_same) {
            return Err(Unproved::UserInfo.into());
        }
        claims.complete(more);
    }
    Ok(claims.person(client.settings))
}
