//! The caller of a request that changes something, and what its records need.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use heddle_core::OrgId;
use heddle_store::Tx;
use heddle_store::object::{Object as _, Revised as _};
use serde_json::Value;
use uuid::Uuid;

use super::Resource;
use crate::app::SharedApp;
use crate::audit::entry::{self, NewEntry};
use crate::caller::Caller;
use crate::http::error::Error;
use crate::http::extract::Origin;

/// The caller of a request, and where it came from. A handler that records what it did takes it.
#[derive(Debug, Clone)]
pub struct By {
    pub app: SharedApp,
    pub caller: Caller,
    pub origin: Origin,
}

impl FromRequestParts<SharedApp> for By {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Error> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let origin = Origin::from_request_parts(parts, app).await?;
        Ok(Self { app: app.clone(), caller, origin })
    }
}

/// What an entry of the audit log is about: the organization, the kind and the id.
pub(super) type Target = (OrgId, &'static str, Uuid);

pub(super) fn target<R: Resource>(object: &R::Row) -> Target {
    (object.organization(), R::ACTIONS.target, object.revision().object)
}

impl By {
    /// Writes an entry in the audit log, in the transaction of what it says.
    pub async fn record<R: Resource>(
        &self,
        tx: &mut Tx,
        object: &R::Row,
        action: &'static str,
        detail: Value,
    ) -> Result<(), Error> {
        self.record_of(tx, target::<R>(object), action, detail).await
    }

    /// The same about what is no [`Resource`].
    pub async fn record_of(
        &self,
        tx: &mut Tx,
        (org, kind, id): (OrgId, &'static str, Uuid),
        action: &'static str,
        detail: Value,
    ) -> Result<(), Error> {
        let entry = NewEntry { org, actor: self.caller.actor(), action, target: (kind, id), detail };
        entry::record(tx, &self.app, &self.origin, entry).await
    }
}
