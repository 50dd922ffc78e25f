//! Heddle's server: the list of its features, and the command that serves them.

mod access_control;
mod features;
mod reserved;

pub use features::FEATURES;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::config::Config;
use heddle_kernel::opening::Surroundings;
use heddle_kernel::running::Running;

/// Opens everything but listens to nothing: for commands that only look.
///
/// # Errors
/// Where settings, keys, the database or the component runtime cannot be opened.
pub async fn open(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<SharedApp> {
    App::open(config, surroundings.into(), FEATURES).await
}

/// Opens the database, loads the adapters, takes up what a crash left, and listens.
///
/// # Errors
/// As [`open`], and where the address cannot be bound.
pub async fn start(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<Running> {
    Running::start(config, surroundings, FEATURES).await
}
