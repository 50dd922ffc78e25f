//! Sites of an organization.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::{OrgId, Role, SiteId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX, search};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, Params, page_request};
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{self, Actions, By, Resource, actions, owner};
use heddle_kernel::slug::{self, SLUG_CHARS_MAX, SLUG_PATTERN};
use heddle_store::sites::{self, NewSite, Site, SiteUpdate};
use heddle_store::{InOrder, Sort, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::quotas;
use crate::declarations::{SITE_READ, SITE_WRITE};

/// Index that keeps slugs of one organization unique.
pub(crate) const SLUG_INDEX: &str = "site_slug";
/// Most rows of a page.
pub const PER_PAGE_MAX: u32 = 100;

/// Settings of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SiteSettingsBody")]
pub(crate) struct Settings {
    /// Whether discovered devices are adopted without a question.
    auto_adopt: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewSite")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Made of the name when absent. Unique within the organization.
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX), regex(pattern = SLUG_PATTERN))]
    slug: Option<String>,
    #[serde(default)]
    settings: Settings,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SiteUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX), regex(pattern = SLUG_PATTERN))]
    slug: Option<String>,
    #[serde(default, deserialize_with = "given")]
    settings: Option<Settings>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 100; 50 when absent.
    #[schemars(range(min = 1, max = 100))]
    per_page: Option<u32>,
    /// Part of the name or the slug.
    search: Option<String>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<Site>>,
}

/// The sites of an organization.
pub(crate) struct Sites;

impl Resource for Sites {
    type Row = Site;
    const NOUN: &'static str = "site";
    const PATH: &'static str = "/sites";
    const ACTIONS: Actions = actions!("site");
    const UNIQUE: Option<(&'static str, &'static str)> = Some((SLUG_INDEX, "slug"));
    const NEEDS_ALL_SITES: bool = false;
    type View = Site;

    fn view(site: Site, _: &App) -> Result<Site, Error> {
        Ok(site)
    }

    fn identity(site: &Site) -> (OrgId, Uuid) {
        (site.org_id, site.id.0)
    }

    fn detail(site: &Site) -> Value {
        json!({ "name": site.name, "slug": site.slug })
    }

    fn site(site: &Site) -> Option<SiteId> {
        Some(site.id)
    }

    async fn may_remove(site: &Site, _: &mut Tx, _: &App) -> Result<(), Error> {
        match site.controller_count {
            0 => Ok(()),
            count => Err(Error::conflict(format!(
                "site still has controllers ({count}): remove or move them first"
            ))),
        }
    }

    async fn may_restore(site: &Site, tx: &mut Tx, app: &App) -> Result<(), Error> {
        quotas::check(tx, app, site.org_id, quotas::Resource::Sites).await
    }
}

pub(super) fn routes() -> Routes {
    let one = "/sites/{site_id}";
    let write = Access::Permission(SITE_WRITE);
    Routes::default()
        .get(
            "/sites",
            Access::Permission(SITE_READ),
            list,
            doc("Sites with their device counts").query::<ListQuery>().answers::<Page<Site>>(200),
        )
        .post("/sites", write, create, doc("Create a site").body::<NewBody>().answers::<Site>(201))
        .get(one, Access::Permission(SITE_READ), resource::get::<Sites>, doc("One site").answers::<Site>(200))
        .patch(one, write, update, doc("Change a site").body::<UpdateBody>().answers::<Site>(200))
        .delete(one, write, resource::remove::<Sites>, doc("Remove a site without controllers").empty(204))
        .post(
            &format!("{one}/restore"),
            Access::RoleWith(Role::OrgAdmin, SITE_WRITE),
            resource::restore::<Sites>,
            doc("Bring a removed site back").answers::<Site>(200),
        )
}

impl Settings {
    pub(crate) fn to_json(&self) -> Value {
        json!(self)
    }
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<Site>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let search = search(query.search)?;
    let mut tx = app.db.read().await?;
    let (items, total) =
        sites::list(&mut tx, &caller.scope(), search.as_deref(), InOrder::by(page, query.sort)).await?;
    Ok(Answer(page.of(items, total)))
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
    let slug = checks.keep("slug", slug::given_or_derived(body.slug.as_deref(), &name));
    checks.done()?;
    let mut tx = app.db.write().await?;
    let new = NewSite {
        id: app.clock.new_id(),
        org_id: owner(&mut tx, &caller, body.organization_id).await?,
        name,
        slug,
        settings: body.settings.to_json(),
        now: app.clock.now(),
    };
    let site =
        sites::insert(&mut tx, &new).await.map_err(|error| slug::taken(error, SLUG_INDEX, &new.slug))?;
    quotas::check(&mut tx, &app, site.org_id, quotas::Resource::Sites).await?;
    let detail = Sites::detail(&site);
    let by = By::of(&app, &caller, &origin);
    resource::created::<Sites>(tx, by, creation, site, detail).await
}

async fn update(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<SiteId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Site>, Error> {
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    if let Some(slug) = &body.slug {
        checks.keep("slug", slug::check(slug));
    }
    checks.done()?;
    let settings = body.settings.as_ref().map(Settings::to_json);
    let change = SiteUpdate { name, slug: body.slug, settings };
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Sites>(&mut tx, &caller, id, &if_match).await?;
    let updated = sites::update(&mut tx, &caller.scope(), id, &change, app.clock.now())
        .await
        .map_err(|error| slug::taken(error, SLUG_INDEX, change.slug.as_deref().unwrap_or_default()))?;
    let detail = json!({ "name": change.name, "slug": change.slug, "settings": change.settings });
    let by = By::of(&app, &caller, &origin);
    resource::updated::<Sites>(tx, by, (current, updated), detail).await
}
