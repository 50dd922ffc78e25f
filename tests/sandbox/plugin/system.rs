//! Packages whose components import system interfaces, as toolchains of other languages make them.

use heddle_core::Clock;
use serde_json::{Value, json};

use super::super::{shared_code, start_runtime};
use super::prepare;

/// A plugin that does nothing and asks for nothing.
fn manifest() -> Value {
    let mut manifest = super::manifest("https://a.test");
    manifest["capabilities"] = json!({});
    manifest["event-types"] = json!([]);
    manifest["actions"] = json!([]);
    manifest
}

async fn prepared(text: &str) -> Result<(), String> {
    let component = wat::parse_str(text).expect("the text is a component");
    let runtime = start_runtime(&shared_code(), &[], &Clock::default());
    prepare(&runtime, &manifest(), component).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_may_import_system_interfaces_without_reach() {
    for (interface, functions) in [
        ("wasi:cli/environment@0.2.0", r#"(export "initial-cwd" (func (result (option string))))"#),
        ("wasi:cli/exit@0.2.12", r#"(export "exit" (func (param "status" (result))))"#),
        ("wasi:clocks/monotonic-clock@0.2.9", r#"(export "now" (func (result u64)))"#),
        ("wasi:random/insecure-seed@0.2.12", r#"(export "insecure-seed" (func (result (tuple u64 u64))))"#),
    ] {
        let text = format!(r#"(component (import "{interface}" (instance {functions})))"#);
        prepared(&text).await.unwrap_or_else(|refused| panic!("{interface}: {refused}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_imports_more_is_refused_by_name() {
    for interface in [
        "wasi:sockets/tcp@0.2.9",
        "wasi:sockets/network@0.2.9",
        "wasi:http/outgoing-handler@0.2.9",
        "wasi:keyvalue/store@0.2.0",
    ] {
        let text = format!(r#"(component (import "{interface}" (instance (export "f" (func)))))"#);
        let refused = prepared(&text).await.unwrap_err();
        assert!(refused.contains(interface) && refused.contains("--stub-wasi"), "{refused}");
    }
}

/// Neither a version that the host does not have nor a function that the interface does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interface_that_does_not_fit_is_refused() {
    for interface in ["wasi:cli/exit@0.3.0", "wasi:cli/exit@0.2.0"] {
        let text = format!(r#"(component (import "{interface}" (instance (export "f" (func)))))"#);
        let refused = prepared(&text).await.unwrap_err();
        assert!(refused.contains("wasi:cli/exit"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_may_have_several_memories() {
    let text = "(component (core module $m (memory 1)) (core instance (instantiate $m)) (core instance (instantiate $m)))";
    prepared(text).await.unwrap();
    let refused = prepared("(component (core module (memory 1) (memory 1)))").await.unwrap_err();
    assert!(refused.contains("not valid"), "{refused}");
}
