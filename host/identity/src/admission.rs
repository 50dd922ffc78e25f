//! The result of a successful proof of identity: a session, or the request for the second factor.
//!
//! Every way to log in ends here, so that none forgets the second factor.

use axum::Json as Answer;
use axum::response::{IntoResponse as _, Response};
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{REVOKED, inactive};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_store::object::Object as _;
use heddle_store::users::{self, Login, User};
use heddle_store::{Organization, Scope, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::session::{self, Tokens};
use super::{challenge, cookies};

/// Seconds that the second factor may take.
const CHALLENGE_SECS: u32 = 300;

/// How a user proved their identity before any second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Password,
    Oidc,
    Ldap,
}

impl Way {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Oidc => "oidc",
            Self::Ldap => "ldap",
        }
    }
}

pub enum Admission {
    Session(Box<Opened>),
    SecondFactor(Challenge),
}

/// A session that was opened.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoginAnswer")]
pub struct Opened {
    #[serde(flatten)]
    pub tokens: Tokens,
    pub(crate) user: User,
}

/// The login goes on at `/auth/login/mfa`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SecondFactorRequired")]
pub struct Challenge {
    /// Always true.
    require_mfa: bool,
    /// Proves the first factor, and nothing else.
    pub mfa_token: String,
    /// Seconds until it expires.
    expires_in: u32,
}

/// The answer of a login, as the API document describes it.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Admission")]
pub enum AdmissionAnswer {
    Session(Box<Opened>),
    SecondFactor(Challenge),
}

/// Opens a session for a user who has just proved their identity, or asks for the second factor if the user has one.
///
/// Commits the transaction.
///
/// # Errors
/// 403 when the user is disabled, 401 when their organization is removed.
pub async fn admit(tx: Tx, app: &App, origin: &Origin, login: Login, way: Way) -> Result<Admission, Error> {
    if !login.user.mfa_enabled {
        return Ok(Admission::Session(Box::new(open(tx, app, origin, login, way, None).await?)));
    }
    let mut tx = tx;
    refuse_barred(&mut tx, &login.user).await?;
    let entry = NewEntry {
        org: login.user.org_id,
        actor: Some((&login.user).into()),
        action: "user.second_factor_asked",
        target: ("user", login.user.id.0),
        detail: json!({ "way": way.as_str() }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    let mfa_token = challenge::sign_challenge(app, &login.user, login.token_version, way, CHALLENGE_SECS)?;
    Ok(Admission::SecondFactor(Challenge { require_mfa: true, mfa_token, expires_in: CHALLENGE_SECS }))
}

/// Opens the session; `factor` says what the second factor was. Commits the transaction.
pub(super) async fn open(
    mut tx: Tx,
    app: &App,
    origin: &Origin,
    login: Login,
    way: Way,
    factor: Option<&'static str>,
) -> Result<Opened, Error> {
    let user = login.user;
    refuse_barred(&mut tx, &user).await?;
    users::record_login_success(&mut tx, user.id, app.clock.now()).await?;
    let tokens = session::open(&mut tx, app, origin, &user, login.token_version).await?;
    let entry = NewEntry {
        org: user.org_id,
        actor: Some((&user).into()),
        action: "user.login",
        target: ("user", user.id.0),
        detail: json!({ "way": way.as_str(), "second_factor": factor }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(Opened { tokens, user })
}

/// 401 when the organization is removed, 403 when the user is disabled.
pub(super) async fn refuse_barred(tx: &mut Tx, user: &User) -> Result<(), Error> {
    Organization::find(tx, &Scope::organization(user.org_id), user.org_id).await?.ok_or(REVOKED)?;
    if user.is_active { Ok(()) } else { Err(inactive()) }
}

impl Admission {
    /// The answer of a login. Cookies are set only with a session.
    pub fn respond(self, app: &App, origin: &Origin) -> Result<Response, Error> {
        match self {
            Self::Session(opened) => opened.respond(app, origin),
            Self::SecondFactor(challenge) => Ok(Answer(challenge).into_response()),
        }
    }
}

impl Opened {
    pub(crate) fn respond(&self, app: &App, origin: &Origin) -> Result<Response, Error> {
        cookies::set(app, origin, &self.tokens, Answer(self).into_response())
    }
}
