//! Heddle's server: the edge, identity, tenancy, staging, events.
//!
//! The only crate that knows axum. It holds no word of any vendor; what a
//! vendor is, its adapter says.

pub mod adapters;
pub mod app;
pub mod audit;
pub mod auth;
pub mod cache;
pub mod config;
pub mod devices;
pub mod events;
pub mod http;
pub mod keys;
pub mod setup;
pub mod staging;
pub mod sync;
pub mod task;
pub mod tenancy;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;

pub use app::{App, SharedApp, Surroundings};
pub use config::Config;

/// Version of the interface, as the `OpenAPI` document says it.
pub const API_VERSION: &str = "26.06.1";
/// Version of this server.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long a drain waits for running work.
const DRAIN_SECS: u64 = 30;

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    pub addr: SocketAddr,
    pub app: SharedApp,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Running {
    /// Opens the database, loads the adapters, takes up what a crash left, and listens.
    pub async fn start(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<Self> {
        let app = App::open(config, surroundings.into()).await?;
        staging::recover(&app).await.context("changes under way cannot be read")?;
        app.start_workers();
        let listener = tokio::net::TcpListener::bind(app.config.bind_addr)
            .await
            .with_context(|| format!("cannot listen on {}", app.config.bind_addr))?;
        let addr = listener.local_addr()?;
        let service = http::service(&app).into_make_service_with_connect_info::<SocketAddr>();
        let stop = app.tasks.stopping();
        let server =
            axum::serve(listener, service).with_graceful_shutdown(async move { stop.cancelled().await });
        let serving = app.tasks.spawn("http", async move { server.await });
        tracing::info!(addr = %addr, "listening on http://{addr}");
        Ok(Self { addr, app, serving })
    }

    /// No new work; running work ends, or is recorded as it stands.
    pub async fn stop(self) -> anyhow::Result<()> {
        if !self.app.tasks.drain(Duration::from_secs(DRAIN_SECS)).await {
            tracing::warn!("some work did not end in time and is taken up at the next start");
        }
        self.serving.abort();
        self.app.runtime.shutdown();
        Ok(())
    }
}
