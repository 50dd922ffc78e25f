//! What every request and every feature of the server needs, and no feature by name: the edge, who calls, the event stream, the
//! audit log, settings, and the shape of a feature.

pub mod app;
pub mod audit;
pub mod bulk;
pub mod cache;
pub mod caller;
pub mod checks;
pub mod config;
pub mod declarations;
mod declared;
pub mod events;
pub mod feature;
pub mod files;
pub mod findings;
pub mod hashing;
mod health;
pub mod http;
mod installed;
pub mod keys;
mod listener;
pub mod logs;
pub mod mail;
pub mod metrics;
pub mod misfit;
pub mod modules;
pub mod names;
pub mod nearest;
pub mod opening;
pub mod outgoing;
pub mod process;
pub mod recent;
pub mod resource;
pub mod retention;
pub mod running;
pub mod sample;
pub mod schema;
pub mod slug;
mod surface;
pub mod task;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod unreached;
pub mod version;
