//! Routes of the catalogue: looking, updating it, installing from it.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::page::Page;
use heddle_core::{Role, Timestamp};
use heddle_inventory::adapters::to_its_end;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{refuse_longer, search};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::routes::{Doc, Routes, doc};
use heddle_kernel::resource::By;
use heddle_marketplace::catalog::Assurance;
use heddle_marketplace::manifest::Kind;
use heddle_plugins::{Actor, Outcome, PLUGIN_MANAGE, PLUGIN_READ};
use heddle_store::Sort;
use heddle_store::plugins::ratings as kept;
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::install::{self, Asked, find, there, unlisted};
use crate::ratings;
use crate::shelf::{Shelf, shelf};
use crate::sync::{Report, sync};
use crate::view::{Detail, Item, Listed, Shown, Wanted};

/// Most characters of a version.
const VERSION_CHARS_MAX: usize = 100;
/// Most characters of a reason.
const REASON_CHARS_MAX: usize = 1_000;
/// Most characters of a category.
const CATEGORY_CHARS_MAX: usize = 40;

/// What is installed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MarketplaceInstall")]
struct InstallBody {
    /// The newest that runs here when absent.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = VERSION_CHARS_MAX))]
    version: Option<String>,
    /// Why the catalogue is good enough although it has expired; kept in the audit log.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = REASON_CHARS_MAX))]
    override_reason: Option<String>,
}

/// To what is updated.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MarketplaceUpdate")]
struct UpdateBody {
    /// Why the catalogue is good enough although it has expired; kept in the audit log.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = REASON_CHARS_MAX))]
    override_reason: Option<String>,
}

/// What is wanted of the catalogue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = PER_PAGE_MAX))]
    per_page: Option<u32>,
    /// Part of the id, the name, the summary or the publisher.
    search: Option<String>,
    /// A word such as `tickets`.
    category: Option<String>,
    #[schemars(with = "Option<KindWord>")]
    kind: Option<Kind>,
    /// Only what is installed, or only what is not.
    installed: Option<bool>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<Listed>>,
}

/// What a package is.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", rename = "PackageKind")]
#[expect(dead_code, reason = "only its schema is used")]
enum KindWord {
    Adapter,
    Plugin,
}

/// How the catalogue stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CatalogStatus", example = status_example())]
struct Status {
    /// `full`: roots, timestamps and revocations; `lower`: one pinned key; `none`: unsigned. Null without a catalogue.
    assurance: Option<&'static str>,
    catalog_version: Option<u64>,
    /// When the timestamp expires; null in simple modes.
    timestamp_expires: Option<Timestamp>,
    /// When an update ended well for the last time.
    good_at: Option<Timestamp>,
    /// When an update was tried last.
    tried_at: Option<Timestamp>,
    /// How that ended: `updated`, `unchanged` or `failed`.
    state: Option<String>,
    /// The step that failed.
    step: Option<String>,
    /// Why it failed; shown to a `super_admin` only.
    reason: Option<String>,
    /// Why nothing is installed from the catalogue now; null where that is possible.
    unfit: Option<String>,
    /// No update has ended well for 90 days.
    is_overdue: bool,
    /// Number of entries that the catalogue revokes.
    revocations: usize,
}

fn status_example() -> Value {
    json!({
        "assurance": "full", "catalog_version": 812, "timestamp_expires": "2026-01-12T08:00:00Z",
        "good_at": "2026-01-05T08:00:00Z", "tried_at": "2026-01-05T08:00:00Z", "state": "updated", "step": null,
        "reason": null, "unfit": null, "is_overdue": false, "revocations": 0,
    })
}

/// The words of the paths in the document's examples.
const EXAMPLES: [(&str, &str); 2] =
    [("plugin", "acme-tickets"), ("rating_id", "0192f0c1-2b7a-7cc0-8000-000000000001")];

pub(crate) fn routes() -> Routes {
    let shown =
        |doc: Doc| EXAMPLES.into_iter().fold(doc, |doc, (name, value)| doc.example(name, Some(value)));
    of_catalog().merge(of_plugins()).merge(of_ratings()).each(shown)
}

