//! Events about access to an account: written in the transaction of the change that they report, without any secret.

use heddle_core::event::{EventType, NewEvent};
use heddle_core::{Clock, OrgId, UserId};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::users::User;
use heddle_store::{Tx, events};
use serde_json::{Value, json};

/// The account that a security event is about.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    org: OrgId,
    id: UserId,
    name: &'a str,
}

impl<'a> From<&'a User> for Account<'a> {
    fn from(user: &'a User) -> Self {
        Self { org: user.org_id, id: user.id, name: &user.username }
    }
}

impl<'a> From<&'a Caller> for Account<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self { org: caller.org_id, id: caller.user_id, name: &caller.username }
    }
}

/// Appends a security event with the fields that the catalogue declares in addition to the account.
pub async fn record(
    tx: &mut Tx,
    clock: &Clock,
    event_type: EventType,
    account: impl Into<Account<'_>>,
    fields: Value,
) -> Result<(), Error> {
    let account = account.into();
    let mut payload = json!({ "user_id": account.id, "username": account.name });
    for (name, value) in fields.as_object().into_iter().flatten() {
        payload[name] = value.clone();
    }
    let event = NewEvent::of(event_type, account.org, payload);
    events::append(tx, &event, clock).await?;
    Ok(())
}
