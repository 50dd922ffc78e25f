//! `GET /fabric/logs`: the lines that an organization wrote by `fabric.log`, and no others.

use axum::Json;
use axum::extract::State;
use heddle_core::page::CursorPage;
use heddle_core::{LogLevel, Role, RunId, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::{Access, Unscoped};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Params;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::logs::routes::{cursor, walk};
use heddle_kernel::walk_query;
use heddle_store::logs::{LogFilter, LogLine};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// A line that a step of the organization wrote.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FabricLogLine")]
struct View {
    id: Uuid,
    /// When it was written.
    at: Timestamp,
    level: LogLevel,
    /// As the step gave it, without secrets.
    message: String,
    /// As the step gave them, without secrets.
    fields: Map<String, Value>,
    /// The run whose step wrote it.
    run_id: Option<RunId>,
}

walk_query! {
    struct ListQuery of LogLine {
        /// Lines of this level and of more severe ones.
        level: Option<LogLevel>,
        /// Anywhere in the message or the fields.
        search: Option<String>,
        /// From this instant.
        since: Option<Timestamp>,
        /// Before this instant.
        until: Option<Timestamp>,
    }
}

pub(super) fn routes() -> Routes {
    Routes::default().get(
        "/fabric/logs",
        Access::Role(Role::OrgAdmin, Unscoped("a line holds what a step read with all rights of its author")),
        list,
        doc("Lines that steps of the own organization wrote by fabric.log, newest first")
            .query::<ListQuery>()
            .answers::<CursorPage<View>>(200),
    )
}

impl From<LogLine> for View {
    fn from(line: LogLine) -> Self {
        let text = |name: &str| line.fields.get(name).and_then(Value::as_str);
        Self {
            run_id: text("run.id").and_then(|id| id.parse().ok()),
            fields: text("fields").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
            id: line.id,
            at: line.at,
            level: line.level,
            message: line.message,
        }
    }
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Json<CursorPage<View>>, Error> {
    caller.require_all_sites()?;
    let request = query.walk()?;
    let filter = LogFilter {
        org: Some(caller.org_id),
        level: query.level,
        search: query.search,
        since: query.since,
        until: query.until,
        ..LogFilter::default()
    };
    let page = request.of(walk(&app, &filter, request).await?, cursor);
    Ok(Json(page.map(View::from)))
}
