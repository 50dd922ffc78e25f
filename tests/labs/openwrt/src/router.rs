//! The handle: starts a router, gives it orders, reads the outcome.

use std::net::SocketAddr;
use std::time::Duration;

use heddle_lab::{Instant, Lab, Locked};
use serde_json::Value;

use crate::controller;
use crate::device::{Device, Restart, Settings};
use crate::dispatch::{self, BODY_BYTES_MAX};
use crate::fault::Fault;
use crate::recorder::{Call, Counters};
use crate::session::{Access, User};
use crate::uci::Change;

/// Requests that the skeleton keeps. Tests read [`Call`]s, which are kept apart from them, and without a limit.
const EXCHANGES_MAX: usize = 100;

/// A running router. It stops when dropped.
pub struct Router(Lab<Device>);

impl Router {
    /// A router with factory settings, user `root` with password `openwrt`, plain HTTP, on a free loopback port.
    pub fn builder() -> RouterBuilder {
        RouterBuilder::default()
    }

    /// `http://address:port`, or `https`; calls go to `/ubus` under it.
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// `http://address:port` of the control port.
    pub fn control_url(&self) -> String {
        self.0.control_url()
    }

    /// SHA-256 of the certificate's DER in lower-case hex; `None` without TLS.
    pub fn certificate_sha256(&self) -> Option<&str> {
        self.0.certificate_sha256()
    }

    /// Orders a fault. Hang, cut and delay replace their like; the others add up.
    pub fn fault(&self, fault: Fault) {
        let mut device = self.device();
        let (device, context) = device.parts();
        controller::order(device, fault, context);
    }

    /// Ends every fault.
    pub fn clear_faults(&self) {
        let mut device = self.device();
        let (device, context) = device.parts();
        controller::clear_faults(device, context);
    }

    /// From now on it runs this release.
    pub fn tell_release(&self, release: &str) {
        release.clone_into(&mut self.device().release);
    }

    /// Restarts the router at once, as if power-cycled.
    pub fn reboot(&self) {
        self.device().restart(Restart::Reboot);
    }

    /// Restarts rpcd cleanly: sessions stay, staged changes and a pending rollback are gone.
    pub fn restart_rpcd(&self) {
        self.device().restart_rpcd();
    }

    /// Ends every session, and with it what it had staged.
    pub fn expire_sessions(&self) {
        self.device().end_sessions();
    }

    /// Lets the time of an unconfirmed apply run out now: the router takes it back. False when none is pending.
    pub fn run_out_rollback_timer(&self) -> bool {
        self.device().run_out_rollback_timer()
    }

    /// Changes a committed file behind the manager's back. False when there is no such configuration.
    pub fn edit(&self, config: &str, changes: &[Change]) -> bool {
        self.device().edit(config, changes)
    }

    /// Answers the body of a request without a connection; `null` where the answer is lost.
    pub fn answer(&self, body: &[u8]) -> Value {
        match dispatch::answer(&mut self.device(), body) {
            dispatch::Answer::Json(answer) | dispatch::Answer::LastJson(answer) => answer,
            dispatch::Answer::Lost(_) => Value::Null,
        }
    }

    /// These ubus objects are of packages that are not installed; every other one is there.
    pub fn without_objects(&self, names: &[&str]) {
        self.device().missing = names.iter().map(|name| (*name).to_owned()).collect();
    }

    /// A person writes a comment into a configuration file.
    pub fn comment(&self, config: &str, text: &str) {
        self.device().comments.insert(config.to_owned(), format!("# {text}\n"));
    }

    /// A configuration file as it lies on flash, comments and all.
    pub fn file_text(&self, config: &str) -> Option<String> {
        self.device().file_text(config)
    }

    /// A person breaks the syntax of a configuration file, or mends it.
    pub fn break_file(&self, config: &str, is_broken: bool) {
        let mut device = self.device();
        if is_broken {
            device.broken.insert(config.to_owned());
        } else {
            device.broken.remove(config);
        }
    }

