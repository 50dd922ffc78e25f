//! How many connections there may be, in total and per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;

use crate::http::client::Network;
use crate::metrics::Metrics;

pub(super) struct ConnectionSlots {
    max: usize,
    per_address_max: usize,
    /// Networks of proxies, which bring connections of many clients.
    trusted: Vec<IpNet>,
    taken: Mutex<Taken>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Taken {
    total: usize,
    /// Counts only connections that count per address; no entry is 0.
    by_network: HashMap<Network, usize>,
}

/// A connection's slot; given back when it is dropped.
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    network: Option<Network>,
}

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Total,
    Address,
}

impl ConnectionSlots {
    pub(super) fn new(
        max: usize,
        per_address_max: usize,
        trusted: Vec<IpNet>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { max, per_address_max, trusted, taken: Mutex::default(), metrics }
    }

    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<ConnectionSlot, Full> {
        let peer = peer.to_canonical();
        let is_proxy = self.trusted.iter().any(|network| network.contains(&peer));
        let network = (!is_proxy).then(|| Network::of(peer));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.total >= self.max {
            return Err(Full::Total);
        }
        if let Some(network) = network {
            let count = taken.by_network.get(&network).copied().unwrap_or_default();
            if count >= self.per_address_max {
                return Err(Full::Address);
            }
            taken.by_network.insert(network, count + 1);
        }
        taken.total += 1;
        self.metrics.connections_open.inc();
        Ok(ConnectionSlot { slots: self.clone(), network })
    }

    /// Whether slots are scarce: then a connection without a request may keep its slot for a shorter time only.
    pub(super) fn are_scarce(&self) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.total > self.max / 4 * 3
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.total = taken.total.saturating_sub(1);
        self.slots.metrics.connections_open.dec();
        let Some(network) = self.network else { return };
        match taken.by_network.get_mut(&network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.by_network.remove(&network)),
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::event::EventTypes;

    use super::*;

    fn slots(max: usize, per_address: usize) -> Arc<ConnectionSlots> {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        let metrics = Arc::new(Metrics::new(
            prometheus::IntCounter::new("lines", "lines").unwrap(),
            &EventTypes::default(),
        ));
        Arc::new(ConnectionSlots::new(max, per_address, trusted, metrics))
    }

    fn take(slots: &Arc<ConnectionSlots>, peer: &str) -> Result<ConnectionSlot, Full> {
        slots.take(peer.parse().unwrap())
    }

    #[test]
    fn an_address_has_so_many_places_and_gets_one_back_that_it_gives_up() {
        let slots = slots(100, 2);
        let first = take(&slots, "203.0.113.1").unwrap();
        let _second = take(&slots, "::ffff:203.0.113.1").unwrap();
        assert_eq!(take(&slots, "203.0.113.1").err(), Some(Full::Address));
        let _other = take(&slots, "203.0.113.2").unwrap();
        drop(first);
        let _again = take(&slots, "203.0.113.1").unwrap();
        // With IPv6, one customer has a whole network.
        let _six = [take(&slots, "2001:db8::1").unwrap(), take(&slots, "2001:db8::2").unwrap()];
        assert_eq!(take(&slots, "2001:db8::3").err(), Some(Full::Address));
    }

    #[test]
    fn a_proxy_counts_in_total_only_and_nothing_is_kept_of_who_left() {
        let slots = slots(4, 1);
        let held: Vec<ConnectionSlot> = (0..4).map(|_| take(&slots, "10.0.0.1").unwrap()).collect();
        assert_eq!(take(&slots, "10.0.0.1").err(), Some(Full::Total));
        assert_eq!(take(&slots, "203.0.113.1").err(), Some(Full::Total));
        assert!(slots.are_scarce());
        drop(held);
        drop(take(&slots, "203.0.113.1").unwrap());
        let taken = slots.taken.lock().unwrap();
        assert_eq!((taken.total, taken.by_network.len()), (0, 0));
    }
}
