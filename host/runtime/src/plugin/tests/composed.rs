//! Components that are made of several modules or components, as the toolchains of some languages make them.

use super::*;
use crate::limits::{CORE_INSTANCES_MAX, MEMORIES_MAX};

/// Modules with a memory of so many pages each.
fn memories(count: u32, pages: u32) -> String {
    let module = format!("(core module $m (memory {pages}))");
    format!("(component {module} {})", "(core instance (instantiate $m))".repeat(count as usize))
}

/// Links a component and instantiates it, as when it is installed.
async fn tried(text: &str) -> Result<(), String> {
    let lab = Lab::start();
    let plugin = lab.plugin_of(&wat::parse_str(text).unwrap(), |_| ())?;
    lab.runtime.shared.tried(&plugin.0.component).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_component_has_a_bounded_number_of_modules_and_memories() {
    tried(&memories(MEMORIES_MAX, 1)).await.unwrap();
    let refused = tried(&memories(MEMORIES_MAX + 1, 1)).await.unwrap_err();
    assert!(refused.contains("memories"), "{refused}");

    let instances = |count: u32| {
        format!("(component (core module $m) {})", "(core instance (instantiate $m))".repeat(count as usize))
    };
    tried(&instances(CORE_INSTANCES_MAX)).await.unwrap();
    let refused = tried(&instances(CORE_INSTANCES_MAX + 1)).await.unwrap_err();
    assert!(refused.contains("core module instances"), "{refused}");
}

/// A manifest that asks for nothing gets 64 MiB: 1,024 pages.
#[tokio::test]
async fn several_memories_have_no_more_bytes_than_one() {
    tried(&memories(1, 1_000)).await.unwrap();
    tried(&memories(4, 250)).await.unwrap();
    tried(&memories(1, 1_100)).await.unwrap_err();
    let refused = tried(&memories(4, 275)).await.unwrap_err();
    assert!(refused.contains("memory"), "{refused}");
}

/// Between two components the engine copies from one memory into another, in a module that it makes itself.
#[tokio::test]
async fn a_component_of_components_hands_texts_over() {
    let of = |expected: u32| {
        format!(
            r#"(component
            (component $a
                (core module $m (memory (export "memory") 1)
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                    (func (export "f") (param i32 i32) (result i32)
                        (i32.add (local.get 1) (i32.load8_u (local.get 0)))))
                (core instance $i (instantiate $m))
                (func (export "f") (param "s" string) (result u32)
                    (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc")))))
            (component $b
                (import "f" (func $f (param "s" string) (result u32)))
                (core module $text (memory (export "memory") 1) (data (i32.const 8) "a"))
                (core instance $text (instantiate $text))
                (core func $f (canon lower (func $f) (memory $text "memory")))
                (core module $m (import "" "f" (func $f (param i32 i32) (result i32)))
                    (func $start (if
                        (i32.ne (call $f (i32.const 8) (i32.const 1)) (i32.const {expected}))
                        (then (unreachable))))
                    (start $start))
                (core instance (instantiate $m (with "" (instance (export "f" (func $f)))))))
            (instance $a (instantiate $a))
            (instance (instantiate $b (with "f" (func $a "f")))))"#
        )
    };
    // The one byte, and the length 1.
    tried(&of(u32::from(b'a') + 1)).await.unwrap();
    let refused = tried(&of(0)).await.unwrap_err();
    assert!(refused.contains("unreachable"), "{refused}");
}

#[tokio::test]
async fn a_module_of_a_guest_has_one_memory() {
    let refused = tried("(component (core module (memory 1) (memory 1)))").await.unwrap_err();
    assert!(refused.contains("multiple memories") || refused.contains("multi-memory"), "{refused}");
}