    /// Stages changes as a user of the web interface does, and applies them with a rollback timer. Returns the session.
    ///
    /// # Panics
    /// When the router refuses it: while another apply is pending.
    pub fn luci_applies(&self, config: &str, changes: &[Change], timeout_secs: u64) -> String {
        self.device().luci_applies(config, changes, timeout_secs)
    }

    /// The person at the web interface stages one more change in an open session, without applying it.
    pub fn luci_stages(&self, sid: &str, config: &str, changes: &[Change]) {
        self.device().luci_stages(sid, config, changes);
    }

    /// The person at the web interface confirms. False when there is nothing of that session to confirm.
    pub fn luci_confirms(&self, sid: &str) -> bool {
        self.device().uci_confirm(sid).is_ok()
    }

    /// Whether a session is still logged in.
    pub fn is_logged_in(&self, sid: &str) -> bool {
        self.device().sessions.is_alive(sid)
    }

    /// What a session has staged in all configurations.
    pub fn staged_in(&self, sid: &str) -> usize {
        self.device().staged.get(sid).map_or(0, |staged| staged.values().map(Vec::len).sum())
    }

    /// Sections of the firewall's file that fw4 skips, as its log says it.
    pub fn skipped_sections(&self) -> Vec<String> {
        crate::fw4::skipped(self.device().config("firewall"))
    }

    /// The host with this MAC leaves the house: no lease, no hint, no station.
    pub fn client_leaves(&self, mac: &str) {
        self.device().leaves(mac);
    }

    /// The host is back.
    pub fn client_returns(&self, mac: &str) {
        self.device().returns(mac);
    }

    /// From now on the web server has answers that tell what daemons notify, or lacks them; those that are open stay.
    pub fn lack_streams(&self, lacks: bool) {
        self.device().lacks_streams = lacks;
    }

    /// How many answers that tell what daemons notify are open.
    pub fn streams(&self) -> usize {
        self.device().streams.len()
    }

    /// Closes every connection; new ones are served.
    pub fn close_connections(&self) {
        self.0.close_connections();
    }

    /// Lays a file on the router, such as `/tmp/firmware.bin`.
    pub fn put_file(&self, path: &str, bytes: &[u8]) {
        self.device().files.insert(path.to_owned(), bytes.to_vec());
    }

    /// What the router's `uclient-fetch` finds at an address; from then on all others are not found.
    pub fn put_download(&self, url: &str, bytes: &[u8]) {
        self.device().downloads.insert(url.to_owned(), bytes.to_vec());
    }

    /// Every call executed, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.device().recorder.calls.clone()
    }

    /// The calls that change something, in order; staging counts.
    pub fn write_calls(&self) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.is_write).collect()
    }

    pub fn forget_calls(&self) {
        self.device().recorder.calls.clear();
    }

    pub fn counters(&self) -> Counters {
        self.device().recorder.counters.clone()
    }

    /// Committed configurations under `configs`, with counters, fingerprint, release and flags.
    pub fn state(&self) -> Value {
        self.0.state()
    }

    /// One committed option; lists as JSON arrays. The section may be `@type[n]`.
    pub fn option(&self, config: &str, section: &str, option: &str) -> Option<Value> {
        let device = self.device();
        Some(device.configs.get(config)?.section(section)?.option(option)?.to_json())
    }

    /// One committed configuration as the text of its file.
    pub fn config_text(&self, config: &str) -> Option<String> {
        self.device().configs.get(config).map(crate::uci::Config::to_text)
    }

    /// SHA-256 over all committed files: equal files, equal fingerprints.
    pub fn fingerprint(&self) -> String {
        self.device().fingerprint()
    }

    /// Prints the addresses as one line of JSON, and runs until `SIGINT` or `SIGTERM`.
    pub async fn run(self) -> anyhow::Result<()> {
        self.0.run().await
    }

    /// Closes both ports, and every connection to the router.
    pub async fn shutdown(self) {
        self.0.shutdown().await;
    }

    fn device(&self) -> Locked<'_, Device> {
        self.0.lock()
    }
}

