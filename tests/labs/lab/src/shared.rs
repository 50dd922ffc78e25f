//! The state of a lab behind its one lock.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::tls::Certificates;
use crate::{Context, Controller, Fault, FaultKind};

/// What the ports and the handle share. The lock is never held across an await.
pub(crate) struct Shared<C>(Arc<Inner<C>>);

struct Inner<C> {
    state: Mutex<State<C>>,
    /// Every change closes the connections that are open.
    closing: watch::Sender<()>,
    certificates: Option<Certificates>,
    body_bytes_max: usize,
}

struct State<C> {
    controller: C,
    context: Context,
}

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Controller> Shared<C> {
    pub(crate) fn new(
        mut controller: C,
        mut context: Context,
        certificates: Option<Certificates>,
        body_bytes_max: usize,
    ) -> Self {
        controller.started(&mut context);
        let state = Mutex::new(State { controller, context });
        Self(Arc::new(Inner { state, closing: watch::Sender::new(()), certificates, body_bytes_max }))
    }

    /// The controller, brought up to now.
    pub(crate) fn lock(&self) -> Locked<'_, C> {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = Locked { state, closing: &self.0.closing };
        locked.catch_up();
        locked
    }

    pub(crate) fn closing(&self) -> watch::Receiver<()> {
        self.0.closing.subscribe()
    }

    pub(crate) fn certificates(&self) -> Option<&Certificates> {
        self.0.certificates.as_ref()
    }

    pub(crate) fn body_bytes_max(&self) -> usize {
        self.0.body_bytes_max
    }
}

/// The controller under the lab's lock: keep it short, and never across an await.
///
/// Its release closes the connections when the controller went off the network meanwhile.
pub struct Locked<'a, C: Controller> {
    state: MutexGuard<'a, State<C>>,
    closing: &'a watch::Sender<()>,
}

impl<C: Controller> Locked<'_, C> {
    /// The controller, and what the skeleton keeps for it.
    pub fn parts(&mut self) -> (&mut C, &mut Context) {
        let State { controller, context } = &mut *self.state;
        (controller, context)
    }

    /// What the skeleton keeps.
    pub fn context(&mut self) -> &mut Context {
        &mut self.state.context
    }

    /// Whether connections are served.
    pub fn is_reachable(&self) -> bool {
        let State { controller, context } = &*self.state;
        controller.is_reachable() && !context.is_booting() && !context.faults.is_cut()
    }

    /// Carries out what has come due since the lock was taken; needed after the clock was moved under it.
    pub fn catch_up(&mut self) {
        let (controller, context) = self.parts();
        context.now = context.now.max(context.clock.now());
        let certificate = context.certificate();
        context.faults.expire(context.now);
        context.closes_connections |= context.certificate() != certificate;
        controller.advance(context);
    }

    /// Orders a fault, or says what is wrong with it.
    pub fn order(&mut self, fault: Fault) -> Result<(), String> {
        let (controller, context) = self.parts();
        fault.check(controller.vendor_faults())?;
        if matches!(fault.kind, FaultKind::Certificate { .. }) && !context.has_tls {
            return Err("this lab serves no TLS: it has no certificates".to_owned());
        }
        let concerns_connections = fault.concerns_connections();
        context.faults.add(fault, context.now);
        context.closes_connections |= concerns_connections;
        Ok(())
    }

    /// Ends every fault. Another certificate was a fault too: connections made with it close.
    pub fn clear_faults(&mut self) {
        let context = self.context();
        context.closes_connections |= context.faults.certificate().is_some();
        context.faults.clear();
    }

    /// Moves the lab's clock forward, and carries out what has come due.
    pub fn advance(&mut self, by: Duration) {
        self.context().clock.advance(by);
        self.catch_up();
    }

    /// Restarts the controller, which is away for `time` on the lab's clock.
    pub fn boot(&mut self, time: Duration) {
        let (controller, context) = self.parts();
        controller.restart(context);
        context.boot(time);
    }
}

impl<C: Controller> Deref for Locked<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.state.controller
    }
}

impl<C: Controller> DerefMut for Locked<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.state.controller
    }
}

impl<C: Controller> Drop for Locked<'_, C> {
    fn drop(&mut self) {
        let is_ordered = std::mem::take(&mut self.state.context.closes_connections);
        if is_ordered || !self.is_reachable() {
            self.closing.send_replace(());
        }
    }
}
