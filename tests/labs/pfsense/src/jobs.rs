//! What runs in the background after a request was answered.

use heddle_lab::{Context, Instant};

use crate::device::{Down, Pfsense};
use crate::reply::Refusal;

/// The apply of the packet filter.
pub(crate) const FILTER: &str = "/firewall/apply";
/// Jobs of one kind that may wait.
const QUEUE_MAX: usize = 10;
/// A job is ended after this time, which a client is also told to wait.
const LIMIT_SECS: u64 = 300;
/// Between the request and the shutdown.
const SHUTDOWN_SECS: u64 = 15;

/// One job.
pub(crate) struct Job {
    pub(crate) kind: String,
    ends: Instant,
    is_failing: bool,
}

/// Starts a job, or carries it out at once where the client waits for it.
pub(crate) fn spawn(firewall: &mut Pfsense, kind: &str, is_async: bool) -> Result<(), Refusal> {
    let queue_max = if matches!(kind, "reboot" | "halt" | "update") { 1 } else { QUEUE_MAX };
    let waiting = firewall.jobs.iter().filter(|job| job.kind == kind).count();
    if waiting >= queue_max || firewall.met.is_queue_full {
        let text =
            format!("At most `{queue_max}` processes wait at once, try again after `{LIMIT_SECS}` seconds.");
        return Err(Refusal::unavailable("DISPATCHER_TOO_MANY_QUEUED_PROCESSES", &text, LIMIT_SECS));
    }
    if !is_async {
        finish(firewall, kind, firewall.met.is_reload_failing);
        return Ok(());
    }
    // Jobs of one kind run one after another.
    let last = firewall.jobs.iter().filter(|job| job.kind == kind).map(|job| job.ends).max();
    let starts = last.unwrap_or(firewall.now).max(firewall.now);
    let ends = starts + firewall.settings.job;
    let is_failing = firewall.met.is_reload_failing;
    firewall.jobs.push(Job { kind: kind.to_owned(), ends, is_failing });
    Ok(())
}

/// Carries out what has come due.
pub(crate) fn advance(firewall: &mut Pfsense, context: &mut Context) {
    while let Some(at) = firewall.jobs.iter().position(|job| job.ends <= firewall.now) {
        let job = firewall.jobs.remove(at);
        let is_failing = job.is_failing || context.fault_in_background("reload_fails").is_some();
        finish(firewall, &job.kind, is_failing);
    }
}

fn finish(firewall: &mut Pfsense, kind: &str, is_failing: bool) {
    let shutdown = firewall.now + std::time::Duration::from_secs(SHUTDOWN_SECS);
    match kind {
        "reboot" => return firewall.goes_down = Some((shutdown, Down::Reboot)),
        "halt" => return firewall.goes_down = Some((shutdown, Down::Halt)),
        "update" => {
            if firewall.settings.update_to.is_some() {
                firewall.goes_down = Some((shutdown, Down::Update));
            }
            return;
        }
        "states" => return firewall.live.states.clear(),
        _ => {}
    }
    // A reload that fails leaves the old rules, and says so nowhere.
    if !is_failing {
        firewall.apply(kind);
    }
    let subsystems: &[&str] = match kind {
        FILTER => &["aliases", "natconf", "filter", "shaper"],
        "/firewall/virtual_ip/apply" => &["vip"],
        "/services/dhcp_server/apply" => &["dhcpd"],
        "/services/dns_forwarder/apply" => &["hosts"],
        "/services/dns_resolver/apply" => &["unbound"],
        "/vpn/ipsec/apply" => &["ipsec"],
        "/vpn/wireguard/apply" => &["wireguard"],
        "/routing/apply" => &["staticroutes"],
        "/services/haproxy/apply" => &["haproxy"],
        "/interface/apply" => {
            firewall.pending_interfaces.clear();
            &["interfaces", "staticroutes"]
        }
        _ => &[],
    };
    for subsystem in subsystems {
        firewall.dirty.remove(*subsystem);
    }
}
