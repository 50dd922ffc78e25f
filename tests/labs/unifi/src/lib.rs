//! A simulated `UniFi` console that speaks the vendor's three interfaces and keeps state, for tests, benches and demos.
//!
//! What the contract says of routes and fields is data (`facts.json`, made by `facts.py`); what single objects do by
//! themselves is code, a file for each subject. Every write acts at once: the controller stores it, may store something
//! else in its place, and delivers it to the devices, which takes them a step. All interfaces show one store: a network
//! that the official one made has an older form, and the other way round. It moves no packets, reaches no other host, and
//! its household is made up.
//!
//! [`Console`] is the controller; `heddle_lab::Lab` starts it. [`Settings`] says which host it is, which release, and how
//! fast it is.
//!
//! - Control port, beside the skeleton's part: `GET /tables/{site}/{table}`.
//! - Edits by a person or by the house: `{"do": "create", "table", "body"}`, `update`, `delete`, `setting`, `raw`, `device`,
//!   `pending`, `client`, `new_client`, `port`, `firmware`, `log`, `key`, `missing` and `restart`.
//! - Faults: `starting` answers the page of an application that starts, `login_limited` 429 to logins, `login_empty` nothing
//!   with status 200, `login_without_csrf` no CSRF token, `session_ended` ends sessions, `csrf_refused` refuses the token,
//!   `dropped_write` answers well and stores nothing, `stored_with_error` the other way round, `stale_answer` does not show
//!   what is stored, `device_busy` refuses a write to a device, `adopt_fails` and `upgrade_fails` let those fail,
//!   `events_refused` refuses the stream, `events_silent` sends nothing over it.

mod access;
mod backup;
mod check;
mod clients;
mod commands;
mod console;
mod controller;
mod defaults;
mod devices;
mod dns;
mod edit;
mod facts;
mod host;
mod hotspot;
mod net;
mod official;
mod policies;
mod release;
mod reply;
mod rest;
mod rewrites;
mod row;
mod rules;
mod seed;
mod settings;
mod sites;
mod stats;
mod store;
mod stream;
mod switches;
#[cfg(test)]
mod tests;
mod timeline;
mod v1;
mod v2;
mod wlans;

pub use console::Console;
pub use release::Release;
pub use settings::{Kind, SessionEnd, Settings};
