//! How the devices of a site are connected, and what lies behind a change.
//!
//! The graph is made of stored objects of the model alone: [`build::build`] and everything that asks the graph is pure.
//! [`read`] gets the rows, and keeps what was made last. Nothing here reaches a device or writes anything.

pub mod build;
pub mod facts;
mod gather;
mod glossary;
mod judge;
mod layer3;
mod leaves;
mod links;
pub mod losses;
mod names;
mod nets;
mod order;
pub mod radius;
pub mod reach;
mod read;
mod routes;
pub mod rule;
pub mod site;
pub mod touch;
mod view;
pub mod way;

use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Feature, Names};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use ipnet::IpNet;
pub use judge::{Question, blast_radius, distances};

/// How the devices of a site are connected.
pub struct Topology;

heddle_kernel::settings! {
    /// Where the service is, seen from the networks that it manages.
    pub struct TopologySettings {
        /// Addresses that devices see the service come from, separated by commas; those of this machine when empty. A service in a container, or behind translated addresses, needs it to know its own way.
        service_addresses: Vec<IpNet> = "SERVICE_ADDRESSES", "";
    }
}

#[async_trait::async_trait]
impl Feature for Topology {
    fn name(&self) -> &'static str {
        "topology"
    }

    fn declares(&self) -> &'static Names {
        const { &Names { settings: &[SettingsOf::the::<TopologySettings>()], ..Names::NONE } }
    }

    fn glossary(&self) -> &'static Glossary {
        &glossary::TOPOLOGY
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(read::Graphs::default());
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
    }
}

#[cfg(test)]
mod tests;
