//! What every simulated controller needs: ports, TLS, faults, a clock that tests move, a record and a control port.
//!
//! A simulator implements [`Controller`], which answers one request at a time from its state. [`Lab::builder`] starts
//! it in the process of a test, [`Options`] and [`run`] as a program. The skeleton knows no vendor.
#![expect(clippy::disallowed_methods, reason = "a test library: its loops end with the Lab")]

mod answer;
mod builder;
mod clock;
mod context;
mod control;
mod controller;
mod fault;
mod faults;
mod form;
mod lab;
mod options;
mod outbox;
mod record;
mod request;
mod respond;
mod schedule;
mod server;
mod shared;
mod socket;
mod streaming;
#[cfg(test)]
mod tests;
mod tls;

pub use answer::Answer;
pub use builder::LabBuilder;
pub use clock::Clock;
pub use context::Context;
pub use controller::Controller;
pub use fault::{Fault, FaultKind, Then};
pub use faults::Faults;
pub use form::FormPart;
pub use lab::Lab;
pub use options::{Options, run};
pub use outbox::Outgoing;
pub use record::{Exchange, Record};
pub use request::Request;
pub use schedule::Schedule;
pub use shared::Locked;
pub use tls::Certificate;

/// Names of methods, headers and statuses, so that simulators need no HTTP library of their own.
pub use axum::http::{HeaderMap, Method, StatusCode, header};
/// Instants that [`Clock`] gives.
pub use tokio::time::Instant;
