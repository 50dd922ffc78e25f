//! Virtual machines and containers: what they are, and the routes below `qemu` and `lxc` of a node.

mod agent;
mod config;
mod copy;
mod disks;
mod lifecycle;
mod power;
mod snapshots;
mod status;

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, text_of};
use crate::cluster::{Cluster, hash};

pub(crate) use config::Edit;
pub(crate) use disks::{GIB, is_disk_key, parse_size};
pub(crate) use status::memory_bytes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestKind {
    Qemu,
    Lxc,
}

impl GuestKind {
    /// As in paths.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    /// As in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Qemu => "VM",
            Self::Lxc => "CT",
        }
    }

    /// What task types begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Qemu => "qm",
            Self::Lxc => "vz",
        }
    }
}

/// A process that runs a guest.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) since_ms: u64,
    pub(crate) pid: u64,
    pub(crate) is_paused: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) taken_secs: u64,
    pub(crate) parent: Option<String>,
    pub(crate) has_memory: bool,
    pub(crate) config: Object,
}

#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) vmid: u64,
    pub(crate) kind: GuestKind,
    pub(crate) node: String,
    /// What runs, or would run.
    pub(crate) config: Object,
    /// What waits for the next start: a value, or a removal.
    pub(crate) pending: Vec<(String, Option<Value>)>,
    pub(crate) run: Option<Run>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// The snapshot that the running state descends from.
    pub(crate) parent: Option<String>,
    /// It ignores requests to shut down, and its agent does not answer.
    pub(crate) is_unresponsive: bool,
}

impl Guest {
    pub(crate) fn new(vmid: u64, kind: GuestKind, node: &str, config: Object) -> Self {
        Self {
            vmid,
            kind,
            node: node.to_owned(),
            config,
            pending: Vec::new(),
            run: None,
            snapshots: Vec::new(),
            parent: None,
            is_unresponsive: false,
        }
    }

    pub(crate) fn text(&self, key: &str) -> String {
        self.config.get(key).map(text_of).unwrap_or_default()
    }

    pub(crate) fn is_template(&self) -> bool {
        self.config.get("template") == Some(&Value::from(1))
    }

    pub(crate) fn name(&self) -> String {
        let name = self.text(if self.kind == GuestKind::Qemu { "name" } else { "hostname" });
        if name.is_empty() { format!("{}{}", self.kind.title(), self.vmid) } else { name }
    }

    pub(crate) fn digest(&self) -> String {
        let snapshots: Vec<(&String, &String)> =
            self.snapshots.iter().map(|snapshot| (&snapshot.name, &snapshot.description)).collect();
        hash(&json!([self.config, self.pending, snapshots, self.parent]).to_string(), 40)
    }

    /// The configuration with what is pending.
    pub(crate) fn wanted(&self) -> Object {
        let mut config = self.config.clone();
        for (key, value) in &self.pending {
            match value {
                Some(value) => config.insert(key.clone(), value.clone()),
                None => config.shift_remove(key),
            };
        }
        config
    }

    /// The keys that hold network devices, with their values.
    pub(crate) fn networks(&self) -> impl Iterator<Item = (&String, String)> {
        let is_net = |key: &&String| key.strip_prefix("net").is_some_and(|rest| rest.parse::<u8>().is_ok());
        self.config.keys().filter(is_net).map(|key| (key, self.text(key)))
    }

    fn missing_file(node: &str, kind: GuestKind, vmid: u64) -> Failure {
        let folder = if kind == GuestKind::Qemu { "qemu-server" } else { "lxc" };
        Failure::refused(format!("Configuration file 'nodes/{node}/{folder}/{vmid}.conf' does not exist"))
    }
}

impl Cluster {
    /// The guest of a call, on the node that its path names.
    pub(crate) fn guest(&self, call: &Call) -> Outcome<&Guest> {
        let kind = kind_of(call);
        let found =
            self.guests.get(&call.vmid()).filter(|guest| guest.node == call.node() && guest.kind == kind);
        found.ok_or_else(|| Guest::missing_file(call.node(), kind, call.vmid()))
    }

