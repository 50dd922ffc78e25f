//! Providers of an organization, managed by its administrators. A secret is sealed when it comes in, and never shown
//! again.

mod body;
mod probe;
mod view;

use axum::response::Response;
use heddle_core::{ProviderKind, Role};
use heddle_identity::declarations::SIGNING_IN;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, Verbs, actions, owner};
use heddle_store::sso::{self, IdentityProviderId, NewProvider, Provider, ProviderUpdate};
use heddle_store::{Set, Tx};
use heddle_tenancy::users::rules;
use serde_json::{Value, json};

use self::body::{NewBody, UpdateBody};
pub(super) use self::probe::Steps;
use self::probe::Tested;
use self::view::View;
use super::records::audit_entry;
use super::secret;

const NOT_FOUND: Error = Error::NotFound(Providers::NOUN);

list_query! {
    /// Part of the label.
    pub(crate) struct ListQuery of Provider {
        kind: Option<ProviderKind>,
    }
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

    fn detail(provider: &Provider) -> Value {
        json!({ "label": provider.label, "kind": provider.kind })
    }
}

impl Listed for Providers {
    type Query = ListQuery;

    async fn page(
        tx: &mut Tx,
        caller: &Caller,
        query: ListQuery,
        asked: Listing<Provider>,
    ) -> Rows<Provider> {
        Ok(sso::list(tx, &caller.scope(), query.kind, asked.search.as_deref(), asked.order).await?)
    }
}

pub(super) fn routes() -> Routes {
    let access = Access::Role(Role::OrgAdmin, SIGNING_IN);
    Verbs::<Providers>::of("provider_id", access, access)
        .listed("Identity providers, without their secrets")
        .create::<NewBody, _, _>(create, "Add an identity provider")
        .get(resource::get::<Providers>, "One identity provider, without its secret")
        .update::<UpdateBody, _, _>(update, doc("Change an identity provider").as_seen())
        .remove(
            resource::remove::<Providers>,
            doc("Remove an identity provider: nobody signs in there any more; accounts stay").as_seen(),
        )
        .restore(resource::restore::<Providers>, "Bring a removed identity provider back")
        .routes()
        .post(
            "/auth/sso/providers/{provider_id}/test",
            access,
            probe::test,
            doc("Try an identity provider as it is configured; says how far it came").answers::<Tested>(200),
        )
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let organization = body.organization_id;
    let wanted = body.check()?;
    require_assignable(caller, Some(wanted.default_role), Some(&wanted.role_mapping))?;
    let id: IdentityProviderId = app.clock.new_id();
    let mut tx = app.db.write().await?;
    let new = NewProvider {
        id,
        org_id: owner(&mut tx, caller, organization).await?,
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
    resource::created::<Providers>(tx, &by, creation, provider, detail).await
}

/// Refuses roles that the administrator of the provider could not assign.
fn require_assignable(caller: &Caller, role: Option<Role>, mapping: Option<&Value>) -> Result<(), Error> {
    let mapped = mapping.and_then(Value::as_object).into_iter().flat_map(|mapping| mapping.values());
    let mapped = mapped.filter_map(|role| role.as_str()?.parse::<Role>().ok());
    role.into_iter().chain(mapped).try_for_each(|role| rules::require_assignable(caller, role))
}

async fn update(
    by: By,
    At(id): At<IdentityProviderId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Providers>(&mut tx, &by, id, &if_match).await?;
    let wanted = body.check(&current)?;
    require_assignable(caller, wanted.default_role, wanted.role_mapping.as_ref())?;
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
    resource::updated::<Providers>(tx, &by, (current, updated), json!({ "changed": wanted.changed })).await
}
