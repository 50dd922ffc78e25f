//! Copies lines of the process's log and queues them for the log database.
//!
//! Never waits, never fails, and skips the lines of its own writer.

use std::sync::{Mutex, PoisonError};

use heddle_core::redact::{mask_text, sanitize};
use heddle_core::{Clock, LogLevel};
use heddle_store::logs::LogLine;
use prometheus::IntCounter;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Target of the lines that organizations write themselves, by `fabric.log`. It names no crate of today: lines that are kept
/// already have it.
pub const OF_ORGANIZATIONS: &str = "heddle_server::fabric::log";
/// Name of the writer's task, which marks the writer's own lines.
pub const TASK: &str = "logs.write";
/// Most lines that wait for the writer: a busy process writes as many in some seconds.
const WAITING_MAX: usize = 10_000;
/// Longest text that is kept of a message or a field, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Field that names the organization of a line.
const ORGANIZATION: &str = "organization.id";
/// Prefix of the fields that the crate `log` adds.
const FOREIGN: &str = "log.";

/// Part of the process's subscriber: hands lines of level info and above to the writer.
#[derive(Debug)]
pub struct LogLayer {
    sender: mpsc::Sender<LogLine>,
    dropped: IntCounter,
    clock: Clock,
}

/// The receiving end of the queue.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) receiver: mpsc::Receiver<LogLine>,
    pub(super) dropped: IntCounter,
}

/// A process has one log, so it has one place where its lines wait for the server that keeps them.
static PROCESS: Mutex<Option<Lines>> = Mutex::new(None);

/// The layer of this process's log. The next server that starts here keeps its lines.
pub fn layer() -> LogLayer {
    let (layer, lines) = channel();
    *PROCESS.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    layer
}

pub(super) fn take() -> Option<Lines> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner).take()
}

pub(super) fn channel() -> (LogLayer, Lines) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let dropped = dropped_counter();
    (LogLayer { sender, dropped: dropped.clone(), clock: Clock::default() }, Lines { receiver, dropped })
}

pub(super) fn dropped_counter() -> IntCounter {
    IntCounter::new("heddle_log_lines_dropped_total", "Log lines that the log database did not take.")
        .expect("the name is a literal that a test has registered")
}

/// The fields of a span that its lines need.
#[derive(Debug, Default)]
struct Noted {
    request_id: Option<String>,
    task: Option<String>,
}

impl Visit for Noted {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "request.id" => self.request_id = Some(value.to_owned()),
            "task.name" => self.task = Some(value.to_owned()),
            _ => {}
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut noted = Noted::default();
        attributes.record(&mut noted);
        span.extensions_mut().insert(noted);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(level) = level(*event.metadata().level()) else { return };
        let mut request_id = None;
        let mut path = Vec::new();
        for span in context.event_scope(event).into_iter().flatten() {
            let extensions = span.extensions();
            let noted = extensions.get::<Noted>();
            match noted.and_then(|noted| noted.task.as_deref()) {
                Some(TASK) => return,
                Some(task) => path.push(format!("{}:{task}", span.name())),
                None => path.push(span.name().to_owned()),
            }
            request_id = request_id.or_else(|| noted.and_then(|noted| noted.request_id.clone()));
        }
        path.reverse();
        let mut said = Said::default();
        event.record(&mut said);
        let line = said.line(&self.clock, level, event.metadata().target(), request_id, &path);
        if self.sender.try_send(line).is_err() {
            self.dropped.inc();
        }
    }
}

fn level(level: Level) -> Option<LogLevel> {
    match level {
        Level::ERROR => Some(LogLevel::Error),
        Level::WARN => Some(LogLevel::Warn),
        Level::INFO => Some(LogLevel::Info),
        _ => None,
    }
}

