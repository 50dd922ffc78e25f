//! `GET /logs`: the service's own lines, for its operators.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use heddle_core::page::{Cursor, CursorPage, WalkRequest, Walked};
use heddle_core::{LogLevel, Timestamp};
use heddle_store::logs::{self, LogFilter, LogLine};

use crate::app::SharedApp;
use crate::http::access::Access;
use crate::http::error::Error;
use crate::http::extract::Params;
use crate::http::routes::{Routes, doc};
use crate::walk_query;

/// The longest time of a search among the lines.
const READ_LIMIT: Duration = Duration::from_secs(20);

walk_query! {
    struct ListQuery of LogLine {
        /// Only lines of this level and graver ones.
        level: Option<LogLevel>,
        /// Beginning of the target: `heddle_inventory::sync`.
        target: Option<String>,
        /// Text that occurs anywhere in the message or the fields.
        search: Option<String>,
        /// Request id, as `X-Request-ID` of the answer shows it.
        request_id: Option<String>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    }
}

pub(super) fn routes() -> Routes {
    Routes::default().get(
        "/logs",
        Access::SuperAdmin,
        list,
        doc("The service's own log lines, newest first")
            .query::<ListQuery>()
            .answers::<CursorPage<LogLine>>(200),
    )
}

/// Returns the matching lines, or why the log database gives none.
pub async fn walk(
    app: &SharedApp,
    filter: &LogFilter,
    request: WalkRequest,
) -> Result<Walked<LogLine>, Error> {
    let away = || Error::Unavailable("log database gives no answer; try again".to_owned());
    let db = app.logs.db().ok_or_else(away)?;
    let read = async { logs::walk(&mut db.read().await?, filter, request).await };
    match tokio::time::timeout(READ_LIMIT, read).await {
        Ok(Err(heddle_store::Error::Unavailable(_))) => Err(away()),
        Ok(read) => Ok(read?),
        Err(_elapsed) => {
            let message = "log database takes too long; narrow the time with since and until";
            Err(Error::Unavailable(message.to_owned()))
        }
    }
}

/// Names the place of a line in the list of [`walk`], for [`WalkRequest::of`]. Its number is always 0,
/// because lines are ordered by time and id alone.
pub fn cursor(line: &LogLine) -> Cursor {
    Cursor { occurred_at: line.at, seq: 0, id: line.id }
}

async fn list(
    State(app): State<SharedApp>,
    Params(query): Params<ListQuery>,
) -> Result<Json<CursorPage<LogLine>>, Error> {
    let request = query.walk()?;
    let filter = LogFilter {
        org: None,
        level: query.level,
        target: query.target,
        search: query.search,
        // An id that a client has chosen is marked in the log.
        request_ids: query.request_id.map(|id| vec![format!("ext-{id}"), id]).unwrap_or_default(),
        since: query.since,
        until: query.until,
    };
    let walked = walk(&app, &filter, request).await?;
    Ok(Json(request.of(walked, cursor)))
}
