//! The vocabulary of Heddle: ids, roles, permissions, changes, events, time.
//!
//! No I/O and nothing asynchronous. Everything here can be understood and
//! tested without a database, a network or a component.

#[macro_use]
mod words;
mod work;

pub mod adapter;
pub mod blast_radius;
pub mod bounds;
pub mod change;
pub mod clock;
pub mod condition;
pub mod declared;
pub mod device;
pub mod document;
pub mod drift;
pub mod event;
pub mod fault;
pub mod file;
pub mod frames;
pub mod id;
pub mod interned;
pub mod log;
pub mod name;
pub mod nearest;
pub mod notification;
pub mod oauth2;
pub mod operation;
pub mod organization_settings;
pub mod page;
pub mod permission;
pub mod plugin;
pub mod provider;
pub mod push;
pub mod redact;
pub mod release;
pub mod role;
pub mod saga;
pub mod secret;
pub mod shape;
pub mod site_level;
pub mod storable;
pub mod sync;
pub mod template;
pub mod tier;
pub mod tls;
pub mod vlan;
pub mod webhook;

pub use clock::{Clock, Timestamp};
pub use declared::Declared;
pub use document::Document;
pub use id::*;
pub use log::LogLevel;
pub use permission::Permission;
pub use provider::ProviderKind;
pub use role::Role;
pub use site_level::SiteLevel;
pub use tier::Tier;
pub use words::UnknownWord;
