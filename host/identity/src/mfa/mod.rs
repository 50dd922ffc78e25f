//! The second factor: one-time codes of an app, and backup codes for users who have lost it.
//!
//! A secret is staged until a code of it proves that the app has it. Each code,
//! of either kind, is good for one login.

mod routes;
mod totp;

use heddle_core::UserId;
use heddle_core::secret::{Secret, random_bytes};
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{Caller, REVOKED, hold_caller};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::keys::keyed_hash;
use heddle_store::users::{self, Login};
use heddle_store::{Tx, second_factors, sessions};
pub(super) use routes::routes;
use serde_json::json;

use self::totp::Generator;
use super::admission::{self, Opened};
use super::login::{self, Name, Step};
use super::session::{self, Tokens};
use super::{challenge, security};
use crate::declarations::{MFA_DISABLED, MFA_ENABLED, SignInSettings};
use crate::outcomes;

const BACKUP_CODES: usize = 10;
/// Bytes of a backup code, which is written in hexadecimal.
const BACKUP_CODE_BYTES: usize = 4;

const WRONG_CODE: Error = Error::Unauthenticated("code is not correct, or was used before");

const SPENT: Error = Error::Unauthenticated("mfa_token was already used: log in again");

/// The kind of second factor that a code belonged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Factor {
    Totp,
    BackupCode,
}

impl Factor {
    fn as_str(self) -> &'static str {
        match self {
            Self::Totp => "totp",
            Self::BackupCode => "backup_code",
        }
    }
}

/// Completes a login with the second factor. A wrong code counts as a failed login.
pub async fn complete(
    app: &App,
    origin: &Origin,
    mfa_token: &Secret,
    code: &Secret,
) -> Result<Opened, Error> {
    let result = prove(app, origin, mfa_token, code).await;
    outcomes::count(app, &result);
    result
}

async fn prove(app: &App, origin: &Origin, mfa_token: &Secret, code: &Secret) -> Result<Opened, Error> {
    let challenged = challenge::verify_challenge(app, mfa_token.expose())?;
    let known = {
        let mut tx = app.db.read().await?;
        users::find_login(&mut tx, challenged.user).await?.ok_or(REVOKED)?
    };
    let name = Name::of(app, &known.user.username);
    name.refuse_flood(app).await?;
    let mut tx = app.db.write().await?;
    let login = users::lock_login(&mut tx, challenged.user).await?.ok_or(REVOKED)?;
    if login.token_version != challenged.token_version {
        return Err(REVOKED);
    }
    login::refuse_locked(login.user.locked_until, app.clock.now())?;
    if !login.user.mfa_enabled {
        // The second factor was disabled meanwhile. The first factor is then enough, but has to be proved again.
        return Err(REVOKED);
    }
    let Some(factor) = spend(&mut tx, app, &login, code).await? else {
        let answer = login::fail(tx, app, origin, &login.user, Step::SecondFactor, WRONG_CODE).await?;
        name.count_failure(app).await?;
        return Err(answer);
    };
    // One proof opens one session, even with two valid codes and in different processes.
    if !sessions::spend_challenge(&mut tx, challenged.id, challenged.expires_at).await? {
        return Err(SPENT);
    }
    admission::open(tx, app, origin, login, challenged.way, Some(factor.as_str())).await
}

/// Spends a code of the user; `None` when it is not a code of the user, or was spent.
async fn spend(tx: &mut Tx, app: &App, login: &Login, code: &Secret) -> Result<Option<Factor>, Error> {
    let user = login.user.id;
    let typed: String = code.expose().chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    let typed = Secret::new(typed.to_ascii_lowercase());
    if typed.expose().len() == 2 * BACKUP_CODE_BYTES {
        let hash = backup_hash(app, user, &typed);
        let is_spent = second_factors::spend_backup_code(tx, user, &hash, app.clock.now()).await?;
        return Ok(is_spent.then_some(Factor::BackupCode));
    }
    let Some(factor) = second_factors::find(tx, user).await? else { return Ok(None) };
    let is_spent = spend_totp(tx, app, login, &factor.secret, &typed).await?;
    Ok((factor.confirmed_at.is_some() && is_spent).then_some(Factor::Totp))
}

async fn spend_totp(
    tx: &mut Tx,
    app: &App,
    login: &Login,
    sealed: &[u8],
    code: &Secret,
) -> Result<bool, Error> {
    let user = &login.user;
    let secret = app.keys.open_sealed(&context(user.id), sealed).map_err(Error::internal)?;
    match Generator::new(&secret, &user.username)?.step_of(code, app.clock.now()) {
        Some(step) => Ok(second_factors::spend_step(tx, user.id, step).await?),
        None => Ok(false),
    }
}

/// The result of an enrolment, shown once.
struct Enabled {
    backup_codes: Vec<Secret>,
    tokens: Tokens,
}

