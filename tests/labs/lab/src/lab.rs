//! The handle: a running controller, its orders and its record.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::shared::Shared;
use crate::{Certificate, Controller, Exchange, Fault, LabBuilder, Locked};

/// A running simulator. It stops when dropped.
pub struct Lab<C: Controller> {
    pub(crate) shared: Shared<C>,
    pub(crate) address: SocketAddr,
    pub(crate) control_address: SocketAddr,
    pub(crate) tasks: Vec<JoinHandle<()>>,
}

impl<C: Controller> Lab<C> {
    /// Plain HTTP on a free loopback port, with a clock that runs.
    pub fn builder(controller: C) -> LabBuilder<C> {
        LabBuilder::new(controller)
    }

    /// `http://address:port`, or `https`.
    pub fn url(&self) -> String {
        let scheme = if self.shared.certificates().is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// `http://address:port` of the control port.
    pub fn control_url(&self) -> String {
        format!("http://{}", self.control_address)
    }

    /// The address of the controller's port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// SHA-256 of the good certificate's DER in lower-case hex; `None` without TLS.
    pub fn certificate_sha256(&self) -> Option<&str> {
        self.certificate_sha256_of(Certificate::Good)
    }

    /// As [`Lab::certificate_sha256`], of the named one.
    pub fn certificate_sha256_of(&self, which: Certificate) -> Option<&str> {
        Some(self.shared.certificates()?.get(which).sha256.as_str())
    }

    /// A certificate as PEM, for a client that shall trust it; `None` without TLS.
    pub fn certificate_pem(&self, which: Certificate) -> Option<&str> {
        Some(self.shared.certificates()?.get(which).pem.as_str())
    }

    /// The controller under the lock, brought up to now: for what only one simulator has.
    pub fn lock(&self) -> Locked<'_, C> {
        self.shared.lock()
    }

    /// What the controller says of itself.
    pub fn state(&self) -> Value {
        let mut locked = self.lock();
        let (controller, context) = locked.parts();
        controller.state(context)
    }

    /// Orders a fault. One that meets every request replaces its like; all others add up.
    ///
    /// # Panics
    /// When the fault is not well-formed, or its vendor's name is unknown.
    pub fn fault(&self, fault: impl Into<Fault>) {
        self.lock().order(fault.into()).expect("a test orders faults that exist");
    }

    /// Ends every fault.
    pub fn clear_faults(&self) {
        self.lock().clear_faults();
    }

    /// Restarts the controller, which is away for `time` on the lab's clock.
    pub fn boot(&self, time: Duration) {
        self.lock().boot(time);
    }

    /// Closes every connection; new ones are served.
    pub fn close_connections(&self) {
        self.lock().context().close_connections();
    }

    /// Ends every session.
    pub fn end_sessions(&self) {
        let mut locked = self.lock();
        let (controller, context) = locked.parts();
        controller.end_sessions(context);
    }

    /// An edit by a person at the device, in the form that the simulator defines.
    pub fn edit(&self, edit: &Value) -> Result<Value, String> {
        let mut locked = self.lock();
        let (controller, context) = locked.parts();
        controller.edit(edit, context)
    }

    /// Moves the lab's clock forward, and carries out what has come due.
    pub fn advance(&self, by: Duration) {
        self.lock().advance(by);
    }

    /// Stops the lab's clock: only [`Lab::advance`] moves it.
    pub fn pause_clock(&self) {
        self.lock().context().clock.pause();
    }

    /// Lets the lab's clock run with real time again.
    pub fn resume_clock(&self) {
        self.lock().context().clock.resume();
    }

    /// The exchanges that the record keeps, oldest first.
    pub fn record(&self) -> Vec<Exchange> {
        self.lock().context().record.exchanges().cloned().collect()
    }

    /// The exchanges whose method is not `GET`, `HEAD` or `OPTIONS`.
    pub fn writes(&self) -> Vec<Exchange> {
        self.record().into_iter().filter(Exchange::is_write).collect()
    }

    /// Forgets every exchange.
    pub fn forget_record(&self) {
        self.lock().context().record.forget();
    }

    /// Closes both ports, and every connection to the controller.
    pub async fn shutdown(mut self) {
        for task in std::mem::take(&mut self.tasks) {
            task.abort();
            // Cancelled is how it ends; awaited so that the port is free afterwards.
            let _cancelled = task.await;
        }
    }
}

impl<C: Controller> Drop for Lab<C> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
