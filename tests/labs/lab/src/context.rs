//! What the skeleton keeps for a controller, and lends it with every call.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::faults::Faults;
use crate::record::Record;
use crate::{Certificate, Clock, Request};

/// Clock, faults and record of one lab.
pub struct Context {
    /// The lab's time. A controller reads [`Context::now`], which does not move during a call.
    pub clock: Clock,
    /// The faults in force.
    pub faults: Faults,
    /// The requests so far.
    pub record: Record,
    pub(crate) now: Instant,
    pub(crate) has_tls: bool,
    /// The certificate when no fault names another.
    certificate: Certificate,
    /// Open connections shall be closed when the lock is released.
    pub(crate) closes_connections: bool,
    /// Names of the faults that this request met.
    pub(crate) fired: Vec<String>,
    booted_at: Instant,
    tokens: u64,
}

impl Context {
    pub(crate) fn new(clock: Clock, record: Record, tls: Option<Certificate>) -> Self {
        let now = clock.now();
        Self {
            clock,
            faults: Faults::default(),
            record,
            now,
            has_tls: tls.is_some(),
            certificate: tls.unwrap_or_default(),
            closes_connections: false,
            fired: Vec::new(),
            booted_at: now,
            tokens: 0,
        }
    }

    /// The instant of this call.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Seconds since 1970 of this call.
    pub fn unix_secs(&self) -> u64 {
        self.clock.unix_of(self.now).as_secs()
    }

    /// A hexadecimal token of 64 characters. Runs are repeatable: the n-th token of a lab is always the same.
    pub fn token(&mut self) -> String {
        self.tokens += 1;
        hex::encode(Sha256::digest(format!("token {}", self.tokens)))
    }

    /// Whether a vendor's fault meets this request, and with which arguments. Counts it, so ask only where it matters.
    pub fn fault(&mut self, name: &str, request: &Request) -> Option<Value> {
        self.vendor_fault(name, Some(request))
    }

    /// As [`Context::fault`], where there is no request: faults with a method or a path do not count.
    pub fn fault_in_background(&mut self, name: &str) -> Option<Value> {
        self.vendor_fault(name, None)
    }

    fn vendor_fault(&mut self, name: &str, request: Option<&Request>) -> Option<Value> {
        let args = self.faults.take_vendor(name, request)?;
        self.fired.push(name.to_owned());
        Some(args)
    }

    /// Takes the controller off the network for this long, counted on the lab's clock. Its memory is the caller's part.
    pub fn boot(&mut self, time: Duration) {
        self.booted_at = self.booted_at.max(self.now + time);
        self.closes_connections = true;
    }

    /// Whether the time of [`Context::boot`] is not over.
    pub fn is_booting(&self) -> bool {
        self.now < self.booted_at
    }

    /// Closes every connection; new ones are served.
    pub fn close_connections(&mut self) {
        self.closes_connections = true;
    }

    pub(crate) fn certificate(&self) -> Certificate {
        self.faults.certificate().unwrap_or(self.certificate)
    }
}
