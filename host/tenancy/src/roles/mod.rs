//! Stored roles: named sets of permissions, to copy into the scopes of an API key.
//!
//! They grant nothing. The user's own role and its static permissions (`core/src/permission.rs`) decide what a user may
//! do, never these rows. The built-in roles show that same table; an organization adds its own.

mod permissions;
mod view;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::{OrgId, Role};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SCOPE_CHARS_MAX, SCOPES_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::Routes;
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Resource, Unique, Verbs, actions, owner};
use heddle_store::roles::{self, NewRole, RoleId, RoleUpdate, StoredRole};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::view::{RoleView, built_in};
use crate::declarations::{USER_READ, USER_WRITE};

/// Index that keeps names within one organization unique.
const NAME_INDEX: &str = "stored_role_name";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewRole")]
struct NewBody {
    /// Unique within the organization, whatever its case, and different from the built-in names.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// At most 2000 characters.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// At most 32 words such as `device:read` or `device:*`, all of which the caller holds.
    #[schemars(length(max = SCOPES_MAX), inner(length(max = SCOPE_CHARS_MAX)))]
    permissions: Vec<String>,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RoleUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// `null` clears it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = DESCRIPTION_CHARS_MAX), extend("x-nullable" = true))]
    description: Option<Option<String>>,
    /// Replaced as a whole.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(max = SCOPES_MAX), inner(length(max = SCOPE_CHARS_MAX)))]
    permissions: Option<Vec<String>>,
}

list_query! {
    /// Part of the name or the description.
    pub(crate) struct ListQuery of StoredRole,
        sort "Of the stored roles, `-` before the word for the other direction; the built-in ones come first." {}
}

/// Roles that organizations stored.
pub(crate) struct StoredRoles;

impl Resource for StoredRoles {
    type Row = StoredRole;
    const NOUN: &'static str = "role";
    const PATH: &'static str = "/roles";
    const ACTIONS: Actions = actions!("role");
    const UNIQUE: &'static [Unique<StoredRole>] =
        &[Unique { index: NAME_INDEX, field: "name", value: |role| &role.name }];
    type View = RoleView;

    fn view(role: StoredRole, _: &App) -> Result<RoleView, Error> {
        Ok(role.into())
    }

    fn detail(role: &StoredRole) -> Value {
        json!({ "name": role.name })
    }
}

pub(super) fn routes() -> Routes {
    let read = Access::Permission(USER_READ);
    let write = Access::RoleWith(Role::OrgAdmin, USER_WRITE);
    Verbs::<StoredRoles>::of("role_id", read, write)
        .list::<ListQuery, _, _>(
            list,
            "Stored roles, the built-in ones first: named sets of permissions for scopes of API keys. What a user \
             may do is decided by the user's own role, never by these",
        )
        .create::<NewBody, _, _>(
            create,
            "Store a named set of permissions for scopes of API keys. It gives nothing to any user",
        )
        .get(get, "One stored role")
        .update::<UpdateBody, _, _>(
            update,
            "Change a stored role; built-in ones are read-only. API keys keep the scopes that they have",
        )
        .remove(remove, "Remove a stored role; built-in ones stay")
        .restore(resource::restore::<StoredRoles>, "Bring a removed stored role back")
        .routes()
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<RoleView>>, Error> {
    let Listing { page, search, order } = query.listing()?;
    let known: Vec<RoleView> =
        built_in(&app.declared().permissions).filter(|role| role.contains(search.as_deref())).collect();
    // The list has the built-in roles first, then the stored ones: a page may hold some of both.
    let start =
        usize::try_from(page.page - 1).map_err(Error::internal)?.saturating_mul(page.per_page as usize);
    let known_total = known.len();
    let mut items: Vec<RoleView> = known.into_iter().skip(start).take(page.per_page as usize).collect();
    let limit = i64::try_from(page.per_page as usize - items.len()).map_err(Error::internal)?;
    let offset = i64::try_from(start.saturating_sub(known_total)).map_err(Error::internal)?;
    let mut tx = app.db.read().await?;
    let (stored, total) =
        roles::slice(&mut tx, &caller.organization_scope(), search.as_deref(), &order, (limit, offset))
            .await?;
    items.extend(stored.into_iter().map(RoleView::from));
    Ok(Answer(page.of(items, total + i64::try_from(known_total).map_err(Error::internal)?)))
}

async fn get(app: State<SharedApp>, caller: Caller, At(id): At<RoleId>) -> Result<One<RoleView>, Error> {
    let known = built_in(&app.declared().permissions).find(|role| role.id == id);
    match known {
        Some(known) => Ok(One(known)),
        None => resource::get::<StoredRoles>(app, caller, At(id)).await,
    }
}

async fn remove(by: By, At(id): At<RoleId>, if_match: IfMatch) -> Result<StatusCode, Error> {
    StoredRoles::admit(&by.caller)?;
    refuse_built_in(&by.app, id)?;
    resource::remove::<StoredRoles>(by, At(id), if_match).await
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.description(body.description.as_deref());
    permissions::check(&body.permissions, &app.declared().permissions, &mut checks);
    checks.done()?;
    refuse_built_in_name(app, &name)?;
    permissions::require_held(caller, &app.declared().permissions, &body.permissions)?;
    let mut tx = app.db.write().await?;
    let new = NewRole {
        id: app.clock.new_id(),
        org_id: owner(&mut tx, caller, body.organization_id).await?,
        name,
        description: body.description,
        permissions: body.permissions,
        created_by: caller.user_id,
        now: app.clock.now(),
    };
    let made = roles::insert(&mut tx, &new).await;
    let role = made.map_err(|error| resource::taken::<StoredRoles>(error, &[&new.name]))?;
    let detail = json!({ "name": role.name, "permissions": role.permissions });
    resource::created::<StoredRoles>(tx, &by, creation, role, detail).await
}

async fn update(
    by: By,
    At(id): At<RoleId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<RoleView>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    refuse_built_in(app, id)?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    checks.description(body.description.as_ref().and_then(Option::as_deref));
    let permissions = body.permissions.as_deref().unwrap_or_default();
    permissions::check(permissions, &app.declared().permissions, &mut checks);
    checks.done()?;
    refuse_built_in_name(app, name.as_deref().unwrap_or_default())?;
    permissions::require_held(caller, &app.declared().permissions, permissions)?;
    let change = RoleUpdate { name, description: body.description.into(), permissions: body.permissions };
    let mut tx = app.db.write().await?;
    let current = resource::locked::<StoredRoles>(&mut tx, &by, id, &if_match).await?;
    let updated = roles::update(&mut tx, &caller.organization_scope(), id, &change, app.clock.now()).await;
    let name = change.name.as_deref().unwrap_or_default();
    let updated = updated.map_err(|error| resource::taken::<StoredRoles>(error, &[name]))?;
    let detail = json!({ "name": change.name, "permissions": change.permissions });
    resource::updated::<StoredRoles>(tx, &by, (current, updated), detail).await
}

fn refuse_built_in(app: &App, id: RoleId) -> Result<(), Error> {
    match built_in(&app.declared().permissions).find(|role| role.id == id) {
        None => Ok(()),
        Some(role) => Err(Error::Conflict {
            kind: "builtin_role",
            message: format!("role '{}' is built in and read-only: create one of your own", role.name),
        }),
    }
}

fn refuse_built_in_name(app: &App, name: &str) -> Result<(), Error> {
    let lower = name.to_lowercase();
    if built_in(&app.declared().permissions).any(|role| role.name == lower) {
        return Err(Error::conflict(format!("role '{lower}' is built in: choose another name")));
    }
    Ok(())
}
