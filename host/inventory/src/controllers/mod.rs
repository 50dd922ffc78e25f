//! Controllers: registered with an address, a credential and an adapter.

pub mod declarations;
mod diagnostics;
pub(crate) mod endpoint;
mod many;
pub mod place;
pub(crate) mod probe;
pub mod releases;
mod vendor_sites;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::adapter::DeviceStatus;
use heddle_core::page::Page;
use heddle_core::push::PushState;
use heddle_core::release::ReleaseState;
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, OrgId, Role, SiteId, SiteLevel};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::feature::{Diagnostic, Feature, Names, Worker};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Params, page_request};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::{
    self, Actions, By, Listed, ReadOperation, Resource, Rows, StepObject, Takes, Verbs, actions,
};
use heddle_kernel::tls::check_tls;
use heddle_marketplace::ID_CHARS_MAX;
use heddle_store::controllers::syncs::{self, NewSync, SyncId, SyncView};
use heddle_store::controllers::{self, Controller, ControllerFilter, ControllerUpdate, NewController};
use heddle_store::object::Object as _;
use heddle_store::{Credential, Scope, Site, SiteScope, Tx, changes, credentials, sites};
use heddle_tenancy::quotas;
use heddle_tenancy::sites::PER_PAGE_MAX;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::endpoint::{URL_BYTES_MAX, parse_url};
use self::probe::Tested;
pub(crate) use self::vendor_sites::found_with_sites;
use crate::adapters::validate_settings;
use crate::controllers::declarations::{CONTROLLER_READ, CONTROLLER_WRITE};
use crate::credentials::fields::require_shape;
use crate::sync::{Bell, SyncSettings};

/// Seconds between two syncs of a controller.
const SYNC_SECS_MIN: u32 = 10;
const SYNC_SECS_MAX: u32 = 86_400;

/// Controllers of vendors, through which devices are reached.
pub struct Controllers;

impl Feature for Controllers {
    fn name(&self) -> &'static str {
        "controllers"
    }

    fn declares(&self) -> &'static Names {
        const { &Names::of(declarations::PERMISSIONS, declarations::EVENTS, declarations::SUBSCRIPTIONS) }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::CONTROLLERS
    }

    fn step_objects(&self) -> &'static [StepObject] {
        const { &[IN_STEPS] }
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes()
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("controllers.releases", releases::follow(app.clone()))]
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewController")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    site_id: SiteId,
    /// Id of an installed adapter.
    #[schemars(length(max = ID_CHARS_MAX))]
    vendor: String,
    /// `http://` or `https://`, a host, and perhaps a port and a path. At most 2048 bytes.
    #[schemars(length(min = 1, max = URL_BYTES_MAX))]
    url: String,
    credential_id: CredentialId,
    #[serde(default)]
    tls: TlsPolicy,
    /// What the adapter's own schema allows.
    #[serde(default)]
    settings: Map<String, Value>,
    /// From 10 to 86400; the service's default when absent.
    #[schemars(range(min = SYNC_SECS_MIN, max = SYNC_SECS_MAX))]
    sync_interval_secs: Option<u32>,
    /// Whether the controller may tell that something changed; true when absent.
    push_enabled: Option<bool>,
}

/// What to change; absent keeps. `tls` and `settings` are replaced as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ControllerUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    site_id: Option<SiteId>,
    /// At most 2048 bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = URL_BYTES_MAX))]
    url: Option<String>,
    #[serde(default, deserialize_with = "given")]
    credential_id: Option<CredentialId>,
    #[serde(default, deserialize_with = "given")]
    tls: Option<TlsPolicy>,
    #[serde(default, deserialize_with = "given")]
    settings: Option<Map<String, Value>>,
    /// From 10 to 86400.
    #[serde(default, deserialize_with = "given")]
    #[schemars(range(min = SYNC_SECS_MIN, max = SYNC_SECS_MAX))]
    sync_interval_secs: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    push_enabled: Option<bool>,
}

