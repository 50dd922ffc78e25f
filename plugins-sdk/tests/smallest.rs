//! The example of the documentation compiles, and works against a fake host.

#[path = "../examples/smallest.rs"]
mod smallest;

use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter, Effect, FaultExt, fault, json};
use serde_json::json;
use smallest::Acme;

fn host() -> FakeHost<'static> {
    FakeHost::new(|_, _| Ok(json_response(200, &json!({"name": "gw", "model": "A1", "version": "2.0"}))))
}

#[test]
fn the_smallest_adapter_answers_a_check() {
    let profile = Acme::check(&host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("A1", "2.0"));
    assert_eq!(Acme::list_devices(&host(), None, None).unwrap().items[0].identity, "gw");
}

#[test]
fn an_adapter_that_only_reads_refuses_to_plan() {
    let fault = Acme::plan(&host(), &[]).unwrap_err();
    assert_eq!(fault.info().message, "this adapter only reads");
    assert!(matches!(fault.info().effect, Effect::None));
}

#[test]
fn the_digest_ignores_the_order_of_keys_but_not_of_items() {
    assert_eq!(
        json::digest(&json!({"a": 1, "b": {"c": 1, "d": 2}})),
        json::digest(&json!({"b": {"d": 2, "c": 1}, "a": 1}))
    );
    assert_ne!(json::digest(&json!([1, 2])), json::digest(&json!([2, 1])));
}

#[test]
fn a_fault_carries_what_is_wrong_with_which_field() {
    let fault = fault::invalid("no").with_field("/name", "taken").with_code("exists");
    assert_eq!(fault.info().fields[0].pointer, "/name");
    assert_eq!(fault.info().code.as_deref(), Some("exists"));
}
