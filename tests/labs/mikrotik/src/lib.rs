//! A simulated `MikroTik` router that speaks the REST API of `RouterOS` 7 and keeps state, for tests, benches and demos.
//!
//! What the contract says of menus and fields is data (`facts.json`, made by `facts.py`); what single menus do by
//! themselves is code, a file for each subject. Every write acts at once. It passes no packets, reaches no other host,
//! and its household is made up; a manager that shuts itself out is out, until a restart of the box, its scheduler or a
//! person takes that back.
//!
//! [`Router`] is the controller; `heddle_lab::Lab` starts it. Menus have the names of their paths, such as
//! `ip/firewall/filter`.
//!
//! - Control port, beside the skeleton's part: `GET /configuration/{menu}`.
//! - Edits by a person: `{"do": "command", "menu", "command", "args"}`, `script`, `undo`, `lease`, `release`, `row` and
//!   `package`.
//! - Faults: `rest_off` answers the page of a browser, `session_closed` cuts the answer of a command that was carried
//!   out, `applied_with_400` refuses what was carried out, `command_takes` lets a command run for `secs`, `update_fails`
//!   keeps the box from its update server, `sign_fails` makes no key.

mod access;
mod address;
mod address_lists;
mod bridge;
mod call;
mod certificates;
mod check;
mod computed;
mod console;
mod controller;
mod crud;
mod device;
mod dhcp;
mod dns;
mod duration;
mod export;
mod facts;
mod files;
mod firewall;
mod interfaces;
mod live;
mod monitors;
mod pace;
mod packages;
mod print;
mod reach;
mod refusal;
mod release;
mod removal;
mod rest;
mod routes;
mod rules;
mod scheduler;
mod script;
mod seed;
mod settings;
mod store;
mod system;
#[cfg(test)]
mod tests;
mod tools;
mod views;
mod vpn;
mod vrrp;
mod wifi;

pub use device::Router;
pub use release::Release;
pub use settings::Settings;
