//! Replication of guests' disks to other nodes.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Outcome};
use crate::cluster::Cluster;

const JOBS: &str = "/cluster/replication";

impl Cluster {
    pub(crate) fn is_replicated(&self, vmid: u64) -> bool {
        self.store.rows(JOBS).iter().any(|job| job.id.starts_with(&format!("{vmid}-")))
    }

    pub(crate) fn replication_call(&mut self, call: &Call) -> Option<Outcome> {
        if let Some(tail) = call.route.path.strip_prefix("/nodes/{node}/replication") {
            return Some(self.replication_on_node(call, tail));
        }
        let tail = call.route.path.strip_prefix(JOBS)?;
        let id = call.text("id").to_owned();
        let (guest, number) = id.split_once('-').unwrap_or_default();
        let vmid: u64 = guest.parse().unwrap_or_default();
        match (call.route.method.as_str(), tail) {
            ("POST", "") => Some((|| {
                let guest = self
                    .guests
                    .get(&vmid)
                    .ok_or_else(|| Failure::refused(format!("no such guest '{vmid}'")))?;
                if guest.node == call.text("target") {
                    return Err(Failure::refused("source and target node are the same"));
                }
                self.node(call.text("target"))?;
                let source = guest.node.clone();
                let outcome = self.generic_call(call)?;
                if let Some(job) = self.store.find_mut(JOBS, &id) {
                    job.insert("guest".to_owned(), Value::from(vmid));
                    job.insert("jobnum".to_owned(), Value::from(number.parse::<u64>().unwrap_or(0)));
                    job.insert("source".to_owned(), Value::from(source));
                    job.entry("schedule".to_owned()).or_insert(Value::from("*/15"));
                }
                Ok(outcome)
            })()),
            // Without force the job is only marked, and goes with its next run.
            ("DELETE", "/{id}") if !call.flag("force") => {
                let Some(job) = self.store.find_mut(JOBS, &id) else {
                    return Some(Err(Failure::refused(format!("replication job '{id}' does not exist"))));
                };
                job.insert(
                    "remove_job".to_owned(),
                    Value::from(if call.flag("keep") { "local" } else { "full" }),
                );
                let delay_ms = self.settings.task_ms * 3;
                self.schedule(
                    delay_ms,
                    Box::new(move |cluster| {
                        cluster.store.remove(JOBS, &id);
                    }),
                );
                Some(Ok(Value::Null))
            }
            _ => None,
        }
    }

    fn replication_on_node(&mut self, call: &Call, tail: &str) -> Outcome {
        let id = call.text("id").to_owned();
        let here = |vmid: u64| self.guests.get(&vmid).is_some_and(|guest| guest.node == call.node());
        let rows: Vec<Value> = self
            .store
            .rows(JOBS)
            .iter()
            .filter(|job| job.body.get("guest").and_then(Value::as_u64).is_some_and(here))
            .map(|job| {
                let mut row = job.body.clone();
                row.entry("last_sync".to_owned()).or_insert(Value::from(0));
                row.insert("fail_count".to_owned(), Value::from(0));
                row.insert("next_sync".to_owned(), Value::from(self.now_secs() / 900 * 900 + 900));
                row.insert("duration".to_owned(), json!(3.2));
                Value::Object(row)
            })
            .collect();
        if tail.is_empty() {
            return Ok(Value::Array(rows));
        }
        let found = rows.into_iter().find(|row| row["id"] == json!(id));
        let found = found.ok_or_else(|| Failure::refused(format!("no such replication job '{id}'")))?;
        match tail {
            "/{id}/status" => Ok(found),
            "/{id}/log" => Ok(json!([{ "n": 1, "t": format!("{id}: start replication job") }])),
            "/{id}/schedule_now" => {
                let delay_ms = self.settings.task_ms;
                let name = id.clone();
                self.schedule(
                    delay_ms,
                    Box::new(move |cluster| {
                        let now = cluster.now_secs();
                        if let Some(job) = cluster.store.find_mut(JOBS, &name) {
                            job.insert("last_sync".to_owned(), Value::from(now));
                        }
                    }),
                );
                Ok(Value::from(id))
            }
            _ => Ok(json!([{ "name": "log" }, { "name": "status" }])),
        }
    }
}
