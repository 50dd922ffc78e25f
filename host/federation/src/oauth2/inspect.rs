//! Operations of an app on its own tokens: revocation (RFC 7009) and introspection (RFC 7662).

use axum::Json as Answer;
use axum::extract::State;
use axum::http::HeaderMap;
use heddle_core::UserId;
use heddle_core::oauth2::{ClientType, TokenKind};
use heddle_core::secret::Secret;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::app_token;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::oauth2::{self, FoundToken, OauthApp, OauthAppId};
use heddle_store::{Tx, users};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::client;
use super::fields::{FIELD_BYTES_MAX, Fields};
use super::refusal::{OauthError, OauthRefusal};
use super::token::refresh_hash;

#[derive(JsonSchema)]
#[schemars(rename = "OAuth2TokenQuestion")]
#[expect(dead_code, reason = "says in the document what is read field by field")]
struct TokenForm {
    /// An access token or a refresh token. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    token: String,
    /// Accepted and without effect: the token itself shows its type. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    token_type_hint: Option<String>,
    /// Needed unless it is in HTTP Basic.
    #[schemars(extend("format" = "uuid"))]
    client_id: Option<String>,
    /// Needed for confidential apps, unless it is in HTTP Basic. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    client_secret: Option<String>,
}

/// An empty answer in all cases, so that it reveals nothing of a token.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OAuth2Revoked")]
struct Revoked {}

#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "OAuth2Introspection")]
struct Introspection {
    /// False for every token that is not valid or not the app's own; all other fields are then absent.
    active: bool,
    /// Scopes, separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<OauthAppId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    /// `Bearer` for an access token; a refresh token has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    /// The user for whom the app acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<UserId>,
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .post(
            "/oauth2/revoke",
            Access::Public,
            revoke,
            doc("End one of an app's own tokens; a refresh token ends its whole grant (RFC 7009)")
                .named("revoke_app_token")
                .form::<TokenForm>()
                .own_proof()
                .answers::<Revoked>(200)
                .also_answers::<OauthRefusal>(400)
                .also_answers::<OauthRefusal>(401),
        )
        .post(
            "/oauth2/introspect",
            Access::Public,
            introspect,
            doc("What one of an app's own tokens is worth (RFC 7662)")
                .named("introspect_app_token")
                .form::<TokenForm>()
                .own_proof()
                .answers::<Introspection>(200)
                .also_answers::<OauthRefusal>(400)
                .also_answers::<OauthRefusal>(401),
        )
}

/// Returns the hashes under which a token can be stored.
fn hashes(app: &App, fields: &Fields) -> Result<[String; 2], OauthRefusal> {
    let token = Secret::new(fields.require("token")?);
    Ok([app_token::hash(app, &token), refresh_hash(app, &token)])
}

async fn revoke(
    State(app): State<SharedApp>,
    origin: Origin,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Answer<Revoked>, Error> {
    let by = client::authenticate(&app, &headers, &fields).await?;
    let hashes = hashes(&app, &fields)?;
    if !has_any(&app, &by, &hashes).await? {
        return Ok(Answer(Revoked {}));
    }
    let mut has_ended = false;
    let mut tx = app.db.write().await?;
    for hash in hashes {
        let Some(found) = oauth2::lock_token(&mut tx, &hash).await? else { continue };
        if found.grant.app_id != by.id {
            continue;
        }
        has_ended |= match found.kind {
            TokenKind::Access => end_token(&mut tx, &app, &origin, &found, &hash).await?,
            TokenKind::Refresh => end_grant(&mut tx, &app, &origin, &found).await?,
        };
    }
    tx.commit().await?;
    if has_ended {
        app.callers.forget();
    }
    Ok(Answer(Revoked {}))
}

/// Whether one of the hashes is a token of this app. Only reads, so that invented tokens delay no other request.
async fn has_any(app: &App, by: &OauthApp, hashes: &[String]) -> Result<bool, Error> {
    let mut tx = app.db.read().await?;
    for hash in hashes {
        if oauth2::find_token(&mut tx, hash).await?.is_some_and(|found| found.grant.app_id == by.id) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Ends a token. Returns whether it had not ended before. The audit entry also ends the token's connections, in every
/// process.
async fn end_token(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    found: &FoundToken,
    hash: &str,
) -> Result<bool, Error> {
    let has_ended = oauth2::end(tx, hash, app.clock.now()).await?;
    if has_ended {
        tell(tx, app, origin, found, "oauth2_grant.token_ended").await?;
    }
    Ok(has_ended)
}

async fn tell(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    found: &FoundToken,
    action: &'static str,
) -> Result<(), Error> {
    let grant = &found.grant;
    let entry = NewEntry {
        org: grant.org_id,
        actor: None,
        action,
        target: ("oauth2_grant", grant.id.0),
        detail: json!({ "app_id": grant.app_id, "user_id": grant.user_id, "by": "app" }),
    };
    entry::record(tx, app, origin, entry).await
}

/// Ends a grant. Returns whether it had not ended before.
async fn end_grant(tx: &mut Tx, app: &App, origin: &Origin, found: &FoundToken) -> Result<bool, Error> {
    let has_ended = oauth2::revoke(tx, found.grant.id, app.clock.now()).await?;
    if has_ended {
        tell(tx, app, origin, found, "oauth2_grant.revoked").await?;
    }
    Ok(has_ended)
}

async fn introspect(
    State(app): State<SharedApp>,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Answer<Introspection>, Error> {
    let by = client::authenticate(&app, &headers, &fields).await?;
    if by.client_type == ClientType::Public {
        // RFC 7662 section 2.1: the finder of a token must not learn whether it is valid.
        let message = "only apps that prove who they are by a secret can ask what a token is worth";
        return Err(client::refusal(OauthError::InvalidClient, message).into());
    }
    let mut tx = app.db.read().await?;
    for hash in hashes(&app, &fields)? {
        if let Some(found) = oauth2::find_token(&mut tx, &hash).await?
            && found.grant.app_id == by.id
        {
            return Ok(Answer(worth(&mut tx, &app, found).await?));
        }
    }
    Ok(Answer(Introspection::default()))
}

async fn worth(tx: &mut Tx, app: &App, found: FoundToken) -> Result<Introspection, Error> {
    let FoundToken { grant, kind, token_scopes, issued_at, token_expires_at, ended_at } = found;
    let login = users::find_login(tx, grant.user_id).await?;
    let is_users = |login: &users::Login| {
        login.user.is_active
            && login.token_version == grant.token_version
            && login.user.org_id == grant.org_id
    };
    let is_good = ended_at.is_none() && grant.revoked_at.is_none() && token_expires_at > app.clock.now();
    let Some(login) = login.filter(is_users).filter(|_| is_good) else { return Ok(Introspection::default()) };
    Ok(Introspection {
        active: true,
        scope: Some(token_scopes.join(" ")),
        client_id: Some(grant.app_id),
        username: Some(login.user.username),
        token_type: (kind == TokenKind::Access).then_some("Bearer"),
        exp: Some(token_expires_at.timestamp()),
        iat: Some(issued_at.timestamp()),
        sub: Some(grant.user_id),
    })
}
