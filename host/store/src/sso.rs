//! Identity providers, the identities of users there, and sign-ins in flight. Secrets are sealed by the caller and
//! never serialize; whether two people are the same one is the caller's rule.

use heddle_core::{OrgId, ProviderKind, Role, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, Set, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub IdentityProviderId,
    /// The identity of a user at an identity provider.
    pub IdentityId,
    /// One sign-in on its way to an identity provider and back.
    pub SsoAttemptId,
}

/// Most providers that a login page shows.
const PUBLIC_MAX: i64 = 50;

/// A service where an organization's people sign in: a row of `identity_provider` without its sealed secret.
#[derive(Debug, Clone, PartialEq, FromRow)]
#[expect(clippy::struct_excessive_bools, reason = "switches that do not depend on each other")]
pub struct Provider {
    pub id: IdentityProviderId,
    /// How often people have edited it.
    pub revision: i64,
    pub org_id: OrgId,
    pub kind: ProviderKind,
    /// What the button of a login page says.
    pub label: String,
    pub is_enabled: bool,
    /// A person who has no account yet gets one.
    pub allow_registration: bool,
    /// A person whose verified email is that of an account gets that account.
    pub allow_linking: bool,
    pub default_role: Role,
    /// From the provider's groups to roles.
    pub role_mapping: Value,
    /// What the kind needs.
    pub settings: Value,
    pub has_secret: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Provider {
    const KEYS: &'static [Key] = &[
        Key::of("label", "LOWER(identity_provider.label)"),
        Key::of("kind", "identity_provider.kind"),
        Key::of("created_at", "identity_provider.created_at"),
        Key::of("updated_at", "identity_provider.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["identity_provider.id"];
}

/// A row of `identity_provider` about to be written. `secret` is sealed for its id; a provider may have none.
#[derive(Clone)]
pub struct NewProvider {
    pub id: IdentityProviderId,
    pub org_id: OrgId,
    pub kind: ProviderKind,
    pub label: String,
    pub is_enabled: bool,
    pub allow_registration: bool,
    pub allow_linking: bool,
    pub default_role: Role,
    pub role_mapping: Value,
    pub settings: Value,
    pub secret: Option<Vec<u8>>,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Clone, Default)]
pub struct ProviderUpdate {
    pub label: Option<String>,
    pub is_enabled: Option<bool>,
    pub allow_registration: Option<bool>,
    pub allow_linking: Option<bool>,
    pub default_role: Option<Role>,
    pub role_mapping: Option<Value>,
    pub settings: Option<Value>,
    pub secret: Set<Vec<u8>>,
}

/// A provider that people may sign in at now, with its sealed secret.
#[derive(Clone, FromRow)]
pub struct Usable {
    #[sqlx(flatten)]
    pub provider: Provider,
    pub secret: Option<Vec<u8>>,
}

/// A row of `user_identity`: a person as a provider knows them, and the user that the person signs in as.
/// `created_user` is true where the first sign-in made the account, and false where it was linked to one.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Identity {
    pub id: IdentityId,
    pub provider_id: IdentityProviderId,
    pub issuer: String,
    pub subject: String,
    pub user_id: UserId,
    pub created_user: bool,
    pub created_at: Timestamp,
    pub last_login_at: Timestamp,
}

/// A row of `user_identity` about to be written. Its last login is the time at which it is written.
#[derive(Debug, Clone)]
pub struct NewIdentity {
    pub id: IdentityId,
    pub provider_id: IdentityProviderId,
    pub issuer: String,
    pub subject: String,
    pub user_id: UserId,
    pub created_user: bool,
    pub now: Timestamp,
}

/// A sign-in that waits for the browser to come back.
#[derive(Clone, FromRow)]
pub struct Attempt {
    pub id: SsoAttemptId,
    pub provider_id: IdentityProviderId,
    pub redirect_uri: String,
    pub secret: Vec<u8>,
}

/// A row of `sso_attempt` about to be written. Only the same browser can end the sign-in, until `expires_at`.
/// `secret` holds the proofs of the sign-in, sealed for its id.
#[derive(Clone)]
pub struct NewAttempt {
    pub id: SsoAttemptId,
    pub provider_id: IdentityProviderId,
    pub state_hash: String,
    pub browser_hash: String,
    pub redirect_uri: String,
    pub secret: Vec<u8>,
    pub expires_at: Timestamp,
}

/// The columns of [`Provider`].
macro_rules! provider {
    () => {
        "identity_provider.id, identity_provider.revision, identity_provider.org_id, identity_provider.kind, identity_provider.label,
        identity_provider.is_enabled, identity_provider.allow_registration, identity_provider.allow_linking,
        identity_provider.default_role, identity_provider.role_mapping, identity_provider.settings,
        (identity_provider.secret IS NOT NULL) AS has_secret, identity_provider.created_at,
        identity_provider.updated_at, identity_provider.deleted_at"
    };
}

