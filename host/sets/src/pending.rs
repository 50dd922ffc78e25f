//! Changes that wait for a person already: what rooms above would stage a second time.

use heddle_changes::Request;
use heddle_core::change::{ChangeStatus, Operation};
use heddle_core::page::PageRequest;
use heddle_core::redact::REFERENCE;
use heddle_core::{ChangeId, ControllerId, SiteId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::changes::{self, ChangeFilter, ChangeRow};
use serde_json::{Value, json};

/// Rows of a page of pending changes, and the pages of a feature that are looked at.
const ROWS: u32 = 200;
const PAGES: u32 = 25;

/// Pending changes of a site.
#[derive(Debug, Default)]
pub struct Pending(Vec<Waiting>);

/// What a change that waits does.
#[derive(Debug)]
struct Waiting {
    id: ChangeId,
    controller_id: ControllerId,
    site_ref: Option<String>,
    feature: String,
    operation: Operation,
    payload: Value,
}

impl From<ChangeRow> for Waiting {
    fn from(row: ChangeRow) -> Self {
        Self {
            id: row.id,
            controller_id: row.controller_id,
            site_ref: row.site_ref,
            feature: row.feature,
            operation: row.operation,
            payload: row.payload,
        }
    }
}

impl Waiting {
    /// Whether it is about the same kind of object at the same place.
    fn is_beside(&self, asked: &Request) -> bool {
        self.controller_id == asked.controller_id
            && self.site_ref == asked.site_ref
            && self.feature == asked.feature
    }
}

impl Pending {
    /// The pending changes of these features at a site, as far as the caller sees them.
    ///
    /// # Errors
    /// The database gives no answer.
    pub async fn load(app: &App, caller: &Caller, site: SiteId, features: &[&str]) -> Result<Self, Error> {
        let mut found = Vec::new();
        let mut tx = app.db.read().await?;
        for feature in features {
            let filter = ChangeFilter {
                site_id: Some(site),
                status: Some(ChangeStatus::Pending),
                feature: Some((*feature).to_owned()),
                ..ChangeFilter::default()
            };
            for page in 1..=PAGES {
                let asked = PageRequest { page, per_page: ROWS };
                let (rows, total) = changes::list(&mut tx, &caller.scope(), &filter, asked).await?;
                found.extend(rows.into_iter().map(Waiting::from));
                if i64::from(page * ROWS) >= total {
                    break;
                }
            }
        }
        Ok(Self(found))
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The change that does the same.
    pub fn find(&self, app: &App, asked: &Request) -> Option<ChangeId> {
        self.same(asked, &app.keys.reference_key(asked.controller_id))
    }

    fn same(&self, asked: &Request, key: &[u8; 32]) -> Option<ChangeId> {
        let is = |waiting: &&Waiting| {
            waiting.is_beside(asked)
                && waiting.operation == asked.operation
                && is_same(&waiting.payload, &hidden(&waiting.payload, &asked.payload, key))
        };
        self.0.iter().find(is).map(|waiting| waiting.id)
    }

    /// Another change of the object that is to be updated. Payloads carry whole lists, made of the state of now: the second
    /// one would take back what the first one did.
    pub fn of_same_object(&self, asked: &Request) -> Option<ChangeId> {
        let key = asked.payload.get("key").filter(|_| asked.operation == Operation::Update)?;
        let is = |waiting: &&Waiting| waiting.is_beside(asked) && waiting.payload.get("key") == Some(key);
        self.0.iter().find(is).map(|waiting| waiting.id)
    }
}

/// What is asked for, with references in place of secrets where the stored payload has them.
fn hidden(stored: &Value, asked: &Value, key: &[u8; 32]) -> Value {
    match (stored, asked) {
        (Value::String(stored), Value::String(text)) if stored.starts_with(REFERENCE) => {
            json!(heddle_runtime::reference(key, text))
        }
        (Value::Object(stored), Value::Object(fields)) => {
            let hide = |(name, value): (&String, &Value)| {
                let known = stored.get(name).unwrap_or(&Value::Null);
                (name.clone(), hidden(known, value, key))
            };
            Value::Object(fields.iter().map(hide).collect())
        }
        (Value::Array(stored), Value::Array(items)) if stored.len() == items.len() => {
            stored.iter().zip(items).map(|(stored, item)| hidden(stored, item, key)).collect()
        }
        _ => asked.clone(),
    }
}

/// Whether two payloads ask for the same, in whatever order their fields are.
fn is_same(one: &Value, other: &Value) -> bool {
    heddle_store::audit::canonical(one) == heddle_store::audit::canonical(other)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn request(controller_id: ControllerId, operation: Operation, payload: Value) -> Request {
        Request {
            controller_id,
            site_id: None,
            site_ref: None,
            vendor: None,
            area: "network".to_owned(),
            feature: "network.port".to_owned(),
            operation,
            payload,
            also: Vec::new(),
            notes: None,
        }
    }

    #[test]
    fn an_object_with_a_pending_change_gets_no_second_update() {
        let clock = Clock::default();
        let (id, controller) = (clock.new_id(), clock.new_id());
        let pending = Pending(vec![Waiting {
            id,
            controller_id: controller,
            site_ref: None,
            feature: "network.port".to_owned(),
            operation: Operation::Update,
            payload: json!({ "key": "eth5", "tagged_vlans": [10, 20] }),
        }]);
        let update = |key: &str, vlans: Value| {
            request(controller, Operation::Update, json!({ "tagged_vlans": vlans, "key": key }))
        };
        assert_eq!(pending.same(&update("eth5", json!([10, 20])), &[0; 32]), Some(id), "it does the same");
        let other = update("eth5", json!([10, 30]));
        assert_eq!((pending.same(&other, &[0; 32]), pending.of_same_object(&other)), (None, Some(id)));
        for asked in [
            update("eth6", json!([10, 30])),
            Request { controller_id: clock.new_id(), ..update("eth5", json!([10, 30])) },
            Request { site_ref: Some("b".to_owned()), ..update("eth5", json!([10, 30])) },
            Request { feature: "network.vlan".to_owned(), ..update("eth5", json!([10, 30])) },
            request(controller, Operation::Delete, json!({ "key": "eth5" })),
            request(controller, Operation::Create, json!({ "tagged_vlans": [10] })),
        ] {
            assert_eq!(pending.of_same_object(&asked), None, "{asked:?}");
        }
    }

    #[test]
    fn a_secret_is_compared_by_its_reference() {
        let clock = Clock::default();
        let (id, controller, key) = (clock.new_id(), clock.new_id(), [7; 32]);
        let stored = json!({ "name": "guests", "passphrase": heddle_runtime::reference(&key, "geheim") });
        let pending = Pending(vec![Waiting {
            id,
            controller_id: controller,
            site_ref: None,
            feature: "network.port".to_owned(),
            operation: Operation::Create,
            payload: stored,
        }]);
        let asked = |secret: &str| {
            request(controller, Operation::Create, json!({ "name": "guests", "passphrase": secret }))
        };
        assert_eq!(pending.same(&asked("geheim"), &key), Some(id));
        assert_eq!(pending.same(&asked("anders"), &key), None);
        assert_eq!(pending.same(&asked("geheim"), &[8; 32]), None, "of another controller");
    }
}
