//! The database: the only crate that knows SQL.
//!
//! One module per group of tables. A function is one statement or one indivisible group of them; it takes an open
//! transaction, and never begins, commits, emits an event or decides access. The scope of rows that a caller may see is
//! a parameter.

#[macro_use]
mod db;

pub mod about;
pub mod adapter_releases;
pub mod api_keys;
pub mod attention;
pub mod audit;
mod calling_user;
pub mod canonical_vlans;
pub mod catalogs;
pub mod changes;
pub mod channels;
pub mod connections;
pub mod controllers;
pub mod credentials;
pub mod dashboard;
pub mod devices;
pub mod drift;
pub mod dump;
mod error;
pub mod event_consumers;
pub mod events;
pub mod files;
mod folding;
pub mod grants;
pub mod idempotency;
pub mod installed_packages;
pub mod known;
pub mod logs;
pub mod model_objects;
pub mod model_readings;
pub mod notices;
pub mod oauth2;
pub mod object;
pub mod organization_signing;
pub mod organizations;
pub mod packages;
pub mod password_resets;
pub mod plugins;
pub mod processes;
pub mod publisher_keys;
pub mod push;
pub mod roles;
pub mod runs;
pub mod sagas;
pub mod schedules;
pub mod sealed;
pub mod second_factors;
mod select;
pub mod service_secrets;
pub mod sessions;
pub mod setup;
pub mod site_brains;
pub mod sites;
mod sort;
pub mod sso;
pub mod topology;
pub mod unknown_logins;
pub mod users;
pub mod vendor_sites;
pub mod vlan_drift;
pub mod wanted;
pub mod webhooks;

pub use audit::AuditEntry;
pub use calling_user::CallingUser;
pub use changes::ChangeRow;
pub use controllers::{Controller, ControllerTarget};
pub use credentials::Credential;
pub use db::{Db, Held, PoolSettings, PoolUse, Reach, Schema, Tx};
pub use devices::Device;
pub use error::{Error, Result};
pub use events::StoredEvent;
pub use organizations::Organization;
pub use processes::Presence;
pub use select::{COUNT_MAX, PER_PAGE_MAX, Row, Scope, Set, SiteScope};
pub use sessions::{Authenticated, Session};
pub use sites::Site;
pub use sort::{InOrder, Key, Sort, Sorted};
pub use users::User;

#[cfg(test)]
mod testing;
