//! Long operations: what they are called, how long they take and how they end.
//!
//! A task has its work done when its time is over, not before; reading its status is what moves nothing.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome};
use crate::cluster::Cluster;
use crate::faults::TaskFault;
use crate::privileges::Caller;

/// How many tasks are remembered.
const TASKS_MAX: usize = 2000;

/// What a task does when its time is over. The error is its exit status.
pub(crate) type Work = Box<dyn FnOnce(&mut Cluster) -> Result<(), String> + Send>;

/// A worker process of a node, running or ended.
pub(crate) struct Task {
    pub(crate) upid: String,
    pub(crate) node: String,
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) pid: u64,
    pub(crate) started_ms: u64,
    /// When and how it ended.
    pub(crate) end: Option<(u64, String)>,
    pub(crate) log: Vec<String>,
    /// The guest that it holds the lock of: aborted, it lets go.
    pub(crate) locks: Option<u64>,
    /// The guest that it makes: failed or aborted, it removes what there is of it.
    makes: Option<u64>,
}

impl Task {
    fn to_json(&self) -> Object {
        let mut out = Object::new();
        out.insert("upid".to_owned(), Value::from(self.upid.clone()));
        out.insert("node".to_owned(), Value::from(self.node.clone()));
        out.insert("pid".to_owned(), Value::from(self.pid));
        out.insert("pstart".to_owned(), Value::from(self.started_ms / 10));
        out.insert("starttime".to_owned(), Value::from(self.started_ms / 1000));
        out.insert("type".to_owned(), Value::from(self.kind.clone()));
        out.insert("id".to_owned(), Value::from(self.id.clone()));
        out.insert("user".to_owned(), Value::from(self.user.clone()));
        out
    }
}

/// How a task is started.
pub(crate) struct Order<'a> {
    pub(crate) node: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) id: String,
    /// How many times the base duration it takes.
    pub(crate) weight: u64,
    pub(crate) locks: Option<u64>,
    pub(crate) makes: Option<u64>,
}

impl<'a> Order<'a> {
    pub(crate) fn new(node: &'a str, kind: &'a str, id: impl ToString) -> Self {
        Self { node, kind, id: id.to_string(), weight: 1, locks: None, makes: None }
    }

    pub(crate) fn weight(self, weight: u64) -> Self {
        Self { weight, ..self }
    }

    pub(crate) fn makes(self, vmid: u64) -> Self {
        Self { makes: Some(vmid), ..self }
    }

    pub(crate) fn locks(self, vmid: u64) -> Self {
        Self { locks: Some(vmid), ..self }
    }
}

impl Cluster {
    /// Starts a task and gives its id as the answer of the call.
    pub(crate) fn start(
        &mut self,
        caller: &Caller,
        order: Order<'_>,
        work: impl FnOnce(&mut Self) -> Result<(), String> + Send + 'static,
    ) -> Value {
        let lasts_ms = self.settings.task_ms * order.weight;
        Value::from(self.start_for(caller, order, lasts_ms, Box::new(work)))
    }

    /// Starts a task that takes `lasts_ms`.
    pub(crate) fn start_for(
        &mut self,
        caller: &Caller,
        order: Order<'_>,
        lasts_ms: u64,
        work: Work,
    ) -> String {
        self.serial += 1;
        let (pid, started_ms) = (0x1_0000 + self.serial * 7, self.now_ms);
        let upid = format!(
            "UPID:{}:{pid:08X}:{:08X}:{:08X}:{}:{}:{}:",
            order.node,
            (started_ms / 10) & 0xFFFF_FFFF,
            started_ms / 1000,
            order.kind,
            order.id.replace(':', "-"),
            caller.id(),
        );
        self.tasks.push(Task {
            upid: upid.clone(),
            node: order.node.to_owned(),
            kind: order.kind.to_owned(),
            id: order.id,
            user: caller.id(),
            pid,
            started_ms,
            end: None,
            log: vec![format!("starting task {upid}")],
            locks: order.locks,
            makes: order.makes,
        });
        self.forget_old_tasks();
        let fault = self.faults.next_task.take();
        let ended = upid.clone();
        let work: Work = match fault {
            // It ends only when it is aborted, or its node restarts.
            Some(TaskFault::Hang) => return upid,
            // Warnings are a success with another name.
            Some(TaskFault::Fail(text)) if is_success(&text) => Box::new(move |cluster| {
                work(cluster)?;
                Err(text)
            }),
            Some(TaskFault::Fail(text)) => Box::new(|_| Err(text)),
            None => work,
        };
        self.schedule(lasts_ms, Box::new(move |cluster| cluster.end(&ended, work)));
        upid
    }

    /// Drops the oldest of the tasks that ended, when there are too many.
    fn forget_old_tasks(&mut self) {
        if self.tasks.len() > TASKS_MAX
            && let Some(place) = self.tasks.iter().position(|task| task.end.is_some())
        {
            self.tasks.remove(place);
        }
    }

    /// Does the work of a task that still runs, and records how it ended.
    fn end(&mut self, upid: &str, work: Work) {
        if !self.tasks.iter().any(|task| task.upid == upid && task.end.is_none()) {
            return;
        }
        let outcome = work(self);
        let (line, status) = match outcome {
            Ok(()) => ("TASK OK".to_owned(), "OK".to_owned()),
            Err(text) if is_success(&text) => (format!("TASK {text}"), text),
            Err(text) => (format!("TASK ERROR: {text}"), text),
        };
        self.close(upid, line, status);
    }

