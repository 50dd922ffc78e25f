//! What lives in the memory of the box: tables, leases, sessions, services that were stopped by hand.

use std::collections::{BTreeMap, BTreeSet};

use heddle_lab::Instant;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::Call;
use crate::choices::{ALIASES, effective};
use crate::config::Config;
use crate::crud::having;
use crate::device::Firewall;
use crate::facts::Operation;
use crate::hardware;
use crate::routing::Measured;

/// An address that a DHCP server has given away.
#[derive(Clone, Serialize)]
pub(crate) struct Lease {
    pub(crate) address: String,
    pub(crate) mac: String,
    pub(crate) hostname: String,
    /// Key of the interface.
    pub(crate) interface: String,
    /// Seconds since the start of the lab at which it ends.
    pub(crate) lasts_secs: u64,
}

/// A session of the captive portal or of an `OpenVPN` server.
#[derive(Clone, Serialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) address: String,
    pub(crate) mac: String,
    /// Zone or instance.
    pub(crate) of: String,
}

/// A diagnostic job.
#[derive(Clone, Serialize)]
pub(crate) struct Job {
    /// `ping` or `packetcapture`.
    pub(crate) kind: String,
    pub(crate) settings: Value,
    pub(crate) status: &'static str,
    /// Seconds of the lab's time at the start.
    pub(crate) started_secs: u64,
}

/// The memory of the box.
#[derive(Default)]
pub(crate) struct Live {
    /// Services that a person stopped; the next apply or restart runs them again.
    pub(crate) stopped: BTreeSet<String>,
    /// How often each service was reloaded.
    pub(crate) reloads: BTreeMap<String, u32>,
    /// How often actions were called that this simulation only counts: some of them act on GET.
    acted: BTreeMap<String, u32>,
    /// Devices that a revert took out of the configuration: no write noted that an apply must remove them.
    pub(crate) orphans: Vec<hardware::Device>,
    /// Neighbours as they were read last, and when: the box holds them for a while.
    pub(crate) neighbours: Option<(Instant, Vec<Value>)>,
    /// Tables whose entries differ from the alias behind them.
    tables: BTreeMap<String, BTreeSet<String>>,
    pub(crate) savepoints: BTreeMap<String, Config>,
    pub(crate) leases: Vec<Lease>,
    pub(crate) leases6: Vec<Lease>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) jobs: BTreeMap<String, Job>,
    /// `IPsec` connections that a person disconnected.
    pub(crate) disconnected: BTreeSet<String>,
    /// Entries of the state table that were killed.
    pub(crate) killed_states: BTreeSet<String>,
    /// What the monitor measures of gateways, where it is not the usual.
    pub(crate) gateways: BTreeMap<String, Measured>,
    pub(crate) legacy_ipsec_is_dirty: bool,
    /// How often each service was restarted by a person.
    pub(crate) restarts: BTreeMap<String, u32>,
    /// Shared addresses: switched off, and in maintenance.
    pub(crate) carp_is_off: bool,
    pub(crate) carp_is_in_maintenance: bool,
    /// Entries of the routing table that a person deleted: destination and gateway.
    pub(crate) deleted_routes: BTreeSet<(String, String)>,
    /// Associations and policies of `IPsec` that a person deleted.
    pub(crate) dropped_associations: BTreeSet<String>,
    /// Services of the peer by name, and whether they run; none without a peer.
    pub(crate) peer: BTreeMap<String, bool>,
    /// Records that a person deleted.
    pub(crate) cleared: BTreeSet<String>,
    /// What a person set of servers of the running proxy.
    pub(crate) proxy: BTreeMap<String, String>,
    /// How often the configuration was given to the peer.
    pub(crate) peer_syncs: u32,
}