const SELECT_USABLE: &str = concat!("SELECT ", provider!(), ", identity_provider.secret");
const FROM_LIVE: &str = "FROM identity_provider JOIN organization o ON o.id = identity_provider.org_id";

revised!(Provider);

impl Object for Provider {
    type Id = IdentityProviderId;
    const TABLE: Table = table!("identity_provider", provider!(), org: "org_id");

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// Writes the provider and returns it. Two providers of an organization may have the same label.
pub async fn insert(tx: &mut Tx, new: &NewProvider) -> Result<Provider> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("kind", new.kind.to_string())
        .with("label", &new.label)
        .with("is_enabled", new.is_enabled)
        .with("allow_registration", new.allow_registration)
        .with("allow_linking", new.allow_linking)
        .with("default_role", new.default_role.to_string())
        .with("role_mapping", &new.role_mapping)
        .with("settings", &new.settings)
        .or_null("secret", new.secret.as_ref());
    object::insert(tx, new.id, columns, new.now).await
}

/// A provider with its sealed secret, enabled or not: for its test.
pub async fn find_sealed(tx: &mut Tx, scope: &Scope, id: IdentityProviderId) -> Result<Option<Usable>> {
    let sealed = object::live_as::<Provider>(SELECT_USABLE, scope);
    sealed.and_bind(Provider::TABLE.is, Bind::Id(id.0)).one(tx).await
}

/// Returns a page of the providers that are not removed, enabled or not, and how many there are on all pages.
/// The oldest come first unless the page names another order. `search` finds a part of the label.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    kind: Option<ProviderKind>,
    search: Option<&str>,
    page: impl Into<InOrder<Provider>>,
) -> Result<(Vec<Provider>, i64)> {
    object::live::<Provider>(scope)
        .and_some("identity_provider.kind = ?", kind.map(|kind| Bind::Text(kind.to_string())))
        .search(&["identity_provider.label"], search)
        .page(tx, page)
        .await
}

/// Writes the given fields, raises the revision, and returns the provider as it is then.
/// `None` means that the scope's organization has no such provider, or that it is removed.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: IdentityProviderId,
    update: &ProviderUpdate,
    now: Timestamp,
) -> Result<Option<Provider>> {
    let columns = Columns::default()
        .or_keep("label", update.label.as_ref())
        .or_keep("is_enabled", update.is_enabled)
        .or_keep("allow_registration", update.allow_registration)
        .or_keep("allow_linking", update.allow_linking)
        .or_keep("default_role", update.default_role.map(|role| role.to_string()))
        .or_keep("role_mapping", update.role_mapping.as_ref())
        .or_keep("settings", update.settings.as_ref())
        .set("secret", &update.secret);
    object::update(tx, scope, id, columns, now).await
}

/// The provider, if people may sign in there now.
pub async fn find_usable(tx: &mut Tx, id: IdentityProviderId, kind: ProviderKind) -> Result<Option<Usable>> {
    usable(SELECT_USABLE)
        .and_bind("identity_provider.id = ?", Bind::Id(id.0))
        .and_bind("identity_provider.kind = ?", Bind::Text(kind.to_string()))
        .one(tx)
        .await
}

/// The providers of this kind where an organization's people may sign in now, the oldest first.
pub async fn list_usable(tx: &mut Tx, slug: &str, kind: ProviderKind) -> Result<Vec<Usable>> {
    usable(SELECT_USABLE)
        .and_bind("o.slug = ?", Bind::Text(slug.to_owned()))
        .and_bind("identity_provider.kind = ?", Bind::Text(kind.to_string()))
        .all(tx, "identity_provider.created_at, identity_provider.id", PUBLIC_MAX)
        .await
}

/// Returns the providers that a login page of the organization with this slug shows; none where there is no such
/// organization.
pub async fn list_public(tx: &mut Tx, slug: &str) -> Result<Vec<Provider>> {
    usable(Provider::TABLE.select)
        .and_bind("o.slug = ?", Bind::Text(slug.to_owned()))
        .all(tx, "identity_provider.created_at, identity_provider.id", PUBLIC_MAX)
        .await
}

/// A user at a provider, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct LinkedIdentity {
    pub id: IdentityId,
    pub provider_id: IdentityProviderId,
    pub provider_label: String,
    pub kind: ProviderKind,
    /// What the provider calls itself.
    pub issuer: String,
    /// The permanent name of the user at the provider.
    pub subject: String,
    /// Whether the account was made by the provider, which then says its role.
    pub created_user: bool,
    pub created_at: Timestamp,
    pub last_login_at: Timestamp,
}

