//! Entries of the audit log: which actor did what to which object. Written in the transaction of what they report.

use heddle_core::{OrgId, UserId};
use heddle_store::audit::{self, NewAudit};
use heddle_store::{Tx, User};
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::caller::Caller;
use crate::http::error::Error;
use crate::http::extract::Origin;

/// Name of the actor where no user is authenticated.
const ANONYMOUS: &str = "anonymous";

/// The user that did it, and the credential, where that was not a session of the user.
#[derive(Debug)]
pub struct Actor<'a> {
    id: UserId,
    name: &'a str,
    via: Option<Value>,
}

impl<'a> From<&'a User> for Actor<'a> {
    fn from(user: &'a User) -> Self {
        Self { id: user.id, name: &user.username, via: None }
    }
}

/// An entry that is to be written.
#[derive(Debug)]
pub struct NewEntry<'a> {
    /// The organization that it happened in.
    pub org: OrgId,
    /// `None` where no user is authenticated.
    pub actor: Option<Actor<'a>>,
    /// `site.created`, `user.login`, …
    pub action: &'static str,
    /// Type and id of what it was done to.
    pub target: (&'static str, Uuid),
    /// Never a secret.
    pub detail: Value,
}

impl Caller {
    /// This caller as the actor of an entry.
    pub fn actor(&self) -> Option<Actor<'_>> {
        Some(Actor { id: self.user_id, name: &self.username, via: self.credential.via() })
    }
}

/// Appends the entry in the transaction of what it reports, so that both are stored or neither is. Takes
/// secrets out of the detail, which must be a JSON object, and adds a credential other than a session as
/// `via`. Other writers of the organization's log wait until the transaction ends.
pub async fn record(tx: &mut Tx, app: &App, origin: &Origin, entry: NewEntry<'_>) -> Result<(), Error> {
    let NewEntry { org, actor, action, target: (target_type, target_id), mut detail } = entry;
    if let Some(via) = actor.as_ref().and_then(|actor| actor.via.as_ref()) {
        detail["via"] = via.clone();
    }
    heddle_core::redact::sanitize(&mut detail);
    let new = NewAudit {
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
    audit::append(tx, &new, &app.clock, &app.audit_key).await?;
    Ok(())
}

/// Fields that differ after every change and say nothing about it.
const UNTOLD: &[&str] = &["updated_at"];

/// Longest value that an entry holds, in bytes of JSON; of a longer one only the length is recorded.
const VALUE_BYTES_MAX: usize = 4096;

/// Adds `before` and `after` to the detail of an update: the fields that differ, as clients see the object.
///
/// Removes fields of the detail that were not given. Secrets are masked by [`record`], as everywhere.
pub fn with_difference(mut detail: Value, before: &impl Serialize, after: &impl Serialize) -> Value {
    let (Ok(Value::Object(before)), Ok(Value::Object(after))) =
        (serde_json::to_value(before), serde_json::to_value(after))
    else {
        return detail;
    };
    let differs = |name: &str| before.get(name) != after.get(name) && !UNTOLD.contains(&name);
    let side = |object: &Map<String, Value>| -> Map<String, Value> {
        let told = object.iter().filter(|(name, _)| differs(name));
        told.map(|(name, value)| (name.clone(), shortened(value))).collect()
    };
    if let Some(fields) = detail.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        fields.insert("before".to_owned(), Value::Object(side(&before)));
        fields.insert("after".to_owned(), Value::Object(side(&after)));
    }
    detail
}

fn shortened(value: &Value) -> Value {
    let bytes = value.to_string().len();
    if bytes > VALUE_BYTES_MAX { json!({ "omitted_bytes": bytes }) } else { value.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_tells_what_was_and_what_is_and_nothing_that_stayed() {
        let before = json!({ "name": "a", "url": "u", "notes": null, "updated_at": 1, "gone": 1 });
        let after = json!({ "name": "b", "url": "u", "notes": "n", "updated_at": 2 });
        let detail = with_difference(json!({ "name": "b", "url": null }), &before, &after);
        let expected = json!({
            "name": "b",
            "before": { "name": "a", "notes": null, "gone": 1 },
            "after": { "name": "b", "notes": "n" },
        });
        assert_eq!(detail, expected);
    }

    #[test]
    fn a_long_value_is_told_by_its_length() {
        let detail =
            with_difference(json!({}), &json!({ "text": "a" }), &json!({ "text": "x".repeat(5000) }));
        assert_eq!(detail["after"]["text"], json!({ "omitted_bytes": 5002 }));
    }
}