/// How a router starts.
#[must_use]
#[derive(Clone, Debug)]
pub struct RouterBuilder {
    settings: Settings,
    listen: SocketAddr,
    control: SocketAddr,
    has_tls: bool,
}

impl Default for RouterBuilder {
    fn default() -> Self {
        let root =
            User { name: "root".to_owned(), password: Some("openwrt".to_owned()), access: Access::Full };
        let settings = Settings {
            users: vec![root],
            boot_time: Duration::from_secs(5),
            action_delay: Duration::from_secs(2),
            reload_delay: Duration::from_millis(300),
            release: "24.10.0".to_owned(),
            upgrade_release: "24.10.4".to_owned(),
            epoch_secs: 1_767_225_600,
            has_odhcpd_leases: false,
        };
        let free_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { settings, listen: free_port, control: free_port, has_tls: false }
    }
}

impl RouterBuilder {
    #[cfg(test)]
    pub(crate) fn settings(self) -> Settings {
        self.settings
    }

    /// The password of root.
    pub fn password(mut self, password: &str) -> Self {
        self.settings.users[0].password = Some(password.to_owned());
        self
    }

    /// What root may do.
    pub fn root_access(mut self, access: Access) -> Self {
        self.settings.users[0].access = access;
        self
    }

    /// One more user.
    pub fn user(mut self, name: &str, password: &str, access: Access) -> Self {
        self.settings.users.push(User { name: name.to_owned(), password: Some(password.to_owned()), access });
        self
    }

    /// How long a restart takes; 5 s when not set.
    pub fn boot_time(mut self, time: Duration) -> Self {
        self.settings.boot_time = time;
        self
    }

    /// Between the `[0]` of a reboot, reset or upgrade and the act; 2 s when not set.
    pub fn action_delay(mut self, delay: Duration) -> Self {
        self.settings.action_delay = delay;
        self
    }

    /// Between a commit and the moment a changed address takes effect; 300 ms when not set.
    pub fn reload_delay(mut self, delay: Duration) -> Self {
        self.settings.reload_delay = delay;
        self
    }

    /// `release.version` at start, and after an upgrade.
    pub fn releases(mut self, now: &str, after_upgrade: &str) -> Self {
        now.clone_into(&mut self.settings.release);
        after_upgrade.clone_into(&mut self.settings.upgrade_release);
        self
    }

    /// Seconds since 1970 on the router's clock at start.
    pub fn epoch_secs(mut self, secs: u64) -> Self {
        self.settings.epoch_secs = secs;
        self
    }

    /// odhcpd serves `DHCPv4`, and so has `dhcp.ipv4leases`.
    pub fn odhcpd_leases(mut self) -> Self {
        self.settings.has_odhcpd_leases = true;
        self
    }

    /// HTTPS with a self-signed certificate, made at each start.
    pub fn tls(mut self) -> Self {
        self.has_tls = true;
        self
    }

    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    pub fn control(mut self, address: SocketAddr) -> Self {
        self.control = address;
        self
    }

    /// Starts the router.
    ///
    /// # Panics
    /// When a port cannot be bound; [`RouterBuilder::try_start`] says so instead.
    pub async fn start(self) -> Router {
        self.try_start().await.expect("a simulated router starts on a free port")
    }

    /// Starts the router, or says which address could not be bound.
    pub async fn try_start(self) -> anyhow::Result<Router> {
        let epoch_secs = self.settings.epoch_secs;
        let builder = Lab::builder(Device::new(self.settings, Instant::now()))
            .listen(self.listen)
            .control(self.control)
            .name("OpenWrt")
            .epoch_secs(epoch_secs)
            .body_bytes_max(64 * BODY_BYTES_MAX)
            .record_max(EXCHANGES_MAX);
        let builder = if self.has_tls { builder.tls() } else { builder };
        Ok(Router(builder.try_start().await?))
    }
}
