//! API keys: long-lived credentials of a user, with scopes as a ceiling.
//!
//! A key looks like `hdl_<8 characters>_<secret>`: the first part finds it and
//! lets scanners recognise a leak, the secret is only kept as a hash.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::event::format_time;
use heddle_core::page::Page;
use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::secret::{Secret, random_bytes, random_secret};
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::api_key::MARK;
use heddle_kernel::caller::{Caller, hold_caller};
use heddle_kernel::checks::{Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SCOPE_CHARS_MAX, SCOPES_MAX};
use heddle_kernel::http::access::{Access, Unscoped};
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged, UNEDITED};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::{At, Json, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::keyed_hash;
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::api_keys::{self, ApiKey, ApiKeyId, NewApiKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::security;
use crate::declarations::{API_KEY_CREATED, API_KEY_REVOKED};

/// The characters of the public half; none looks like another one.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Active keys of one user.
const KEYS_MAX: i64 = 50;
/// Most days until a key expires.
const EXPIRES_DAYS_MAX: u32 = 365;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewApiKey")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Up to 2000 characters.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// 1 to 32 permissions such as `device:read`, or `device:*`: what the key may do at most. Absent or null: everything
    /// that the user may do.
    #[schemars(length(min = 1, max = SCOPES_MAX), inner(length(max = SCOPE_CHARS_MAX)))]
    scopes: Option<Vec<String>>,
    /// From 1 to 365; without it the key does not expire.
    #[schemars(range(min = 1, max = EXPIRES_DAYS_MAX))]
    expires_in_days: Option<u32>,
}

list_query! {
    struct ListQuery of ApiKey {}
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ApiKey")]
struct View {
    id: ApiKeyId,
    name: String,
    description: Option<String>,
    /// Begins the key: `hdl_` and 8 characters.
    prefix: String,
    /// Null: everything that the user may do.
    scopes: Option<Vec<String>>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    /// Exact to a minute.
    last_used_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CreatedApiKey")]
struct Created {
    #[serde(flatten)]
    key: View,
    /// The whole key. It is shown this once: a replay under the same `Idempotency-Key` answers without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
}

impl Tagged for View {
    fn tag(&self) -> Result<Tag, Error> {
        Ok(Tag::of(self.id, UNEDITED))
    }
}

impl Tagged for Created {
    fn tag(&self) -> Result<Tag, Error> {
        self.key.tag()
    }
}

impl From<ApiKey> for View {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            description: key.description,
            prefix: format!("{MARK}_{}", key.prefix),
            scopes: (!key.scopes.is_empty()).then_some(key.scopes),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// Why no scope opens API keys.
const BEYOND_ITSELF: Unscoped =
    Unscoped("a key that makes or reads keys would outlive or outgrow its own scopes");

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(
            "/api-keys",
            Access::Authenticated(BEYOND_ITSELF),
            list,
            doc("The caller's active API keys, newest first").query::<ListQuery>().answers::<Page<View>>(200),
        )
        .post(
            "/api-keys",
            Access::Authenticated(BEYOND_ITSELF),
            create,
            doc("Create an API key; its secret is in this answer only")
                .body::<NewBody>()
                .answers::<Created>(201),
        )
        .get(
            "/api-keys/{api_key_id}",
            Access::Authenticated(BEYOND_ITSELF),
            get,
            doc("One of the caller's active API keys").answers::<View>(200),
        )
        .delete(
            "/api-keys/{api_key_id}",
            Access::Authenticated(BEYOND_ITSELF),
            revoke,
            doc("Revoke one of the caller's API keys").empty(204),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<View>>, Error> {
    let Listing { page, order, .. } = query.listing()?;
    let mut tx = app.db.read().await?;
    let (active, total) = api_keys::list_active(&mut tx, caller.user_id, app.clock.now(), order).await?;
    Ok(Answer(page.of(active.into_iter().map(View::from).collect(), total)))
}

async fn get(State(app): State<SharedApp>, caller: Caller, At(id): At<ApiKeyId>) -> Result<One<View>, Error> {
    let mut tx = app.db.single().await?;
    let key = api_keys::find_active(&mut tx, caller.user_id, id, app.clock.now()).await?;
    key.map(|key| One(key.into())).ok_or(Error::NotFound("API key"))
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    caller.session()?;
    let name = check(&body, &app.declared().permissions)?;
    for (at, scope) in body.scopes.iter().flatten().enumerate() {
        may_grant(caller, &app.declared().permissions, at, scope)?;
    }
    let now = app.clock.now();
    let prefix: String =
        random_bytes::<8>().iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    let whole = Secret::new(format!("{MARK}_{prefix}_{}", random_secret().expose()));
    let mut tx = app.db.write().await?;
    // Requests that create keys at the same time wait for each other here, and count the keys one after the other.
    hold_caller(&mut tx, app, caller).await?;
    if api_keys::count_active(&mut tx, caller.user_id, now).await? >= KEYS_MAX {
        return Err(Error::Conflict {
            kind: "limit_reached",
            message: format!("there are {KEYS_MAX} active API keys already: revoke one first"),
        });
    }
    let new = NewApiKey {
        id: app.clock.new_id(),
        user_id: caller.user_id,
        prefix,
        secret_hash: keyed_hash(&app.keys.api_key_key(), &whole),
        name,
        description: body.description,
        scopes: body.scopes.unwrap_or_default(),
        expires_at: body.expires_in_days.map(|days| now + TimeDelta::days(i64::from(days))),
        now,
    };
    let key = api_keys::insert(&mut tx, &new).await?;
    let detail = json!({ "name": key.name, "scopes": key.scopes, "expires_at": key.expires_at });
    entry::record(&mut tx, app, origin, audit_entry(caller, key.id, "api_key.created", detail)).await?;
    let path = format!("/api-keys/{}", key.id);
    let key = View::from(key);
    let fields = json!({
        "api_key_id": key.id,
        "name": key.name,
        "scopes": key.scopes,
        "expires_at": key.expires_at.map(format_time),
    });
    security::record(&mut tx, &app.clock, API_KEY_CREATED, caller, fields).await?;
    let created = Created { key, api_key: Some(whole.expose().to_owned()) };
    creation.finish(tx, app, &path, &created).await
}

fn check(body: &NewBody, all: &Permissions) -> Result<String, Error> {
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.description(body.description.as_deref());
    let count = body.scopes.as_ref().map(Vec::len);
    checks.require(
        count.is_none_or(|count| (1..=SCOPES_MAX).contains(&count)),
        "scopes",
        &format!("must have 1 to {SCOPES_MAX} entries; leave it away for a key with all rights of its owner"),
    );
    checks.require(
        body.expires_in_days.is_none_or(|days| (1..=EXPIRES_DAYS_MAX).contains(&days)),
        "expires_in_days",
        &format!("must be from 1 to {EXPIRES_DAYS_MAX}"),
    );
    for (at, scope) in body.scopes.iter().flatten().enumerate().take(SCOPES_MAX) {
        let field = format!("scopes[{at}]");
        if scope.chars().count() > SCOPE_CHARS_MAX {
            checks.chars(&field, scope, SCOPE_CHARS_MAX);
        } else if let Err(unknown) = KeyScope::parse(scope, all) {
            checks.add(vec![Detail::new(field, unknown.to_string(), "unknown_permission")]);
        }
    }
    checks.done()?;
    Ok(name)
}

/// A caller grants only what its own role holds.
fn may_grant(caller: &Caller, all: &Permissions, at: usize, scope: &str) -> Result<(), Error> {
    let parsed = KeyScope::parse(scope, all)
        .map_err(|unknown| Error::field(&format!("scopes[{at}]"), unknown.to_string()))?;
    if parsed.is_held_by(caller.role) {
        return Ok(());
    }
    Err(Error::Refused {
        kind: "scope_not_held",
        message: format!("scope '{scope}' goes beyond what your role '{}' holds", caller.role),
    })
}

async fn revoke(by: By, At(id): At<ApiKeyId>, if_match: IfMatch) -> Result<StatusCode, Error> {
    let By { app, caller, origin } = &by;
    caller.session()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let key = api_keys::find_active(&mut tx, caller.user_id, id, now).await?;
    let key = key.ok_or(Error::NotFound("API key"))?;
    let name = key.name.clone();
    if_match.check(&View::from(key))?;
    if !api_keys::revoke(&mut tx, caller.user_id, id, now).await? {
        return Err(Error::NotFound("API key"));
    }
    let detail = json!({ "name": name });
    entry::record(&mut tx, app, origin, audit_entry(caller, id, "api_key.revoked", detail)).await?;
    let fields = json!({ "api_key_id": id, "name": name });
    security::record(&mut tx, &app.clock, API_KEY_REVOKED, caller, fields).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

fn audit_entry<'a>(
    caller: &'a Caller,
    id: ApiKeyId,
    action: &'static str,
    detail: serde_json::Value,
) -> NewEntry<'a> {
    NewEntry { org: caller.org_id, actor: caller.actor(), action, target: ("api_key", id.0), detail }
}
