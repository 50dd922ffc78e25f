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
pub mod caller;
mod checks;
pub mod config;
mod controllers;
mod credentials;
mod declarations;
pub mod devices;
pub mod events;
pub mod fabric;
mod feature;
mod features;
mod files;
mod findings;
mod hashing;
mod health;
pub mod http;
pub mod keys;
mod listener;
pub mod logs;
pub mod mail;
pub mod metrics;
mod misfit;
mod modules;
mod names;
mod nearest;
mod notifications;
mod oauth2;
mod opening;
pub mod operate;
mod outgoing;
pub mod process;
mod recent;
mod reserved;
mod resource;
pub mod retention;
mod sample;
pub mod setup;
mod slug;
pub mod sso;
pub mod staging;
pub mod sync;
pub mod task;
pub mod tenancy;
mod tls;
mod unreached;
mod version;
mod webhooks;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
pub use app::{App, SharedApp};
pub use config::Config;
pub use feature::Features;
pub use features::FEATURES;
pub use hashing::Cost as HashCost;
pub use opening::Surroundings;
use tokio_util::sync::CancellationToken;
pub use version::{API_VERSION, BUILD, VERSION};

/// How long a drain waits for running work.
const DRAIN_SECS: u64 = 30;
/// How long the ends of the audit logs are looked at when the process ends.
const KEEP_LIMIT: Duration = Duration::from_secs(5);

/// How long it then waits for connections to be closed.
const CLOSE_SECS: u64 = 2;

/// Opens everything but listens to nothing: for commands that only look.
///
/// # Errors
/// Where settings, keys, the database or the component runtime cannot be opened.
pub async fn open(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<SharedApp> {
    App::open(config, surroundings.into(), FEATURES).await
}

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
    pub async fn start(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<Self> {
        let app = open(config, surroundings).await?;
        check_subsystems(&app)?;
        process::join(&app).await.context("process cannot register")?;
        let follower = events::Follower::start(&app).await.context("events cannot be read")?;
        app.begin_term().await?;
        app.start_workers(follower);
        let (front, abandon) = (task::Tasks::default(), CancellationToken::new());
        let service = http::service(&app);
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

#[cfg(test)]
#[path = "../commit.rs"]
mod commit;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::commit::of_checkout;

    #[test]
    fn the_commit_is_found_however_git_keeps_it() {
        let base = tempfile::tempdir().unwrap();
        let (git, id) = (base.path().join("main/.git"), "0123456789abcdef0123456789abcdef01234567");
        let found = |folder: &str| of_checkout(&base.path().join(folder)).map(|commit| commit.id);
        assert_eq!(found("main"), None);
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), format!("{id}\n")).unwrap();
        assert_eq!(found("main").as_deref(), Some("0123456789ab"));
        fs::write(git.join("HEAD"), "ref: refs/heads/work\n").unwrap();
        assert_eq!(found("main"), None);
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{id} refs/heads/work\n")).unwrap();
        assert_eq!(found("main").as_deref(), Some("0123456789ab"));
        fs::write(git.join("refs/heads/work"), id.replace('0', "f")).unwrap();
        assert_eq!(found("main").as_deref(), Some("f123456789ab"));
        let linked = git.join("worktrees/side");
        fs::create_dir_all(&linked).unwrap();
        fs::create_dir_all(base.path().join("side")).unwrap();
        fs::write(base.path().join("side/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
        fs::write(linked.join("HEAD"), "ref: refs/heads/work\n").unwrap();
        fs::write(linked.join("commondir"), "../..\n").unwrap();
        assert_eq!(found("side").as_deref(), Some("f123456789ab"));
    }
}