/// The contents of a line.
#[derive(Debug, Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn line(
        mut self,
        clock: &Clock,
        level: LogLevel,
        target: &str,
        request_id: Option<String>,
        path: &[String],
    ) -> LogLine {
        let target = match self.fields.get("log.target").and_then(Value::as_str) {
            Some(target) => target.to_owned(),
            None => target.to_owned(),
        };
        // Lines of the service can also name an organization, but do not belong to it.
        let named = self.fields.get(ORGANIZATION).and_then(Value::as_str);
        let org_id = named.filter(|_| target == OF_ORGANIZATIONS).and_then(|id| id.parse().ok());
        self.fields.retain(|name, _| !name.starts_with(FOREIGN));
        let mut fields = Value::Object(self.fields);
        sanitize(&mut fields);
        mask_text(&mut self.message);
        LogLine {
            id: clock.new_id(),
            at: clock.now(),
            level,
            target,
            message: self.message,
            fields,
            request_id,
            span: (!path.is_empty()).then(|| path.join(" > ")),
            org_id,
        }
    }

    fn keep(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

/// A bounded text that both databases can keep.
fn fit(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "\u{fffd}")
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = fit(value);
        } else {
            self.keep(field, fit(value));
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn lines_of(work: impl FnOnce()) -> Vec<LogLine> {
        let (layer, mut lines) = channel();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        std::iter::from_fn(|| lines.receiver.try_recv().ok()).collect()
    }

    #[test]
    fn a_line_knows_its_request_and_where_it_was() {
        let lines = lines_of(|| {
            let request = tracing::info_span!("request", request.id = %"ext-r1");
            let task = tracing::info_span!(parent: &request, "task", task.name = "sync");
            let _entered = task.enter();
            tracing::warn!(n = 7_u64, ok = false, name = "wan", "reading {} failed", 3);
        });
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!((line.level, line.message.as_str()), (LogLevel::Warn, "reading 3 failed"));
        assert_eq!(line.fields, json!({ "n": 7, "ok": false, "name": "wan" }));
        assert_eq!(line.request_id.as_deref(), Some("ext-r1"));
        assert_eq!(line.span.as_deref(), Some("request > task:sync"));
        assert!(line.target.ends_with("logs::layer::tests"), "{}", line.target);
    }

    #[test]
    fn only_what_an_organization_wrote_is_its_own() {
        let org = uuid::Uuid::from_u128(7);
        let lines = lines_of(|| {
            tracing::info!(target: OF_ORGANIZATIONS, { organization.id = %org }, "written");
            tracing::info!(organization.id = %org, "of the service");
            tracing::info!(target: OF_ORGANIZATIONS, "of nobody");
        });
        let whose: Vec<_> = lines.iter().map(|line| line.org_id.map(|id| id.0)).collect();
        assert_eq!(whose, [Some(org), None, None]);
    }

    #[test]
    fn finer_lines_and_those_of_the_writer_are_passed_over() {
        let lines = lines_of(|| {
            tracing::debug!("too fine");
            let writer = tracing::info_span!("task", task.name = TASK);
            writer.in_scope(|| {
                tracing::error!("log database gives no answer");
                tracing::info_span!("query").in_scope(|| tracing::warn!("slow statement"));
            });
        });
        assert!(lines.is_empty(), "{lines:?}");
    }

    #[test]
    fn secrets_and_what_no_database_keeps_are_taken_out() {
        let key = "-----BEGIN PRIVATE KEY-----";
        let lines = lines_of(|| {
            tracing::info!(password = "hunter2", kept = "a\0b", pem = key, "key {key}");
            tracing::info!("{}", "ä".repeat(5000));
        });
        assert_eq!(lines[0].fields, json!({ "kept": "a\u{fffd}b", "pem": "***" }));
        assert_eq!(lines[0].message, "***");
        assert_eq!(lines[1].message.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_full_channel_drops_and_counts() {
        let (layer, lines) = channel();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            for n in 0..WAITING_MAX + 3 {
                tracing::info!(n, "line");
            }
        });
        assert_eq!(lines.dropped.get(), 3);
        assert_eq!(lines.receiver.len(), WAITING_MAX);
    }
}
