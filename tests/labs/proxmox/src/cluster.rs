//! The state of the cluster, and what happens to it as time passes.
//!
//! Nothing here runs by itself: before a call the caller moves the clock with [`Cluster::advance`], which carries
//! out all that has come due, in order.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::access::Access;
use crate::answer::{Call, Failure, Object, Outcome};
use crate::faults::Faults;
use crate::firewall::Firewall;
use crate::guests::Guest;
use crate::network::Network;
use crate::sdn::Sdn;
use crate::storage::Volume;
use crate::store::Store;
use crate::tasks::{Task, Work};

/// What the builder chose.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) name: String,
    /// The product's release, as in `9.1`.
    pub(crate) release: (u32, u32),
    /// The version that it tells in place of that of its release.
    pub(crate) told_version: Option<String>,
    /// How long a short task takes.
    pub(crate) task_ms: u64,
    /// How long a node is away when it restarts.
    pub(crate) boot_ms: u64,
    /// Guests beside the six of the household.
    pub(crate) guests: usize,
    /// Whether Ceph is set up.
    pub(crate) has_ceph: bool,
}

/// A node. The first one is the one that answers.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) address: String,
    pub(crate) is_online: bool,
    pub(crate) booted_ms: u64,
    pub(crate) network: Network,
    /// Whether each service runs.
    pub(crate) services: BTreeMap<String, bool>,
}

/// Something that will happen.
struct Due {
    at_ms: u64,
    action: Box<dyn FnOnce(&mut Cluster) + Send>,
}

/// The whole cluster.
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    /// Milliseconds since 1970, by the cluster's own clock.
    pub(crate) now_ms: u64,
    /// Counts whatever needs a new name, so that runs are repeatable.
    pub(crate) serial: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) guests: BTreeMap<u64, Guest>,
    pub(crate) access: Access,
    pub(crate) store: Store,
    /// By scope: `cluster`, `nodes/NAME`, `guests/VMID`, `vnets/NAME`, `groups/NAME`.
    pub(crate) firewalls: BTreeMap<String, Firewall>,
    pub(crate) sdn: Sdn,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) faults: Faults,
    /// What stands next to `data` in the answer of the call under way.
    pub(crate) beside: Object,
    /// Lines of the cluster log, newest last.
    pub(crate) lines: Vec<Value>,
    due: Vec<Due>,
}

impl Cluster {
    pub(crate) fn empty(settings: Settings, now_ms: u64) -> Self {
        Self {
            settings,
            now_ms,
            serial: 0,
            nodes: Vec::new(),
            guests: BTreeMap::new(),
            access: Access::new("the key of the cluster's tickets".to_owned()),
            store: Store::default(),
            firewalls: BTreeMap::new(),
            sdn: Sdn::default(),
            volumes: Vec::new(),
            tasks: Vec::new(),
            faults: Faults::default(),
            beside: Object::new(),
            lines: Vec::new(),
            due: Vec::new(),
        }
    }

    pub(crate) fn now_secs(&self) -> u64 {
        self.now_ms / 1000
    }

