//! Registered apps.

use heddle_core::oauth2::ClientType;
use heddle_core::{OrgId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, Set, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    /// An app that users let act for them.
    pub OauthAppId,
}

/// An app that users can let act for them. It is allowed no more than its `scopes`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "OAuth2App")]
pub struct OauthApp {
    /// Also the `client_id`.
    pub id: OauthAppId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub owner_id: UserId,
    pub name: String,
    pub description: Option<String>,
    pub client_type: ClientType,
    #[sqlx(json)]
    pub redirect_uris: Vec<String>,
    /// The most that the app can be allowed.
    #[sqlx(json)]
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When the secret was last made anew; `null` for public apps.
    pub secret_rotated_at: Option<Timestamp>,
}

impl Sorted for OauthApp {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(oauth2_app.name)"),
        Key::of("created_at", "oauth2_app.created_at"),
        Key::of("updated_at", "oauth2_app.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["oauth2_app.id"];
}

/// A row of `oauth2_app` about to be written. `secret_hash` is a keyed hash; it is `None` for a public app.
#[derive(Clone)]
pub struct NewApp {
    pub id: OauthAppId,
    pub org_id: OrgId,
    pub owner_id: UserId,
    pub name: String,
    pub description: Option<String>,
    pub client_type: ClientType,
    pub secret_hash: Option<String>,
    pub redirect_uris: Vec<String>,
    pub scopes: Vec<String>,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct AppUpdate {
    pub name: Option<String>,
    pub description: Set<String>,
    pub redirect_uris: Option<Vec<String>>,
    pub scopes: Option<Vec<String>>,
}

/// An app with what its check needs.
#[derive(Clone, FromRow)]
pub struct RegisteredApp {
    #[sqlx(flatten)]
    pub app: OauthApp,
    pub secret_hash: Option<String>,
    pub org_name: String,
}

/// The columns of [`OauthApp`].
macro_rules! app {
    () => {
        "oauth2_app.id, oauth2_app.revision, oauth2_app.org_id, oauth2_app.owner_id, oauth2_app.name, oauth2_app.description,
        oauth2_app.client_type, oauth2_app.redirect_uris, oauth2_app.scopes, oauth2_app.created_at,
        oauth2_app.updated_at, oauth2_app.secret_rotated_at"
    };
}

revised!(OauthApp);

impl Object for OauthApp {
    type Id = OauthAppId;
    const TABLE: Table = table!("oauth2_app", app!(), org: "org_id");

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// Writes the app and returns it. Where it has a secret, the secret counts as rotated now.
pub async fn insert(tx: &mut Tx, new: &NewApp) -> Result<OauthApp> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("owner_id", new.owner_id.0)
        .with("name", &new.name)
        .or_null("description", new.description.as_ref())
        .with("client_type", new.client_type.to_string())
        .or_null("secret_hash", new.secret_hash.as_ref())
        .or_null("secret_rotated_at", new.secret_hash.as_ref().map(|_| new.now))
        .with("redirect_uris", json!(new.redirect_uris))
        .with("scopes", json!(new.scopes));
    object::insert(tx, new.id, columns, new.now).await
}

/// One app of the scope, and of this owner where one is given.
pub async fn find(
    tx: &mut Tx,
    scope: &Scope,
    owner: Option<UserId>,
    id: OauthAppId,
) -> Result<Option<OauthApp>> {
    live(scope, owner).and_bind("oauth2_app.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Returns the app, locked until the transaction ends.
pub async fn lock(
    tx: &mut Tx,
    scope: &Scope,
    owner: Option<UserId>,
    id: OauthAppId,
) -> Result<Option<OauthApp>> {
    live(scope, owner)
        .and_bind("oauth2_app.id = ?", Bind::Id(id.0))
        .one_locked(tx, OauthApp::TABLE.name)
        .await
}

/// Returns the app with this id, whichever caller presents it. Its owner is active, in an organization that is not
/// removed.
pub async fn find_registered(tx: &mut Tx, id: OauthAppId) -> Result<Option<RegisteredApp>> {
    Select::new(
        concat!("SELECT ", app!(), ", oauth2_app.secret_hash, o.name AS org_name"),
        "FROM oauth2_app JOIN organization o ON o.id = oauth2_app.org_id JOIN app_user w ON w.id = oauth2_app.owner_id",
    )
    .and_bind(OauthApp::TABLE.is, Bind::Id(id.0))
    .and(OauthApp::TABLE.live)
    .and("o.deleted_at IS NULL AND w.deleted_at IS NULL AND w.is_active")
    .one(tx)
    .await
}

/// Returns a page of the apps that are not removed, of one owner or of all, and how many all pages have.
/// The oldest come first unless the page names another order.
/// `search` finds a part of the name or the description.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    owner: Option<UserId>,
    search: Option<&str>,
    page: impl Into<InOrder<OauthApp>>,
) -> Result<(Vec<OauthApp>, i64)> {
    live(scope, owner).search(&["oauth2_app.name", "oauth2_app.description"], search).page(tx, page).await
}

/// How many apps the user has registered.
pub async fn count_of(tx: &mut Tx, owner: UserId) -> Result<i64> {
    live(&Scope::everything(), Some(owner)).count(tx).await
}

/// Changes an app that the caller has locked.
pub async fn update(
    tx: &mut Tx,
    id: OauthAppId,
    update: &AppUpdate,
    now: Timestamp,
) -> Result<Option<OauthApp>> {
    let columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .set("description", &update.description)
        .or_keep("redirect_uris", update.redirect_uris.as_ref().map(|uris| json!(uris)))
        .or_keep("scopes", update.scopes.as_ref().map(|scopes| json!(scopes)));
    object::update(tx, &Scope::everything(), id, columns, now).await
}

/// Replaces the secret's hash of an app that has one; the one before is worthless at once.
pub async fn rotate_secret(
    tx: &mut Tx,
    id: OauthAppId,
    secret_hash: &str,
    now: Timestamp,
) -> Result<Option<OauthApp>> {
    let scope = Scope::everything();
    let columns = Columns::default().with("secret_hash", secret_hash).with("secret_rotated_at", now);
    let with_secret = live(&scope, None).and("oauth2_app.secret_hash IS NOT NULL");
    object::write(tx, &scope, (id, with_secret), columns, now).await
}

/// Ends everything that the app was allowed, and returns how many grants that were.
pub async fn end_grants(tx: &mut Tx, id: OauthAppId, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query("UPDATE oauth2_grant SET revoked_at = $2 WHERE app_id = $1 AND revoked_at IS NULL")
            .bind(id)
            .bind(now)
    ))
}

fn live(scope: &Scope, owner: Option<UserId>) -> Select {
    object::live::<OauthApp>(scope).and_some("oauth2_app.owner_id = ?", owner.map(|id| Bind::Id(id.0)))
}
