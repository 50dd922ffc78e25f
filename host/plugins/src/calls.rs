//! Names what a plugin asks the server for during a call, so that the same request of a repeated call is done once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use heddle_core::secret::Secret;
use heddle_kernel::keys::{Keys, keyed_hash};
use heddle_store::audit::canonical;
use serde_json::Value;

/// The operations that a plugin called during one call of it.
///
/// A call that is repeated may ask for other things, or in another order: what it asked for before is known by operation
/// and parameters, and not by its place among the others.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<BTreeMap<String, u32>>);

impl Calls {
    /// The idempotency key of the next call of an operation. `of` is the key of what the plugin was called for, and the id of
    /// the plugin. The same request again within the call has another key: it is counted. The key is stored, and parameters
    /// may hold secrets: without the server's keys nothing about them can be found out.
    pub(crate) fn key(
        &self,
        keys: &Keys,
        (of, plugin): (&str, &str),
        operation: &str,
        params: &Value,
    ) -> String {
        let request = Secret::new(format!("{operation}\0{}", canonical(params)));
        let request = keyed_hash(&keys.request_key(), &request);
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
        let (first, second, keys) = (Calls::default(), Calls::default(), Keys::from_texts("one", "two"));
        let key = |calls: &Calls, operation: &str, params: Value| {
            calls.key(&keys, ("event:7", "acme"), operation, &params)
        };
        let a = key(&first, "rule.create", json!({ "name": "a", "port": 1 }));
        let b = key(&first, "rule.create", json!({ "name": "b", "port": 1 }));
        // The repeated call knows that the first is done.
        assert_eq!(key(&second, "rule.create", json!({ "port": 1, "name": "b" })), b);
        assert_eq!(key(&second, "rule.create", json!({ "name": "a", "port": 1.0 })), a);
        assert_ne!(a, b);
        assert!(a.starts_with("event:7:acme:") && a.len() < 100, "{a}");
        let others = Keys::from_texts("three", "two");
        let elsewhere = Calls::default().key(
            &others,
            ("event:7", "acme"),
            "rule.create",
            &json!({ "name": "a", "port": 1 }),
        );
        assert_ne!(a, elsewhere, "it tells nothing without the server's key");
    }

    #[test]
    fn the_same_request_twice_and_another_operation_have_keys_of_their_own() {
        let (calls, server) = (Calls::default(), Keys::from_texts("one", "two"));
        let mut keys: Vec<String> = ["rule.create", "rule.create", "rule.delete"]
            .into_iter()
            .map(|operation| calls.key(&server, ("event:7", "acme"), operation, &json!({})))
            .collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 3, "{keys:?}");
    }
}
