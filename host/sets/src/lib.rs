//! Sets of changes: of one controller, and sagas over several.
//!
//! A set over several controllers has a part for each. A part is a change, or a set of one controller; what it does at its
//! device is for the room of the changes. This room decides what forms a set and in which order
//! the parts are applied. Its result is that a set is in effect everywhere or nowhere; otherwise the set says where it is.

pub mod declarations;

mod decide;
mod diagnostics;
mod form;
mod glossary;
mod leave;
mod moves;
mod one;
mod order;
mod packed;
mod pending;
mod record;
mod routes;
mod saga;
mod view;
mod work;

pub use form::make;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::feature::{Diagnostic, Feature, Names, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
pub use packed::{Member, Pack, packed};
pub use pending::Pending;
pub use routes::give_up;

/// Sets of changes.
pub struct Sets;

#[async_trait::async_trait]
impl Feature for Sets {
    fn name(&self) -> &'static str {
        "sets"
    }

    fn declares(&self) -> &'static Names {
        const { &Names { events: declarations::EVENTS, ..Names::NONE } }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::SETS
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    async fn open(&self, _app: &App, parts: &mut Parts) {
        parts.add(work::Workers::default());
    }

    fn routes(&self, _app: &SharedApp) -> Routes {
        routes::routes()
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("sets.look", work::look_loop(app.clone()))]
    }

    async fn term_begun(&self, app: &SharedApp) -> Result<(), Error> {
        work::look(app).await
    }
}
