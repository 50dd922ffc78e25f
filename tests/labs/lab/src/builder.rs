//! How a lab starts.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::record::Record;
use crate::shared::Shared;
use crate::tls::Certificates;
use crate::{Certificate, Clock, Context, Controller, Lab, control, outbox, server};

/// 2026-01-01: runs are repeatable, whatever the day.
const EPOCH_SECS: u64 = 1_767_225_600;
const BODY_BYTES_MAX: usize = 1024 * 1024;
const EXCHANGES_MAX: usize = 2_000;

/// A lab that has not started.
#[must_use]
pub struct LabBuilder<C> {
    controller: C,
    listen: SocketAddr,
    control: SocketAddr,
    tls: Option<Certificate>,
    names: Vec<String>,
    epoch_secs: u64,
    is_paused: bool,
    body_bytes_max: usize,
    exchanges_max: usize,
}

impl<C: Controller> LabBuilder<C> {
    pub(crate) fn new(controller: C) -> Self {
        let free_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            controller,
            listen: free_port,
            control: free_port,
            tls: None,
            names: Vec::new(),
            epoch_secs: EPOCH_SECS,
            is_paused: false,
            body_bytes_max: BODY_BYTES_MAX,
            exchanges_max: EXCHANGES_MAX,
        }
    }

    /// Address of the controller's port; a free loopback port when not set.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Address of the control port; a free loopback port when not set.
    pub fn control(mut self, address: SocketAddr) -> Self {
        self.control = address;
        self
    }

    /// HTTPS with self-signed certificates, made at each start.
    pub fn tls(self) -> Self {
        self.certificate(Certificate::Good)
    }

    /// HTTPS that serves the named certificate.
    pub fn certificate(mut self, which: Certificate) -> Self {
        self.tls = Some(which);
        self
    }

    /// One more name or address in the certificates; the first is their common name.
    pub fn name(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Seconds since 1970 on the lab's clock at start; 2026-01-01 when not set.
    pub fn epoch_secs(mut self, secs: u64) -> Self {
        self.epoch_secs = secs;
        self
    }

    /// The lab's clock stands until it is moved.
    pub fn paused(mut self) -> Self {
        self.is_paused = true;
        self
    }

    /// Bytes that a request's body may have before it is refused with 413; 1 MiB when not set.
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Exchanges that the record keeps; 2,000 when not set, 0 records nothing.
    pub fn record_max(mut self, exchanges: usize) -> Self {
        self.exchanges_max = exchanges;
        self
    }

    /// Starts the lab.
    ///
    /// # Panics
    /// When a port cannot be bound; [`LabBuilder::try_start`] says so instead.
    pub async fn start(self) -> Lab<C> {
        self.try_start().await.expect("a simulator starts on a free port")
    }

    /// Starts the lab, or says which address could not be bound.
    pub async fn try_start(self) -> anyhow::Result<Lab<C>> {
        let certificates = self.tls.map(|_| Certificates::make(&self.names)).transpose()?;
        let listener = bind(self.listen).await?;
        let control_listener = bind(self.control).await?;
        let (address, control_address) = (listener.local_addr()?, control_listener.local_addr()?);
        let mut clock = Clock::new(self.epoch_secs);
        if self.is_paused {
            clock.pause();
        }
        let context = Context::new(clock, Record::new(self.exchanges_max), self.tls);
        let shared = Shared::new(self.controller, context, certificates, self.body_bytes_max);
        let accept = server::serve(listener, shared.clone());
        let control = axum::serve(control_listener, control::routes(shared.clone()));
        let sending = outbox::run(shared.clone());
        let tasks = vec![
            tokio::spawn(async move {
                accept.await;
            }),
            tokio::spawn(async move {
                // It ends only by being aborted.
                let _ended = control.await;
            }),
            tokio::spawn(async move {
                sending.await;
            }),
        ];
        Ok(Lab { shared, address, control_address, tasks })
    }
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("'{address}' cannot be bound, choose a free port"))
}
