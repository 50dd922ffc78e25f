//! Access tokens of apps: opaque, short-lived, never more than their user allowed.
//!
//! A token looks like `hdo_<8 characters>_<secret>`, so that scanners recognise
//! a leak; the characters name the grant. It is only kept as a hash. This
//! module does not issue tokens.

use std::sync::Arc;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::secret::Secret;
use heddle_store::oauth2::{self, OauthGrantId, Presented};

use super::known::{Known, Proof};
use super::{Caller, Credential, caller_of, inactive};
use crate::app::App;
use crate::http::error::Error;
use crate::keys::keyed_hash;

/// How every access token of an app begins.
pub const MARK: &str = "hdo";

const NOT_VALID: Error = Error::Unauthenticated("token of the app is not valid, has expired, or was revoked");
/// How exact the time of the last use is, in seconds: it is not written with every request.
const LAST_USE_SECS: i64 = 60;

/// Whether a bearer token is one of an app.
pub(super) fn is_one(token: &str) -> bool {
    token.strip_prefix(MARK).is_some_and(|rest| rest.starts_with('_'))
}

/// Returns the hash under which an access token is kept.
pub fn hash(app: &App, token: &Secret) -> String {
    keyed_hash(&app.keys.app_access_key(), token)
}

/// Returns the user that an app's token acts for. What the user allowed the app is the ceiling.
pub(super) async fn authenticate(app: &App, token: &str) -> Result<Caller, Error> {
    let hash = hash(app, &Secret::new(token));
    let known = app.callers.find(Proof::App(hash.clone()), || load(app, &hash)).await?;
    if known.expires_at.is_some_and(|at| at <= app.clock.now()) {
        return Err(NOT_VALID);
    }
    Ok(known.caller.clone())
}

pub(super) async fn load(app: &App, hash: &str) -> Result<Known, Error> {
    let now = app.clock.now();
    let found = {
        let mut tx = app.db.single().await?;
        oauth2::present(&mut tx, hash, now).await?.ok_or(NOT_VALID)?
    };
    if !found.user.is_active {
        return Err(inactive());
    }
    if now - found.last_used_at >= TimeDelta::seconds(LAST_USE_SECS) {
        record_use(app, found.grant_id, now).await;
    }
    Ok(Known {
        expires_at: Some(found.expires_at),
        token_exp: None,
        caller: caller(found, &app.declared().permissions),
    })
}

/// Records the use. A database that cannot be written does not keep a caller from reading.
async fn record_use(app: &App, id: OauthGrantId, now: Timestamp) {
    let recorded = async {
        let mut tx = app.db.write().await?;
        oauth2::record_use(&mut tx, id, None, now).await?;
        tx.commit().await
    };
    if let Err(error) = recorded.await {
        tracing::warn!(oauth2_grant.id = %id, error = %error, "use of grant {id} is not recorded");
    }
}

fn caller(found: Presented, all: &Permissions) -> Caller {
    let scopes = ceiling(&found.scopes, &found.app_scopes, all);
    caller_of(found.user, Credential::App(found.grant_id), Some(scopes))
}

/// Returns what both the token and the app, as it is registered now, include. Never without a limit.
fn ceiling(token: &[String], registered: &[String], all: &Permissions) -> Arc<[KeyScope]> {
    let parsed = |words: &[String]| -> Vec<KeyScope> {
        words.iter().filter_map(|word| KeyScope::parse(word, all).ok()).collect()
    };
    let covers = |scopes: &[KeyScope], permission| scopes.iter().any(|scope| scope.covers(permission));
    let (token, registered) = (parsed(token), parsed(registered));
    let both = all.iter().filter(|one| covers(&token, *one) && covers(&registered, *one));
    both.map(KeyScope::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(token: &[&str], registered: &[&str], expected: &[&str]) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let ceiling = ceiling(&owned(token), &owned(registered), &crate::testing::declared().permissions);
        let words: Vec<&str> = ceiling.iter().map(KeyScope::as_str).collect();
        assert_eq!(words, expected, "{token:?} under {registered:?}");
    }

    #[test]
    fn a_token_reaches_as_far_as_it_and_its_app_both_do() {
        check(&["device:read"], &["device:*"], &["device:read"]);
        check(&["device:*"], &["device:read"], &["device:read"]);
        check(&["device:*", "site:read"], &["device:*"], &["device:read", "device:write"]);
        check(&["device:read"], &["site:read"], &[]);
        check(&["device:read"], &[], &[]);
        check(&["*"], &["*"], &[]);
        check(&["of:another:version"], &["device:*"], &[]);
    }

    #[test]
    fn a_token_of_an_app_is_told_from_others() {
        for (token, is_app) in [("hdo_abcdefgh_x", true), ("hdo", false), ("hdor_x", false), ("eyJ0", false)]
        {
            assert_eq!(is_one(token), is_app, "{token}");
        }
    }
}