fn of_catalog() -> Routes {
    Routes::default()
        .get(
            "/marketplace/plugins",
            Access::Permission(PLUGIN_READ),
            list,
            doc("What the catalogue offers: plugins and adapters")
                .query::<Query>()
                .answers::<Page<Item>>(200),
        )
        .get(
            "/marketplace/plugins/sync",
            Access::Permission(PLUGIN_READ),
            status,
            doc("How the catalogue stands, and how its last update went")
                .named("show_catalog_status")
                .answers::<Status>(200),
        )
        .post(
            "/marketplace/plugins/sync",
            Access::SuperAdmin,
            update_catalog,
            doc("Update the catalogue now; the answer says what came of it, and at which step it failed")
                .named("sync_catalog")
                .answers::<Report>(200)
                .fails_with(409)
                .switched(),
        )
}

fn of_plugins() -> Routes {
    Routes::default()
        .get(
            "/marketplace/plugins/{plugin}",
            Access::Permission(PLUGIN_READ),
            get,
            doc("What the catalogue says of a plugin or an adapter").answers::<Detail>(200),
        )
        .post(
            "/marketplace/plugins/{plugin}/install",
            Access::SuperAdmin,
            install_one,
            doc("Install from the catalogue: a plugin waits for consent unless it may do nothing new")
                .named("install_marketplace_plugin")
                .body::<InstallBody>()
                .answers::<Outcome>(201)
                .also_answers::<Outcome>(200)
                .fails_with(409),
        )
        .post(
            "/marketplace/plugins/{plugin}/update",
            Access::SuperAdmin,
            update_one,
            doc("Install the newest version of the catalogue that runs here")
                .named("update_marketplace_plugin")
                .body::<UpdateBody>()
                .answers::<Outcome>(201)
                .also_answers::<Outcome>(200)
                .fails_with(409),
        )
}

fn of_ratings() -> Routes {
    Routes::default()
        .get(
            "/marketplace/plugins/{plugin}/ratings",
            Access::Permission(PLUGIN_READ),
            ratings::list,
            doc("What organizations of this service think of a plugin")
                .named("list_plugin_ratings")
                .query::<ratings::Query>()
                .answers::<Page<ratings::View>>(200),
        )
        .post(
            "/marketplace/plugins/{plugin}/ratings",
            Access::Permission(PLUGIN_MANAGE),
            ratings::rate,
            doc("Rate a plugin for the own organization, in place of its rating from before")
                .named("rate_plugin")
                .body::<ratings::Body>()
                .answers::<ratings::View>(201)
                .also_answers::<ratings::View>(200)
                .fails_with(409),
        )
        .delete(
            "/marketplace/plugins/{plugin}/ratings/{rating_id}",
            Access::Permission(PLUGIN_MANAGE),
            ratings::remove,
            doc("Remove the own organization's rating; a super_admin removes any")
                .named("delete_plugin_rating")
                .untagged()
                .empty(204),
        )
}

/// The id of a plugin in a path.
#[derive(Debug, Deserialize)]
pub(crate) struct On {
    pub(crate) plugin: String,
}

async fn list(
    State(app): State<SharedApp>,
    Params(query): Params<Query>,
) -> Result<Answer<Page<Item>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    if let Some(category) = &query.category {
        refuse_longer("category", category, CATEGORY_CHARS_MAX)?;
    }
    let wanted = Wanted {
        search: search(query.search)?,
        category: query.category,
        kind: query.kind,
        installed: query.installed,
    };
    // Without a catalogue nothing is offered; GET …/sync says why.
    let Some((shelf, catalog)) = there(&app).await? else { return Ok(Answer(page.of(Vec::new(), 0))) };
    let shown = Shown { app: &app, catalog: &catalog, revocations: shelf.state.revocations() };
    let found = shown.wanted(&wanted, query.sort.unwrap_or_default());
    let total = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let per_page = usize::try_from(page.per_page).unwrap_or(usize::MAX);
    let skipped = usize::try_from(page.page - 1).unwrap_or(usize::MAX).saturating_mul(per_page);
    let found: Vec<_> = found.into_iter().skip(skipped).take(per_page).collect();
    let ids: Vec<&str> = found.iter().map(|plugin| plugin.id.as_str()).collect();
    let tallies = kept::tallies(&mut app.db.single().await?, &ids).await?;
    let items = found.into_iter().map(|plugin| shown.item(plugin, &tallies)).collect();
    Ok(Answer(page.of(items, total)))
}

