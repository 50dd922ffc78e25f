//! The cluster as the skeleton serves it.

use std::time::Duration;

use heddle_lab::{Answer, Context, Controller, Request};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::access::Credentials;
use crate::answer::{Call, Failure, Object, Outcome};
use crate::cluster::{Cluster, Settings};
use crate::faults::TaskFault;
use crate::privileges::Caller;
use crate::setup::Setup;
use crate::{check, console, facts, seed, wire};

/// Faults beside the skeleton's. The first three are conditions: they last as long as they are set.
const FAULTS: [&str; 5] = ["node_offline", "quorum_lost", "storage_full", "task_hang", "task_fail"];

/// Calls that need no login.
const PUBLIC: [(&str, &str); 5] = [
    ("GET", "/access/ticket"),
    ("POST", "/access/ticket"),
    ("GET", "/access/domains"),
    ("POST", "/access/openid/auth-url"),
    ("POST", "/access/openid/login"),
];

/// A simulated cluster. One that is not served yet has no nodes.
pub struct Proxmox {
    setup: Setup,
    pub(crate) cluster: Cluster,
    /// The node that is away because of a fault.
    lost_node: Option<String>,
}

impl Proxmox {
    /// A cluster that is filled when it is first served.
    pub fn new(setup: Setup) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let settings = Settings {
            name: setup.name.clone(),
            release: setup.release,
            told_version: setup.told_version.clone(),
            task_ms: millis(setup.task_time),
            boot_ms: millis(setup.boot_time),
            guests: setup.guests,
            has_ceph: setup.has_ceph,
        };
        Self { setup, cluster: Cluster::empty(settings, 0), lost_node: None }
    }

    /// From now on it tells this version, whatever its release is.
    pub fn tell_version(&mut self, version: &str) {
        self.cluster.settings.told_version = Some(version.to_owned());
    }

    fn respond(&mut self, request: &Request, context: &mut Context) -> Outcome {
        let method = request.method.as_str();
        let Some(path) = wire::api_path(request) else {
            return Err(Failure::not_implemented(method, &request.path));
        };
        let caller = if PUBLIC.contains(&(method, path.as_str())) {
            Caller { user: "nobody".to_owned(), token: None }
        } else {
            self.authenticate(request)?
        };
        let params = wire::parameters(request, self.setup.release)?;
        let found = facts::find(method, &path).filter(|(route, _)| self.is_released(&route.path));
        let (route, variables) = found.ok_or_else(|| Failure::not_implemented(method, &path))?;
        let mut given: Object =
            variables.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        for (name, value) in params {
            given.entry(name).or_insert(value);
        }
        let upload = request.parts.iter().find(|part| part.file_name.is_some()).cloned();
        let mut call = Call { route, path, params: given, caller, upload };
        if !PUBLIC.contains(&(method, call.path.as_str())) {
            self.cluster.authorize(&call)?;
        }
        call.params = check::check(route, call.params)?;
        if method != "GET" {
            self.cluster.faults.next_task = task_fault(request, context);
        }
        let outcome = self.cluster.answer(&call);
        self.cluster.faults.next_task = None;
        outcome
    }

    fn authenticate(&self, request: &Request) -> Outcome<Caller> {
        let cookie =
            request.cookie("PVEAuthCookie").map(|cookie| percent_decode_str(cookie).decode_utf8_lossy());
        self.cluster.authenticate(
            &request.method,
            &Credentials {
                authorization: request.header("authorization"),
                ticket: cookie.as_deref(),
                csrf: request.header("csrfpreventiontoken"),
            },
        )
    }

    /// Whether the release has a path.
    fn is_released(&self, path: &str) -> bool {
        let newer =
            ["/cluster/bulk-action", "/cluster/sdn/fabrics", "/cluster/sdn/lock", "/cluster/sdn/rollback"];
        let newest = ["/cluster/qemu", "/cluster/sdn/route-maps", "/cluster/sdn/prefix-lists"];
        let since = match () {
            () if newest.iter().any(|prefix| path.starts_with(prefix)) => (9, 2),
            () if newer.iter().any(|prefix| path.starts_with(prefix)) => (9, 0),
            () => (0, 0),
        };
        self.setup.release >= since
    }
}

/// What an order makes of the task that this request starts.
fn task_fault(request: &Request, context: &mut Context) -> Option<TaskFault> {
    if context.fault("task_hang", request).is_some() {
        return Some(TaskFault::Hang);
    }
    let args = context.fault("task_fail", request)?;
    Some(TaskFault::Fail(args["text"].as_str().unwrap_or("command failed with exit code 1").to_owned()))
}

impl Controller for Proxmox {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        self.cluster.beside.clear();
        match self.respond(request, context) {
            Ok(data) => wire::success(data, std::mem::take(&mut self.cluster.beside)),
            Err(failure) => {
                let answer = wire::failure(&failure, self.setup.release);
                if failure.status == 401 { answer.after(self.setup.login_delay) } else { answer }
            }
        }
    }

    fn state(&self, _context: &Context) -> Value {
        console::state(&self.cluster)
    }

    fn started(&mut self, context: &mut Context) {
        self.advance(context);
        seed::fill(&mut self.cluster, &self.setup.password);
    }

    fn advance(&mut self, context: &mut Context) {
        let now = context.clock.unix_of(context.now());
        self.cluster.advance(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        self.cluster.faults.has_no_quorum = context.fault_in_background("quorum_lost").is_some();
        let full = context.fault_in_background("storage_full");
        let storage = full.map(|args| args["storage"].as_str().unwrap_or("local-lvm").to_owned());
        self.cluster.faults.full_storages = storage.into_iter().collect();
        let lost = context.fault_in_background("node_offline");
        let lost = lost.map(|args| args["node"].as_str().unwrap_or("pve2").to_owned());
        if lost == self.lost_node {
            return;
        }
        if let Some(node) = self.lost_node.take() {
            self.cluster.bring_up(&node);
        }
        if let Some(node) = &lost {
            self.cluster.take_down(node);
        }
        self.lost_node = lost;
    }

    fn is_reachable(&self) -> bool {
        // The first node is the one that answers.
        self.cluster.nodes.first().is_none_or(|node| node.is_online)
    }

    fn end_sessions(&mut self, context: &mut Context) {
        self.cluster.access.secret = context.token();
    }

    fn restart(&mut self, _context: &mut Context) {
        // Keys and files outlive a restart. The node that answers loses its tasks, and its guests stop.
        if let Some(node) = self.cluster.nodes.first().map(|node| node.name.clone()) {
            self.cluster.take_down(&node);
            self.cluster.bring_up(&node);
        }
    }

    fn edit(&mut self, edit: &Value, _context: &mut Context) -> Result<Value, String> {
        console::edit(&mut self.cluster, edit)
    }

    fn refusal(&self, status: u16, _request: &Request) -> Answer {
        let failure = match status {
            413 => Failure::new(501, "for data too large"),
            401 => Failure::new(401, "permission denied - invalid PVE ticket"),
            status => Failure::new(status, "the server is overloaded"),
        };
        wire::failure(&failure, self.setup.release)
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &FAULTS
    }

    fn control(&mut self, request: &Request, _context: &mut Context) -> Option<Answer> {
        let segments = request.segments();
        match (request.method.as_str(), segments.as_slice()) {
            ("GET", ["guests", vmid]) => {
                let guest = self.cluster.guests.get(&vmid.parse().ok()?)?;
                Some(Answer::json(200, &console::guest(guest)))
            }
            ("GET", ["tasks"]) => Some(Answer::json(200, &json!(console::tasks(&self.cluster)))),
            _ => None,
        }
    }
}
