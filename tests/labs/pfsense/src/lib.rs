//! A simulated pfSense firewall that speaks its REST API package and keeps state, for tests, benches and demos.
//!
//! What the contract says of routes, models and fields is data (`facts.json`, made by `facts.py`); validation, filters
//! and order follow the vendor's code step by step; what single models do by themselves is code, a file for each
//! subject. It keeps what is stored apart from what runs: a change acts only after its apply, and that runs in the
//! background. It passes no packets, its household is made up, and it knows no field of the `GraphQL` schema.
//!
//! [`Pfsense`] is the controller; `heddle_lab::Lab` starts it. Lists have the names of the vendor's models, such as
//! `FirewallRule`. An object keeps its children under `@` and the name of their model, interfaces have their ids.
//!
//! - Control port, beside the skeleton's part: `GET /pending`, `GET /stored/{model}`, `GET /running/{model}`.
//! - Edits by a person: `{"do": "set", "model", "id", "fields", "at", "apply"}`, `remove`, `apply`, `package`,
//!   `gateway`, `lease`, `release` and `session`.
//! - Faults: `config_lock_busy` refuses writes because the lock of the file is held, `lost_update` answers a write that
//!   a parallel one overwrites, `reload_fails` lets an apply end without effect, `queue_full` refuses background jobs,
//!   `unavailable` answers as while the package is updated, `php_error` answers 500 with a trace, `login_page` answers
//!   the page of a browser.

mod access;
mod actions;
mod api;
mod call;
mod checks;
mod choices;
mod controller;
mod crud;
mod der;
mod device;
mod draft;
mod facts;
mod forms;
mod forward;
mod graphql;
mod hardware;
mod hooks;
mod interfaces;
mod jobs;
mod lists;
mod live;
mod machine;
mod net;
mod php;
mod programs;
mod query;
mod release;
mod removal;
mod reply;
mod represent;
mod rules;
mod seed;
mod settings;
mod status;
mod store;
mod storing;
#[cfg(test)]
mod tests;
mod trust;
mod vpn;

pub use device::Pfsense;
pub use release::Release;
pub use settings::Settings;
