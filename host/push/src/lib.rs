//! Channels on which controllers tell that something changed: opened by one process, and turned into readings.
//!
//! A channel only says that something has to be read again. What is true comes from the reading, which the room
//! `host/readings` does. Controllers are read at their interval as well, whatever their channels do.

mod backoff;
mod board;
mod channel;
mod claims;
mod declarations;
mod diagnostics;
mod gather;
mod glossary;
mod hook;
mod hooks;
mod keeper;
mod measures;
mod plan;
mod secret;
mod told;
mod worker;

use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Diagnostic, Feature, Names, Sealing, Worker};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;

use self::declarations::PushSettings;
use self::measures::Measures;
use self::told::Paces;

/// Channels on which controllers tell that something changed.
pub struct Push;

#[async_trait::async_trait]
impl Feature for Push {
    fn name(&self) -> &'static str {
        "push"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                events: declarations::EVENTS,
                settings: &[SettingsOf::the::<PushSettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &glossary::PUSH
    }

    fn sealed(&self) -> &'static [Sealing] {
        const { &[Sealing::of(secret::COLUMN)] }
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        secret::routes().merge(hooks::routes())
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Paces::default());
        parts.add(Measures::new(&app.metrics.families()));
    }

    async fn measure(&self, app: &SharedApp) {
        Measures::of(app).measure(app.clock.now());
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("push", worker::run(app.clone()))]
    }
}