impl Sorted for LinkedIdentity {
    const KEYS: &'static [Key] = &[
        Key::of("provider_label", "LOWER(p.label)"),
        Key::of("created_at", "i.created_at"),
        Key::of("last_login_at", "i.last_login_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["i.id"];
}

fn of_user(user: UserId) -> Select {
    Select::new(
        "SELECT i.id, i.provider_id, p.label AS provider_label, p.kind, i.issuer, i.subject, i.created_user,
            i.created_at, i.last_login_at",
        "FROM user_identity i JOIN identity_provider p ON p.id = i.provider_id",
    )
    .and_bind("i.user_id = ?", Bind::Id(user.0))
}

/// Lists the identities of a user at providers, also at removed ones.
pub async fn list_identities(
    tx: &mut Tx,
    user: UserId,
    page: impl Into<InOrder<LinkedIdentity>>,
) -> Result<(Vec<LinkedIdentity>, i64)> {
    of_user(user).page(tx, page).await
}

/// Returns one identity of the user, locked until the transaction ends.
pub async fn lock_identity(tx: &mut Tx, user: UserId, id: IdentityId) -> Result<Option<LinkedIdentity>> {
    of_user(user).and_bind("i.id = ?", Bind::Id(id.0)).one_locked(tx, "i").await
}

/// Removes the identity of a user at a provider. A person who signs in from there is a new user.
pub async fn remove_identity(tx: &mut Tx, id: IdentityId) -> Result<bool> {
    let rows = affected!(tx, sqlx::query("DELETE FROM user_identity WHERE id = $1").bind(id));
    Ok(rows == 1)
}

/// Returns the identity that has exactly this name at the provider, without a lock.
/// It is found also when the provider or the user is removed, which the caller checks.
pub async fn find_identity(
    tx: &mut Tx,
    provider: IdentityProviderId,
    issuer: &str,
    subject: &str,
) -> Result<Option<Identity>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT id, provider_id, issuer, subject, user_id, created_user, created_at, last_login_at
        FROM user_identity
        WHERE provider_id = $1 AND issuer = $2 AND subject = $3")
        .bind(provider).bind(issuer).bind(subject)
        .fetch_optional(conn)
        .await)?)
}

/// # Errors
/// [`crate::error::Error::Unique`] with `user_identity_subject` when another user has that identity there.
pub async fn insert_identity(tx: &mut Tx, new: &NewIdentity) -> Result<Identity> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO user_identity (id, provider_id, issuer, subject, user_id, created_user, created_at, last_login_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
        RETURNING id, provider_id, issuer, subject, user_id, created_user, created_at, last_login_at")
        .bind(new.id).bind(new.provider_id).bind(&new.issuer).bind(&new.subject).bind(new.user_id)
        .bind(new.created_user).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

/// Moves the time of the identity's last login; false when the identity no longer exists.
pub async fn record_identity_login(tx: &mut Tx, id: IdentityId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE user_identity SET last_login_at = $2 WHERE id = $1").bind(id).bind(now)
    );
    Ok(rows == 1)
}

/// Writes a sign-in that has begun. [`take_attempt`] ends it; [`trim_attempts`] forgets those that expired.
pub async fn insert_attempt(tx: &mut Tx, new: &NewAttempt) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO sso_attempt (id, provider_id, state_hash, browser_hash, redirect_uri, secret, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)"
        )
        .bind(new.id)
        .bind(new.provider_id)
        .bind(&new.state_hash)
        .bind(&new.browser_hash)
        .bind(&new.redirect_uri)
        .bind(&new.secret)
        .bind(new.expires_at)
    );
    Ok(())
}

/// The sign-in that this browser began with this state, and no later one has it: of several at once, one gets it.
pub async fn take_attempt(
    tx: &mut Tx,
    state_hash: &str,
    browser_hash: &str,
    now: Timestamp,
) -> Result<Option<Attempt>> {
    Ok(on!(tx, conn => sqlx::query_as("
        DELETE FROM sso_attempt
        WHERE state_hash = $1 AND browser_hash = $2 AND expires_at > $3
        RETURNING id, provider_id, redirect_uri, secret")
        .bind(state_hash).bind(browser_hash).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Forgets sign-ins that expired before this time, up to a number; tells how many.
pub async fn trim_attempts(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM sso_attempt WHERE id IN (
            SELECT id FROM sso_attempt WHERE expires_at < $1 ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

fn usable(select: &'static str) -> Select {
    Select::new(select, FROM_LIVE)
        .and("identity_provider.deleted_at IS NULL")
        .and("o.deleted_at IS NULL")
        .and_bind("identity_provider.is_enabled = ?", Bind::Flag(true))
}

#[cfg(test)]
mod tests;
