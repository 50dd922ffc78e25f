//! Tokens for codes, and new tokens for old ones (RFC 6749 sections 4.1.3 and 6).
//!
//! A code and a refresh token can be used once. A second use means that it was stolen, from the app or by it, so
//! everything that was issued from it is revoked.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use heddle_core::oauth2::TokenKind;
use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::secret::{Secret, random_secret};
use heddle_identity::declarations::SignInSettings;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::app_token;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::rate_limit::{Limit, Rate, Verdict};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::keyed_hash;
use heddle_store::oauth2::{self, FoundToken, GrantState, NewToken, OauthApp, OauthGrantId};
use heddle_store::{Tx, users};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::client::{self, refusal};
use super::fields::{FIELD_BYTES_MAX, Fields};
use super::refusal::{OauthError, OauthRefusal};
use super::{mark, request};

/// A refresh token that is used again within this time lost a race; later, it counts as stolen.
const RACE: TimeDelta = TimeDelta::seconds(10);
/// Most valid access tokens of one grant: a further one ends the oldest.
const ACCESS_TOKENS_MAX: u32 = 10;
/// Most refreshes of one grant.
const REFRESH_RATE: Rate = Rate { requests: 60, window_ms: 600_000 };
/// Characters of a code verifier (RFC 7636 section 4.1).
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;
/// Prefix of every refresh token of an app.
const REFRESH_MARK: &str = "hdr";

#[derive(JsonSchema)]
#[schemars(rename = "OAuth2TokenRequest")]
#[expect(dead_code, reason = "says in the document what is read field by field")]
struct TokenForm {
    /// `authorization_code` or `refresh_token`.
    #[schemars(extend("enum" = ["authorization_code", "refresh_token"]))]
    grant_type: String,
    /// Code of an authorization: can be used once, for 60 seconds. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    code: Option<String>,
    /// With a code: the redirect URI with which the code was requested. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    redirect_uri: Option<String>,
    /// With a code: the verifier of the challenge (RFC 7636).
    #[schemars(length(min = *VERIFIER_CHARS.start(), max = *VERIFIER_CHARS.end()))]
    code_verifier: Option<String>,
    /// Can be used once. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    refresh_token: Option<String>,
    /// With a refresh token: scopes, separated by spaces, for an access token with fewer rights. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    scope: Option<String>,
    /// Needed unless it is in HTTP Basic.
    #[schemars(extend("format" = "uuid"))]
    client_id: Option<String>,
    /// Needed for confidential apps, unless it is in HTTP Basic. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    client_secret: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OAuth2Tokens")]
struct Tokens {
    access_token: String,
    token_type: &'static str,
    /// Seconds until the access token expires.
    expires_in: u32,
    refresh_token: String,
    /// Scopes, separated by spaces.
    scope: String,
}

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/oauth2/token",
        Access::Public,
        token,
        doc("Tokens of an app, for a code or a refresh token (RFC 6749)")
            .named("create_app_token")
            .form::<TokenForm>()
            .own_proof()
            .answers::<Tokens>(200)
            .also_answers::<OauthRefusal>(400)
            .also_answers::<OauthRefusal>(401),
    )
}

