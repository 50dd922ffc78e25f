//! Routes of plugins: those of the whole service for a `super_admin`, and those of the caller's organization.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_inventory::adapters::to_its_end;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::routes::{Doc, Routes, doc};
use heddle_kernel::resource::By;
use heddle_marketplace::ARCHIVE_BYTES_MAX;
use heddle_store::plugins::{self, organizations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::change::live;
use crate::declarations::{PLUGIN_MANAGE, PLUGIN_READ};
use crate::index::Index;
use crate::upload::{Form, Upload, ZIP};
use crate::view::{Consent, List, Outcome, View};
use crate::{change, consent, install, operations, organization};

/// Characters of a SHA-256, hexadecimal.
const HASH_CHARS: usize = 64;
/// Most characters of a version.
const VERSION_CHARS_MAX: usize = 100;

/// What a person agrees to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PluginConsentGiven")]
struct ConsentBody {
    /// The `grant_hash` of what was read.
    #[schemars(length(min = HASH_CHARS, max = HASH_CHARS))]
    grant_hash: String,
}

/// Which package is put back.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PluginRollback")]
struct RollbackBody {
    /// The version; the one that served before when absent.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = VERSION_CHARS_MAX))]
    version: Option<String>,
}

/// What a plugin says of itself.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginChecked", example = checked_example())]
struct Checked {
    /// In the plugin's own words; null where it says nothing, or brings no check.
    #[schemars(with = "Option<Map<String, Value>>")]
    result: Option<Value>,
}

fn checked_example() -> Value {
    json!({ "result": { "user": "heddle" } })
}

/// The words of the paths in the document's examples.
const EXAMPLES: [(&str, &str); 2] = [("plugin", "acme-tickets"), ("secret", "api-key")];

pub(crate) fn routes() -> Routes {
    let shown =
        |doc: Doc| EXAMPLES.into_iter().fold(doc, |doc, (name, value)| doc.example(name, Some(value)));
    of_service().merge(of_state()).merge(of_organization()).each(shown)
}

fn of_service() -> Routes {
    Routes::default()
        .post(
            "/plugins/install",
            Access::SuperAdmin,
            send,
            doc("Install the package of a plugin: it waits for consent unless it may do nothing new")
                .named("install_plugin")
                .takes(ZIP, ARCHIVE_BYTES_MAX)
                .takes_in_form::<Form>()
                .answers::<Outcome>(201)
                .also_answers::<Outcome>(200)
                .tagged(),
        )
        .get(
            "/plugins",
            Access::Permission(PLUGIN_READ),
            list,
            doc("Plugins that are installed, and how each stands").answers::<List>(200),
        )
        .get(
            "/plugins/{plugin}",
            Access::Permission(PLUGIN_READ),
            get,
            doc("One plugin: what it does, and what it needs").answers::<View>(200).tagged(),
        )
        .delete(
            "/plugins/{plugin}",
            Access::SuperAdmin,
            remove,
            doc("Remove a plugin with all settings and secrets that organizations gave it; what it kept is forgotten after 30 days")
                .empty(204),
        )
}

/// A change of how a plugin stands.
fn change_of(summary: &'static str) -> Doc {
    doc(summary).as_seen().tagged().answers::<Outcome>(200)
}

fn of_state() -> Routes {
    Routes::default()
        .get(
            "/plugins/{plugin}/consent",
            Access::SuperAdmin,
            show_consent,
            doc("What the waiting package may do, in words, against what was agreed to before")
                .answers::<Consent>(200)
                .fails_with(409),
        )
        .post(
            "/plugins/{plugin}/consent",
            Access::SuperAdmin,
            agree,
            change_of("Agree to what the waiting package may do; it serves from then on")
                .body::<ConsentBody>(),
        )
        .post(
            "/plugins/{plugin}/enable",
            Access::SuperAdmin,
            enable,
            change_of(
                "Put a plugin that was disabled back into service; Connections that waited for it go on",
            ),
        )
        .post(
            "/plugins/{plugin}/disable",
            Access::SuperAdmin,
            disable,
            change_of("Take a plugin out of service; Connections that use it are broken until it is back"),
        )
        .post(
            "/plugins/{plugin}/rollback",
            Access::SuperAdmin,
            roll_back,
            change_of("Put the package that served before back into service").body::<RollbackBody>(),
        )
        .post(
            "/plugins/{plugin}/release",
            Access::SuperAdmin,
            release,
            change_of("Let a plugin that failed too often take calls again"),
        )
}

fn of_organization() -> Routes {
    Routes::default()
        .get(
            "/plugins/{plugin}/organization",
            Access::Permission(PLUGIN_MANAGE),
            show_organization,
            doc("What the own organization sets a plugin to")
                .answers::<organization::View>(200)
                .fails_with(409)
                .tagged(),
        )
        .put(
            "/plugins/{plugin}/organization",
            Access::Permission(PLUGIN_MANAGE),
            set_organization,
            doc("Switch a plugin on or off in the own organization, with its settings")
                .body::<organization::Body>()
                .answers::<organization::View>(200)
                .as_seen()
                .tagged(),
        )
        .post(
            "/plugins/{plugin}/check",
            Access::Permission(PLUGIN_MANAGE),
            check,
            doc("Ask a plugin whether it can work with the settings and secrets of the own organization")
                .answers::<Checked>(200)
                .calls_adapter(),
        )
        .put(
            "/plugins/{plugin}/secrets/{secret}",
            Access::Permission(PLUGIN_MANAGE),
            set_secret,
            doc("Give a plugin a secret of the own organization; it is never shown again")
                .named("set_plugin_secret")
                .body::<organization::SecretBody>()
                .empty(204),
        )
        .delete(
            "/plugins/{plugin}/secrets/{secret}",
            Access::Permission(PLUGIN_MANAGE),
            remove_secret,
            doc("Take a secret of the own organization back from a plugin")
                .named("delete_plugin_secret")
                .untagged()
                .empty(204),
        )
}

/// The id of a plugin in a path.
#[derive(Debug, Deserialize)]
struct On {
    plugin: String,
}

async fn send(by: By, creation: Creation, package: Upload) -> Result<Response, Error> {
    let app = by.app.clone();
    to_its_end(&app, async move { install::install(&by, creation, package.0).await }).await
}

async fn list(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<List>, Error> {
    let mut tx = app.db.single().await?;
    let enabled = organizations::enabled_in(&mut tx, caller.org_id).await?;
    drop(tx);
    let all = Index::of(&app).all();
    let there = all.values().filter(|known| live(Some(known.row.clone())).is_ok());
    let view = |known: &std::sync::Arc<crate::index::Known>| {
        View::of(&app, &caller, &known.row, known.current.as_ref(), enabled.contains(&known.row.id))
    };
    Ok(Answer(List { items: there.map(view).collect() }))
}

async fn get(State(app): State<SharedApp>, caller: Caller, At(path): At<On>) -> Result<One<View>, Error> {
    let mut tx = app.db.read().await?;
    let row = live(plugins::find(&mut tx, &path.plugin).await?)?;
    let enabled = organizations::enabled_in(&mut tx, caller.org_id).await?.contains(&row.id);
    drop(tx);
    let known = Index::of(&app).find(&path.plugin);
    let current = known.as_ref().and_then(|known| known.current.as_ref());
    Ok(One(View::of(&app, &caller, &row, current, enabled)))
}

async fn remove(by: By, At(path): At<On>, if_match: IfMatch) -> Result<StatusCode, Error> {
    let app = by.app.clone();
    to_its_end(&app, async move { change::remove(&by, &path.plugin, &if_match).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn show_consent(State(app): State<SharedApp>, At(path): At<On>) -> Result<Answer<Consent>, Error> {
    consent::show(&app, &path.plugin).await.map(Answer)
}

async fn agree(
    by: By,
    At(path): At<On>,
    if_match: IfMatch,
    Json(body): Json<ConsentBody>,
) -> Result<One<Outcome>, Error> {
    if body.grant_hash.len() != HASH_CHARS {
        return Err(Error::field(
            "grant_hash",
            format!("must have {HASH_CHARS} characters, as it was answered"),
        ));
    }
    let app = by.app.clone();
    let work = async move { consent::agree_to(&by, &path.plugin, &body.grant_hash, &if_match).await };
    to_its_end(&app, work).await.map(One)
}

async fn enable(by: By, At(path): At<On>, if_match: IfMatch) -> Result<One<Outcome>, Error> {
    let app = by.app.clone();
    to_its_end(&app, async move { change::enable(&by, &path.plugin, &if_match).await }).await.map(One)
}

async fn disable(by: By, At(path): At<On>, if_match: IfMatch) -> Result<One<Outcome>, Error> {
    let app = by.app.clone();
    to_its_end(&app, async move { change::disable(&by, &path.plugin, &if_match).await }).await.map(One)
}

async fn release(by: By, At(path): At<On>, if_match: IfMatch) -> Result<One<Outcome>, Error> {
    let app = by.app.clone();
    to_its_end(&app, async move { change::release(&by, &path.plugin, &if_match).await }).await.map(One)
}

async fn roll_back(
    by: By,
    At(path): At<On>,
    if_match: IfMatch,
    body: Option<Json<RollbackBody>>,
) -> Result<One<Outcome>, Error> {
    let app = by.app.clone();
    let version = body.and_then(|Json(body)| body.version);
    refuse_longer("version", version.as_deref().unwrap_or_default(), VERSION_CHARS_MAX)?;
    let work = async move { change::roll_back(&by, &path.plugin, version.as_deref(), &if_match).await };
    to_its_end(&app, work).await.map(One)
}

async fn show_organization(
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<On>,
) -> Result<One<organization::View>, Error> {
    organization::show(&app, &caller, &path.plugin).await.map(One)
}

async fn set_organization(
    by: By,
    At(path): At<On>,
    if_match: IfMatch,
    Json(body): Json<organization::Body>,
) -> Result<One<organization::View>, Error> {
    let app = by.app.clone();
    let work = async move { organization::set(&by, &path.plugin, &if_match, body).await };
    to_its_end(&app, work).await.map(One)
}

async fn check(by: By, At(path): At<On>) -> Result<Answer<Checked>, Error> {
    by.caller.require_all_sites()?;
    let result = operations::check(&by, &path.plugin).await?;
    Ok(Answer(Checked { result }))
}

/// The id of a plugin and the name of a secret in a path.
#[derive(Debug, Deserialize)]
struct OnSecret {
    plugin: String,
    secret: String,
}

async fn set_secret(
    by: By,
    At(path): At<OnSecret>,
    Json(body): Json<organization::SecretBody>,
) -> Result<StatusCode, Error> {
    organization::set_secret(&by, &path.plugin, &path.secret, body).await
}

async fn remove_secret(by: By, At(path): At<OnSecret>) -> Result<StatusCode, Error> {
    organization::remove_secret(&by, &path.plugin, &path.secret).await
}
