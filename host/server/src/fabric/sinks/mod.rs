//! Steps that tell somebody at once.

pub(super) mod webhook;