list_query! {
    /// Part of the name or the address.
    pub struct ListQuery of Controller {
        site_id: Option<SiteId>,
        credential_id: Option<CredentialId>,
        vendor: Option<String>,
        status: Option<DeviceStatus>,
        release_state: Option<ReleaseState>,
        push_state: Option<PushState>,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SitesQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 100; 50 when absent.
    #[schemars(range(min = 1, max = PER_PAGE_MAX))]
    per_page: Option<u32>,
}

impl Resource for Controllers {
    type Row = Controller;
    const NOUN: &'static str = "controller";
    const PATH: &'static str = "/controllers";
    const ACTIONS: Actions = actions!("controller");
    type View = Controller;

    fn view(controller: Controller, _: &App) -> Result<Controller, Error> {
        Ok(controller)
    }

    /// The level at its site decides.
    fn admit(_: &Caller) -> Result<(), Error> {
        Ok(())
    }

    fn detail(controller: &Controller) -> Value {
        json!({ "name": controller.name, "vendor": controller.vendor, "url": controller.url })
    }

    fn site(controller: &Controller) -> Option<(SiteId, SiteLevel)> {
        Some((controller.site_id, SiteLevel::Admin))
    }

    async fn may_remove(controller: &Controller, tx: &mut Tx, _: &By) -> Result<(), Error> {
        refuse_under_way(tx, controller.id).await
    }

    async fn may_restore(controller: &Controller, tx: &mut Tx, by: &By) -> Result<(), Error> {
        quotas::check(tx, &by.app, controller.org_id, quotas::Resource::Controllers).await?;
        let scope = Scope::organization(controller.org_id);
        if Site::find(tx, &scope, controller.site_id).await?.is_none() {
            return Err(Error::conflict("site of the controller was removed: restore it first"));
        }
        if Credential::find(tx, &scope, controller.credential_id).await?.is_none() {
            return Err(Error::conflict("credential of the controller was removed: restore it first"));
        }
        Ok(())
    }
}

impl Listed for Controllers {
    type Query = ListQuery;

    async fn page(
        tx: &mut Tx,
        caller: &Caller,
        query: ListQuery,
        asked: Listing<Controller>,
    ) -> Rows<Controller> {
        let filter = ControllerFilter {
            site_id: query.site_id,
            credential_id: query.credential_id,
            vendor: query.vendor,
            status: query.status,
            release_state: query.release_state,
            push_state: query.push_state,
            search: asked.search,
        };
        Ok(controllers::list(tx, &caller.scope(), &filter, asked.order).await?)
    }
}

/// Controllers in steps.
const IN_STEPS: StepObject = StepObject {
    reads: &[
        ReadOperation::list::<Controllers>(
            "controllers.list",
            "Controllers with their status",
            CONTROLLER_READ,
            &[
                ("site_id", Takes::Id),
                ("status", Takes::WordOf(|| json!(DeviceStatus::ALL))),
                ("search", Takes::Text),
            ],
        ),
        ReadOperation::one::<Controllers>(
            "controllers.get",
            "One controller with its status",
            CONTROLLER_READ,
        ),
    ],
    ..StepObject::named::<Controllers>("controller_id")
};

fn routes() -> Routes {
    let one = "/controllers/{controller_id}";
    let read = Access::Permission(CONTROLLER_READ);
    let write = Access::RoleWith(Role::OrgAdmin, CONTROLLER_WRITE);
    Verbs::<Controllers>::of("controller_id", read, write)
        .listed("Controllers")
        .create::<NewBody, _, _>(create, "Register a controller")
        .get(resource::get::<Controllers>, "One controller")
        .update::<UpdateBody, _, _>(update, "Change a controller")
        .remove(resource::remove::<Controllers>, "Remove a controller and its devices")
        .restore(resource::restore::<Controllers>, "Bring a removed controller back")
        .routes()
        .post(
            &format!("{one}/test"),
            write,
            test,
            doc("Ask the controller whether it answers").answers::<Tested>(200).calls_adapter(),
        )
        .post(
            &format!("{one}/sync"),
            write,
            sync,
            doc("Read the controller as soon as possible; answers the sync to follow")
                .answers::<SyncView>(202),
        )
        .get(
            &format!("{one}/syncs/{{sync_id}}"),
            read,
            get_sync,
            doc("One sync: how far it is, and what came of it").answers::<SyncView>(200),
        )
        .get(
            &format!("{one}/sites"),
            read,
            sites_of,
            doc("Sites under a controller: its own, and those that the vendor's sites below it belong to")
                .query::<SitesQuery>()
                .answers::<Page<Site>>(200),
        )
        .merge(vendor_sites::routes(read, write))
        .merge(releases::routes(Access::RoleWith(Role::SiteAdmin, CONTROLLER_WRITE)))
        .merge(many::routes(write))
}

async fn sites_of(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ControllerId>,
    Params(query): Params<SitesQuery>,
) -> Result<Answer<Page<Site>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let mut tx = app.db.read().await?;
    let controller = found_with_sites(&mut tx, &caller, id).await?;
    let (sites, total) = sites::below(&mut tx, &caller.scope(), controller.id, page).await?;
    Ok(Answer(page.of(sites, total)))
}

