//! `GET /logs`: the service's own lines, for who runs the service.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::DateTime;
use heddle_core::{LogLevel, Role, Timestamp};
use heddle_store::logs::{self, LogFilter, LogLine, LogPlace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::SharedApp;
use crate::http::access::Access;
use crate::http::error::Error;
use crate::http::extract::{PER_PAGE_MAX, Params, page_request};
use crate::http::routes::{Routes, doc};

/// The longest that a search among the lines takes.
const READ_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Lines of this level and graver ones.
    level: Option<LogLevel>,
    /// How the target begins: `heddle_server::sync`.
    target: Option<String>,
    /// Anywhere in the message or the fields.
    search: Option<String>,
    /// As the answer's `X-Request-ID` says it.
    request_id: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// From 1 to 200.
    per_page: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LogPage {
    items: Vec<LogLine>,
    per_page: u32,
    /// Null on the last page.
    next_cursor: Option<String>,
}

pub(crate) fn routes() -> Routes {
    Routes::default().get(
        "/logs",
        Access::Role(Role::SuperAdmin),
        list,
        doc("The service's own log lines, newest first").query::<ListQuery>().answers::<LogPage>(200),
    )
}

async fn list(
    State(app): State<SharedApp>,
    Params(query): Params<ListQuery>,
) -> Result<Json<LogPage>, Error> {
    let per_page = page_request(None, query.per_page, PER_PAGE_MAX)?.per_page;
    let place = query.cursor.as_deref().map(place).transpose()?;
    let filter = LogFilter {
        level: query.level,
        target: query.target,
        search: query.search,
        // A client's own id is marked in the log.
        request_ids: query.request_id.map(|id| vec![format!("ext-{id}"), id]).unwrap_or_default(),
        since: query.since,
        until: query.until,
    };
    let away = || Error::Unavailable("log database gives no answer; try again".to_owned());
    let db = app.logs.db().ok_or_else(away)?;
    // One more than asked for shows whether there are more.
    let read = async { logs::list(&mut db.read().await?, &filter, place, per_page + 1).await };
    let mut items = match tokio::time::timeout(READ_LIMIT, read).await {
        Ok(Err(heddle_store::Error::Unavailable(_))) => return Err(away()),
        Ok(read) => read?,
        Err(_elapsed) => {
            let message = "log database takes too long; narrow the time with since and until";
            return Err(Error::Unavailable(message.to_owned()));
        }
    };
    let wanted = usize::try_from(per_page).map_err(Error::internal)?;
    let has_more = items.len() > wanted;
    items.truncate(wanted);
    let next_cursor = items.last().filter(|_| has_more).map(cursor);
    Ok(Json(LogPage { items, per_page, next_cursor }))
}

fn cursor(last: &LogLine) -> String {
    format!("{}-{}", last.at.timestamp_micros(), last.id.simple())
}

fn place(cursor: &str) -> Result<LogPlace, Error> {
    let parsed = cursor.split_once('-').and_then(|(micros, id)| {
        let at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
        Some(LogPlace { at, id: id.parse().ok()? })
    });
    parsed.ok_or_else(|| Error::field("cursor", "must be the next_cursor of the page before"))
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cursor_names_the_line_that_it_was_made_of() {
        let clock = Clock::default();
        let line = LogLine {
            id: clock.new_id(),
            at: clock.now(),
            level: LogLevel::Info,
            target: String::new(),
            message: String::new(),
            fields: json!({}),
            request_id: None,
            span: None,
        };
        assert_eq!(place(&cursor(&line)).unwrap(), LogPlace { at: line.at, id: line.id });
        for broken in ["", "1", "1-", "x-y", "9223372036854775807-01900000000070008000000000000000"] {
            assert!(place(broken).is_err(), "{broken}");
        }
    }
}
