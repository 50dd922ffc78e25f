//! Sites of an organization.

use axum::response::Response;
use heddle_core::{OrgId, Role, SiteId, SiteLevel};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::list_query;
use heddle_kernel::resource::{
    self, Actions, By, Listed, ReadOperation, Resource, Rows, StepObject, Takes, Unique, Verbs, actions,
    owner,
};
use heddle_kernel::slug::{self, SLUG_CHARS_MAX, SLUG_PATTERN};
use heddle_store::Tx;
use heddle_store::sites::{self, NewSite, Site, SiteUpdate};
use heddle_store::vendor_sites::{self, MappedFrom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::quotas;
use crate::declarations::{SITE_READ, SITE_WRITE};

/// Index that keeps slugs of one organization unique.
pub(crate) const SLUG_INDEX: &str = "site_slug";
/// How many controllers an error names.
const NAMED_MAX: usize = 20;
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

list_query! {
    /// Part of the name or the slug.
    pub(crate) struct ListQuery of Site, at most 100 {}
}

/// The sites of an organization.
pub(crate) struct Sites;

impl Resource for Sites {
    type Row = Site;
    const NOUN: &'static str = "site";
    const PATH: &'static str = "/sites";
    const ACTIONS: Actions = actions!("site");
    const UNIQUE: &'static [Unique<Site>] =
        &[Unique { index: SLUG_INDEX, field: "slug", value: |site| &site.slug }];
    type View = Site;

    fn view(site: Site, _: &App) -> Result<Site, Error> {
        Ok(site)
    }

    /// The level at the site decides.
    fn admit(_: &Caller) -> Result<(), Error> {
        Ok(())
    }

    fn detail(site: &Site) -> Value {
        json!({ "name": site.name, "slug": site.slug })
    }

    fn site(site: &Site) -> Option<(SiteId, SiteLevel)> {
        Some((site.id, SiteLevel::Admin))
    }

    async fn may_remove(site: &Site, tx: &mut Tx, by: &By) -> Result<(), Error> {
        if site.controller_count > 0 {
            let count = site.controller_count;
            return Err(Error::conflict(format!(
                "site still has controllers ({count}): remove or move them first"
            )));
        }
        // Its changes and devices would be at a site that is not there.
        let mapped = vendor_sites::mapped_to(tx, site.id).await?;
        if mapped.is_empty() { Ok(()) } else { Err(still_mapped(&mapped, &by.caller)) }
    }

    async fn may_restore(site: &Site, tx: &mut Tx, by: &By) -> Result<(), Error> {
        quotas::check(tx, &by.app, site.org_id, quotas::Resource::Sites).await
    }
}

/// The refusal to remove a site to which the vendor's sites of these controllers are mapped. It names those that the caller
/// may see.
fn still_mapped(mapped: &[MappedFrom], caller: &Caller) -> Error {
    let seen = mapped.iter().filter(|controller| caller.may_access_site(controller.site_id));
    let mut named: Vec<String> =
        seen.take(NAMED_MAX).map(|controller| format!("'{}'", controller.name)).collect();
    let more = mapped.len() - named.len();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    Error::conflict(format!(
        "vendors' sites are mapped to this site, at the controllers: {}; map them to other sites first, at \
         /controllers/{{controller_id}}/vendor-sites",
        named.join(", ")
    ))
}

impl Listed for Sites {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, _: ListQuery, asked: Listing<Site>) -> Rows<Site> {
        Ok(sites::list(tx, &caller.scope(), asked.search.as_deref(), asked.order).await?)
    }
}

/// Sites in steps.
pub(super) const IN_STEPS: StepObject = StepObject {
    reads: &[
        ReadOperation::list::<Sites>(
            "sites.list",
            "Sites of the organization",
            SITE_READ,
            &[("search", Takes::Text)],
        ),
        ReadOperation::one::<Sites>("sites.get", "One site", SITE_READ),
    ],
    ..StepObject::named::<Sites>("site_id")
};

pub(super) fn routes() -> Routes {
    Verbs::<Sites>::of("site_id", Access::Permission(SITE_READ), Access::Permission(SITE_WRITE))
        .listed("Sites with their device counts")
        .create::<NewBody, _, _>(create, "Create a site")
        .get(resource::get::<Sites>, "One site")
        .update::<UpdateBody, _, _>(update, "Change a site")
        .remove(resource::remove::<Sites>, "Remove a site without controllers")
        .writing(Access::RoleWith(Role::OrgAdmin, SITE_WRITE))
        .restore(resource::restore::<Sites>, "Bring a removed site back")
        .routes()
}

impl Settings {
    pub(crate) fn to_json(&self) -> Value {
        json!(self)
    }
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    let slug = checks.keep("slug", slug::given_or_derived(body.slug.as_deref(), &name));
    checks.done()?;
    let mut tx = app.db.write().await?;
    let new = NewSite {
        id: app.clock.new_id(),
        org_id: owner(&mut tx, caller, body.organization_id).await?,
        name,
        slug,
        settings: body.settings.to_json(),
        now: app.clock.now(),
    };
    let made = sites::insert(&mut tx, &new).await;
    let site = made.map_err(|error| resource::taken::<Sites>(error, &[&new.slug]))?;
    quotas::check(&mut tx, app, site.org_id, quotas::Resource::Sites).await?;
    let detail = Sites::detail(&site);
    resource::created::<Sites>(tx, &by, creation, site, detail).await
}

async fn update(
    by: By,
    At(id): At<SiteId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Site>, Error> {
    let By { app, caller, .. } = &by;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    if let Some(slug) = &body.slug {
        checks.keep("slug", slug::check(slug));
    }
    checks.done()?;
    let settings = body.settings.as_ref().map(Settings::to_json);
    let change = SiteUpdate { name, slug: body.slug, settings };
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Sites>(&mut tx, &by, id, &if_match).await?;
    let updated = sites::update(&mut tx, &caller.scope(), id, &change, app.clock.now()).await;
    let updated = updated
        .map_err(|error| resource::taken::<Sites>(error, &[change.slug.as_deref().unwrap_or_default()]))?;
    let detail = json!({ "name": change.name, "slug": change.slug, "settings": change.settings });
    resource::updated::<Sites>(tx, &by, (current, updated), detail).await
}