    /// Records the end of a task that still runs. One that did not succeed lets go of what it holds.
    fn close(&mut self, upid: &str, line: String, status: String) {
        let now_ms = self.now_ms;
        let Some(task) = self.tasks.iter_mut().find(|task| task.upid == upid && task.end.is_none()) else {
            return;
        };
        let (locks, makes) = if is_success(&status) { (None, None) } else { (task.locks, task.makes) };
        task.log.push(line);
        task.end = Some((now_ms, status));
        if let Some(vmid) = locks {
            self.unlock(vmid);
        }
        if let Some(vmid) = makes {
            self.forget_guest(vmid, false);
        }
    }

    /// Tasks of a node that restarted are lost: nothing tells how far they came.
    pub(crate) fn lose_tasks(&mut self, node: &str) {
        let now_ms = self.now_ms;
        for task in self.tasks.iter_mut().filter(|task| task.node == node && task.end.is_none()) {
            task.end = Some((now_ms, "unexpected status".to_owned()));
        }
    }

    fn find_task(&self, call: &Call) -> Outcome<usize> {
        let (node, upid) = (call.node(), call.text("upid"));
        if !upid.starts_with("UPID:") || upid.split(':').count() < 9 {
            let text = format!("unable to parse worker upid '{upid}'");
            return Err(Failure::refused(text));
        }
        let place = self.tasks.iter().position(|task| task.upid == upid && task.node == node);
        let place = place.ok_or_else(|| Failure::parameter("upid", "no such task"))?;
        let is_own = self.tasks[place].user == call.caller.id()
            || call.caller.token.is_none()
                && self.tasks[place].user.split('!').next() == Some(&call.caller.user);
        if !is_own && !self.may(&call.caller, &format!("/nodes/{node}"), "Sys.Audit") {
            return Err(Failure::new(403, format!("Permission check failed (/nodes/{node}, Sys.Audit)")));
        }
        Ok(place)
    }

    /// The routes below `/nodes/{node}/tasks`, and `/cluster/tasks`.
    pub(crate) fn task_call(&mut self, call: &Call) -> Option<Outcome> {
        let method = call.route.method.as_str();
        Some(match (method, call.route.path.as_str()) {
            ("GET", "/cluster/tasks") => {
                let tasks = self.tasks.iter().rev().take(25).map(|task| {
                    let mut out = task.to_json();
                    if let Some((at_ms, status)) = &task.end {
                        out.insert("endtime".to_owned(), Value::from(at_ms / 1000));
                        out.insert("status".to_owned(), Value::from(status.clone()));
                    }
                    Value::Object(out)
                });
                Ok(tasks.collect())
            }
            ("GET", "/nodes/{node}/tasks") => Ok(self.list_tasks(call)),
            ("GET", "/nodes/{node}/tasks/{upid}/status") => self.find_task(call).map(|place| {
                let task = &self.tasks[place];
                let mut out = task.to_json();
                out.insert(
                    "status".to_owned(),
                    Value::from(if task.end.is_some() { "stopped" } else { "running" }),
                );
                if let Some((_, status)) = &task.end {
                    out.insert("exitstatus".to_owned(), Value::from(status.clone()));
                }
                Value::Object(out)
            }),
            ("GET", "/nodes/{node}/tasks/{upid}/log") => self.find_task(call).map(|place| {
                let log = &self.tasks[place].log;
                let start = call.integer("start").and_then(|start| usize::try_from(start).ok()).unwrap_or(0);
                let limit = call.integer("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(50);
                let limit = if limit == 0 { usize::MAX } else { limit };
                self.beside.insert("total".to_owned(), Value::from(log.len()));
                let lines = log.iter().enumerate().skip(start).take(limit);
                lines.map(|(place, line)| json!({ "n": place + 1, "t": line })).collect()
            }),
            ("DELETE", "/nodes/{node}/tasks/{upid}") => self.find_task(call).map(|place| {
                let (upid, status) = (self.tasks[place].upid.clone(), "interrupted by signal");
                self.close(&upid, format!("TASK ERROR: {status}"), status.to_owned());
                Value::Null
            }),
            _ => return None,
        })
    }

    fn list_tasks(&mut self, call: &Call) -> Value {
        let source = call.find("source").unwrap_or("archive");
        let sees_all = self.may(&call.caller, &format!("/nodes/{}", call.node()), "Sys.Audit");
        let chosen = self.tasks.iter().rev().filter(|task| {
            let is_source = match source {
                "active" => task.end.is_none(),
                "all" => true,
                _ => task.end.is_some(),
            };
            let is_id = call.integer("vmid").is_none_or(|vmid| task.id == vmid.to_string());
            let is_kind = call.find("typefilter").is_none_or(|kind| task.kind == kind);
            let is_new = call.integer("since").is_none_or(|since| task.started_ms / 1000 >= since);
            let failed = task.end.as_ref().is_some_and(|(_, status)| status != "OK");
            task.node == call.node()
                && (sees_all || task.user == call.caller.id())
                && (is_source && is_id && is_kind && is_new)
                && (!call.flag("errors") || failed)
        });
        let rows: Vec<Value> = chosen
            .map(|task| {
                let mut out = task.to_json();
                if let Some((at_ms, status)) = &task.end {
                    out.insert("endtime".to_owned(), Value::from(at_ms / 1000));
                    out.insert("status".to_owned(), Value::from(status.clone()));
                }
                Value::Object(out)
            })
            .collect();
        self.beside.insert("total".to_owned(), Value::from(rows.len()));
        let start = call.integer("start").and_then(|start| usize::try_from(start).ok()).unwrap_or(0);
        let limit = call.integer("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(50);
        rows.into_iter().skip(start).take(limit).collect()
    }
}

/// Whether an exit status is a success: `OK`, or `WARNINGS` with their number.
fn is_success(status: &str) -> bool {
    status == "OK" || status.starts_with("WARNINGS")
}
