//! Stored roles: named sets of permissions, to copy into the scopes of an API key.
//!
//! They decide nothing. What a user may do is decided by the user's own role and
//! its static permissions (`core/src/permission.rs`), never by these rows. The
//! built-in ones are that very table, shown; an organization adds its own.

mod permissions;
mod view;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::{OrgId, Permission, Role, RoleId};
use heddle_store::roles::{self, NewRole, RoleUpdate, StoredRole};
use heddle_store::{Object as _, Sort};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::view::{RoleView, built_in};
use super::{organization_scope, owner};
use crate::app::SharedApp;
use crate::audit::trail::{self, Deed};
use crate::caller::Caller;
use crate::checks::{Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SCOPE_CHARS_MAX, SCOPES_MAX, search};
use crate::http::access::Access;
use crate::http::conditional::{IfMatch, One};
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use crate::http::nulls::{given, nullable};
use crate::http::routes::{Routes, doc};

/// Index that keeps names of one organization apart.
const NAME_INDEX: &str = "stored_role_name";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewRole")]
struct NewBody {
    /// Unique within the organization, whatever its case; not a built-in one's.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// At most 2000 characters.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// At most 32 words such as `device:read` or `device:*`, of what the caller holds.
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    /// Part of the name or the description.
    search: Option<String>,
    /// Of the stored roles, `-` before the word for the other direction; the built-in ones come first.
    sort: Option<Sort<StoredRole>>,
}

