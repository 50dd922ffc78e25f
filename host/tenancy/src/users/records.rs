//! The records of a step in a user's life: its audit entry and its event, in one transaction.

use heddle_core::Role;
use heddle_core::event::{EventType, NewEvent};
use heddle_identity::declarations::{
    ROLE_CHANGED, USER_CREATED, USER_REMOVED, USER_RESTORED, USER_ROLE_CHANGED, USER_UPDATED,
};
use heddle_identity::security;
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_store::users::User;
use heddle_store::{Tx, events};
use serde_json::{Value, json};

/// A change of a user.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Created,
    /// Names of the fields, never their values: a password is among them.
    Updated(&'a [&'static str]),
    RoleChanged(Role),
    Removed,
    Restored,
}

impl Step<'_> {
    fn event_type(self) -> EventType {
        match self {
            Step::Created => USER_CREATED,
            Step::Updated(_) => USER_UPDATED,
            Step::RoleChanged(_) => USER_ROLE_CHANGED,
            Step::Removed => USER_REMOVED,
            Step::Restored => USER_RESTORED,
        }
    }

    fn payload(self, caller: &Caller, user: &User) -> Value {
        let mut payload = json!({
            "user_id": user.id,
            "username": user.username,
            "role": user.role,
            "actor_id": caller.user_id,
        });
        match self {
            Step::Updated(changed) => payload["changed"] = json!(changed),
            Step::RoleChanged(old) => payload["old_role"] = json!(old),
            Step::Created | Step::Removed | Step::Restored => {}
        }
        payload
    }

    fn detail(self, user: &User) -> Value {
        let mut detail = json!({ "username": user.username, "role": user.role });
        match self {
            Step::Updated(changed) => {
                detail["changed"] = json!(changed);
                detail["is_active"] = json!(user.is_active);
            }
            Step::RoleChanged(old) => detail["old_role"] = json!(old),
            Step::Created => detail["is_active"] = json!(user.is_active),
            Step::Removed | Step::Restored => {}
        }
        detail
    }
}

/// Writes the step's audit entry and event.
pub(super) async fn record(
    tx: &mut Tx,
    app: &App,
    caller: &Caller,
    origin: &Origin,
    user: &User,
    step: Step<'_>,
) -> Result<(), Error> {
    let event_type = step.event_type();
    let entry = NewEntry {
        org: user.org_id,
        actor: caller.actor(),
        action: event_type.as_str(),
        target: ("user", user.id.0),
        detail: step.detail(user),
    };
    entry::record(tx, app, origin, entry).await?;
    let event = NewEvent {
        event_type,
        org_id: user.org_id,
        site_id: None,
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: step.payload(caller, user),
    };
    events::append(tx, &event, &app.clock).await?;
    if let Step::RoleChanged(old) = step {
        let fields = json!({ "actor_id": caller.user_id, "role": user.role, "old_role": old });
        security::record(tx, &app.clock, ROLE_CHANGED, user, fields).await?;
    }
    Ok(())
}
