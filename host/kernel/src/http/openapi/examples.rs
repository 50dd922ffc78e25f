//! A body for every operation that takes one, as a person would send it. A test sends each.
//!
//! They stand in `assets/examples.json` by the names of the operations.

use std::sync::LazyLock;

use serde_json::{Map, Value};

static BODIES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../assets/examples.json"))
        .expect("the examples are JSON, which a test of this module reads")
});

/// The body to show for this operation.
pub(super) fn body(operation: &str) -> Option<&'static Value> {
    BODIES.get(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_objects() {
        assert!(BODIES.values().all(Value::is_object));
        assert!(body("create_site").is_some());
        assert!(body("get_site").is_none());
    }
}
