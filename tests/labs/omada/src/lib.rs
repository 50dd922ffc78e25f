//! A simulated TP-Link Omada controller that speaks the vendor's two interfaces and keeps state, for tests
//! and demos.
//!
//! Routes, fields, limits and collections come from facts about the vendor's interface; what the facts
//! cannot tell is
//! written by hand. It moves no packets, and its sites, devices and clients are made up.
//!
//! [`Omada`] runs in a [`heddle_lab::Lab`].

mod call;
mod controller;
mod doors;
mod edit;
mod facts;
mod generic;
mod naming;
mod outcome;
mod page;
mod router;
mod seed;
mod session;
mod shape;
mod special;
mod store;
#[cfg(test)]
mod tests;
mod timeline;
mod webhook;

pub use call::Release;
pub use controller::Omada;
pub use seed::Seed;
pub use session::{SessionEnd, Sessions};
