//! The authorization request of an app (RFC 6749 section 4.1.1, RFC 7636 section 4.3).

use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::{OrgId, Permission, Role};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::oauth2::{self, OauthApp, OauthAppId, RegisteredApp};

use super::redirect;

/// Letters of a SHA-256 digest in base64url.
const CHALLENGE_CHARS: usize = 43;
const SCOPES_MAX: usize = 32;
/// Limited because it returns in forms and links.
const STATE_CHARS_MAX: usize = 2000;

/// The same message for an app of another organization.
pub(super) const UNKNOWN_APP: &str = "there is no app with this 'client_id' in your organization";

/// A request that can be shown to a user.
pub(super) struct Asked {
    pub(super) registered: RegisteredApp,
    pub(super) scopes: Vec<KeyScope>,
    pub(super) code_challenge: String,
    pub(super) reply: Reply,
    /// The request again as a query, for forms and links.
    pub(super) text: String,
}

/// Where the answer goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// One of the app's registered addresses.
    pub(super) redirect_uri: String,
    pub(super) state: Option<String>,
}

/// Why a request is not shown.
pub(super) enum Fault {
    /// The receiver of the error is not certain, so only the user sees it.
    Shown(String),
    /// The app gets the error, through the browser of a user of its organization. A browser without such a user is not
    /// redirected.
    Told(OrgId, Reply, Refusal),
}

/// An error in the words of RFC 6749 section 4.1.2.1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) error: &'static str,
    pub(super) description: String,
}

impl Refusal {
    pub(super) fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self { error, description: description.into() }
    }
}

impl Reply {
    /// Returns the address with the answer; `issuer` names this service to the app (RFC 9207).
    pub(super) fn with(&self, issuer: &str, parameters: &[(&str, &str)]) -> String {
        let state = self.state.as_deref().map(|state| ("state", state));
        let all: Vec<(&str, &str)> =
            parameters.iter().copied().chain(state).chain([("iss", issuer)]).collect();
        redirect::with(&self.redirect_uri, &all)
    }

    pub(super) fn refusing(&self, issuer: &str, refusal: &Refusal) -> String {
        self.with(issuer, &[("error", refusal.error), ("error_description", &refusal.description)])
    }
}

/// The parameters of a query or a form. Unknown parameters have no effect.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn parse(text: &str) -> Self {
        Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns a parameter. An empty value counts as left out; a repeated parameter is an error.
    fn one(&self, name: &str) -> Result<Option<&str>, String> {
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(format!("parameter '{name}' must not be repeated")),
            (value, None) => Ok(value.filter(|value| !value.is_empty())),
        }
    }

    /// Returns the last parameter of this name: for our own parameters, which stand at the end.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn required(&self, name: &str) -> Result<&str, String> {
        self.one(name)?.ok_or_else(|| format!("parameter '{name}' is missing"))
    }
}

/// Reads a request from a query.
pub(super) async fn read(app: &App, query: &str) -> Result<Result<Asked, Fault>, Error> {
    let given = Parameters::parse(query);
    let id = match given.required("client_id").map(str::parse::<OauthAppId>) {
        Ok(Ok(id)) => id,
        Ok(Err(_)) => return Ok(Err(unknown_app())),
        Err(message) => return Ok(Err(Fault::Shown(message))),
    };
    let mut tx = app.db.single().await?;
    let Some(registered) = oauth2::find_registered(&mut tx, id).await? else { return Ok(Err(unknown_app())) };
    drop(tx);
    Ok(judge(&given, registered, &app.declared().permissions))
}

fn unknown_app() -> Fault {
    Fault::Shown(UNKNOWN_APP.to_owned())
}

fn judge(given: &Parameters, registered: RegisteredApp, all: &Permissions) -> Result<Asked, Fault> {
    let redirect_uri = given.required("redirect_uri").map_err(Fault::Shown)?;
    // Compared character for character (RFC 9700 section 4.1.3): an attacker could own any other address that were
    // accepted.
    if !registered.app.redirect_uris.iter().any(|known| known == redirect_uri) {
        return Err(Fault::Shown(
            "'redirect_uri' is not one of those that the app is registered with, character for character"
                .to_owned(),
        ));
    }
    let reply = Reply { redirect_uri: redirect_uri.to_owned(), state: None };
    let org = registered.app.org_id;
    let told = |reply: &Reply, refusal| Fault::Told(org, reply.clone(), refusal);
    let state = given.one("state").and_then(|state| match state {
        Some(state) if state.chars().count() > STATE_CHARS_MAX => {
            Err(format!("parameter 'state' must not have more than {STATE_CHARS_MAX} characters"))
        }
        other => Ok(other.map(str::to_owned)),
    });
    let state = state.map_err(|message| told(&reply, Refusal::new("invalid_request", message)))?;
    let reply = Reply { state, ..reply };
    let (scopes, code_challenge) =
        wanted(given, &registered.app, all).map_err(|refusal| told(&reply, refusal))?;
    let text = text(&registered.app, &scopes, &code_challenge, &reply);
    Ok(Asked { registered, scopes, code_challenge, reply, text })
}