async fn get(State(app): State<SharedApp>, At(path): At<On>) -> Result<Answer<Detail>, Error> {
    let (shelf, catalog) = there(&app).await?.ok_or_else(unlisted)?;
    let plugin = find(&catalog, &path.plugin)?;
    let tallies = kept::tallies(&mut app.db.single().await?, &[&plugin.id]).await?;
    let shown = Shown { app: &app, catalog: &catalog, revocations: shelf.state.revocations() };
    Ok(Answer(shown.detail(plugin, &tallies)))
}

async fn status(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<Status>, Error> {
    let now = app.clock.now();
    let mut status = shelf(&app).await?.map_or_else(Status::of_none, |shelf| Status::of(shelf, now));
    // It can name addresses and folders of the operator.
    status.reason = status.reason.filter(|_| caller.role == Role::SuperAdmin);
    Ok(Answer(status))
}

async fn update_catalog(by: By) -> Result<Answer<Report>, Error> {
    let app = by.app.clone();
    let work = async move { sync(&by.app, Actor::Person(&by)).await };
    to_its_end(&app, work).await.map(Answer)
}

async fn install_one(
    by: By,
    creation: Creation,
    At(path): At<On>,
    body: Option<Json<InstallBody>>,
) -> Result<Response, Error> {
    let body = body.map(|Json(body)| body).unwrap_or_default();
    let asked = Asked {
        version: body.version.as_deref().map(version).transpose()?,
        override_reason: body.override_reason.map(reason).transpose()?,
    };
    let app = by.app.clone();
    to_its_end(&app, async move { install::install(&by, creation, &path.plugin, asked).await }).await
}

async fn update_one(
    by: By,
    creation: Creation,
    At(path): At<On>,
    body: Option<Json<UpdateBody>>,
) -> Result<Response, Error> {
    let body = body.map(|Json(body)| body).unwrap_or_default();
    let asked = Asked { version: None, override_reason: body.override_reason.map(reason).transpose()? };
    let app = by.app.clone();
    let updating = async move { install::update(&by, creation, &path.plugin, asked).await };
    to_its_end(&app, Box::pin(updating)).await
}

fn version(text: &str) -> Result<Version, Error> {
    refuse_longer("version", text, VERSION_CHARS_MAX)?;
    Version::parse(text).map_err(|_| Error::field("version", "must be a version such as 1.4.0"))
}

fn reason(text: String) -> Result<String, Error> {
    refuse_longer("override_reason", &text, REASON_CHARS_MAX)?;
    if text.trim().is_empty() || text.contains('\0') {
        return Err(Error::field("override_reason", "must say why the catalogue is good enough"));
    }
    Ok(text)
}

impl Status {
    fn of_none() -> Self {
        Self {
            assurance: None,
            catalog_version: None,
            timestamp_expires: None,
            good_at: None,
            tried_at: None,
            state: None,
            step: None,
            reason: None,
            unfit: Some("there is no catalogue yet".to_owned()),
            is_overdue: false,
            revocations: 0,
        }
    }

    fn of(Shelf { row, state, .. }: Shelf, now: Timestamp) -> Self {
        Self {
            assurance: Some(match state.assurance() {
                Assurance::Full => "full",
                Assurance::Lower => "lower",
                Assurance::None => "none",
            }),
            catalog_version: state.catalog_version(),
            timestamp_expires: state.timestamp_expires(),
            good_at: state.good_at(),
            tried_at: row.tried_at,
            state: row.outcome,
            step: row.step,
            reason: row.reason,
            unfit: state.may_install(now).err().map(|unfit| unfit.to_string()),
            is_overdue: state.is_warning_due(now),
            revocations: state.revocations().len(),
        }
    }
}