async fn token(
    State(app): State<SharedApp>,
    origin: Origin,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Answer<Tokens>, Error> {
    let kind = fields.require("grant_type")?;
    if !matches!(kind, "authorization_code" | "refresh_token") {
        let message = "'grant_type' must be 'authorization_code' or 'refresh_token'";
        return Err(refusal(OauthError::UnsupportedGrantType, message).into());
    }
    let by = client::authenticate(&app, &headers, &fields).await?;
    let tokens = match kind {
        "authorization_code" => for_code(&app, &origin, &by, &fields).await?,
        _ => for_refresh_token(&app, &origin, &by, &fields).await?,
    };
    Ok(Answer(tokens))
}

fn not_valid() -> OauthRefusal {
    refusal(
        OauthError::InvalidGrant,
        "code or refresh token is not valid, has expired, or was used or revoked",
    )
}

pub(super) fn code_hash(app: &App, code: &Secret) -> String {
    keyed_hash(&app.keys.app_code_key(), code)
}

pub(super) fn refresh_hash(app: &App, token: &Secret) -> String {
    keyed_hash(&app.keys.app_refresh_key(), token)
}

async fn for_code(app: &App, origin: &Origin, by: &OauthApp, fields: &Fields) -> Result<Tokens, Error> {
    let code = Secret::new(fields.require("code")?);
    let redirect_uri = fields.require("redirect_uri")?;
    let verifier = Secret::new(fields.require("code_verifier")?);
    let now = app.clock.now();
    let hash = code_hash(app, &code);
    // Only reads at first, so that invented codes delay no other request.
    let mut tx = app.db.read().await?;
    oauth2::find_by_code(&mut tx, &hash)
        .await?
        .filter(|grant| grant.app_id == by.id)
        .ok_or_else(not_valid)?;
    drop(tx);
    let mut tx = app.db.write().await?;
    let grant = oauth2::lock_by_code(&mut tx, &hash).await?.ok_or_else(not_valid)?;
    if grant.app_id != by.id {
        return Err(not_valid().into());
    }
    if grant.redirect_uri != redirect_uri || !is_verified(&verifier, &grant.code_challenge) {
        let message = "'redirect_uri' or 'code_verifier' is not the one that the code was asked with";
        return Err(refusal(OauthError::InvalidGrant, message).into());
    }
    // Checked only now: the finder of an old address with a code in it must not be able to end the grant.
    if grant.code_spent_at.is_some() {
        return Err(stolen(tx, app, origin, &grant, "security.code_reuse").await?);
    }
    refuse_other_times(&mut tx, &grant).await?;
    let until = now + TimeDelta::days(i64::from(app.config.of::<SignInSettings>().refresh_token_days));
    if !oauth2::spend_code(&mut tx, grant.id, until, now).await? {
        return Err(not_valid().into());
    }
    let tokens = give(&mut tx, app, origin, &grant, &grant.scopes).await?;
    tx.commit().await?;
    Ok(tokens)
}

/// Whether the challenge was made from this verifier (RFC 7636 section 4.6).
fn is_verified(verifier: &Secret, challenge: &str) -> bool {
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()));
    let is_long_enough = VERIFIER_CHARS.contains(&verifier.expose().len());
    is_long_enough && bool::from(digest.as_bytes().ct_eq(challenge.as_bytes()))
}

/// Refuses a grant that is older than the last revocation of the user's tokens, or whose user is not active.
async fn refuse_other_times(tx: &mut Tx, grant: &GrantState) -> Result<(), Error> {
    let login = users::find_login(tx, grant.user_id).await?.ok_or_else(not_valid)?;
    let is_current = login.token_version == grant.token_version && login.user.org_id == grant.org_id;
    if grant.revoked_at.is_some() || !is_current || !login.user.is_active {
        return Err(not_valid().into());
    }
    Ok(())
}

async fn for_refresh_token(
    app: &App,
    origin: &Origin,
    by: &OauthApp,
    fields: &Fields,
) -> Result<Tokens, Error> {
    let hash = refresh_hash(app, &Secret::new(fields.require("refresh_token")?));
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let known = oauth2::find_token(&mut tx, &hash).await?.filter(|found| found.grant.app_id == by.id);
    let known = known.ok_or_else(not_valid)?;
    drop(tx);
    refuse_hurry(app, known.grant.id).await?;
    let mut tx = app.db.write().await?;
    let found = oauth2::lock_token(&mut tx, &hash).await?.ok_or_else(not_valid)?;
    let FoundToken { grant, kind, ended_at, token_expires_at, .. } = found;
    if kind != TokenKind::Refresh || grant.app_id != by.id {
        return Err(not_valid().into());
    }
    if ended_at.is_some_and(|at| now - at <= RACE) {
        // Two requests of the app at the same time: one of them has the new pair.
        tracing::info!(oauth2_grant.id = %grant.id, "a refresh token of grant {} lost a race", grant.id);
        return Err(not_valid().into());
    }
    if ended_at.is_some() {
        return Err(stolen(tx, app, origin, &grant, "security.refresh_reuse").await?);
    }
    if token_expires_at <= now {
        return Err(not_valid().into());
    }
    refuse_other_times(&mut tx, &grant).await?;
    let scopes = match fields.get("scope") {
        Some(text) => words(&narrowed(text, &grant.scopes, &app.declared().permissions)?),
        None => grant.scopes.clone(),
    };
    if !oauth2::end(&mut tx, &hash, now).await? {
        return Err(not_valid().into());
    }
    let until = now + TimeDelta::days(i64::from(app.config.of::<SignInSettings>().refresh_token_days));
    oauth2::record_use(&mut tx, grant.id, Some(until), now).await?;
    let tokens = give(&mut tx, app, origin, &grant, &scopes).await?;
    tx.commit().await?;
    Ok(tokens)
}