/// Returns the scopes and the challenge of a request.
fn wanted(given: &Parameters, app: &OauthApp, all: &Permissions) -> Result<(Vec<KeyScope>, String), Refusal> {
    let invalid = |message: String| Refusal::new("invalid_request", message);
    if given.required("response_type").map_err(invalid)? != "code" {
        return Err(Refusal::new("unsupported_response_type", "'response_type' must be 'code'"));
    }
    let challenge = given.required("code_challenge").map_err(invalid)?;
    if given.one("code_challenge_method").map_err(invalid)? != Some("S256") {
        return Err(invalid("'code_challenge_method' must be 'S256'".to_owned()));
    }
    let is_digest = challenge.len() == CHALLENGE_CHARS
        && challenge.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !is_digest {
        return Err(invalid("'code_challenge' must be a SHA-256 digest in base64url".to_owned()));
    }
    let scopes = match given.one("scope").map_err(invalid)? {
        Some(text) => scopes(text, &parsed(&app.scopes, all), all)?,
        None => parsed(&app.scopes, all),
    };
    Ok((scopes, challenge.to_owned()))
}

/// Parses stored scopes; an unknown one covers nothing.
pub(super) fn parsed(words: &[String], all: &Permissions) -> Vec<KeyScope> {
    words.iter().filter_map(|word| KeyScope::parse(word, all).ok()).collect()
}

/// Parses the scopes of a request; none may go beyond `allowed`.
pub(super) fn scopes(text: &str, allowed: &[KeyScope], all: &Permissions) -> Result<Vec<KeyScope>, Refusal> {
    let mut found: Vec<KeyScope> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        // The scope is not repeated to the app: it may hold characters that an answer cannot carry.
        let unknown = || Refusal::new("invalid_scope", "a scope is not one of this service's permissions");
        let scope = KeyScope::parse(word, all).map_err(|_| unknown())?;
        if !is_within(&scope, allowed) {
            let message = format!("scope '{word}' goes beyond what can be asked for");
            return Err(Refusal::new("invalid_scope", message));
        }
        if !found.contains(&scope) {
            found.push(scope);
        }
    }
    if found.is_empty() || found.len() > SCOPES_MAX {
        return Err(Refusal::new("invalid_scope", "ask for 1 to 32 scopes"));
    }
    Ok(found)
}

/// Whether `allowed` covers everything that this scope covers.
fn is_within(scope: &KeyScope, allowed: &[KeyScope]) -> bool {
    let is_allowed = |permission: &Permission| allowed.iter().any(|one| one.covers(*permission));
    match scope.permissions() {
        // The scope names no permission, so `allowed` must contain it literally.
        [] => allowed.contains(scope),
        asked => asked.iter().all(is_allowed),
    }
}

/// Returns the scopes that a user of this role holds, because a user can hand on nothing else.
///
/// Each permission stands under its own name, as the page shows it: `device:*` would later cover permissions that the
/// user never allowed.
pub(super) fn held(scopes: &[KeyScope], role: Role) -> Vec<KeyScope> {
    let mut held: Vec<KeyScope> = Vec::new();
    for scope in scopes {
        let permissions = scope.permissions().iter().copied();
        let mut parts: Vec<KeyScope> =
            permissions.filter(|permission| role.holds(*permission)).map(KeyScope::of).collect();
        if scope.as_str() == KeyScope::EVERYTHING && scope.is_held_by(role) {
            parts.push(scope.clone());
        }
        for part in parts {
            if !held.contains(&part) {
                held.push(part);
            }
        }
    }
    held
}

fn text(app: &OauthApp, scopes: &[KeyScope], code_challenge: &str, reply: &Reply) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &app.id.to_string())
        .append_pair("redirect_uri", &reply.redirect_uri)
        .append_pair("scope", &joined(scopes))
        .append_pair("code_challenge", code_challenge)
        .append_pair("code_challenge_method", "S256");
    if let Some(state) = &reply.state {
        query.append_pair("state", state);
    }
    query.finish()
}

pub(super) fn joined(scopes: &[KeyScope]) -> String {
    scopes.iter().map(KeyScope::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
