//! Identifies the calling app: by its id, and by its secret where it can keep one (RFC 6749 section 2.3).

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::oauth2::ClientType;
use heddle_core::secret::Secret;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::keys::keyed_hash;
use heddle_store::oauth2::{self, OauthApp, OauthAppId, RegisteredApp};
use subtle::ConstantTimeEq as _;

use super::fields::Fields;
use super::refusal::{OauthError, OauthRefusal};

/// What an app presents.
struct Claim {
    id: String,
    secret: Option<Secret>,
}

/// Returns the app that the request authenticates as.
pub(super) async fn authenticate(app: &App, headers: &HeaderMap, fields: &Fields) -> Result<OauthApp, Error> {
    let claim = claim(headers, fields)?;
    // The same answer for an unknown app, a wrong secret and a missing secret.
    let unknown = || refusal(OauthError::InvalidClient, "client is not known, or its secret is wrong");
    let id: OauthAppId = claim.id.parse().map_err(|_| unknown())?;
    let mut tx = app.db.read().await?;
    let found = oauth2::find_registered(&mut tx, id).await?.ok_or_else(unknown)?;
    if is_proved(app, &found, claim.secret.as_ref()) { Ok(found.app) } else { Err(unknown().into()) }
}

fn is_proved(app: &App, found: &RegisteredApp, secret: Option<&Secret>) -> bool {
    match (found.app.client_type, &found.secret_hash, secret) {
        (ClientType::Public, _, secret) => secret.is_none(),
        (ClientType::Confidential, Some(hash), Some(secret)) => {
            keyed_hash(&app.keys.app_secret_key(), secret).as_bytes().ct_eq(hash.as_bytes()).into()
        }
        (ClientType::Confidential, _, _) => false,
    }
}

pub(super) fn refusal(error: OauthError, description: &str) -> OauthRefusal {
    OauthRefusal { error, error_description: description.to_owned() }
}

fn claim(headers: &HeaderMap, fields: &Fields) -> Result<Claim, OauthRefusal> {
    let in_body = fields.get("client_id");
    let secret = fields.secret("client_secret");
    let Some(header) = headers.get(header::AUTHORIZATION) else {
        let id = in_body.ok_or_else(|| {
            refusal(OauthError::InvalidClient, "say which app asks: HTTP Basic, or parameter 'client_id'")
        })?;
        return Ok(Claim { id: id.to_owned(), secret });
    };
    let claim = header.to_str().ok().and_then(basic).ok_or_else(|| {
        refusal(OauthError::InvalidClient, "header 'Authorization' does not hold HTTP Basic credentials")
    })?;
    let is_another = in_body.is_some_and(|id| id != claim.id);
    if secret.is_some() || is_another {
        let message = "use one way of client authentication: HTTP Basic, or parameters";
        return Err(refusal(OauthError::InvalidRequest, message));
    }
    Ok(claim)
}

/// Both parts are form-encoded before they are joined (RFC 6749 section 2.3.1).
fn basic(header: &str) -> Option<Claim> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = Secret::new(String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?);
    let (id, secret) = text.expose().split_once(':')?;
    let secret = Some(decoded(secret)).filter(|secret| !secret.is_empty());
    Some(Claim { id: decoded(id), secret: secret.map(Secret::new) })
}

fn decoded(text: &str) -> String {
    // Decoded as the value of a form whose field name is ours.
    url::form_urlencoded::parse(format!("v={text}").as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_are_decoded_twice() {
        let header = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let claim = basic(&header("an%20id:a%3Ab+c")).unwrap();
        assert_eq!((claim.id.as_str(), claim.secret.unwrap().expose()), ("an id", "a:b c"));
        assert!(basic(&header("id:")).unwrap().secret.is_none());
        for wrong in ["Basic", "Bearer x", "Basic !", &header("no colon")] {
            assert!(basic(wrong).is_none(), "{wrong}");
        }
    }
}