    pub(crate) fn guest_mut(&mut self, call: &Call) -> Outcome<&mut Guest> {
        let (kind, vmid) = (kind_of(call), call.vmid());
        let found =
            self.guests.get_mut(&vmid).filter(|guest| guest.node == call.node() && guest.kind == kind);
        found.ok_or_else(|| Guest::missing_file(call.node(), kind, vmid))
    }

    /// The guest of a call, when nothing has it locked.
    fn unlocked(&self, call: &Call) -> Outcome<&Guest> {
        let guest = self.guest(call)?;
        let lock = guest.text("lock");
        let is_skipped = call.flag("skiplock");
        if is_skipped && call.caller.id() != "root@pam" {
            return Err(Failure::parameter("skiplock", "Only root may use this option."));
        }
        if lock.is_empty() || is_skipped {
            return Ok(guest);
        }
        Err(Failure::refused(format!("{} is locked ({lock})", guest.kind.title())))
    }

    pub(crate) fn lock(&mut self, vmid: u64, reason: &str) {
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.config.insert("lock".to_owned(), Value::from(reason));
        }
    }

    pub(crate) fn unlock(&mut self, vmid: u64) {
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.config.shift_remove("lock");
        }
    }

    /// The routes of guests.
    pub(crate) fn guest_call(&mut self, call: &Call) -> Option<Outcome> {
        let method = call.route.method.as_str();
        let rest = call.route.path.strip_prefix("/nodes/{node}/")?;
        let tail = rest.strip_prefix("qemu").or_else(|| rest.strip_prefix("lxc"))?;
        if tail.is_empty() {
            return match method {
                "GET" => Some(Ok(self.list_guests(call))),
                "POST" => Some(self.create_guest(call)),
                _ => None,
            };
        }
        let tail = tail.strip_prefix("/{vmid}")?;
        if let Err(failure) = self.guest(call) {
            return Some(Err(failure));
        }
        Some(match (method, tail.trim_start_matches('/')) {
            ("DELETE", "") => self.destroy_guest(call),
            ("GET", "config") => self.read_config(call),
            ("PUT", "config") => self.write_config(call),
            ("POST", "config") => self.write_config_as_task(call),
            ("PUT", "unlink") => self.unlink(call),
            ("GET", "pending") => self.read_pending(call),
            ("GET", "status/current") => self.read_status(call),
            ("POST", "status/start") => self.start_guest(call),
            ("POST", "status/stop") => self.stop_guest(call),
            ("POST", "status/shutdown") => self.shut_down_guest(call),
            ("POST", "status/reboot") => self.reboot_guest(call),
            ("POST", "status/reset") => self.reset_guest(call),
            ("POST", "status/suspend") => self.suspend_guest(call),
            ("POST", "status/resume") => self.resume_guest(call),
            ("POST", "clone") => self.clone_guest(call),
            ("GET", "migrate") => self.migration_conditions(call),
            ("POST", "migrate") => self.migrate_guest(call),
            ("POST", "template") => self.make_template(call),
            ("PUT", "resize") => self.resize_disk(call),
            ("POST", "move_disk" | "move_volume") => self.move_disk(call),
            ("GET", "feature") => Ok(json!({ "hasFeature": 1, "nodes": [call.node()] })),
            ("GET", "cloudinit") => self.guest(call).map(|_| json!([])),
            ("GET", "cloudinit/dump") => Ok(Value::from("#cloud-config\nmanage_etc_hosts: true\n")),
            ("GET", "rrddata") => Ok(self.guest_series(call)),
            ("GET", "interfaces") => self.container_interfaces(call),
            (_, tail) if tail.starts_with("snapshot") => return self.snapshot_call(call, tail),
            (_, tail) if tail.starts_with("agent") => return self.agent_call(call, tail),
            _ => return None,
        })
    }
}

/// Whether a path is of virtual machines or of containers.
pub(crate) fn kind_of(call: &Call) -> GuestKind {
    if call.route.path.starts_with("/nodes/{node}/lxc") { GuestKind::Lxc } else { GuestKind::Qemu }
}
