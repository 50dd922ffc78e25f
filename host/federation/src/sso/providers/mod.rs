//! Providers of an organization, managed by its administrators. A secret is sealed when it comes in, and never shown
//! again.

mod body;
mod probe;
mod view;

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::{IdentityProviderId, OrgId, ProviderKind, Role};
use heddle_identity::declarations::SIGNING_IN;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::search;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{self, Actions, By, Resource, actions, owner};
use heddle_store::sso::{self, NewProvider, Provider, ProviderUpdate};
use heddle_store::{InOrder, Set, Sort};
use heddle_tenancy::users::rules;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use self::body::{NewBody, UpdateBody};
pub(super) use self::probe::Steps;
use self::probe::Tested;
use self::view::View;
use super::records::audit_entry;
use super::secret;

const NOT_FOUND: Error = Error::NotFound(Providers::NOUN);

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

/// Identity providers of an organization.
pub(crate) struct Providers;

impl Resource for Providers {
    type Row = Provider;
    const NOUN: &'static str = "identity provider";
    const PATH: &'static str = "/auth/sso/providers";
    const ACTIONS: Actions = actions!("identity_provider");
    type View = View;

    fn view(provider: Provider, _: &App) -> Result<View, Error> {
        View::of(provider)
    }

    fn identity(provider: &Provider) -> (OrgId, Uuid) {
        (provider.org_id, provider.id.0)
    }

    fn detail(provider: &Provider) -> Value {
        json!({ "label": provider.label, "kind": provider.kind })
    }

    fn restore_detail(provider: &Provider) -> Value {
        Self::detail(provider)
    }
}

pub(super) fn routes() -> Routes {
    let (all, one) = ("/auth/sso/providers", "/auth/sso/providers/{provider_id}");
    let access = Access::Role(Role::OrgAdmin, SIGNING_IN);
    Routes::default()
        .get(
            all,
            access,
            list,
            doc("Identity providers, without their secrets").query::<ListQuery>().answers::<Page<View>>(200),
        )
        .post(all, access, create, doc("Add an identity provider").body::<NewBody>().answers::<View>(201))
        .get(
            one,
            access,
            resource::get::<Providers>,
            doc("One identity provider, without its secret").answers::<View>(200),
        )
        .patch(
            one,
            access,
            update,
            doc("Change an identity provider").body::<UpdateBody>().answers::<View>(200).as_seen(),
        )
        .delete(
            one,
            access,
            resource::remove::<Providers>,
            doc("Remove an identity provider: nobody signs in there any more; accounts stay")
                .empty(204)
                .as_seen(),
        )
        .post(
            &format!("{one}/restore"),
            access,
            resource::restore::<Providers>,
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
    let scope = caller.organization_scope();
    let found =
        sso::list(&mut tx, &scope, query.kind, search.as_deref(), InOrder::by(page, query.sort)).await?;
    resource::listed::<Providers>(&app, page, found)
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
    let detail = Providers::detail(&provider);
    let by = By::of(&app, &caller, &origin);
    resource::created::<Providers>(tx, by, creation, provider, detail).await
}

/// Refuses roles that the administrator of the provider could not assign.
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
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Providers>(&mut tx, &caller, id, &if_match).await?;
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
    let by = By::of(&app, &caller, &origin);
    resource::updated::<Providers>(tx, by, (current, updated), json!({ "changed": wanted.changed })).await
}
