//! Requests that create an object, and `Idempotency-Key`: the same request sent again creates nothing more.
//!
//! The answer is stored in the transaction of the creation itself. So after a crash either both exist or neither. Of
//! several requests at the same time one creates, and the others get its answer. Errors are not stored: a request that
//! created nothing may be sent again. A secret that is shown once is not stored either: a replay answers without it.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::UserId;
use heddle_core::permission::KeyScope;
use heddle_store::Tx;
use heddle_store::idempotency::{self, Kept};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::app::{App, SharedApp};
use crate::caller::{Caller, Credential};
use crate::http::conditional::{Tag, Tagged, json, tagged, without_secrets};
use crate::http::error::Error;
use crate::http::extract::too_large;

/// Names the header by which a request that is sent again has no further effect. A key belongs to one user
/// and counts for [`KEEP_HOURS`]. Public routes ignore it, and so do routes that neither create an object nor
/// are marked `Keyed`. Routes that read their body while it comes refuse it.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks an answer as that of an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Longest key, in characters.
const KEY_CHARS_MAX: usize = 255;
/// How long an answer is kept.
pub const KEEP_HOURS: i64 = 24;
/// Index that lets a key be used once.
const KEY_INDEX: &str = "idempotency_pkey";
/// The location of an accepted request, which has no object to look at.
const NOWHERE: &str = "";

/// A request with a key.
#[derive(Debug, Clone)]
struct Keyed {
    user: UserId,
    key: String,
    /// Method and path with its query.
    route: String,
    request_hash: String,
}

/// The idempotency data of the request, known when its object has been created.
#[derive(Debug)]
pub struct Creation(Option<Keyed>);

/// The answer to a request that creates an object.
struct Answered {
    json: String,
    /// The tag of the object that was created.
    tag: Option<Tag>,
    location: String,
}

impl Creation {
    /// Commits, and answers 201 with the object, its `ETag` and where it is, such as `/sites/{id}`.
    pub async fn finish<T: Serialize + Tagged>(
        self,
        mut tx: Tx,
        app: &App,
        path: &str,
        object: &T,
    ) -> Result<Response, Error> {
        let created = Answered {
            json: json(object)?,
            tag: Some(object.tag()?),
            location: format!("{}{path}", crate::http::prefix::PREFIX),
        };
        self.keep(&mut tx, app, &created).await?;
        tx.commit().await?;
        created.into_response()
    }

    /// The same of an object that stays as it is, and so has no `ETag`.
    pub async fn finish_lasting<T: Serialize>(
        self,
        mut tx: Tx,
        app: &App,
        path: &str,
        object: &T,
    ) -> Result<Response, Error> {
        let location = format!("{}{path}", crate::http::prefix::PREFIX);
        let created = Answered { json: json(object)?, tag: None, location };
        self.keep(&mut tx, app, &created).await?;
        tx.commit().await?;
        created.into_response()
    }

    /// Commits, and answers 202: the request is in progress, and there is no object to look at.
    pub async fn accept<T: Serialize>(self, mut tx: Tx, app: &App, receipt: &T) -> Result<Response, Error> {
        let accepted = Answered { json: json(receipt)?, tag: None, location: NOWHERE.to_owned() };
        self.keep(&mut tx, app, &accepted).await?;
        tx.commit().await?;
        accepted.into_response()
    }

    async fn keep(self, tx: &mut Tx, app: &App, answered: &Answered) -> Result<(), Error> {
        let Some(keyed) = self.0 else { return Ok(()) };
        let kept = Kept {
            response: app.keys.seal(&context(&keyed), without_secrets(&answered.json)?.as_bytes()),
            user_id: keyed.user,
            idempotency_key: keyed.key,
            route: keyed.route,
            request_hash: keyed.request_hash,
            location: answered.location.clone(),
            tag: answered.tag.as_ref().map(|tag| tag.as_str().to_owned()).unwrap_or_default(),
            created_at: app.clock.now(),
        };
        idempotency::insert(tx, &kept).await.map_err(used_meanwhile)
    }
}

/// The refusal of a key where the body is read while it comes: whether it is the same as before is known only at its end.
pub(crate) fn not_streamed() -> Error {
    Error::field(
        "idempotency-key",
        "is not taken by requests that send a file; send it without, and list the files after an answer that was lost",
    )
}

/// Another request with the same key was faster; [`run_once`] answers with the answer of that request.
fn used_meanwhile(error: heddle_store::Error) -> Error {
    if error.is_unique(KEY_INDEX) {
        Error::Conflict {
            kind: "idempotency_conflict",
            message: "another request with this Idempotency-Key is being carried out; try again".to_owned(),
        }
    } else {
        error.into()
    }
}

