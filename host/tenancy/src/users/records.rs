//! The records of a change of a user: its audit entry and its events, in the transaction of the change.

use heddle_core::Role;
use heddle_core::event::{EventType, NewEvent};
use heddle_identity::declarations::{
    ROLE_CHANGED, USER_CREATED, USER_REMOVED, USER_RESTORED, USER_ROLE_CHANGED, USER_UPDATED,
};
use heddle_identity::security;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::{By, Done, Resource as _};
use heddle_store::users::User;
use heddle_store::{Tx, events};
use serde_json::{Value, json};

use super::Users;

/// Returns the event of what was done to a user. A change says itself what it changed.
pub(super) fn event(done: Done, user: &User, by: &By) -> Option<NewEvent> {
    let event_type = match done {
        Done::Created => USER_CREATED,
        Done::Updated => return None,
        Done::Removed => USER_REMOVED,
        Done::Restored => USER_RESTORED,
    };
    Some(event_of(event_type, user, by, json!({})))
}

/// The event with these fields beside those that all events of users have.
fn event_of(event_type: EventType, user: &User, by: &By, mut payload: Value) -> NewEvent {
    payload["user_id"] = json!(user.id);
    payload["username"] = json!(user.username);
    payload["role"] = json!(user.role);
    payload["actor_id"] = json!(by.caller.user_id);
    NewEvent::of(event_type, user.org_id, payload)
}

/// Records changed fields by their names, never their values: a password is among them.
pub(super) async fn updated(
    tx: &mut Tx,
    by: &By,
    user: &User,
    changed: &[&'static str],
) -> Result<(), Error> {
    let mut detail = Users::detail(user);
    detail["changed"] = json!(changed);
    detail["is_active"] = json!(user.is_active);
    by.record::<Users>(tx, user, Users::ACTIONS.updated, detail).await?;
    let event = event_of(USER_UPDATED, user, by, json!({ "changed": changed }));
    events::append(tx, &event, &by.app.clock).await?;
    Ok(())
}

/// Records another role.
pub(super) async fn role_changed(tx: &mut Tx, by: &By, user: &User, old: Role) -> Result<(), Error> {
    let mut detail = Users::detail(user);
    detail["old_role"] = json!(old);
    by.record::<Users>(tx, user, USER_ROLE_CHANGED.as_str(), detail).await?;
    let event = event_of(USER_ROLE_CHANGED, user, by, json!({ "old_role": old }));
    events::append(tx, &event, &by.app.clock).await?;
    let fields = json!({ "actor_id": by.caller.user_id, "role": user.role, "old_role": old });
    security::record(tx, &by.app.clock, ROLE_CHANGED, user, fields).await
}
