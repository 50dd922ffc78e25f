//! The identities of a user at identity providers, for administrators: to see and to unlink them.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::page::Page;
use heddle_core::{Role, UserId};
use heddle_identity::recovery;
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::Tx;
use heddle_store::object::Object as _;
use heddle_store::sso::{self, IdentityId, LinkedIdentity};
use heddle_store::users::User;
use heddle_tenancy::declarations::{USER_READ, USER_WRITE};
use heddle_tenancy::users::rules;
use serde::Deserialize;
use serde_json::json;

list_query! {
    struct ListQuery of LinkedIdentity {}
}

pub(super) fn routes() -> Routes {
    let all = "/users/{user_id}/identities";
    let read = Access::RoleWith(Role::OrgAdmin, USER_READ);
    let admin = Access::RoleWith(Role::OrgAdmin, USER_WRITE);
    Routes::default()
        .get(
            all,
            read,
            list,
            doc("Who a user is at identity providers").query::<ListQuery>().answers::<Page<LinkedIdentity>>(200),
        )
        .delete(
            &format!("{all}/{{identity_id}}"),
            admin,
            remove,
            doc("Forget who a user is at a provider and end their sessions; who signs in from there is somebody new")
                .empty(204),
        )
}

/// Finds a user, also a removed one: otherwise their person could never get another account.
async fn known(tx: &mut Tx, caller: &Caller, id: UserId) -> Result<User, Error> {
    let scope = caller.organization_scope();
    if let Some(user) = User::find(tx, &scope, id).await? {
        return Ok(user);
    }
    User::find_removed(tx, &scope, id).await?.ok_or(Error::NotFound("user"))
}

/// The same, locked until the transaction ends. Sign-ins and changes of roles wait meanwhile: both need the
/// organization's row.
async fn locked(tx: &mut Tx, caller: &Caller, id: UserId) -> Result<User, Error> {
    let found = known(tx, caller, id).await?;
    rules::lock_organization(tx, caller, &found).await?;
    known(tx, caller, id).await
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<UserId>,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<LinkedIdentity>>, Error> {
    let Listing { page, order, .. } = query.listing()?;
    let mut tx = app.db.read().await?;
    let user = known(&mut tx, &caller, id).await?;
    let (items, total) = sso::list_identities(&mut tx, user.id, order).await?;
    Ok(Answer(page.of(items, total)))
}

#[derive(Debug, Deserialize)]
struct OfUser {
    user_id: UserId,
    identity_id: IdentityId,
}

async fn remove(by: By, At(path): At<OfUser>) -> Result<StatusCode, Error> {
    let By { app, caller, origin } = &by;
    caller.require_all_sites()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let user = locked(&mut tx, caller, path.user_id).await?;
    rules::require_below(caller, &user)?;
    let identity = sso::lock_identity(&mut tx, user.id, path.identity_id).await?;
    let identity = identity.ok_or(Error::NotFound("identity"))?;
    sso::remove_identity(&mut tx, identity.id).await?;
    // Sessions that it opened end with it. A removed user has none left.
    if user.deleted_at.is_none() {
        recovery::end_access(&mut tx, user.id, now).await?;
    }
    let entry = NewEntry {
        org: user.org_id,
        actor: caller.actor(),
        action: "user.identity_unlinked",
        target: ("user", user.id.0),
        detail: json!({
            "username": user.username, "identity_provider_id": identity.provider_id, "issuer": identity.issuer,
            "subject": identity.subject,
        }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
