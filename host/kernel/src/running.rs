//! A server from its start to its end.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use crate::app::{App, SharedApp};
use crate::config::Config;
use crate::feature::Features;
use crate::opening::Surroundings;
use crate::surface::{self, Surface};
use crate::{audit, events, listener, process, task};

/// How long a drain waits for running work.
const DRAIN_SECS: u64 = 30;
/// How long the ends of the audit logs are looked at when the process ends.
const KEEP_LIMIT: Duration = Duration::from_secs(5);

/// How long it then waits for connections to be closed.
const CLOSE_SECS: u64 = 2;

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    pub addr: SocketAddr,
    pub app: SharedApp,
    /// Apart from the other tasks: probes are answered until the last of those has ended.
    front: task::Tasks,
    /// Ends connections that do not end by themselves.
    abandon: CancellationToken,
}

impl Running {
    /// Opens the database, loads the adapters, takes up what a crash left, and listens.
    pub async fn start(
        config: Config,
        surroundings: impl Into<Surroundings>,
        features: Features,
    ) -> anyhow::Result<Self> {
        let app = App::open(config, surroundings.into(), features).await?;
        check_subsystems(&app)?;
        process::join(&app).await.context("process cannot register")?;
        let follower = events::Follower::start(&app).await.context("events cannot be read")?;
        app.begin_term().await?;
        app.start_workers(follower);
        let (front, abandon) = (task::Tasks::default(), CancellationToken::new());
        let service = Surface::new(&app);
        app.tasks.spawn("surface", surface::follow(app.clone(), service.clone()));
        let listener = listener::Listener::bind(&app.config, service, &app.metrics, &front, &abandon)
            .await
            .with_context(|| format!("cannot listen on {}", app.config.bind_addr))?;
        let addr = listener.local_addr()?;
        for feature in app.features().iter() {
            feature.listening(&app, addr).await?;
        }
        front.spawn("http", listener.accept());
        tracing::info!(addr = %addr, "listening on http://{addr}");
        Ok(Self { addr, app, front, abandon })
    }

    /// Takes no new work. Running work ends, or is recorded as it stands; readiness reports it meanwhile.
    pub async fn stop(self) -> anyhow::Result<()> {
        let is_idle = self.app.tasks.drain(Duration::from_secs(DRAIN_SECS)).await;
        if !is_idle {
            tracing::warn!(
                "some work did not end in time and is taken up by another process or the next start"
            );
        }
        // An unavailable database does not keep the process from ending in time.
        let kept = tokio::time::timeout(KEEP_LIMIT, audit::keeping::keep_last(&self.app));
        drop(kept.await);
        process::leave(&self.app, is_idle).await;
        self.front.drain(Duration::from_secs(CLOSE_SECS)).await;
        self.abandon.cancel();
        self.app.runtime.shutdown();
        Ok(())
    }
}

/// Checks what is critical and may have failed: a reason not to start at all, or a degraded start.
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
