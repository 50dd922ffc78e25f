//! What the host gives to components: one file per interface.

#![expect(unreachable_pub, reason = "the generated bindings re-export the handles")]

mod base;
mod http;

/// Names a secret of the controller's credential; holds no bytes.
pub struct SecretHandle {
    pub(crate) name: String,
}

/// Names the controller of the call.
pub struct TargetHandle;
