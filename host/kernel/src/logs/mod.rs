//! The service's own log lines, stored in a database for operators without a shell.
//!
//! Lines come from the process's log through a bounded channel and are written in batches. While the database is away,
//! the service continues, and lines that find no place are dropped and counted.

pub(crate) mod database;
mod layer;
pub mod routes;
mod writer;

pub use layer::{LogLayer, OF_ORGANIZATIONS, TASK, layer};
pub(crate) use writer::write;

use crate::app::SharedApp;
use crate::feature::Feature;
use crate::http::glossary::Glossary;
use crate::http::routes::Routes;

const GLOSSARY: Glossary = Glossary {
    groups: &[("logs", "Service log", "The service's own log lines, for super administrators.")],
    nouns: &[("/logs", "log_line", "log_lines")],
    ..Glossary::EMPTY
};

/// The service's own log lines.
pub struct ServiceLog;

#[async_trait::async_trait]
impl Feature for ServiceLog {
    fn name(&self) -> &'static str {
        "logs"
    }

    fn glossary(&self) -> &'static Glossary {
        &GLOSSARY
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
    }
}
