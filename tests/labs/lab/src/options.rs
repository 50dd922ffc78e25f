//! A simulator as a program.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Controller, Lab, LabBuilder};

/// The arguments that every simulator has; a program adds its own beside them with `#[command(flatten)]`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Address of the controller's port; a free one when absent.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Address of the control port; a free one when absent.
    #[arg(long)]
    pub control: Option<SocketAddr>,
    /// Name of the administrator.
    #[arg(long)]
    pub username: Option<String>,
    /// Password of the administrator.
    #[arg(long)]
    pub password: Option<String>,
    /// Serve HTTPS with a self-signed certificate.
    #[arg(long)]
    pub tls: bool,
}

impl Options {
    /// The administrator's name, or the one that the vendor ships.
    pub fn username_or<'a>(&'a self, usual: &'a str) -> &'a str {
        self.username.as_deref().unwrap_or(usual)
    }

    /// The administrator's password, or the one that the simulator documents.
    pub fn password_or<'a>(&'a self, usual: &'a str) -> &'a str {
        self.password.as_deref().unwrap_or(usual)
    }

    /// A lab with the ports and the scheme of these arguments.
    pub fn builder<C: Controller>(&self, controller: C) -> LabBuilder<C> {
        let mut builder = Lab::builder(controller);
        if let Some(address) = self.listen {
            builder = builder.listen(address);
        }
        if let Some(address) = self.control {
            builder = builder.control(address);
        }
        if self.tls { builder.tls() } else { builder }
    }
}

/// Starts a lab, prints its addresses as one line of JSON, and runs until the process is told to stop.
pub async fn run<C: Controller>(builder: LabBuilder<C>) -> anyhow::Result<()> {
    builder.try_start().await?.run().await
}

impl<C: Controller> Lab<C> {
    /// Prints the addresses as one line of JSON, and runs until `SIGINT` or `SIGTERM`.
    pub async fn run(self) -> anyhow::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let ready = serde_json::json!({
            "url": self.url(),
            "control_url": self.control_url(),
            "certificate_sha256": self.certificate_sha256(),
        });
        writeln!(std::io::stdout(), "{ready}")?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        self.shutdown().await;
        Ok(())
    }
}
