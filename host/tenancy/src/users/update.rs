//! Changes a user: which callers may change what, and which sessions end.

use heddle_core::secret::Secret;
use heddle_core::{Role, UserId};
use heddle_identity::password::{self, PASSWORD_BYTES_MAX};
use heddle_identity::recovery;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::names::{EMAIL_BYTES_MAX, EMAIL_BYTES_MIN, parse_email};
use heddle_kernel::resource::{self, By, Resource as _};
use heddle_store::object::Object as _;
use heddle_store::users::{self, User, UserUpdate};
use heddle_store::{Set, Tx, sessions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Account, Users, records, rules};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "UserUpdate")]
pub(super) struct UpdateBody {
    /// At most 254 bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = EMAIL_BYTES_MIN, max = EMAIL_BYTES_MAX))]
    email: Option<String>,
    /// `null` clears it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX), extend("x-nullable" = true))]
    full_name: Option<Option<String>>,
    /// A role strictly below the caller's; `admin` is another spelling of `org_admin`. Ends the user's sessions.
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("enum" = rules::role_words()))]
    role: Option<String>,
    /// False ends the user's sessions.
    #[serde(default, deserialize_with = "given")]
    is_active: Option<bool>,
    /// Ends the user's sessions, and lifts a lock after failed logins. At most 1024 bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("maxLength" = PASSWORD_BYTES_MAX))]
    password: Option<Secret>,
}

/// The checked changes of the body, with the fields that differ from the stored user.
struct Wanted {
    update: UserUpdate,
    changed: Vec<&'static str>,
}

impl Wanted {
    fn role(&self) -> Option<Role> {
        self.update.role
    }

    /// Whether the change revokes every token of the user.
    fn ends_sessions(&self) -> bool {
        self.role().is_some() || self.update.is_active == Some(false) || self.update.password_hash.is_some()
    }

    /// Keeps the requested values that differ from the stored user.
    fn of(mut asked: UserUpdate, user: &User) -> Self {
        asked.role = asked.role.filter(|role| *role != user.role);
        asked.is_active = asked.is_active.filter(|is_active| *is_active != user.is_active);
        asked.email = asked.email.filter(|email| *email != user.email);
        let same_name = match &asked.full_name {
            Set::Keep => true,
            Set::Clear => user.full_name.is_none(),
            Set::To(name) => user.full_name.as_ref() == Some(name),
        };
        if same_name {
            asked.full_name = Set::Keep;
        }
        let fields = [
            (asked.email.is_some(), "email"),
            (!same_name, "full_name"),
            (asked.is_active.is_some(), "is_active"),
            (asked.password_hash.is_some(), "password"),
        ];
        let changed =
            fields.into_iter().filter_map(|(is_changed, name)| is_changed.then_some(name)).collect();
        Self { update: asked, changed }
    }

    fn is_nothing(&self) -> bool {
        self.changed.is_empty() && self.role().is_none()
    }
}

pub(super) async fn update(
    by: By,
    At(id): At<UserId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Account>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let asked = check(app, caller, id, body).await?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let user = rules::locked(&mut tx, caller, id).await?;
    let wanted = Wanted::of(asked, &user);
    admit(&mut tx, caller, &user, &wanted).await?;
    if_match.check(&user)?;
    if wanted.is_nothing() {
        return Users::view(user, app).map(One);
    }
    if wanted.update.password_hash.is_some() {
        // A password is reset when another person may know it and may have made keys with it.
        let ended = recovery::end_access(&mut tx, id, now).await?;
        recovery::tell(&mut tx, app, &user, caller.user_id, recovery::Way::Administrator, ended).await?;
    } else if wanted.ends_sessions() {
        users::bump_token_version(&mut tx, id, now).await?.ok_or(Error::NotFound("user"))?;
        sessions::revoke_all(&mut tx, id, now).await?;
    }
    let email = wanted.update.email.as_deref().unwrap_or_default();
    let updated = users::update(&mut tx, &caller.scope(), id, &wanted.update, now).await;
    let updated = updated.map_err(|error| resource::taken::<Users>(error, &[&user.username, email]))?;
    let updated = updated.ok_or(Error::NotFound("user"))?;
    if !wanted.changed.is_empty() {
        records::updated(&mut tx, &by, &updated, &wanted.changed).await?;
    }
    if wanted.role().is_some() {
        records::role_changed(&mut tx, &by, &updated, user.role).await?;
    }
    tx.commit().await?;
    Users::view(updated, app).map(One)
}

async fn check(app: &App, caller: &Caller, id: UserId, body: UpdateBody) -> Result<UserUpdate, Error> {
    let role = body.role.as_deref().map(rules::parse_role).transpose()?;
    let mut checks = Checks::default();
    let email = body.email.as_deref().map(|email| checks.keep("email", parse_email(email)));
    let full_name = body.full_name.map(|name| name.map(|name| checks.name("full_name", &name)));
    if let Some(password) = &body.password {
        // Whether the user exists is checked when the user is locked.
        let mut tx = app.db.single().await?;
        let user = User::find(&mut tx, &caller.organization_scope(), id).await?;
        let stored = user.as_ref().map(|user| [user.username.as_str(), user.email.as_str()]);
        let names: Vec<&str> = stored.into_iter().flatten().chain(email.as_deref()).collect();
        checks.add(password::faults(&app.config, "password", password, &names));
    }
    checks.done()?;
    // Hashed before the transaction, because it is costly.
    let password_hash = match body.password {
        Some(password) => Some(app.hashing.hash(password).await?),
        None => None,
    };
    Ok(UserUpdate { email, full_name: full_name.into(), role, is_active: body.is_active, password_hash })
}

/// Checks whether this caller may make this change.
async fn admit(tx: &mut Tx, caller: &Caller, user: &User, wanted: &Wanted) -> Result<(), Error> {
    if user.id == caller.user_id {
        if wanted.role().is_some() {
            rules::require_another(caller, user.id, "nobody changes their own role")?;
        }
        if wanted.update.is_active.is_some() {
            rules::require_another(caller, user.id, "nobody disables themself")?;
        }
        if wanted.update.password_hash.is_some() {
            return Err(Error::Refused {
                kind: "own_account",
                message:
                    "own password is changed with POST /auth/password/change, which asks for the current one"
                        .to_owned(),
            });
        }
        return Ok(());
    }
    rules::require_below(caller, user)?;
    if let Some(role) = wanted.role() {
        rules::require_assignable(caller, role)?;
    }
    let stays_admin = wanted.role().is_none_or(|role| role.is_at_least(Role::OrgAdmin))
        && wanted.update.is_active != Some(false);
    if stays_admin { Ok(()) } else { rules::keep_an_admin(tx, user).await }
}
