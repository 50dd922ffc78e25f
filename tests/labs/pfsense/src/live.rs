//! What moves by itself: leases, neighbours, states, services, sessions, measurements.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A client with an address from the DHCP server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) ip: String,
    pub(crate) mac: String,
    pub(crate) hostname: String,
    /// The id of the interface.
    pub(crate) interface: String,
}

/// What the monitor measures of a gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) delay: f64,
    pub(crate) stddev: f64,
    pub(crate) loss: f64,
    pub(crate) status: String,
    pub(crate) substatus: String,
}

/// A connection that the packet filter keeps track of.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct State {
    pub(crate) interface: String,
    pub(crate) source: String,
    pub(crate) destination: String,
}

/// A client of an `OpenVPN` server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) vpnid: u64,
    pub(crate) common_name: String,
    pub(crate) remote_host: String,
    pub(crate) virtual_addr: String,
}

/// All that lives beside the configuration.
#[derive(Clone)]
pub(crate) struct Live {
    /// Signs tokens.
    pub(crate) server_key: String,
    pub(crate) leases: Vec<Lease>,
    pub(crate) states: Vec<State>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) gateways: BTreeMap<String, Measured>,
    /// Services that were stopped by hand.
    pub(crate) stopped: BTreeSet<String>,
    /// How often services were started or restarted by hand.
    pub(crate) restarts: BTreeMap<String, u64>,
    /// Neighbours that were removed.
    pub(crate) forgotten: BTreeSet<String>,
    /// Tables of the filter that were emptied since its last reload.
    pub(crate) flushed: BTreeSet<String>,
    pub(crate) carp_is_on: bool,
    pub(crate) carp_is_maintained: bool,
    /// Hosts that were woken.
    pub(crate) woken: Vec<String>,
    /// Account keys that are registered, and certificates that were issued or renewed, with the time.
    pub(crate) acme: BTreeMap<String, u64>,
    /// How often each apply ran.
    pub(crate) applies: BTreeMap<String, u64>,
    /// Commands of the shell.
    pub(crate) commands: Vec<String>,
}

impl Live {
    pub(crate) fn seeded() -> Self {
        let lease = |last: u8, name: &str| Lease {
            ip: format!("192.168.1.{last}"),
            mac: format!("02:00:00:00:02:{last:02x}"),
            hostname: name.to_owned(),
            interface: "lan".to_owned(),
        };
        let state = |from: &str, to: &str| State {
            interface: "igb1".to_owned(),
            source: from.to_owned(),
            destination: to.to_owned(),
        };
        let session = Session {
            vpnid: 1,
            common_name: "laptop".to_owned(),
            remote_host: "203.0.113.77:51020".to_owned(),
            virtual_addr: "10.8.0.2".to_owned(),
        };
        let measured = Measured {
            delay: 4.2,
            stddev: 0.3,
            loss: 0.0,
            status: "online".to_owned(),
            substatus: "none".to_owned(),
        };
        Self {
            server_key: hex::encode(Sha256::digest("the key of this lab")),
            leases: vec![lease(101, "laptop"), lease(102, "phone")],
            states: vec![
                state("192.168.1.101:50110", "198.51.100.80:443"),
                state("192.168.1.102:50440", "198.51.100.53:53"),
            ],
            sessions: vec![session],
            gateways: BTreeMap::from([("WANGW".to_owned(), measured)]),
            stopped: BTreeSet::new(),
            restarts: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            flushed: BTreeSet::new(),
            carp_is_on: true,
            carp_is_maintained: false,
            woken: Vec::new(),
            acme: BTreeMap::new(),
            applies: BTreeMap::new(),
            commands: Vec::new(),
        }
    }

    /// What is left after a restart.
    pub(crate) fn restart(&mut self) {
        self.states.clear();
        self.sessions.clear();
        self.stopped.clear();
        self.forgotten.clear();
        self.flushed.clear();
    }

    /// An apply ran.
    pub(crate) fn applied(&mut self, route: &str) {
        self.flushed.clear();
        *self.applies.entry(route.to_owned()).or_default() += 1;
    }

    /// A model became active by itself.
    pub(crate) fn changed(&mut self, model: &str) {
        if model == "OpenVPNServer" {
            self.sessions.clear();
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "leases": self.leases, "states": self.states, "sessions": self.sessions, "gateways": self.gateways,
            "stopped": self.stopped, "restarts": self.restarts, "woken": self.woken, "acme": self.acme,
            "applies": self.applies, "commands": self.commands, "carp": self.carp_is_on,
            "maintenance": self.carp_is_maintained, "forgotten": self.forgotten,
        })
    }
}
