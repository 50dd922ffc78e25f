//! A simulated `OPNsense` firewall that speaks its HTTP API and keeps state, for tests, benches and demos.
//!
//! What the contract says of routes and fields is data (`facts.json`, made by `facts.py`); what single controllers do
//! by themselves is code, a file for each subject. It keeps what is stored apart from what runs: a change acts only
//! after the apply of its subsystem. It passes no packets, and its household is made up.
//!
//! [`Firewall`] is the controller; `heddle_lab::Lab` starts it. Lists and settings have the names of the facts, such as
//! `Firewall/Alias:aliases.alias` or, for settings, `Unbound/Unbound:` with an empty id.
//!
//! - Control port, beside the skeleton's part: `GET /pending`, `GET /stored/{list}`, `GET /running/{list}`.
//! - Edits by a person: `{"do": "set", "node", "id", "fields", "apply"}`, `remove`, `apply`, `plugin`, `gateway`, `lease`,
//!   `release` and `peer`.
//! - Faults: `config_lock_busy` fails saves, `reload_fails` lets an apply say ok and do nothing, `login_page` answers
//!   the page of a browser, `api_disabled` refuses every key, `rollback_dead` keeps the rollback timer from acting,
//!   `firmware_job_fails` ends a firmware job with an error.

mod accounts;
mod aliases;
mod api;
mod call;
mod captive;
mod choices;
mod config;
mod controller;
mod crud;
mod device;
mod dhcp;
mod diagnostics;
mod dns;
mod facts;
mod filter;
mod firmware;
mod grid;
mod hardware;
mod hooks;
mod ids;
mod in_use;
mod interfaces;
mod jobs;
mod legacy;
mod live;
mod names;
mod present;
mod release;
mod routing;
mod rows;
mod seed;
mod services;
mod settings;
mod system;
#[cfg(test)]
mod tests;
mod transfer;
mod trust;
mod upkeep;
mod validate;
mod vpn;

pub use device::Firewall;
pub use release::Release;
pub use settings::Settings;