async fn found(tx: &mut Tx, caller: &Caller, id: ControllerId) -> Result<Controller, Error> {
    Controller::find(tx, &caller.scope(), id).await?.ok_or(Error::NotFound("controller"))
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.chars("vendor", &body.vendor, ID_CHARS_MAX);
    let url = checks.keep("url", parse_url(&body.url));
    let tls = check_tls(body.tls, &mut checks);
    let interval = body.sync_interval_secs.unwrap_or(app.config.of::<SyncSettings>().interval_secs);
    check_interval(body.sync_interval_secs, &mut checks);
    checks.done()?;
    let (settings, adapter) = (Value::Object(body.settings), app.adapter(&body.vendor)?);
    validate_settings(&adapter, &settings)?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let site = site_for(&mut tx, caller, body.site_id).await?;
    let credential = check_credential(&mut tx, caller, site.org_id, body.credential_id).await?;
    require_shape(adapter.manifest(), &credential)?;
    let new = NewController {
        id: app.clock.new_id(),
        org_id: site.org_id,
        site_id: site.id,
        credential_id: body.credential_id,
        name,
        vendor: body.vendor,
        url,
        tls,
        settings,
        sync_interval_secs: i64::from(interval),
        next_sync_at: Some(now),
        push_enabled: body.push_enabled.unwrap_or(true),
        now,
    };
    let controller = controllers::insert(&mut tx, &new).await?;
    quotas::check(&mut tx, app, controller.org_id, quotas::Resource::Controllers).await?;
    let detail = json!({
        "name": controller.name, "vendor": controller.vendor, "url": controller.url,
        "site_id": controller.site_id, "credential_id": controller.credential_id, "tls_mode": controller.tls.mode,
    });
    let response = resource::created::<Controllers>(tx, &by, creation, controller, detail).await?;
    Bell::of(app).ring();
    Ok(response)
}

