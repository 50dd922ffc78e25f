//! Who did what to which object, written to the audit log in the transaction of the deed.

use heddle_core::{OrgId, UserId};
use heddle_store::audit::{self, NewAudit};
use heddle_store::{Tx, User};
use serde_json::Value;
use uuid::Uuid;

use super::Caller;
use crate::app::App;
use crate::http::error::Error;
use crate::http::extract::Origin;

/// Name of the actor where nobody is authenticated.
const ANONYMOUS: &str = "anonymous";

/// Who did it, and by what, where that was not a session of their own.
#[derive(Debug)]
pub(crate) struct Actor<'a> {
    id: UserId,
    name: &'a str,
    via: Option<Value>,
}

impl<'a> From<&'a User> for Actor<'a> {
    fn from(user: &'a User) -> Self {
        Self { id: user.id, name: &user.username, via: None }
    }
}

/// One line of the audit log.
#[derive(Debug)]
pub(crate) struct Deed<'a> {
    /// The organization that it happened in.
    pub(crate) org: OrgId,
    /// `None` where nobody is authenticated.
    pub(crate) actor: Option<Actor<'a>>,
    /// `site.created`, `user.login`, …
    pub(crate) action: &'static str,
    /// Type and id of what it was done to.
    pub(crate) target: (&'static str, Uuid),
    /// Never a secret.
    pub(crate) detail: Value,
}

impl Caller {
    /// This caller as the actor of a deed.
    #[expect(clippy::unnecessary_wraps, reason = "what a deed takes: some have no actor")]
    pub(crate) fn actor(&self) -> Option<Actor<'_>> {
        Some(Actor { id: self.user_id, name: &self.username, via: self.credential.via() })
    }
}

pub(crate) async fn record(tx: &mut Tx, app: &App, origin: &Origin, deed: Deed<'_>) -> Result<(), Error> {
    let Deed { org, actor, action, target: (target_type, target_id), mut detail } = deed;
    if let Some(via) = actor.as_ref().and_then(|actor| actor.via.as_ref()) {
        detail["via"] = via.clone();
    }
    heddle_core::redact::sanitize(&mut detail);
    let entry = NewAudit {
        org_id: org,
        actor_id: actor.as_ref().map(|actor| actor.id),
        actor_name: actor.map_or(ANONYMOUS, |actor| actor.name).to_owned(),
        action: action.to_owned(),
        target_type: target_type.to_owned(),
        target_id: Some(target_id),
        detail,
        request_id: Some(origin.request_id.clone()),
        ip: Some(origin.ip.clone()),
    };
    audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
    Ok(())
}
