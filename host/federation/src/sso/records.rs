//! Records of a sign-in: entries of the organization's audit log, and the events of accounts.

use heddle_core::event::{EventType, NewEvent};
use heddle_core::{OrgId, Role};
use heddle_identity::declarations::{ROLE_CHANGED, USER_CREATED, USER_ROLE_CHANGED};
use heddle_identity::security;
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::rate_limit::{Limit, Rate, Verdict};
use heddle_store::sso::Provider;
use heddle_store::users::User;
use heddle_store::{Tx, events};
use serde_json::{Value, json};

/// Returns the audit entry of an administrator's action on a provider.
pub(super) fn audit_entry<'a>(
    caller: &'a Caller,
    provider: &Provider,
    action: &'static str,
    detail: Value,
) -> NewEntry<'a> {
    NewEntry {
        org: provider.org_id,
        actor: caller.actor(),
        action,
        target: ("identity_provider", provider.id.0),
        detail,
    }
}

/// Refusals at one provider that are written to the audit log, which is never trimmed; further ones are only logged.
const REFUSAL_RATE: Rate = Rate { requests: 60, window_ms: 60_000 };

/// Records that a person was not admitted, and why. The answer says less.
pub(super) async fn record_refusal(app: &App, origin: &Origin, provider: &Provider, reason: &str) {
    let limit = [Limit { key: format!("sso-refusals:{}", provider.id), rate: REFUSAL_RATE }];
    if !matches!(app.limiter.take(&limit, app.clock.now()).await, Ok(Verdict::Granted(_))) {
        tracing::warn!(
            identity_provider.id = %provider.id,
            reason,
            "refused a sign-in at identity provider {}: {reason}; too many for the audit log", provider.id
        );
        return;
    }
    let written = async {
        let mut tx = app.db.write().await?;
        let entry = NewEntry {
            org: provider.org_id,
            actor: None,
            action: "sso.refused",
            target: ("identity_provider", provider.id.0),
            detail: json!({ "kind": provider.kind, "reason": reason }),
        };
        entry::record(&mut tx, app, origin, entry).await?;
        tx.commit().await?;
        Ok::<(), Error>(())
    };
    if let Err(error) = written.await {
        tracing::error!(error = %error, "a refused sign-in could not be written to the audit log");
    }
}

/// A change of an account because its person signed in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Created,
    Linked,
    RoleChanged(Role),
    /// The provider gives another role, but the user is the only administrator of the organization.
    RoleKept(Role),
}

impl Step {
    fn action(self) -> &'static str {
        match self {
            Step::Created => USER_CREATED.as_str(),
            Step::Linked => "user.identity_linked",
            Step::RoleChanged(_) => USER_ROLE_CHANGED.as_str(),
            Step::RoleKept(_) => "user.role_kept",
        }
    }

    fn event_type(self) -> Option<EventType> {
        match self {
            Step::Created => Some(USER_CREATED),
            Step::RoleChanged(_) => Some(USER_ROLE_CHANGED),
            Step::Linked | Step::RoleKept(_) => None,
        }
    }
}

/// Writes the step's audit entry and, where there is one, its event.
pub(super) async fn record(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    provider: &Provider,
    user: &User,
    step: Step,
) -> Result<(), Error> {
    let mut detail =
        json!({ "username": user.username, "role": user.role, "identity_provider_id": provider.id });
    match step {
        Step::RoleChanged(old) => detail["old_role"] = json!(old),
        Step::RoleKept(wanted) => detail["wanted_role"] = json!(wanted),
        Step::Created | Step::Linked => {}
    }
    let org: OrgId = user.org_id;
    let entry = NewEntry {
        org,
        actor: Some(user.into()),
        action: step.action(),
        target: ("user", user.id.0),
        detail,
    };
    entry::record(tx, app, origin, entry).await?;
    let Some(event_type) = step.event_type() else { return Ok(()) };
    let mut payload =
        json!({ "user_id": user.id, "username": user.username, "role": user.role, "actor_id": user.id });
    if let Step::RoleChanged(old) = step {
        payload["old_role"] = json!(old);
    }
    let event = NewEvent::of(event_type, org, payload);
    events::append(tx, &event, &app.clock).await?;
    if let Step::RoleChanged(old) = step {
        let fields = json!({ "actor_id": null, "role": user.role, "old_role": old });
        security::record(tx, &app.clock, ROLE_CHANGED, user, fields).await?;
    }
    Ok(())
}
