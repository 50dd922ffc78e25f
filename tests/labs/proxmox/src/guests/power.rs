//! Starting and stopping guests.

use serde_json::Value;

use super::config::apply_pending;
use super::{GuestKind, Run, kind_of};
use crate::answer::{Call, Failure, Outcome};
use crate::cluster::Cluster;
use crate::privileges::Caller;
use crate::property;
use crate::tasks::Order;

/// Seconds that a shutdown waits when the call names none.
const SHUTDOWN_SECS: u64 = 60;

impl Cluster {
    pub(super) fn start_guest(&mut self, call: &Call) -> Outcome {
        if self.guest(call)?.text("lock") == "suspended" {
            // What sleeps on disk goes on where it was.
            return self.resume_guest(call);
        }
        let guest = self.unlocked(call)?;
        if guest.is_template() {
            return Err(Failure::refused("you can't start a vm if it's a template"));
        }
        let (kind, vmid) = (guest.kind, guest.vmid);
        if kind == GuestKind::Lxc && guest.run.is_some() {
            return Err(Failure::refused(format!("CT {vmid} already running")));
        }
        if self.is_managed(kind, vmid) {
            return Ok(self.hand_over(call, "hastart", "started"));
        }
        let kind_name = format!("{}start", kind.prefix());
        Ok(self.start(&call.caller, Order::new(call.node(), &kind_name, vmid), move |cluster| {
            if cluster.guests.get(&vmid).is_some_and(|guest| guest.run.is_some()) {
                return Err(format!("VM {vmid} already running"));
            }
            cluster.check_bridges(vmid)?;
            cluster.power_on(vmid);
            Ok(())
        }))
    }

