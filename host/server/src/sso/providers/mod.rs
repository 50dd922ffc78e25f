//! Providers of an organization, as its administrators manage them. A secret is sealed when it comes in, and never given
//! out again.

mod body;
mod probe;
mod view;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::{IdentityProviderId, ProviderKind, Role};
use heddle_store::sso::{self, NewProvider, Provider, ProviderUpdate};
use heddle_store::{InOrder, Object as _, Set, Sort, Tx};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::body::{NewBody, UpdateBody};
pub(super) use self::probe::Steps;
use self::probe::Tested;
use self::view::View;
use super::secret;
use super::trail::deed;
use crate::app::SharedApp;
use crate::audit::trail;
use crate::caller::Caller;
use crate::checks::search;
use crate::http::access::Access;
use crate::http::conditional::{IfMatch, One};
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use crate::http::routes::{Routes, doc};
use crate::tenancy::users::rules;
use crate::tenancy::{organization_scope, owner};

const NOT_FOUND: Error = Error::NotFound("identity provider");

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    kind: Option<ProviderKind>,
    /// Part of the label.
    search: Option<String>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<Provider>>,
}

pub(super) fn routes() -> Routes {
    let (all, one) = ("/auth/sso/providers", "/auth/sso/providers/{provider_id}");
    let access = Access::Role(Role::OrgAdmin);
    Routes::default()
        .get(
            all,
            access,
            list,
            doc("Identity providers, without their secrets").query::<ListQuery>().answers::<Page<View>>(200),
        )
        .post(all, access, create, doc("Add an identity provider").body::<NewBody>().answers::<View>(201))
        .get(one, access, get, doc("One identity provider, without its secret").answers::<View>(200))
        .patch(
            one,
            access,
            update,
            doc("Change an identity provider").body::<UpdateBody>().answers::<View>(200).as_seen(),
        )
        .delete(
            one,
            access,
            remove,
            doc("Remove an identity provider: nobody signs in there any more; accounts stay")
                .empty(204)
                .as_seen(),
        )
        .post(
            &format!("{one}/restore"),
            access,
            restore,
            doc("Bring a removed identity provider back").answers::<View>(200),
        )
        .post(
            &format!("{one}/test"),
            access,
            probe::test,
            doc("Try an identity provider as it is configured; says how far it came").answers::<Tested>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<View>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let search = search(query.search)?;
    let mut tx = app.db.read().await?;
    let scope = organization_scope(&caller);
    let (items, total) =
        sso::list(&mut tx, &scope, query.kind, search.as_deref(), InOrder::by(page, query.sort)).await?;
    let items: Result<Vec<View>, Error> = items.into_iter().map(View::of).collect();
    Ok(Answer(page.of(items?, total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<IdentityProviderId>,
) -> Result<One<View>, Error> {
    let mut tx = app.db.single().await?;
    let found = Provider::find(&mut tx, &organization_scope(&caller), id).await?.ok_or(NOT_FOUND)?;
    Ok(One(View::of(found)?))
}

async fn create(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    Json(body): Json<NewBody>,
) -> Result<Response, Error> {
    caller.require_all_sites()?;
    let organization = body.organization_id;
    let wanted = body.check()?;
    require_assignable(&caller, Some(wanted.default_role), Some(&wanted.role_mapping))?;
    let id: IdentityProviderId = app.clock.new_id();
    let mut tx = app.db.write().await?;
    let new = NewProvider {
        id,
        org_id: owner(&mut tx, &caller, organization).await?,
        kind: wanted.kind,
        label: wanted.label,
        is_enabled: wanted.is_enabled,
        allow_registration: wanted.allow_registration,
        allow_linking: wanted.allow_linking,
        default_role: wanted.default_role,
        role_mapping: wanted.role_mapping,
        settings: wanted.settings,
        secret: wanted.secret.as_ref().map(|plain| secret::seal(&app.keys, id, plain)),
        now: app.clock.now(),
    };
    let provider = sso::insert(&mut tx, &new).await?;
    let detail = json!({ "label": provider.label, "kind": provider.kind });
    trail::record(&mut tx, &app, &origin, deed(&caller, &provider, "identity_provider.created", detail))
        .await?;
    creation.finish(tx, &app, &format!("/auth/sso/providers/{id}"), &View::of(provider)?).await
}

/// A provider gives no role that its administrator could not give.
fn require_assignable(caller: &Caller, role: Option<Role>, mapping: Option<&Value>) -> Result<(), Error> {
    let mapped = mapping.and_then(Value::as_object).into_iter().flat_map(|mapping| mapping.values());
    let mapped = mapped.filter_map(|role| role.as_str()?.parse::<Role>().ok());
    role.into_iter().chain(mapped).try_for_each(|role| rules::require_assignable(caller, role))
}

async fn update(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<IdentityProviderId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    caller.require_all_sites()?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let current = Provider::lock(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
    if_match.check(&View::of(current.clone())?)?;
    let wanted = body.check(&current)?;
    require_assignable(&caller, wanted.default_role, wanted.role_mapping.as_ref())?;
    let change = ProviderUpdate {
        label: wanted.label,
        is_enabled: wanted.is_enabled,
        allow_registration: wanted.allow_registration,
        allow_linking: wanted.allow_linking,
        default_role: wanted.default_role,
        role_mapping: wanted.role_mapping,
        settings: wanted.settings,
        secret: match wanted.secret {
            Set::Keep => Set::Keep,
            Set::Clear => Set::Clear,
            Set::To(plain) => Set::To(secret::seal(&app.keys, id, &plain)),
        },
    };
    let updated = sso::update(&mut tx, &scope, id, &change, app.clock.now()).await?;
    let provider = updated.ok_or(NOT_FOUND)?;
    let detail = json!({ "changed": wanted.changed });
    let detail = trail::with_difference(detail, &View::of(current)?, &View::of(provider.clone())?);
    trail::record(&mut tx, &app, &origin, deed(&caller, &provider, "identity_provider.updated", detail))
        .await?;
    tx.commit().await?;
    Ok(One(View::of(provider)?))
}

async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<IdentityProviderId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    caller.require_all_sites()?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let provider = Provider::lock(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
    if_match.check(&View::of(provider.clone())?)?;
    Provider::remove(&mut tx, &scope, id, app.clock.now()).await?;
    record(&mut tx, &app, &caller, &origin, &provider, "identity_provider.removed").await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn restore(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<IdentityProviderId>,
) -> Result<One<View>, Error> {
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let restored = Provider::restore(&mut tx, &organization_scope(&caller), id, app.clock.now()).await?;
    let provider = restored.ok_or(NOT_FOUND)?;
    record(&mut tx, &app, &caller, &origin, &provider, "identity_provider.restored").await?;
    tx.commit().await?;
    Ok(One(View::of(provider)?))
}

async fn record(
    tx: &mut Tx,
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    provider: &Provider,
    action: &'static str,
) -> Result<(), Error> {
    let detail = json!({ "label": provider.label, "kind": provider.kind });
    trail::record(tx, app, origin, deed(caller, provider, action, detail)).await
}