/// Answers 429 to an app that refreshes far more often than access tokens expire.
async fn refuse_hurry(app: &App, grant: OauthGrantId) -> Result<(), Error> {
    let limit = [Limit { key: format!("app-refresh:{grant}"), rate: REFRESH_RATE }];
    match app.limiter.take(&limit, app.clock.now()).await {
        Ok(Verdict::Exceeded(_)) => Err(Error::RateLimited(RateExceeded::Minute)),
        // Without a count the request is let through, as on all routes that take no passwords.
        Ok(Verdict::Granted(_)) | Err(_) => Ok(()),
    }
}

fn narrowed(text: &str, granted: &[String], all: &Permissions) -> Result<Vec<KeyScope>, OauthRefusal> {
    request::scopes(text, &request::parsed(granted, all), all)
        .map_err(|refused| refusal(OauthError::InvalidScope, &refused.description))
}

pub(super) fn words(scopes: &[KeyScope]) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}

/// Issues a new pair. The refresh token has the scopes of the grant, whatever the access token has (RFC 6749 section
/// 6).
async fn give(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    grant: &GrantState,
    scopes: &[String],
) -> Result<Tokens, Error> {
    let now = app.clock.now();
    let expires_in = app.config.of::<SignInSettings>().access_token_minutes.saturating_mul(60);
    let of = |start: &str| Secret::new(format!("{start}_{}_{}", mark(grant.id.0), random_secret().expose()));
    let (access, refresh) = (of(app_token::MARK), of(REFRESH_MARK));
    let access_token = NewToken {
        hash: app_token::hash(app, &access),
        grant_id: grant.id,
        kind: TokenKind::Access,
        scopes: scopes.to_vec(),
        expires_at: now + TimeDelta::seconds(i64::from(expires_in)),
        now,
    };
    let refresh_token = NewToken {
        hash: refresh_hash(app, &refresh),
        grant_id: grant.id,
        kind: TokenKind::Refresh,
        scopes: grant.scopes.clone(),
        expires_at: now + TimeDelta::days(i64::from(app.config.of::<SignInSettings>().refresh_token_days)),
        now,
    };
    let ended = oauth2::end_older(tx, grant.id, ACCESS_TOKENS_MAX - 1, now).await?;
    oauth2::insert_token(tx, &access_token).await?;
    oauth2::insert_token(tx, &refresh_token).await?;
    if ended > 0 {
        // The audit entry ends connections of these tokens, in every process.
        let entry = NewEntry {
            org: grant.org_id,
            actor: None,
            action: "oauth2_grant.older_tokens_ended",
            target: ("oauth2_grant", grant.id.0),
            detail: json!({ "app_id": grant.app_id, "user_id": grant.user_id, "count": ended, "by": "app" }),
        };
        entry::record(tx, app, origin, entry).await?;
        // Before the commit: a caller that is cached in between stays known for less than a second.
        app.callers.forget();
    }
    Ok(Tokens {
        access_token: access.expose().to_owned(),
        token_type: "Bearer",
        expires_in,
        refresh_token: refresh.expose().to_owned(),
        scope: scopes.join(" "),
    })
}

/// Revokes everything that was issued from a code or token that came a second time.
async fn stolen(
    mut tx: Tx,
    app: &App,
    origin: &Origin,
    grant: &GrantState,
    action: &'static str,
) -> Result<Error, Error> {
    if oauth2::revoke(&mut tx, grant.id, app.clock.now()).await? {
        let entry = NewEntry {
            org: grant.org_id,
            actor: None,
            action,
            target: ("oauth2_grant", grant.id.0),
            detail: json!({ "app_id": grant.app_id, "user_id": grant.user_id }),
        };
        entry::record(&mut tx, app, origin, entry).await?;
        tx.commit().await?;
        app.callers.forget();
        tracing::warn!(oauth2_grant.id = %grant.id, oauth2_app.id = %grant.app_id, "revoked grant {}: {action}", grant.id);
    }
    Ok(not_valid().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_fits_its_challenge() {
        // RFC 7636 appendix B.
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(is_verified(&Secret::new(verifier), challenge));
        assert!(!is_verified(&Secret::new(verifier.to_lowercase()), challenge));
        assert!(!is_verified(&Secret::new(challenge), challenge));
        let short = Secret::new("a".repeat(42));
        assert!(!is_verified(&short, &URL_SAFE_NO_PAD.encode(Sha256::digest(short.expose()))));
    }
}