impl Live {
    /// What a box has after some days of use.
    pub(crate) fn seeded() -> Self {
        let lease = |address: &str, hostname: &str, interface: &str| Lease {
            address: address.to_owned(),
            mac: hardware::mac(hostname),
            hostname: hostname.to_owned(),
            interface: interface.to_owned(),
            lasts_secs: 7200,
        };
        let session = |id: &str, user: &str, address: &str, of: &str| Session {
            id: id.to_owned(),
            user: user.to_owned(),
            address: address.to_owned(),
            mac: hardware::mac(user),
            of: of.to_owned(),
        };
        Self {
            leases: vec![
                lease("192.168.1.100", "laptop", "lan"),
                lease("192.168.1.101", "phone", "lan"),
                lease("192.168.20.100", "guest-tablet", "opt2"),
            ],
            leases6: vec![lease("2001:db8::100", "laptop", "lan")],
            sessions: vec![
                session("c2Vzc2lvbi0x", "guest", "192.168.20.100", "0"),
                session("17", "anna", "203.0.113.99:50001", &crate::seed::uuid("openvpn", 1)),
            ],
            ..Self::default()
        }
    }

    /// What a restart leaves: leases are on disk, everything else is gone.
    pub(crate) fn restart(&mut self) {
        let (leases, leases6) = (std::mem::take(&mut self.leases), std::mem::take(&mut self.leases6));
        *self = Self { leases, leases6, reloads: std::mem::take(&mut self.reloads), ..Self::default() };
    }

    /// A subsystem was reconfigured.
    pub(crate) fn applied(&mut self, key: &str) {
        let module = key.split('/').next().unwrap_or_default();
        *self.reloads.entry(module.to_owned()).or_default() += 1;
        self.stopped.remove(module);
        match key {
            "firewall/alias/reconfigure" => self.tables.clear(),
            "ipsec/legacysubsystem/applyconfig" | "ipsec/service/reconfigure" => {
                self.disconnected.clear();
                self.legacy_ipsec_is_dirty = false;
            }
            _ => {}
        }
    }

    /// Counts an action that leaves nothing else to be seen.
    pub(crate) fn acted(&mut self, call: &Call) {
        if !matches!(call.facts.op, Operation::List | Operation::Read | Operation::Download) {
            *self.acted.entry(format!("{}/{}", call.controller, call.command)).or_default() += 1;
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "stopped": self.stopped, "reloads": self.reloads, "acted": self.acted, "tables": self.tables,
            "leases": self.leases, "leases6": self.leases6,
            "sessions": self.sessions, "jobs": self.jobs, "disconnected": self.disconnected,
            "killed_states": self.killed_states, "restarts": self.restarts,
            "carp_is_off": self.carp_is_off, "carp_is_in_maintenance": self.carp_is_in_maintenance,
            "deleted_routes": self.deleted_routes, "dropped_associations": self.dropped_associations,
            "peer": self.peer, "peer_syncs": self.peer_syncs, "cleared": self.cleared, "proxy": self.proxy
        })
    }
}

impl Firewall {
    /// The entries of a table, as the packet filter has it.
    pub(crate) fn table(&self, name: &str) -> BTreeSet<String> {
        if let Some(entries) = self.live.tables.get(name) {
            return entries.clone();
        }
        let alias = having(&self.running, ALIASES, "name", name).next();
        let Some((_, alias)) = alias.filter(|(_, alias)| effective(ALIASES, "enabled", alias) == "1") else {
            return BTreeSet::new();
        };
        let lines =
            effective(ALIASES, "content", alias).lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// Changes a table at once.
    pub(crate) fn set_table(&mut self, name: &str, entries: BTreeSet<String>) {
        self.live.tables.insert(name.to_owned(), entries);
    }

    /// How often a rule was evaluated, and how many packets it passed.
    pub(crate) fn hits(&self, rule: &str) -> (u64, u64) {
        let runs =
            crate::crud::is_uuid(rule) && self.running.find("Firewall/Filter:rules.rule", rule).is_some();
        let seed = rule.bytes().fold(7u64, |sum, byte| (sum * 31 + u64::from(byte)) % 9973);
        let evaluations = if runs { seed + self.uptime().as_secs() } else { 0 };
        (evaluations, evaluations / 3)
    }
}
