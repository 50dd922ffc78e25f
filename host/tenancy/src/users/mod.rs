//! Users of an organization, managed by its administrators.
//!
//! Operations of a user on their own account (sessions, password) are not here but in `auth`.

mod records;
pub mod rules;
mod second_factor;
mod update;

use axum::response::Response;
use heddle_core::event::NewEvent;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role, UserId};
use heddle_identity::password::{self, PASSWORD_BYTES_MAX};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Json;
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::names::{
    EMAIL_BYTES_MAX, EMAIL_BYTES_MIN, USERNAME_CHARS_MAX, parse_email, parse_username,
};
use heddle_kernel::resource::{
    self, Actions, By, Done, Listed, Resource, Rows, Unique, Verbs, actions, owner,
};
use heddle_store::object::Object as _;
use heddle_store::users::{self, NewUser, User, UserFilter, UserUpdate};
use heddle_store::{Tx, api_keys, sessions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::update::UpdateBody;
use super::quotas;
use crate::declarations::{USER_READ, USER_WRITE};

/// A user, with their permissions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UserAccount")]
pub(crate) struct Account {
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

list_query! {
    /// Part of the user name, the email or the full name.
    pub(crate) struct ListQuery of User {
        role: Option<String>,
        is_active: Option<bool>,
        /// Only users of this organization; for `super_admin`.
        organization_id: Option<OrgId>,
    }
}

/// The users of an organization.
pub(crate) struct Users;

impl Resource for Users {
    type Row = User;
    const NOUN: &'static str = "user";
    const PATH: &'static str = "/users";
    const ACTIONS: Actions = actions!("user");
    /// In the whole service.
    const UNIQUE: &'static [Unique<User>] = &[
        Unique { index: "app_user_username", field: "user name", value: |user| &user.username },
        Unique { index: "app_user_email", field: "email", value: |user| &user.email },
    ];
    type View = Account;

    fn view(user: User, app: &App) -> Result<Account, Error> {
        Ok(Account { permissions: app.declared().permissions.held_by(user.role), user })
    }

    fn detail(user: &User) -> Value {
        json!({ "username": user.username, "role": user.role })
    }

    fn event(done: Done, user: &User, by: &By) -> Option<NewEvent> {
        records::event(done, user, by)
    }

    async fn lock(tx: &mut Tx, by: &By, id: UserId) -> Result<Option<User>, Error> {
        rules::locked(tx, &by.caller, id).await.map(Some)
    }

    async fn may_remove(user: &User, tx: &mut Tx, by: &By) -> Result<(), Error> {
        rules::require_another(&by.caller, user.id, "nobody removes themself")?;
        rules::require_below(&by.caller, user)?;
        rules::keep_an_admin(tx, user).await
    }

    async fn end_with(user: &User, tx: &mut Tx, by: &By) -> Result<Value, Error> {
        let now = by.app.clock.now();
        sessions::revoke_all(tx, user.id, now).await?;
        api_keys::revoke_all(tx, user.id, now).await?;
        Ok(Self::detail(user))
    }

    async fn before_restore(tx: &mut Tx, by: &By, id: UserId) -> Result<(), Error> {
        let removed = User::find_removed(tx, &by.caller.scope(), id).await?.ok_or(Error::NotFound("user"))?;
        rules::require_below(&by.caller, &removed)?;
        rules::lock_organization(tx, &by.caller, &removed).await
    }

    async fn may_restore(user: &User, tx: &mut Tx, by: &By) -> Result<(), Error> {
        quotas::check(tx, &by.app, user.org_id, quotas::Resource::Users).await
    }
}

impl Listed for Users {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, query: ListQuery, asked: Listing<User>) -> Rows<User> {
        let filter = UserFilter {
            org_id: query.organization_id,
            role: query.role.as_deref().map(rules::parse_role).transpose()?,
            is_active: query.is_active,
            search: asked.search,
        };
        Ok(users::list(tx, &caller.scope(), &filter, asked.order).await?)
    }
}

pub(super) fn routes() -> Routes {
    let write = Access::RoleWith(Role::OrgAdmin, USER_WRITE);
    Verbs::<Users>::of("user_id", Access::Permission(USER_READ), write)
        .listed("Users")
        .create::<NewBody, _, _>(create, "Create a user with a role below the own one")
        .get(resource::get::<Users>, "One user")
        .update::<UpdateBody, _, _>(update::update, "Change a user whose role is below the own one")
        .remove(resource::remove::<Users>, "Remove a user and end their sessions")
        .restore(resource::restore::<Users>, "Bring a removed user back")
        .routes()
        .post(
            "/users/{user_id}/mfa/reset",
            write,
            second_factor::reset,
            doc("Take away the second factor of a user whose role is below the own one, and end the user's sessions").named("reset_second_factor")
                .answers::<Account>(200),
        )
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let role = rules::parse_role(&body.role)?;
    rules::require_assignable(caller, role)?;
    let mut checks = Checks::default();
    let username = checks.keep("username", parse_username(&body.username));
    let email = checks.keep("email", parse_email(&body.email));
    let full_name = body.full_name.as_deref().map(|name| checks.name("full_name", name));
    checks.add(password::faults(&app.config, "password", &body.password, &[&username, &email]));
    checks.done()?;
    let password_hash = app.hashing.hash(body.password).await?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let org_id = owner(&mut tx, caller, body.organization_id).await?;
    let new =
        NewUser { id: app.clock.new_id(), org_id, username, email, full_name, password_hash, role, now };
    let made = users::insert(&mut tx, &new).await;
    let mut user = made.map_err(|error| resource::taken::<Users>(error, &[&new.username, &new.email]))?;
    if body.is_active == Some(false) {
        let off = UserUpdate { is_active: Some(false), ..UserUpdate::default() };
        let updated = users::update(&mut tx, &caller.scope(), user.id, &off, now).await?;
        user = updated.ok_or(Error::NotFound("user"))?;
    }
    quotas::check(&mut tx, app, org_id, quotas::Resource::Users).await?;
    let mut detail = Users::detail(&user);
    detail["is_active"] = json!(user.is_active);
    resource::created::<Users>(tx, &by, creation, user, detail).await
}
