//! Users of an organization, managed by its administrators.
//!
//! Operations of a user on their own account (sessions, password) are not here but in `auth`.

mod records;
pub mod rules;
mod second_factor;
mod update;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role, UserId};
use heddle_identity::password::{self, PASSWORD_BYTES_MAX};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX, search};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::names::{
    EMAIL_BYTES_MAX, EMAIL_BYTES_MIN, USERNAME_CHARS_MAX, parse_email, parse_username,
};
use heddle_kernel::resource::owner;
use heddle_store::object::Object as _;
use heddle_store::users::{self, NewUser, User, UserFilter, UserUpdate};
use heddle_store::{InOrder, Sort, api_keys, sessions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::records::{Step, record};
use self::update::UpdateBody;
use super::quotas::{self, Resource};
use crate::declarations::{USER_READ, USER_WRITE};

/// A user, with their permissions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UserAccount")]
struct Account {
    #[serde(flatten)]
    user: User,
    /// The effective set; `["*"]` for `super_admin`.
    permissions: Vec<&'static str>,
}

impl Tagged for Account {
    fn tag(&self) -> Result<Tag, Error> {
        self.user.tag()
    }
}

impl Account {
    fn of(user: User, app: &App) -> Self {
        Self { permissions: app.declared.permissions.held_by(user.role), user }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewUser")]
struct NewBody {
    /// 1 to 64 letters, digits, dots, underscores and hyphens; unique in the service, whatever its case.
    #[schemars(length(min = 1, max = USERNAME_CHARS_MAX))]
    username: String,
    /// At most 254 bytes; unique in the service, whatever its case.
    #[schemars(length(min = EMAIL_BYTES_MIN, max = EMAIL_BYTES_MAX))]
    email: String,
    /// Meets the password rules: when they are not set otherwise, at least 12 characters with an upper-case and a
    /// lower-case letter, a digit and a special character, and without the user name. At most 1024 bytes.
    #[schemars(extend("maxLength" = PASSWORD_BYTES_MAX))]
    password: Secret,
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    full_name: Option<String>,
    /// A role strictly below the caller's; `admin` is another spelling of `org_admin`.
    #[schemars(extend("enum" = rules::assignable_words()))]
    role: String,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
    /// True when absent. A user who is not active cannot log in.
    is_active: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    role: Option<String>,
    is_active: Option<bool>,
    /// Only users of this organization; for `super_admin`.
    organization_id: Option<OrgId>,
    /// Part of the user name, the email or the full name.
    search: Option<String>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<User>>,
}

pub(super) fn routes() -> Routes {
    let one = "/users/{user_id}";
    let read = Access::Permission(USER_READ);
    let write = Access::RoleWith(Role::OrgAdmin, USER_WRITE);
    Routes::default()
        .get("/users", read, list, doc("Users").query::<ListQuery>().answers::<Page<Account>>(200))
        .post(
            "/users",
            write,
            create,
            doc("Create a user with a role below the own one").body::<NewBody>().answers::<Account>(201),
        )
        .get(one, read, get, doc("One user").answers::<Account>(200))
        .patch(
            one,
            write,
            update::update,
            doc("Change a user whose role is below the own one").body::<UpdateBody>().answers::<Account>(200),
        )
        .delete(one, write, remove, doc("Remove a user and end their sessions").empty(204))
        .post(
            &format!("{one}/restore"),
            write,
            restore,
            doc("Bring a removed user back").answers::<Account>(200),
        )
        .post(
            &format!("{one}/mfa/reset"),
            write,
            second_factor::reset,
            doc("Take away the second factor of a user whose role is below the own one, and end the user's sessions").named("reset_second_factor")
                .answers::<Account>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<Account>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let filter = UserFilter {
        org_id: query.organization_id,
        role: query.role.as_deref().map(rules::parse_role).transpose()?,
        is_active: query.is_active,
        search: search(query.search)?,
    };
    let mut tx = app.db.read().await?;
    let (items, total) =
        users::list(&mut tx, &caller.organization_scope(), &filter, InOrder::by(page, query.sort)).await?;
    Ok(Answer(page.of(items.into_iter().map(|user| Account::of(user, &app)).collect(), total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<UserId>,
) -> Result<One<Account>, Error> {
    let mut tx = app.db.single().await?;
    let found = User::find(&mut tx, &caller.organization_scope(), id).await?;
    found.map(|user| One(Account::of(user, &app))).ok_or(Error::NotFound("user"))
}

async fn create(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    Json(body): Json<NewBody>,
) -> Result<Response, Error> {
    caller.require_all_sites()?;
    let role = rules::parse_role(&body.role)?;
    rules::require_assignable(&caller, role)?;
    let mut checks = Checks::default();
    let username = checks.keep("username", parse_username(&body.username));
    let email = checks.keep("email", parse_email(&body.email));
    let full_name = body.full_name.as_deref().map(|name| checks.name("full_name", name));
    checks.add(password::faults(&app.config, "password", &body.password, &[&username, &email]));
    checks.done()?;
    let password_hash = app.hashing.hash(body.password).await?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let org_id = owner(&mut tx, &caller, body.organization_id).await?;
    let new =
        NewUser { id: app.clock.new_id(), org_id, username, email, full_name, password_hash, role, now };
    let mut user =
        users::insert(&mut tx, &new).await.map_err(|error| taken(error, &new.username, &new.email))?;
    if body.is_active == Some(false) {
        let off = UserUpdate { is_active: Some(false), ..UserUpdate::default() };
        user = users::update(&mut tx, &caller.organization_scope(), user.id, &off, now)
            .await?
            .ok_or(Error::NotFound("user"))?;
    }
    quotas::check(&mut tx, &app, org_id, Resource::Users).await?;
    record(&mut tx, &app, &caller, &origin, &user, Step::Created).await?;
    let path = format!("/users/{}", user.id);
    creation.finish(tx, &app, &path, &Account::of(user, &app)).await
}

async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<UserId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    caller.require_all_sites()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let user = rules::locked(&mut tx, &caller, id).await?;
    rules::require_another(&caller, id, "nobody removes themself")?;
    rules::require_below(&caller, &user)?;
    rules::keep_an_admin(&mut tx, &user).await?;
    if_match.check(&user)?;
    User::remove(&mut tx, &caller.organization_scope(), id, now).await?;
    sessions::revoke_all(&mut tx, id, now).await?;
    api_keys::revoke_all(&mut tx, id, now).await?;
    record(&mut tx, &app, &caller, &origin, &user, Step::Removed).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn restore(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<UserId>,
) -> Result<One<Account>, Error> {
    caller.require_all_sites()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    let removed = User::find_removed(&mut tx, &scope, id).await?.ok_or(Error::NotFound("user"))?;
    rules::require_below(&caller, &removed)?;
    rules::lock_organization(&mut tx, &caller, &removed).await?;
    let restored = User::restore(&mut tx, &scope, id, app.clock.now())
        .await
        .map_err(|error| taken(error, &removed.username, &removed.email))?;
    let user = restored.ok_or(Error::NotFound("user"))?;
    quotas::check(&mut tx, &app, user.org_id, Resource::Users).await?;
    record(&mut tx, &app, &caller, &origin, &user, Step::Restored).await?;
    tx.commit().await?;
    Ok(One(Account::of(user, &app)))
}

/// Returns the error for a taken name, or the database error. Names are unique in the whole service.
pub(crate) fn taken(error: heddle_store::Error, username: &str, email: &str) -> Error {
    if error.is_unique("app_user_username") {
        Error::conflict(format!("user name '{username}' is taken"))
    } else if error.is_unique("app_user_email") {
        Error::conflict(format!("email '{email}' is taken"))
    } else {
        error.into()
    }
}
