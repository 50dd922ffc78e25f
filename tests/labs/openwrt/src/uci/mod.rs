//! The configuration files: their model, the changes staged on them, and the `uci` ubus calls.
//!
//! It knows nothing of HTTP or of what the daemons make of a configuration.

mod apply;
mod calls;
mod change;
mod model;
mod values;

pub(crate) use apply::Pending;
pub use change::Change;
pub use model::UciValue;
pub(crate) use model::{Config, Section};

use std::collections::BTreeMap;

/// Every configuration by file name.
pub(crate) type Configs = BTreeMap<String, Config>;

/// What one session has staged, by configuration.
pub(crate) type Staged = BTreeMap<String, Vec<Change>>;

/// The configuration that the router leaves the factory with.
pub(crate) fn factory_configs() -> Configs {
    [
        ("dhcp", include_str!("../../config/dhcp")),
        ("dropbear", include_str!("../../config/dropbear")),
        ("firewall", include_str!("../../config/firewall")),
        ("network", include_str!("../../config/network")),
        ("rpcd", include_str!("../../config/rpcd")),
        ("system", include_str!("../../config/system")),
        ("uhttpd", include_str!("../../config/uhttpd")),
        ("wireless", include_str!("../../config/wireless")),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), Config::parse(text)))
    .collect()
}