async fn update(
    by: By,
    At(id): At<ControllerId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Controller>, Error> {
    let By { app, caller, .. } = &by;
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Controllers>(&mut tx, &by, id, &if_match).await?;
    let mut checks = Checks::default();
    check_interval(body.sync_interval_secs, &mut checks);
    let change = ControllerUpdate {
        name: body.name.as_deref().map(|name| checks.name("name", name)),
        url: body.url.as_deref().map(|url| checks.keep("url", parse_url(url))),
        site_id: body.site_id,
        credential_id: body.credential_id,
        tls: body.tls.map(|tls| check_tls(tls, &mut checks)),
        settings: body.settings.map(Value::Object),
        sync_interval_secs: body.sync_interval_secs.map(i64::from),
        push_enabled: body.push_enabled,
    };
    checks.done()?;
    if let Some(settings) = &change.settings {
        validate_settings(&app.adapter(&current.vendor)?, settings)?;
    }
    if let Some(site) = change.site_id {
        let site = site_for(&mut tx, caller, site).await?;
        if site.org_id != current.org_id {
            return Err(Error::field("site_id", "site not found in the controller's organization"));
        }
    }
    // Another address, or another judgement of its certificate, can send the credential elsewhere.
    let is_redirected = change.url.as_ref().is_some_and(|url| *url != current.url)
        || change.tls.as_ref().is_some_and(|tls| *tls != current.tls);
    let credential = change.credential_id.unwrap_or(current.credential_id);
    if is_redirected || credential != current.credential_id {
        let credential = check_credential(&mut tx, caller, current.org_id, credential).await?;
        // Where the adapter is gone, nothing says what it takes.
        if let Some(adapter) = app.runtime.adapter(&current.vendor).filter(|_| change.credential_id.is_some())
        {
            require_shape(adapter.manifest(), &credential)?;
        }
    }
    let updated = controllers::update(&mut tx, &caller.scope(), &current, &change, app.clock.now()).await?;
    refuse_under_way(&mut tx, id).await?;
    if let Some(updated) = &updated {
        releases::tell_forgotten(&mut tx, app, &current, updated).await?;
    }
    let detail = json!({
        "name": change.name, "url": change.url, "site_id": change.site_id, "credential_id": change.credential_id,
        "tls_mode": change.tls.map(|tls| tls.mode), "settings": change.settings.as_ref().and_then(Value::as_object).map(|fields| fields.keys().collect::<Vec<_>>()),
        "sync_interval_secs": change.sync_interval_secs, "push_enabled": change.push_enabled,
    });
    let answer = resource::updated::<Controllers>(tx, &by, (current, updated), detail).await?;
    // A controller that is reached in another way is due.
    Bell::of(app).ring();
    Ok(answer)
}

fn check_interval(secs: Option<u32>, checks: &mut Checks) {
    let fits = secs.is_none_or(|secs| (SYNC_SECS_MIN..=SYNC_SECS_MAX).contains(&secs));
    let message = format!("must be from {SYNC_SECS_MIN} to {SYNC_SECS_MAX}");
    checks.require(fits, "sync_interval_secs", &message);
}

/// The site that a body names, when the caller may put controllers there. It is not removed before the transaction ends.
async fn site_for(tx: &mut Tx, caller: &Caller, id: SiteId) -> Result<Site, Error> {
    let found = Site::lock(tx, &caller.scope(), id).await?;
    let site = found.ok_or_else(|| Error::field("site_id", "site not found"))?;
    caller.require_level(site.id, SiteLevel::Admin)?;
    Ok(site)
}

/// Returns the credential. Requires that it belongs to the organization, and that this caller may decide where it is
/// sent to.
///
/// The caller that chooses a controller's address receives what its credential holds. So a caller of some sites uses
/// only credentials that those sites, and no others, use; and only where the grant allows registering controllers.
pub(crate) async fn check_credential(
    tx: &mut Tx,
    caller: &Caller,
    org: OrgId,
    id: CredentialId,
) -> Result<Credential, Error> {
    let found = Credential::find(tx, &Scope::organization(org), id).await?;
    let credential = found.ok_or_else(|| Error::field("credential_id", "credential not found"))?;
    match caller.sites_at(SiteLevel::Admin) {
        SiteScope::All => Ok(credential),
        SiteScope::Only(sites) if credentials::is_used_only_at(tx, id, &sites).await? => Ok(credential),
        SiteScope::Only(_) => Err(Error::Refused {
            kind: "all_sites_required",
            message: "credential is not used by controllers of your sites alone: access to all sites of the \
                      organization is required"
                .to_owned(),
        }),
    }
}

/// Refuses while a change is being applied: the controller stays what the change was approved for.
///
/// Call it once the controller's row is locked: an apply that begins
/// waits for that row, and one that began before is seen.
async fn refuse_under_way(tx: &mut Tx, id: ControllerId) -> Result<(), Error> {
    if changes::is_any_under_way(tx, &Scope::everything(), Some(id)).await? {
        return Err(Error::conflict(
            "a change is being applied at this controller: try again when it has ended",
        ));
    }
    Ok(())
}

async fn test(by: By, At(id): At<ControllerId>) -> Result<Answer<Tested>, Error> {
    let By { app, caller, origin } = &by;
    probe::test(app, caller, origin, id).await.map(Answer)
}

async fn sync(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ControllerId>,
) -> Result<(StatusCode, Answer<SyncView>), Error> {
    let mut tx = app.db.write().await?;
    let controller = found(&mut tx, &caller, id).await?;
    caller.require_level(controller.site_id, SiteLevel::Write)?;
    let now = app.clock.now();
    if !controllers::schedule_now(&mut tx, &caller.scope(), id, now).await? {
        return Err(Error::NotFound("controller"));
    }
    let new = NewSync {
        id: app.clock.new_id(),
        org_id: controller.org_id,
        controller_id: id,
        requested_by: caller.user_id,
        now,
    };
    let sync = syncs::request(&mut tx, &new).await?;
    tx.commit().await?;
    Bell::of(&app).ring();
    Ok((StatusCode::ACCEPTED, Answer(sync.into())))
}

async fn get_sync(
    State(app): State<SharedApp>,
    caller: Caller,
    At((id, sync)): At<(ControllerId, SyncId)>,
) -> Result<Answer<SyncView>, Error> {
    let mut tx = app.db.read().await?;
    let controller = found(&mut tx, &caller, id).await?;
    let found = syncs::find(&mut tx, controller.id, sync).await?;
    Ok(Answer(found.ok_or(Error::NotFound("sync"))?.into()))
}
