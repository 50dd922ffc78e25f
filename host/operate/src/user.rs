//! `heddle user …`: commands that restore access to an account, for the operator of the host.
//!
//! A running server learns of such a change within a second, as of a change by another process.

use std::io::Write;

use anyhow::{Context as _, bail};
use heddle_core::Clock;
use heddle_identity::declarations::MFA_RESET;
use heddle_identity::{recovery, security};
use heddle_kernel::audit::key;
use heddle_kernel::config::Config;
use heddle_kernel::feature::Features;
use heddle_kernel::keys::KeyTexts;
use heddle_store::audit::{self, AuditKey, NewAudit};
use heddle_store::object::Object as _;
use heddle_store::users::{self, Login, User};
use heddle_store::{Db, Organization, Scope, Tx, second_factors, sessions};
use serde_json::{Value, json};

use super::open_current_writing;

/// The actor in the audit log.
const OPERATOR: &str = "operator of the host";

/// An edit of one account: the open transaction, and what its entry in the audit log is written with.
struct Edit {
    tx: Tx,
    db: Db,
    clock: Clock,
    audit_key: AuditKey,
}

impl Edit {
    /// Opens the database, and locks the user with this user name or email.
    async fn begin(config: &Config, features: Features, login: &str) -> anyhow::Result<(Self, Login)> {
        let (db, clock) = (open_current_writing(config).await?, Clock::default());
        let audit_key = audit_key(config, features, &db, &clock).await?;
        let mut tx = db.write().await?;
        let login = find(&mut tx, login).await?;
        Ok((Self { tx, db, clock, audit_key }, login))
    }

    async fn record(&mut self, user: &User, action: &str, detail: Value) -> Result<(), heddle_store::Error> {
        let entry = NewAudit {
            org_id: user.org_id,
            actor_id: None,
            actor_name: OPERATOR.to_owned(),
            action: action.to_owned(),
            target_type: "user".to_owned(),
            target_id: Some(user.id.0),
            detail,
            request_id: None,
            ip: None,
        };
        audit::append(&mut self.tx, &entry, &self.clock, &self.audit_key).await.map(drop)
    }

    async fn commit(self) -> anyhow::Result<()> {
        self.tx.commit().await?;
        self.db.close().await;
        Ok(())
    }
}

/// Takes the second factor of a user away and ends the user's sessions.
pub async fn reset_mfa(
    config: &Config,
    features: Features,
    login: &str,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (mut edit, Login { user, .. }) = Edit::begin(config, features, login).await?;
    if !user.mfa_enabled {
        bail!("user '{}' has no second factor", user.username);
    }
    second_factors::remove(&mut edit.tx, user.id, edit.clock.now()).await?;
    users::bump_token_version(&mut edit.tx, user.id, edit.clock.now()).await?;
    let revoked = sessions::revoke_all(&mut edit.tx, user.id, edit.clock.now()).await?;
    edit.record(&user, "user.mfa_reset", json!({ "sessions_revoked": revoked })).await?;
    let fields = json!({ "actor_id": null });
    security::record(&mut edit.tx, &edit.clock, MFA_RESET, &user, fields).await?;
    edit.commit().await?;
    writeln!(
        out,
        "user '{}' has no second factor any more, and {revoked} sessions ended: the password is enough to log in",
        user.username
    )?;
    Ok(())
}

/// Prints a link by which the user can set a new password once.
pub async fn reset_password(
    config: &Config,
    features: Features,
    login: &str,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let keys = KeyTexts::find(config)?.context("there are no keys yet: nothing was set up")?.keys();
    let (mut edit, login) = Edit::begin(config, features, login).await?;
    if !login.user.is_active {
        bail!(
            "user '{}' is disabled: an administrator enables it with PATCH /users/{}",
            login.user.username,
            login.user.id
        );
    }
    let (link_base, now) = (config.link_base(), edit.clock.now());
    let link = recovery::new_link(&mut edit.tx, &keys, &link_base, &login, now).await?;
    edit.record(&login.user, "user.password_reset_requested", json!({})).await?;
    edit.commit().await?;
    writeln!(
        out,
        "user '{}' can set a new password with this link, once and within {} minutes, while the server runs:\n{}",
        login.user.username,
        recovery::LINK_MINUTES,
        link.expose()
    )?;
    if login.user.mfa_enabled {
        writeln!(out, "the second factor stays: 'heddle user reset-mfa' takes it away")?;
    }
    Ok(())
}

/// Lifts the lock after failed logins.
pub async fn unlock(
    config: &Config,
    features: Features,
    login: &str,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (mut edit, login) = Edit::begin(config, features, login).await?;
    let user = &login.user;
    let is_locked = user.locked_until.is_some_and(|until| until > edit.clock.now());
    users::record_login_success(&mut edit.tx, user.id, edit.clock.now()).await?;
    let detail = json!({ "was_locked": is_locked, "failures": login.failed_logins });
    edit.record(user, "user.unlocked", detail).await?;
    edit.commit().await?;
    let state = if is_locked { "is unlocked" } else { "was not locked; its failed logins are forgotten" };
    writeln!(out, "user '{}' {state}", user.username)?;
    Ok(())
}

/// Returns the user with this user name or email, in an organization that is not removed.
async fn find(tx: &mut Tx, login: &str) -> anyhow::Result<Login> {
    let found = users::find_by_login(tx, login.trim()).await?;
    let Some(found) = found else { bail!("no user has the user name or email '{login}'") };
    let org = found.user.org_id;
    if Organization::find(tx, &Scope::organization(org), org).await?.is_none() {
        bail!("the organization of user '{}' was removed: restore it first", found.user.username);
    }
    users::lock_login(tx, found.user.id).await?.context("user was removed meanwhile")
}

/// What the entries of the audit log are written with.
async fn audit_key(config: &Config, features: Features, db: &Db, clock: &Clock) -> anyhow::Result<AuditKey> {
    let keys = KeyTexts::find(config)?.context("there are no keys yet: nothing was set up")?.keys();
    key::open(db, &keys, clock, features.sealed_columns()).await
}
