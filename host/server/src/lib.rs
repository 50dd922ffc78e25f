//! Heddle's server: the edge, identity, tenancy, staging, events.
//!
//! The only crate that knows axum. It holds no word of any vendor; what a
//! vendor is, its adapter says.

mod access_control;
pub mod adapters;
pub mod app;
pub mod audit;
pub mod auth;
mod automation;
mod bulk;
pub mod cache;
pub mod config;
pub mod devices;
pub mod events;
pub mod fabric;
mod health;
pub mod http;
pub mod keys;
pub mod logs;
pub mod mail;
pub mod metrics;
mod notifications;
mod oauth2;
pub mod operate;
mod outgoing;
pub mod process;
pub mod retention;
pub mod setup;
pub mod sso;
pub mod staging;
pub mod sync;
pub mod task;
pub mod tenancy;
mod webhooks;

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

/// How long it then waits for connections to be closed.
const CLOSE_SECS: u64 = 2;

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    pub addr: SocketAddr,
    pub app: SharedApp,
    /// Apart from the other tasks: probes are answered until the last of those has ended.
    front: task::Tasks,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Running {
    /// Opens the database, loads the adapters, takes up what a crash left, and listens.
    pub async fn start(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<Self> {
        let app = App::open(config, surroundings.into()).await?;
        check_subsystems(&app)?;
        process::join(&app).await.context("process cannot register")?;
        let follower = events::Follower::start(&app).await.context("events cannot be read")?;
        staging::recover(&app).await.context("changes under way cannot be read")?;
        app.start_workers(follower);
        let listener = tokio::net::TcpListener::bind(app.config.bind_addr)
            .await
            .with_context(|| format!("cannot listen on {}", app.config.bind_addr))?;
        let addr = listener.local_addr()?;
        let service = http::service(&app).into_make_service_with_connect_info::<SocketAddr>();
        let front = task::Tasks::default();
        let stop = front.stopping();
        let server =
            axum::serve(listener, service).with_graceful_shutdown(async move { stop.cancelled().await });
        let serving = front.spawn("http", async move { server.await });
        tracing::info!(addr = %addr, "listening on http://{addr}");
        setup::invitation::announce(&app, addr).await.context("the setup's state cannot be read")?;
        Ok(Self { addr, app, front, serving })
    }

    /// No new work; running work ends, or is recorded as it stands. Readiness says so meanwhile.
    pub async fn stop(self) -> anyhow::Result<()> {
        let is_idle = self.app.tasks.drain(Duration::from_secs(DRAIN_SECS)).await;
        if !is_idle {
            tracing::warn!(
                "some work did not end in time and is taken up by another process or the next start"
            );
        }
        process::leave(&self.app, is_idle).await;
        self.front.drain(Duration::from_secs(CLOSE_SECS)).await;
        self.serving.abort();
        self.app.runtime.shutdown();
        Ok(())
    }
}

/// What is critical and may have failed: a reason not to start at all, or a degraded start.
///
/// The event bus is not among what can be degraded: without it nothing starts.
fn check_subsystems(app: &SharedApp) -> anyhow::Result<()> {
    let Some(reason) = app.refusals() else { return Ok(()) };
    anyhow::ensure!(
        !app.config.strict_startup,
        "modules cannot be initialised: {reason} (STRICT_STARTUP=false starts without)"
    );
    tracing::warn!(subsystem = "modules", reason, "modules are degraded");
    Ok(())
}