    pub(super) fn stop_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid) = (guest.kind, guest.vmid);
        if kind == GuestKind::Lxc && guest.run.is_none() {
            return Err(Failure::refused(format!("CT {vmid} not running")));
        }
        if self.is_managed(kind, vmid) {
            return Ok(self.hand_over(call, "hastop", "stopped"));
        }
        let kind_name = format!("{}stop", kind.prefix());
        Ok(self.start(&call.caller, Order::new(call.node(), &kind_name, vmid), move |cluster| {
            cluster.power_off(vmid);
            Ok(())
        }))
    }

    pub(super) fn shut_down_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid, ignores) = (guest.kind, guest.vmid, guest.is_unresponsive);
        if guest.run.is_none() {
            return Err(Failure::refused(format!("{} {vmid} not running", kind.title())));
        }
        if self.is_managed(kind, vmid) {
            return Ok(self.hand_over(call, "hastop", "stopped"));
        }
        let kind_name = format!("{}shutdown", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid);
        if !ignores {
            return Ok(self.start(&call.caller, order.weight(2), move |cluster| {
                cluster.power_off(vmid);
                Ok(())
            }));
        }
        let (waits_ms, forces) =
            (call.integer("timeout").unwrap_or(SHUTDOWN_SECS) * 1000, call.flag("forceStop"));
        let work = move |cluster: &mut Self| {
            if !forces {
                return Err("VM quit/powerdown failed - got timeout".to_owned());
            }
            cluster.power_off(vmid);
            Ok(())
        };
        Ok(Value::from(self.start_for(&call.caller, order, waits_ms, Box::new(work))))
    }

    /// A restart, which also brings what is pending into force.
    pub(super) fn reboot_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid, ignores) = (guest.kind, guest.vmid, guest.is_unresponsive);
        if guest.run.is_none() {
            return Err(Failure::refused(format!("{} {vmid} not running", kind.title())));
        }
        let kind_name = format!("{}reboot", kind.prefix());
        Ok(self.start(&call.caller, Order::new(call.node(), &kind_name, vmid).weight(2), move |cluster| {
            if ignores {
                return Err("VM quit/powerdown failed - got timeout".to_owned());
            }
            cluster.power_off(vmid);
            cluster.power_on(vmid);
            Ok(())
        }))
    }

    /// A hard restart of the same process: nothing pending comes into force.
    pub(super) fn reset_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let vmid = guest.vmid;
        if guest.run.is_none() {
            return Err(Failure::refused(format!("VM {vmid} not running")));
        }
        Ok(self.start(&call.caller, Order::new(call.node(), "qmreset", vmid), |_| Ok(())))
    }

    pub(super) fn suspend_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid, to_disk) = (guest.kind, guest.vmid, call.flag("todisk"));
        if guest.run.is_none() {
            return Err(Failure::refused(format!("{} {vmid} not running", kind.title())));
        }
        let kind_name = format!("{}suspend", kind.prefix());
        Ok(self.start(&call.caller, Order::new(call.node(), &kind_name, vmid), move |cluster| {
            if to_disk {
                cluster.power_off(vmid);
                cluster.lock(vmid, "suspended");
            } else {
                cluster.set_paused(vmid, true);
            }
            Ok(())
        }))
    }

    pub(super) fn resume_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        let (kind, vmid, is_on_disk) = (guest.kind, guest.vmid, guest.text("lock") == "suspended");
        if guest.run.is_none() && !is_on_disk {
            return Err(Failure::refused(format!("{} {vmid} not running", kind.title())));
        }
        let kind_name = format!("{}resume", kind.prefix());
        Ok(self.start(&call.caller, Order::new(call.node(), &kind_name, vmid), move |cluster| {
            if is_on_disk {
                cluster.unlock(vmid);
                cluster.power_on(vmid);
            }
            cluster.set_paused(vmid, false);
            Ok(())
        }))
    }

    /// Hands a wish to the HA manager. The task ends before the guest changes.
    fn hand_over(&mut self, call: &Call, kind: &str, state: &'static str) -> Value {
        let (vmid, sid) = (call.vmid(), format!("{}:{}", kind_of(call).title().to_lowercase(), call.vmid()));
        let delay_ms = self.settings.task_ms * 2;
        self.start(&call.caller, Order::new(call.node(), kind, vmid), move |cluster| {
            if let Some(resource) = cluster.store.find_mut("/cluster/ha/resources", &sid) {
                resource.insert("state".to_owned(), Value::from(state));
            }
            cluster.schedule(delay_ms, Box::new(move |cluster| cluster.fulfil(vmid, state)));
            Ok(())
        })
    }

    /// Brings a guest into the state that its HA resource names.
    pub(crate) fn fulfil(&mut self, vmid: u64, state: &str) {
        match state {
            "started" | "enabled" => self.power_on(vmid),
            "stopped" | "disabled" => self.power_off(vmid),
            _ => {}
        }
    }

    /// Starts or stops a guest as a person in the vendor's pages does. Gives the id of the task; `None` where there is no such
    /// guest.
    pub(crate) fn power_by_task(&mut self, vmid: u64, is_on: bool) -> Option<Value> {
        let guest = self.guests.get(&vmid)?;
        let kind = format!("{}{}", guest.kind.prefix(), if is_on { "start" } else { "stop" });
        let node = guest.node.clone();
        let work = move |cluster: &mut Self| {
            if is_on {
                cluster.power_on(vmid);
            } else {
                cluster.power_off(vmid);
            }
            Ok(())
        };
        Some(self.start(&Caller::user("root@pam"), Order::new(&node, &kind, vmid), work))
    }

    /// Starts the process of a guest, with what was pending. A guest that runs is left alone.
    pub(crate) fn power_on(&mut self, vmid: u64) {
        self.serial += 1;
        let (now_ms, pid) = (self.now_ms, 0x8000 + self.serial * 3);
        if let Some(guest) = self.guests.get_mut(&vmid).filter(|guest| guest.run.is_none()) {
            apply_pending(guest);
            guest.run = Some(Run { since_ms: now_ms, pid, is_paused: false });
        }
    }

    pub(crate) fn power_off(&mut self, vmid: u64) {
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.run = None;
        }
    }

    fn set_paused(&mut self, vmid: u64, is_paused: bool) {
        if let Some(run) = self.guests.get_mut(&vmid).and_then(|guest| guest.run.as_mut()) {
            run.is_paused = is_paused;
        }
    }

    /// A guest does not start when a bridge of it is not on its node.
    fn check_bridges(&self, vmid: u64) -> Result<(), String> {
        let Some(guest) = self.guests.get(&vmid) else { return Err(format!("no such VM ('{vmid}')")) };
        for (_, text) in guest.networks() {
            let Some(bridge) = property::find(&text, "bridge") else { continue };
            let is_known = self.nodes.iter().any(|node| node.name == guest.node && node.network.has(bridge));
            if !is_known && !self.sdn.has_running_vnet(bridge) {
                return Err(format!("bridge '{bridge}' does not exist"));
            }
        }
        Ok(())
    }
}
