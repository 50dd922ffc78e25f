//! Many grants at once. A refused grant undoes no other.
//!
//! Everything is loaded first and written in one statement, however many grants there are.

use std::collections::{HashMap, HashSet};

use axum::Json as Answer;
use heddle_core::{OrgId, SiteId, UserId};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Json;
use heddle_kernel::resource::By;
use heddle_store::grants::{self, NewGrant};
use heddle_store::users::{self, User};
use heddle_store::{Scope, Tx, sites};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::refusal::{ItemError, judge};
use super::{GrantBody, Segments, locked};

/// Most grants of one request.
const GRANTS_MAX: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SiteAccessBulk")]
pub(super) struct BulkBody {
    /// From 1 to 200.
    #[schemars(length(min = 1, max = GRANTS_MAX))]
    grants: Vec<GrantBody>,
}

heddle_core::words! {
    /// The outcome of one of many grants.
    pub enum GrantStatus {
        Granted = "granted",
        Updated = "updated",
        Error = "error",
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SiteAccessItem")]
struct Item {
    /// Place in the request, from 0.
    index: usize,
    user_id: UserId,
    site_id: SiteId,
    status: GrantStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SiteAccessBulkResult")]
pub(super) struct BulkResult {
    results: Vec<Item>,
    /// How many were granted or updated.
    granted: usize,
    failed: usize,
}

/// The stored objects that the items name.
struct Known {
    users: HashMap<UserId, User>,
    sites: HashSet<SiteId>,
    /// Existing grants.
    granted: HashSet<(UserId, SiteId)>,
}

pub(super) async fn grant_all(
    by: By,
    Segments(org): Segments<OrgId>,
    Json(body): Json<BulkBody>,
) -> Result<Answer<BulkResult>, Error> {
    let By { app, caller, origin } = &by;
    if !(1..=GRANTS_MAX).contains(&body.grants.len()) {
        return Err(Error::field("grants", format!("must have 1 to {GRANTS_MAX} items")));
    }
    let mut tx = app.db.write().await?;
    let scope = locked(&mut tx, caller, org).await?;
    let known = Known::load(&mut tx, &scope, &body.grants).await?;
    let results = known.judge_all(caller, &body.grants);
    let judged = body.grants.iter().zip(&results);
    let accepted: Vec<&GrantBody> =
        judged.filter_map(|(grant, item)| item.error.is_none().then_some(grant)).collect();
    let new: Vec<NewGrant> = accepted.iter().map(|grant| grant.by(caller, app)).collect();
    grants::upsert(&mut tx, &new).await?;
    if !accepted.is_empty() {
        let entry = NewEntry {
            org,
            actor: caller.actor(),
            action: "site_access.granted_bulk",
            target: ("organization", org.0),
            detail: json!({ "grants": accepted }),
        };
        entry::record(&mut tx, app, origin, entry).await?;
    }
    tx.commit().await?;
    let failed = results.len() - accepted.len();
    Ok(Answer(BulkResult { results, granted: accepted.len(), failed }))
}

impl Known {
    /// Runs three statements, however many items there are.
    async fn load(tx: &mut Tx, scope: &Scope, items: &[GrantBody]) -> Result<Self, Error> {
        let users: HashSet<UserId> = items.iter().map(|item| item.user_id).collect();
        let sites: HashSet<SiteId> = items.iter().map(|item| item.site_id).collect();
        let (users, sites): (Vec<_>, Vec<_>) = (users.into_iter().collect(), sites.into_iter().collect());
        let found = users::find_all(tx, scope, &users).await?;
        Ok(Self {
            users: found.into_iter().map(|user| (user.id, user)).collect(),
            sites: sites::visible(tx, scope, &sites).await?.into_iter().collect(),
            granted: grants::pairs(tx, &users, &sites).await?.into_iter().collect(),
        })
    }

    fn judge_all(&self, caller: &Caller, items: &[GrantBody]) -> Vec<Item> {
        let mut seen = HashSet::new();
        let judge_one = |(index, item): (usize, &GrantBody)| {
            let pair = (item.user_id, item.site_id);
            let is_first = seen.insert(pair);
            let (user, is_site) = (self.users.get(&item.user_id), self.sites.contains(&item.site_id));
            let error = if is_first {
                judge(caller, item, user, is_site).err().map(ItemError::from)
            } else {
                Some(ItemError::repeated())
            };
            let status = match (&error, self.granted.contains(&pair)) {
                (Some(_), _) => GrantStatus::Error,
                (None, true) => GrantStatus::Updated,
                (None, false) => GrantStatus::Granted,
            };
            Item { index, user_id: item.user_id, site_id: item.site_id, status, error }
        };
        items.iter().enumerate().map(judge_one).collect()
    }
}