impl Answered {
    fn into_response(self) -> Result<Response, Error> {
        if self.location == NOWHERE {
            return tagged(StatusCode::ACCEPTED, self.json, None);
        }
        let mut response = tagged(StatusCode::CREATED, self.json, self.tag.as_ref())?;
        let location = HeaderValue::from_str(&self.location).map_err(Error::internal)?;
        response.headers_mut().insert(header::LOCATION, location);
        Ok(response)
    }
}

fn context(keyed: &Keyed) -> String {
    format!("idempotency:{}:{}", keyed.user, keyed.key)
}

impl FromRequestParts<SharedApp> for Creation {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &SharedApp) -> Result<Self, Error> {
        Ok(Self(parts.extensions.get::<Keyed>().cloned()))
    }
}

/// Runs the request, or repeats the answer of an earlier identical request.
pub(crate) async fn run_once(
    app: &SharedApp,
    caller: Caller,
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    let (mut parts, body) = request.into_parts();
    let key = key_of(&parts)?;
    let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), app)
        .await
        .map_err(|rejection| too_large(&rejection))?;
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let route =
        format!("{} {}", parts.method, path.strip_prefix(crate::http::prefix::PREFIX).unwrap_or(path));
    let request_hash = request_hash(&caller, &bytes);
    let keyed = Keyed { user: caller.user_id, key, route, request_hash };
    if let Some(answered) = replay(app, &keyed).await? {
        return Ok(answered);
    }
    parts.extensions.insert(caller);
    parts.extensions.insert(keyed.clone());
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    // This request may have failed only because an identical one has just succeeded.
    if response.status().is_client_error()
        && let Some(answered) = replay(app, &keyed).await?
    {
        return Ok(answered);
    }
    Ok(response)
}

/// Hashes the body and the rights of the caller: a caller with other rights must not get the stored answer.
fn request_hash(caller: &Caller, body: &[u8]) -> String {
    let key = match caller.credential {
        Credential::Session(_) => None,
        Credential::ApiKey(id) => Some(id.0),
        Credential::App(id) => Some(id.0),
        Credential::Connection(id) => Some(id.0),
        Credential::Action(id) => Some(id.0),
        Credential::Policy(id) => Some(id.0),
    };
    let scopes: Option<Vec<&str>> =
        caller.scopes.as_deref().map(|scopes| scopes.iter().map(KeyScope::as_str).collect());
    let may = serde_json::json!([key, caller.role, scopes, caller.grants]).to_string();
    let mut digest = Sha256::new();
    digest.update(may.as_bytes());
    digest.update([0]);
    digest.update(body);
    hex::encode(digest.finalize())
}

fn key_of(parts: &Parts) -> Result<String, Error> {
    let text = parts.headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok()).map(str::trim);
    text.filter(|text| (1..=KEY_CHARS_MAX).contains(&text.len())).map(str::to_owned).ok_or_else(|| {
        Error::field("idempotency-key", "must have 1 to 255 visible ASCII characters, such as a UUID")
    })
}

async fn replay(app: &App, keyed: &Keyed) -> Result<Option<Response>, Error> {
    let kept = {
        let mut tx = app.db.read().await?;
        idempotency::find(&mut tx, keyed.user, &keyed.key).await?
    };
    let Some(kept) = kept else { return Ok(None) };
    if kept.created_at + TimeDelta::hours(KEEP_HOURS) <= app.clock.now() {
        let mut tx = app.db.write().await?;
        idempotency::forget_one(&mut tx, keyed.user, &keyed.key, kept.created_at).await?;
        tx.commit().await?;
        return Ok(None);
    }
    if kept.route != keyed.route || kept.request_hash != keyed.request_hash {
        return Err(Error::Validation(vec![super::error::Detail::new(
            "idempotency-key",
            "was used for another request: send each request with a key of its own",
            "idempotency_key_reused",
        )]));
    }
    let opened = app.keys.open_sealed(&context(keyed), &kept.response).map_err(|_| Error::Conflict {
        kind: "idempotency_unreadable",
        message: match kept.location.as_str() {
            NOWHERE => "the request was carried out; its answer cannot be shown again".to_owned(),
            location => {
                format!(
                    "the request was carried out and created {location}; its answer cannot be shown again"
                )
            }
        },
    })?;
    // Removed here again, because an earlier version stored them.
    let json = without_secrets(std::str::from_utf8(&opened).map_err(Error::internal)?)?;
    let answered = Answered { json, tag: Tag::kept(kept.tag), location: kept.location };
    let mut response = answered.into_response()?;
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(Some(response))
}
