//! What organizations think of plugins: one rating each. Which organization wrote a rating is not shown to others.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use heddle_core::page::Page;
use heddle_core::{Role, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Params};
use heddle_kernel::http::list_query::ListQuery as _;
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::plugins::ratings::{self, PluginRatingId, RatingRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::install::{find, open};
use crate::routes::On;

/// Most stars.
const STARS_MAX: i64 = 5;
/// Most characters of a text.
const TEXT_CHARS_MAX: usize = 2_000;

/// What the own organization thinks of a plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PluginRatingCreate")]
pub(crate) struct Body {
    #[schemars(range(min = 1, max = STARS_MAX))]
    stars: i64,
    /// Plain text for people. It is shown to all who see the catalogue here, without the name of the organization.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS_MAX))]
    text: String,
}

/// What an organization thinks of a plugin.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginRating", example = example())]
pub(crate) struct View {
    id: PluginRatingId,
    /// From 1 to 5.
    stars: i64,
    text: String,
    /// It is that of the caller's organization.
    is_own: bool,
    /// Name of the user; null for those of other organizations.
    author: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

fn example() -> Value {
    json!({
        "id": "0192f0c1-2b7a-7cc0-8000-000000000001", "stars": 5, "text": "Does what it says.", "is_own": true,
        "author": "ada", "created_at": "2026-01-05T08:00:00Z", "updated_at": "2026-01-05T08:00:00Z",
    })
}

list_query! {
    pub(crate) struct Query of RatingRow {}
}

fn view(row: RatingRow, caller: &Caller) -> View {
    let is_own = row.org_id == caller.org_id;
    let may_see = is_own || caller.role == Role::SuperAdmin;
    View {
        id: row.id,
        stars: row.stars,
        text: row.body,
        is_own,
        author: Some(row.author).filter(|_| may_see),
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}

pub(crate) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<On>,
    Params(mut query): Params<Query>,
) -> Result<Answer<Page<View>>, Error> {
    let listing = query.listing()?;
    let (rows, total) = ratings::list(&mut app.db.read().await?, &path.plugin, listing.order).await?;
    let items = rows.into_iter().map(|row| view(row, &caller)).collect();
    Ok(Answer(listing.page.of(items, total)))
}

/// Writes what the caller's organization thinks, in place of what it thought before.
pub(crate) async fn rate(
    by: By,
    creation: Creation,
    At(path): At<On>,
    Json(body): Json<Body>,
) -> Result<Response, Error> {
    by.caller.require_all_sites()?;
    let mut checks = Checks::default();
    checks.require((1..=STARS_MAX).contains(&body.stars), "stars", "must be from 1 to 5");
    checks.chars("text", &body.text, TEXT_CHARS_MAX);
    checks.require(!body.text.contains('\0'), "text", "must not have the character U+0000");
    checks.done()?;
    let (app, plugin) = (&by.app, path.plugin);
    let (_, catalog) = open(app).await?;
    find(&catalog, &plugin)?;
    let now = app.clock.now();
    let row = RatingRow {
        id: app.clock.new_id(),
        org_id: by.caller.org_id,
        plugin_id: plugin,
        stars: body.stars,
        body: body.text,
        author: by.caller.username.clone(),
        created_at: now,
        updated_at: now,
    };
    let new = row.id;
    let mut tx = app.db.write().await?;
    let row = ratings::put(&mut tx, &row).await?;
    let is_new = row.id == new;
    let detail = json!({ "plugin": row.plugin_id, "stars": row.stars, "text": row.body });
    by.record_of(&mut tx, (row.org_id, "plugin_rating", row.id.0), "plugin.rated", detail).await?;
    let at = format!("/marketplace/plugins/{}/ratings", row.plugin_id);
    let view = view(row, &by.caller);
    if !is_new {
        tx.commit().await?;
        return Ok(Answer(view).into_response());
    }
    creation.finish_lasting(tx, app, &at, &view).await
}

/// A rating of a plugin in a path.
#[derive(Debug, Deserialize)]
pub(crate) struct OnRating {
    plugin: String,
    rating_id: PluginRatingId,
}

/// Removes the rating of the caller's organization; a `super_admin` removes any.
pub(crate) async fn remove(by: By, At(path): At<OnRating>) -> Result<StatusCode, Error> {
    by.caller.require_all_sites()?;
    let mut tx = by.app.db.write().await?;
    let found = ratings::find(&mut tx, &path.plugin, path.rating_id).await?;
    let may_remove = |row: &RatingRow| row.org_id == by.caller.org_id || by.caller.role == Role::SuperAdmin;
    let row = found.filter(may_remove).ok_or(Error::NotFound("rating"))?;
    ratings::remove(&mut tx, row.id).await?;
    let detail =
        json!({ "plugin": row.plugin_id, "stars": row.stars, "text": row.body, "author": row.author });
    by.record_of(&mut tx, (row.org_id, "plugin_rating", row.id.0), "plugin.rating_removed", detail).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