/// Stages a secret in place of one that was staged.
async fn stage(app: &App, caller: &Caller) -> Result<totp::Enrolment, Error> {
    if !app.config.of::<SignInSettings>().mfa_enrolment {
        return Err(Error::NotAvailable("one-time codes cannot be set up on this server"));
    }
    let secret = totp::new_secret();
    let enrolment = Generator::new(secret.as_slice(), &caller.username)?.enrolment()?;
    let sealed = app.keys.seal(&context(caller.user_id), secret.as_slice());
    let mut tx = app.db.write().await?;
    hold_caller(&mut tx, app, caller).await?;
    if !second_factors::stage(&mut tx, caller.user_id, &sealed, app.clock.now()).await? {
        return Err(Error::conflict("one-time codes are set up already: disable them first"));
    }
    tx.commit().await?;
    Ok(enrolment)
}

/// Enables the second factor after a code has proved that the app has the staged secret. Ends all sessions, and opens a
/// new one for the caller.
async fn enable(app: &App, caller: &Caller, origin: &Origin, code: &Secret) -> Result<Enabled, Error> {
    if !app.config.of::<SignInSettings>().mfa_enrolment {
        return Err(Error::NotAvailable("one-time codes cannot be set up on this server"));
    }
    let mut tx = app.db.write().await?;
    let login = hold_caller(&mut tx, app, caller).await?;
    let staged = second_factors::find(&mut tx, caller.user_id).await?;
    let staged = staged.ok_or_else(|| Error::conflict("no secret is staged: POST /auth/mfa/setup first"))?;
    if staged.confirmed_at.is_some() {
        return Err(Error::conflict("one-time codes are set up already"));
    }
    if !spend_totp(&mut tx, app, &login, &staged.secret, code).await? {
        return Err(Error::field(
            "code",
            "code does not fit the staged secret; is the clock of the app right?",
        ));
    }
    if !second_factors::confirm(&mut tx, caller.user_id, app.clock.now()).await? {
        return Err(Error::conflict("one-time codes are set up already"));
    }
    let backup_codes = new_backup_codes(&mut tx, app, caller.user_id).await?;
    let tokens = session::renew(&mut tx, app, origin, &login.user).await?;
    record(&mut tx, app, caller, origin, "user.mfa_enabled").await?;
    let fields = json!({ "actor_id": caller.user_id });
    security::record(&mut tx, &app.clock, MFA_ENABLED, caller, fields).await?;
    tx.commit().await?;
    Ok(Enabled { backup_codes, tokens })
}

/// Removes the second factor, or the staged secret. Ends all sessions, and opens a new one for the caller.
async fn disable(app: &App, caller: &Caller, origin: &Origin) -> Result<Tokens, Error> {
    let mut tx = app.db.write().await?;
    let login = hold_caller(&mut tx, app, caller).await?;
    second_factors::remove(&mut tx, caller.user_id, app.clock.now()).await?;
    let tokens = session::renew(&mut tx, app, origin, &login.user).await?;
    record(&mut tx, app, caller, origin, "user.mfa_disabled").await?;
    if login.user.mfa_enabled {
        let fields = json!({ "actor_id": caller.user_id });
        security::record(&mut tx, &app.clock, MFA_DISABLED, caller, fields).await?;
    }
    tx.commit().await?;
    Ok(tokens)
}

/// Replaces all backup codes by new ones; the caller has to present a valid code.
async fn renew_backup_codes(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    code: &Secret,
) -> Result<Vec<Secret>, Error> {
    let mut tx = app.db.write().await?;
    let login = hold_caller(&mut tx, app, caller).await?;
    login::refuse_locked(login.user.locked_until, app.clock.now())?;
    if !login.user.mfa_enabled {
        return Err(Error::conflict("one-time codes are not set up"));
    }
    if spend(&mut tx, app, &login, code).await?.is_none() {
        let wrong = Error::field("code", "code is not correct, or was used before");
        return Err(login::fail(tx, app, origin, &login.user, Step::SecondFactor, wrong).await?);
    }
    let codes = new_backup_codes(&mut tx, app, caller.user_id).await?;
    record(&mut tx, app, caller, origin, "user.backup_codes_renewed").await?;
    tx.commit().await?;
    Ok(codes)
}

async fn new_backup_codes(tx: &mut Tx, app: &App, user: UserId) -> Result<Vec<Secret>, Error> {
    let mut codes: Vec<Secret> = Vec::with_capacity(BACKUP_CODES);
    while codes.len() < BACKUP_CODES {
        let code = hex::encode(random_bytes::<BACKUP_CODE_BYTES>().as_slice());
        if codes.iter().all(|known| known.expose() != code) {
            codes.push(Secret::new(code));
        }
    }
    let hashes: Vec<String> = codes.iter().map(|code| backup_hash(app, user, code)).collect();
    second_factors::replace_backup_codes(tx, user, &hashes, app.clock.now()).await?;
    Ok(codes)
}

fn backup_hash(app: &App, user: UserId, code: &Secret) -> String {
    keyed_hash(&app.keys.backup_code_key(), &Secret::new(format!("{user}:{}", code.expose())))
}

/// The context that the secret of a user is sealed for.
fn context(user: UserId) -> String {
    format!("second_factor:{user}")
}

async fn record(
    tx: &mut Tx,
    app: &App,
    caller: &Caller,
    origin: &Origin,
    action: &'static str,
) -> Result<(), Error> {
    let target = ("user", caller.user_id.0);
    let entry = NewEntry { org: caller.org_id, actor: caller.actor(), action, target, detail: json!({}) };
    entry::record(tx, app, origin, entry).await
}
