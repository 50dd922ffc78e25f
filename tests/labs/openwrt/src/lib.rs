//! A simulated router that speaks ubus over HTTP JSON-RPC and keeps state, for tests and for the demo.
//!
//! It reproduces what the real daemons were observed to do, traps included, so that a test asserts on the device
//! and not on a call. It does not route packets, and its households and firmware are made up.
//!
//! [`Router::builder`] starts one. A second port takes orders: faults, restarts, edits behind the manager's back.

mod args;
mod control;
mod controller;
mod device;
mod dispatch;
mod fault;
mod files;
mod fw4;
mod inventory;
mod objects;
mod recorder;
mod router;
mod session;
mod status;
mod subscribe;
#[cfg(test)]
mod tests;
mod uci;

pub use fault::{Effect, Fault};
pub use recorder::{Call, Counters};
pub use router::{Router, RouterBuilder};
pub use session::Access;
pub use uci::{Change, UciValue};
