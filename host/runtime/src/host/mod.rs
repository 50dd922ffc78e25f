//! What the host gives to components: one file per interface.

#![expect(unreachable_pub, reason = "the generated bindings re-export the handles")]

mod base;
mod events;
mod fabric;
mod http;
mod kv;
mod schedule;
mod stdio;
pub(crate) mod wasi;

use std::sync::Arc;

use crate::egress::Outbound;

/// Names a secret; holds no bytes.
pub struct SecretHandle {
    pub(crate) name: String,
}

/// Names a target of the call.
pub struct TargetHandle {
    pub(crate) outbound: Arc<Outbound>,
}
