//! Apply, confirm, roll back, commit: how staged changes reach the files.

use std::time::Duration;

use heddle_lab::Instant;
use serde_json::json;

use super::{Change, Configs, Staged};
use crate::args::Args;
use crate::device::{Device, Due};
use crate::status::{Reply, Status};

/// Seconds until an unconfirmed apply is undone, when the call names none.
const ROLLBACK_TIMEOUT_SECS: u64 = 60;

/// An apply that waits for its confirmation. It lives in memory: a reboot forgets it, and the change stays.
pub(crate) struct Pending {
    pub(crate) sid: String,
    pub(crate) user: String,
    pub(crate) until: Instant,
    /// The files before the apply; emptied by an unprotected apply in between.
    saved: Configs,
    staged: Staged,
}

impl Device {
    /// Only a JSON boolean `true` protects: `1` and `"true"` count as absent.
    pub(super) fn uci_apply(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let is_protected = args.flag("rollback") == Some(true);
        if let Some(pending) = &mut self.pending {
            if is_protected {
                return Err(Status::PermissionDenied);
            }
            // The trap of the device: this applies nothing, and the pending rollback has nothing to restore.
            pending.saved.clear();
            pending.staged.clear();
            return Ok(None);
        }
        let staged = self.staged.get(sid).cloned().unwrap_or_default();
        if staged.is_empty() {
            return Err(Status::NoData);
        }
        if staged.keys().any(|name| !self.sessions.may(sid, "uci", name, "write")) {
            return Err(Status::PermissionDenied);
        }
        self.staged.remove(sid);
        self.recorder.counters.applies += 1;
        // The snapshot is of every file, whatever was staged: a rollback takes other people's edits along.
        let saved = self.configs.clone();
        self.write_files(&staged);
        if is_protected {
            let secs =
                args.integer("timeout").and_then(|secs| u64::try_from(secs).ok()).filter(|secs| *secs > 0);
            let until = self.now + Duration::from_secs(secs.unwrap_or(ROLLBACK_TIMEOUT_SECS));
            let user = self.sessions.user_of(sid).unwrap_or_default();
            self.pending = Some(Pending { sid: sid.to_owned(), user, until, saved, staged });
            self.schedule(until, Due::Rollback);
        }
        Ok(None)
    }

    /// The web interface logs in for an hour, which is how its sessions are told from others.
    pub(crate) fn luci_applies(&mut self, config: &str, changes: &[Change], timeout_secs: u64) -> String {
        let user = self.users.first().cloned().expect("a router has root");
        let sid = self.sessions.open(user, Some(3600), self.now);
        self.luci_stages(&sid, config, changes);
        let args = json!({ "rollback": true, "timeout": timeout_secs });
        let args = args.as_object().expect("written as an object above");
        self.uci_apply(&sid, Args(args)).expect("nothing else is pending");
        sid
    }

    pub(crate) fn luci_stages(&mut self, sid: &str, config: &str, changes: &[Change]) {
        let staged = self.staged.entry(sid.to_owned()).or_default();
        staged.entry(config.to_owned()).or_default().extend_from_slice(changes);
    }

    pub(crate) fn uci_confirm(&mut self, sid: &str) -> Reply {
        self.take_pending(sid)?;
        self.recorder.counters.confirms += 1;
        Ok(None)
    }

    pub(super) fn uci_rollback(&mut self, sid: &str) -> Reply {
        let pending = self.take_pending(sid)?;
        self.restore(pending);
        Ok(None)
    }

    /// Writes one configuration without protection.
    pub(super) fn uci_commit(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let (name, _) = self.writable(sid, args)?;
        if self.pending.is_some() {
            return Err(Status::PermissionDenied);
        }
        if let Some(changes) = self.staged.get_mut(sid).and_then(|staged| staged.remove(&name)) {
            self.write_files(&Staged::from([(name, changes)]));
        }
        Ok(None)
    }

    /// The timer's end: nothing when the apply was confirmed, or when this timer belongs to an earlier one.
    pub(crate) fn roll_back_unconfirmed(&mut self) {
        if let Some(pending) = self.pending.take_if(|pending| pending.until <= self.now) {
            self.restore(pending);
        }
    }

    /// The timer's end, sooner than it was set. False when no apply is pending.
    pub(crate) fn run_out_rollback_timer(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return false };
        self.restore(pending);
        true
    }

    /// Replays staged changes, by section id, onto the files as they are now.
    fn write_files(&mut self, staged: &Staged) {
        for (name, changes) in staged {
            if let Some(config) = self.configs.get_mut(name) {
                changes.iter().for_each(|change| change.replay(config));
                config.reread();
                self.comments.remove(name);
                *self.recorder.counters.commits.entry(name.clone()).or_default() += 1;
            }
        }
        self.note(
            "notice",
            "procd",
            &json!({ "config.change": staged.keys().collect::<Vec<_>>() }).to_string(),
        );
        self.reload_network();
        if staged.contains_key("firewall") {
            self.reload_firewall();
        }
    }

    fn take_pending(&mut self, sid: &str) -> Result<Pending, Status> {
        match &self.pending {
            None => Err(Status::NoData),
            Some(pending) if pending.sid != sid => Err(Status::PermissionDenied),
            Some(_) => self.pending.take().ok_or(Status::NoData),
        }
    }

    /// Puts the old files back, and the changes back into staging of the session if it still exists.
    fn restore(&mut self, pending: Pending) {
        self.recorder.counters.rollbacks += 1;
        self.configs.extend(pending.saved);
        if self.sessions.is_alive(&pending.sid) {
            let staged = self.staged.entry(pending.sid).or_default();
            for (name, changes) in pending.staged {
                // What was staged since the apply comes after what the apply had taken.
                let later = staged.remove(&name).unwrap_or_default();
                staged.insert(name, changes.into_iter().chain(later).collect());
            }
        }
        self.reload_network();
    }
}