pub(super) fn routes() -> Routes {
    let one = "/roles/{role_id}";
    let read = Access::Permission(Permission::UserRead);
    let write = Access::RoleWith(Role::OrgAdmin, Permission::UserWrite);
    Routes::default()
        .get(
            "/roles",
            read,
            list,
            doc("Stored roles, the built-in ones first: named sets of permissions for scopes of API keys. \
                 What a user may do is decided by the user's own role, never by these")
            .query::<ListQuery>()
            .answers::<Page<RoleView>>(200),
        )
        .post(
            "/roles",
            write,
            create,
            doc("Store a named set of permissions for scopes of API keys. It gives nothing to any user")
                .body::<NewBody>()
                .answers::<RoleView>(201),
        )
        .get(one, read, get, doc("One stored role").answers::<RoleView>(200))
        .patch(
            one,
            write,
            update,
            doc("Change a stored role; built-in ones are read-only. API keys keep the scopes that they have")
                .body::<UpdateBody>()
                .answers::<RoleView>(200),
        )
        .delete(one, write, remove, doc("Remove a stored role; built-in ones stay").empty(204))
        .post(
            &format!("{one}/restore"),
            write,
            restore,
            doc("Bring a removed stored role back").answers::<RoleView>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<RoleView>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let search = search(query.search)?;
    let known: Vec<RoleView> = built_in().filter(|role| role.contains(search.as_deref())).collect();
    // The list is the built-in ones, followed by the stored ones: a page may hold some of both.
    let start =
        usize::try_from(page.page - 1).map_err(Error::internal)?.saturating_mul(page.per_page as usize);
    let known_total = known.len();
    let mut items: Vec<RoleView> = known.into_iter().skip(start).take(page.per_page as usize).collect();
    let limit = i64::try_from(page.per_page as usize - items.len()).map_err(Error::internal)?;
    let offset = i64::try_from(start.saturating_sub(known_total)).map_err(Error::internal)?;
    let mut tx = app.db.read().await?;
    let (stored, total) =
        roles::slice(&mut tx, &organization_scope(&caller), search.as_deref(), query.sort, (limit, offset))
            .await?;
    items.extend(stored.into_iter().map(RoleView::from));
    Ok(Answer(page.of(items, total + i64::try_from(known_total).map_err(Error::internal)?)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<RoleId>,
) -> Result<One<RoleView>, Error> {
    if let Some(known) = built_in().find(|role| role.id == id) {
        return Ok(One(known));
    }
    let mut tx = app.db.single().await?;
    let found = StoredRole::find(&mut tx, &organization_scope(&caller), id).await?;
    found.map(|role| One(role.into())).ok_or(Error::NotFound("role"))
}

async fn create(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    Json(body): Json<NewBody>,
) -> Result<Response, Error> {
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.description(body.description.as_deref());
    permissions::check(&body.permissions, &mut checks);
    checks.done()?;
    refuse_built_in_name(&name)?;
    permissions::require_held(&caller, &body.permissions)?;
    let mut tx = app.db.write().await?;
    let new = NewRole {
        id: app.clock.new_id(),
        org_id: owner(&mut tx, &caller, body.organization_id).await?,
        name,
        description: body.description,
        permissions: body.permissions,
        created_by: caller.user_id,
        now: app.clock.now(),
    };
    let role = roles::insert(&mut tx, &new).await.map_err(|error| taken(error, &new.name))?;
    let detail = json!({ "name": role.name, "permissions": role.permissions });
    trail::record(&mut tx, &app, &origin, deed(&caller, &role, "role.created", detail)).await?;
    let path = format!("/roles/{}", role.id);
    creation.finish(tx, &app, &path, &RoleView::from(role)).await
}

async fn update(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<RoleId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<RoleView>, Error> {
    caller.require_all_sites()?;
    refuse_built_in(id)?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    checks.description(body.description.as_ref().and_then(Option::as_deref));
    permissions::check(body.permissions.as_deref().unwrap_or_default(), &mut checks);
    checks.done()?;
    refuse_built_in_name(name.as_deref().unwrap_or_default())?;
    permissions::require_held(&caller, body.permissions.as_deref().unwrap_or_default())?;
    let change = RoleUpdate { name, description: body.description.into(), permissions: body.permissions };
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let current = StoredRole::lock(&mut tx, &scope, id).await?.ok_or(Error::NotFound("role"))?;
    let current = RoleView::from(current);
    if_match.check(&current)?;
    let updated = roles::update(&mut tx, &scope, id, &change, app.clock.now())
        .await
        .map_err(|error| taken(error, change.name.as_deref().unwrap_or_default()))?;
    let role = updated.ok_or(Error::NotFound("role"))?;
    let detail = json!({ "name": change.name, "permissions": change.permissions });
    let detail = trail::with_difference(detail, &current, &RoleView::from(role.clone()));
    trail::record(&mut tx, &app, &origin, deed(&caller, &role, "role.updated", detail)).await?;
    tx.commit().await?;
    Ok(One(role.into()))
}

async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<RoleId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    caller.require_all_sites()?;
    refuse_built_in(id)?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let role = StoredRole::lock(&mut tx, &scope, id).await?.ok_or(Error::NotFound("role"))?;
    if_match.check(&RoleView::from(role.clone()))?;
    StoredRole::remove(&mut tx, &scope, id, app.clock.now()).await?;
    let detail = json!({ "name": role.name });
    trail::record(&mut tx, &app, &origin, deed(&caller, &role, "role.removed", detail)).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn restore(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<RoleId>,
) -> Result<One<RoleView>, Error> {
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let restored = StoredRole::restore(&mut tx, &organization_scope(&caller), id, app.clock.now()).await;
    let role = restored
        .map_err(|error| {
            if error.is_unique(NAME_INDEX) {
                Error::conflict(
                    "name of the removed role was taken by another one; change that one's name first",
                )
            } else {
                error.into()
            }
        })?
        .ok_or(Error::NotFound("role"))?;
    trail::record(&mut tx, &app, &origin, deed(&caller, &role, "role.restored", json!({}))).await?;
    tx.commit().await?;
    Ok(One(role.into()))
}

fn refuse_built_in(id: RoleId) -> Result<(), Error> {
    match built_in().find(|role| role.id == id) {
        None => Ok(()),
        Some(role) => Err(Error::Conflict {
            kind: "builtin_role",
            message: format!("role '{}' is built in and read-only: create one of your own", role.name),
        }),
    }
}

fn refuse_built_in_name(name: &str) -> Result<(), Error> {
    let lower = name.to_lowercase();
    if built_in().any(|role| role.name == lower) {
        return Err(Error::conflict(format!("role '{lower}' is built in: choose another name")));
    }
    Ok(())
}

fn taken(error: heddle_store::Error, name: &str) -> Error {
    if error.is_unique(NAME_INDEX) {
        Error::conflict(format!("role '{name}' already exists"))
    } else {
        error.into()
    }
}

fn deed<'a>(caller: &'a Caller, role: &StoredRole, action: &'static str, detail: Value) -> Deed<'a> {
    Deed { org: role.org_id, actor: caller.actor(), action, target: ("role", role.id.0), detail }
}