    /// Carries out what is due until `now_ms`.
    pub(crate) fn advance(&mut self, now_ms: u64) {
        loop {
            let first = self.due.iter().enumerate().min_by_key(|(place, due)| (due.at_ms, *place));
            let Some((place, at_ms)) = first.map(|(place, due)| (place, due.at_ms)) else { break };
            if at_ms > now_ms {
                break;
            }
            let due = self.due.remove(place);
            self.now_ms = self.now_ms.max(at_ms);
            (due.action)(self);
        }
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// Has something done later.
    pub(crate) fn schedule(&mut self, after_ms: u64, action: Box<dyn FnOnce(&mut Self) + Send>) {
        self.due.push(Due { at_ms: self.now_ms + after_ms, action });
    }

    /// Adds a line to the cluster log.
    pub(crate) fn log(&mut self, user: &str, level: &str, text: &str) {
        self.serial += 1;
        let priority = if level == "err" { 3 } else { 6 };
        self.lines.push(json!({
            "uid": self.serial, "time": self.now_secs(), "node": self.nodes.first().map(|node| &node.name),
            "user": user, "tag": "pvedaemon", "pri": priority, "pid": 1200, "msg": text,
        }));
    }

    /// Hexadecimal digits that no earlier call gave.
    pub(crate) fn fresh_hex(&mut self, length: usize) -> String {
        self.serial += 1;
        hash(&format!("fresh {}", self.serial), length)
    }

    pub(crate) fn fresh_uuid(&mut self) -> String {
        let hex = self.fresh_hex(32);
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
    }

    /// A MAC with the vendor's prefix.
    pub(crate) fn fresh_mac(&mut self) -> String {
        let hex = self.fresh_hex(6).to_uppercase();
        format!("BC:24:11:{}:{}:{}", &hex[..2], &hex[2..4], &hex[4..6])
    }

    pub(crate) fn node(&self, name: &str) -> Outcome<&Node> {
        let found = self.nodes.iter().find(|node| node.name == name);
        found.ok_or_else(|| {
            Failure::refused(format!("hostname lookup '{name}' failed - failed to get address info"))
        })
    }

    pub(crate) fn node_mut(&mut self, name: &str) -> Outcome<&mut Node> {
        let found = self.nodes.iter_mut().find(|node| node.name == name);
        found.ok_or_else(|| {
            Failure::refused(format!("hostname lookup '{name}' failed - failed to get address info"))
        })
    }

    /// Answers a verified and permitted call.
    pub(crate) fn answer(&mut self, call: &Call) -> Outcome {
        if let Some(node) = call.find("node").filter(|_| call.path.starts_with("/nodes/")) {
            let node = self.node(node)?;
            if !node.is_online {
                return Err(Failure::new(595, "No route to host"));
            }
        }
        let is_write = call.route.method != "GET";
        let is_free = matches!(call.route.path.as_str(), "/access/ticket" | "/nodes/{node}/status");
        if is_write && !is_free && !self.is_quorate() {
            return Err(Failure::refused("cluster not ready - no quorum?"));
        }
        let handlers = [
            Self::task_call,
            Self::access_call,
            Self::pool_call,
            Self::firewall_call,
            Self::sdn_call,
            Self::network_call,
            Self::storage_call,
            Self::backup_call,
            Self::guest_call,
            Self::availability_call,
            Self::replication_call,
            Self::ceph_call,
            Self::datacenter_call,
            Self::node_call,
        ];
        handlers.iter().find_map(|handler| handler(self, call)).unwrap_or_else(|| self.generic_call(call))
    }

    /// Whether `/etc/pve` can be written.
    pub(crate) fn is_quorate(&self) -> bool {
        // The second node of two has the vote of an arbiter beside it, so one node may be away.
        !self.faults.has_no_quorum
            && self.nodes.iter().filter(|node| node.is_online).count() * 2 >= self.nodes.len()
    }

    /// Takes a node away: its tasks are lost, its guests stop.
    pub(crate) fn take_down(&mut self, name: &str) {
        self.lose_tasks(name);
        for guest in self.guests.values_mut().filter(|guest| guest.node == name) {
            guest.run = None;
        }
        if let Ok(node) = self.node_mut(name) {
            node.is_online = false;
        }
    }

    /// Brings a node back; guests with `onboot` start.
    pub(crate) fn bring_up(&mut self, name: &str) {
        let now_ms = self.now_ms;
        let Ok(node) = self.node_mut(name) else { return };
        if node.is_online {
            return;
        }
        node.is_online = true;
        node.booted_ms = now_ms;
        node.network.reload();
        let on_boot =
            |guest: &Guest| guest.node == name && guest.config.get("onboot") == Some(&Value::from(1));
        let vmids: Vec<u64> =
            self.guests.values().filter(|guest| on_boot(guest)).map(|guest| guest.vmid).collect();
        for vmid in vmids {
            self.power_on(vmid);
        }
    }

    /// `POST /nodes/{node}/status`: acts two seconds after the answer.
    pub(crate) fn restart_node(&mut self, name: &str, comes_back: bool) {
        let (node, boot_ms) = (name.to_owned(), self.settings.boot_ms);
        let delay_ms = self.settings.task_ms.min(2000);
        self.schedule(
            delay_ms,
            Box::new(move |cluster| {
                cluster.take_down(&node);
                if comes_back {
                    cluster.schedule(boot_ms, Box::new(move |cluster| cluster.bring_up(&node)));
                }
            }),
        );
    }

    /// Runs work at once, as the vendor does where an answer is not a task.
    pub(crate) fn at_once(&mut self, work: Work) -> Outcome {
        work(self).map(|()| Value::Null).map_err(Failure::refused)
    }
}

/// The first `length` hexadecimal digits of a hash. Digests of files are 40 of them.
pub(crate) fn hash(text: &str, length: usize) -> String {
    let mut hex = hex::encode(Sha256::digest(text));
    hex.truncate(length);
    hex
}

/// Refuses a digest that is not of the present contents.
pub(crate) fn check_digest(call: &Call, digest: &str) -> Outcome<()> {
    match call.find("digest") {
        Some(given) if given != digest => Err(Failure::stale()),
        _ => Ok(()),
    }
}
