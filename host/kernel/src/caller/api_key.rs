//! API keys as they prove a caller. The room of identity makes them.

use std::sync::Arc;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::secret::Secret;
use heddle_store::api_keys::{self, ApiKeyId, Presented};
use subtle::ConstantTimeEq as _;

use super::known::{Known, Proof};
use super::{Caller, Credential, caller_of, inactive};
use crate::app::App;
use crate::http::error::Error;
use crate::keys::keyed_hash;

pub(crate) const HEADER: &str = "x-api-key";
pub(super) const NOT_VALID: Error =
    Error::Unauthenticated("API key is not valid, has expired, or was revoked");

/// How every key begins.
pub const MARK: &str = "hdl";
/// How exact the time of the last use is, in seconds: it is not written with every request.
const LAST_USE_SECS: i64 = 60;

/// Whether a text has the form of a key. The key need not exist.
pub(crate) fn is_one(text: &str) -> bool {
    text.strip_prefix(MARK).is_some_and(|rest| rest.starts_with('_'))
}

/// The caller that an API key proves.
pub(super) async fn authenticate(app: &App, whole: &str) -> Result<Caller, Error> {
    let prefix = whole.strip_prefix(MARK).and_then(|rest| rest.strip_prefix('_'));
    let (prefix, _) = prefix.and_then(|rest| rest.split_once('_')).ok_or(NOT_VALID)?;
    let hash = keyed_hash(&app.keys.api_key_key(), &Secret::new(whole));
    let known = app.callers.find(Proof::ApiKey(hash.clone()), || load(app, prefix, &hash)).await?;
    if known.expires_at.is_some_and(|at| at <= app.clock.now()) {
        return Err(NOT_VALID);
    }
    Ok(known.caller.clone())
}

async fn load(app: &App, prefix: &str, hash: &str) -> Result<Known, Error> {
    let now = app.clock.now();
    let found = {
        let mut tx = app.db.single().await?;
        api_keys::present(&mut tx, prefix, now).await?.ok_or(NOT_VALID)?
    };
    if !bool::from(found.secret_hash.as_bytes().ct_eq(hash.as_bytes())) {
        return Err(NOT_VALID);
    }
    if !found.user.is_active {
        return Err(inactive());
    }
    if found.last_used_at.is_none_or(|at| now - at >= TimeDelta::seconds(LAST_USE_SECS)) {
        record_use(app, found.id, now).await;
    }
    Ok(Known {
        expires_at: found.expires_at,
        token_exp: None,
        caller: caller(found, &app.declared().permissions),
    })
}

/// Records the use. A database that cannot be written does not keep a caller from reading.
async fn record_use(app: &App, id: ApiKeyId, now: Timestamp) {
    let recorded = async {
        let mut tx = app.db.write().await?;
        api_keys::record_use(&mut tx, id, now).await?;
        tx.commit().await
    };
    if let Err(error) = recorded.await {
        tracing::warn!(api_key.id = %id, error = %error, "use of API key {id} is not recorded");
    }
}

fn caller(found: Presented, all: &Permissions) -> Caller {
    // A scope that this version does not know covers nothing. The key keeps its ceiling without it.
    let scopes: Arc<[KeyScope]> =
        found.scopes.iter().filter_map(|scope| KeyScope::parse(scope, all).ok()).collect();
    let scopes = (!found.scopes.is_empty()).then_some(scopes);
    caller_of(found.user, Credential::ApiKey(found.id), scopes)
}
