//! Names what a plugin asks the server for during a call, so that the same request of a repeated call is done once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use heddle_store::audit::canonical;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The operations that a plugin called during one call of it.
///
/// A call that is repeated may ask for other things, or in another order: what it asked for before is known by operation
/// and parameters, and not by its place among the others.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<BTreeMap<String, u32>>);

impl Calls {
    /// The idempotency key of the next call of an operation. `of` is the key of what the plugin was called for, and the id of
    /// the plugin. The same request again within the call has another key: it is counted.
    pub(crate) fn key(&self, (of, plugin): (&str, &str), operation: &str, params: &Value) -> String {
        let mut hash = Sha256::new_with_prefix(operation.as_bytes());
        hash.update([0_u8]);
        hash.update(canonical(params).to_string().as_bytes());
        let request = hex::encode(hash.finalize());
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(request.clone()).or_insert(0);
        let key = format!("{of}:{plugin}:{request}:{count}");
        *count += 1;
        key
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_the_same_key_whatever_was_asked_before_it() {
        let (first, second) = (Calls::default(), Calls::default());
        let key = |calls: &Calls, operation: &str, params: Value| {
            calls.key(("event:7", "acme"), operation, &params)
        };
        let a = key(&first, "rule.create", json!({ "name": "a", "port": 1 }));
        let b = key(&first, "rule.create", json!({ "name": "b", "port": 1 }));
        // The repeated call knows that the first is done.
        assert_eq!(key(&second, "rule.create", json!({ "port": 1, "name": "b" })), b);
        assert_eq!(key(&second, "rule.create", json!({ "name": "a", "port": 1.0 })), a);
        assert_ne!(a, b);
        assert!(a.starts_with("event:7:acme:") && a.len() < 100, "{a}");
    }

    #[test]
    fn the_same_request_twice_and_another_operation_have_keys_of_their_own() {
        let calls = Calls::default();
        let mut keys: Vec<String> = ["rule.create", "rule.create", "rule.delete"]
            .into_iter()
            .map(|operation| calls.key(("event:7", "acme"), operation, &json!({})))
            .collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 3, "{keys:?}");
    }
}
