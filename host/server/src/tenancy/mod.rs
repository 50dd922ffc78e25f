//! Organizations, users, sites, credentials, controllers: what belongs to whom.
//!
//! Holds no way to a device; a controller is only tested and scheduled here.

pub(crate) mod checks;
mod controllers;
pub(crate) mod credentials;
mod dashboard;
pub(crate) mod organizations;
pub(crate) mod quotas;
mod roles;
mod site_access;
pub(crate) mod sites;
pub(crate) mod slug;
pub(crate) mod users;

use heddle_core::OrgId;
use heddle_store::{Scope, Tx};
use serde::{Deserialize, Deserializer};

pub(crate) use self::controllers::endpoint::check_tls;
use crate::auth::Caller;
use crate::http::error::Error;
use crate::http::routes::Routes;

pub(crate) fn routes() -> Routes {
    organizations::routes()
        .merge(site_access::routes())
        .merge(users::routes())
        .merge(roles::routes())
        .merge(sites::routes())
        .merge(credentials::routes())
        .merge(controllers::routes())
}

/// For fields of updates that may be absent but not `null`.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// For fields of updates that `null` clears: absent is `None`, `null` is `Some(None)`.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The organization that a new object belongs to: the caller's, or the one that it names and may see.
pub(crate) async fn owner(tx: &mut Tx, caller: &Caller, named: Option<OrgId>) -> Result<OrgId, Error> {
    let Some(named) = named.filter(|named| *named != caller.org_id) else { return Ok(caller.org_id) };
    let found = heddle_store::organizations::find(tx, &caller.scope(), named).await?;
    found.map(|found| found.id).ok_or_else(|| Error::field("organization_id", "organization not found"))
}

/// The caller's organization-wide view, for objects that site grants do not divide.
pub(crate) fn organization_scope(caller: &Caller) -> Scope {
    Scope { org: caller.scope().org, sites: heddle_store::SiteScope::All }
}
