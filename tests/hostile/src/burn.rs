//! Behaviours that use up what the host lends: time, memory, stack, handles, room.

use std::hint::black_box;

use heddle_sdk::bindings::heddle::host::http;
use heddle_sdk::{Host, Level};
use serde_json::{Value, json};

/// More than the host takes in one call or as one result (8 MiB).
const TOO_MANY_BYTES: usize = 9 << 20;

pub(crate) fn spin(_: &dyn Host) -> Value {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

pub(crate) fn spin_in_host_calls(host: &dyn Host) -> Value {
    loop {
        black_box(host.now_ms());
    }
}

pub(crate) fn memory(_: &dyn Host) -> Value {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(black_box(vec![1; 1 << 20]));
    }
}

/// Runs out of the engine's stack: it keeps nothing in linear memory.
pub(crate) fn recursion(host: &dyn Host) -> Value {
    let much = u32::try_from(host.now_ms() % 2).unwrap_or_default() + 4;
    json!(ackermann(much, much))
}

#[inline(never)]
fn ackermann(m: u32, n: u32) -> u32 {
    match (m, n) {
        (0, n) => n.wrapping_add(1),
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

/// Runs out of the guest's own stack, which lies at the start of its memory.
pub(crate) fn stack(host: &dyn Host) -> Value {
    json!(pile(host.now_ms()))
}

#[inline(never)]
fn pile(depth: u64) -> u64 {
    let frame = black_box([depth; 128]);
    if depth == 0 { 0 } else { pile(black_box(depth + 1)).wrapping_add(frame[127]) }
}

pub(crate) fn huge_text(_: &dyn Host) -> Value {
    Value::String("x".repeat(TOO_MANY_BYTES))
}

pub(crate) fn huge_list(_: &dyn Host) -> Value {
    Value::Array(vec![Value::Null; 150_000])
}

pub(crate) fn huge_argument(host: &dyn Host) -> Value {
    host.log(Level::Info, &"x".repeat(TOO_MANY_BYTES), &[]);
    json!("logged")
}

pub(crate) fn handles(_: &dyn Host) -> Value {
    let mut held = Vec::new();
    for _ in 0..5_000 {
        held.push(http::open("controller").expect("a read has a target"));
    }
    json!({ "held": held.len() })
}

pub(crate) fn log_flood(host: &dyn Host) -> Value {
    for n in 0..10_000 {
        host.log(Level::Warn, "flood", &[("hostile.line", &n.to_string())]);
    }
    json!("flooded")
}

pub(crate) fn panic(host: &dyn Host) -> Value {
    panic!("told to panic at {}", host.now_ms());
}

pub(crate) fn unreachable(_: &dyn Host) -> Value {
    std::process::abort();
}

pub(crate) fn exit(_: &dyn Host) -> Value {
    std::process::exit(0);
}

/// The body is broken where the object is made.
pub(crate) fn not_json(_: &dyn Host) -> Value {
    Value::Null
}
