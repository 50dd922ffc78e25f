//! The one subscriber of this process: counts SQL statements per request, and
//! lets tests read what is logged.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, Once, Weak};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{dynamic_filter_fn, filter_fn};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// Requests with an id that begins so are counted.
const COUNTED: &str = "count-";

static COUNTS: LazyLock<Mutex<HashMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);
static LISTENERS: Mutex<Vec<Weak<Mutex<Vec<u8>>>>> = Mutex::new(Vec::new());

/// What was logged since it was made, by all of this process.
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn listen() -> Self {
        install();
        let log = Arc::default();
        LISTENERS.lock().expect("no holder of this lock panics").push(Arc::downgrade(&log));
        Self(log)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no holder of this lock panics").clone()
    }
}

/// An `X-Request-ID` under which the statements of one request are counted.
pub(crate) fn counted_request() -> String {
    install();
    format!("{COUNTED}{}", heddle_core::Clock::default().new_id::<uuid::Uuid>().simple())
}

/// The statements that ran within this request.
pub(crate) fn statements(request: &str) -> Vec<String> {
    COUNTS.lock().expect("no holder of this lock panics").remove(request).unwrap_or_default()
}

/// Every request is seen by every layer only while a test needs it.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let is_heard = dynamic_filter_fn(|_, _| {
            let mut listeners = LISTENERS.lock().expect("no holder of this lock panics");
            listeners.retain(|listener| listener.strong_count() > 0);
            !listeners.is_empty()
        });
        let is_query = filter_fn(|metadata| {
            metadata.target() == "sqlx::query" || (metadata.is_span() && metadata.name() == "request")
        });
        let text = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| Listeners);
        let subscriber = tracing_subscriber::registry()
            .with(Statements.with_filter(is_query))
            .with(text.with_filter(is_heard));
        tracing::subscriber::set_global_default(subscriber).expect("no other subscriber is installed");
    });
}

struct Listeners;

impl Write for Listeners {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for listener in
            LISTENERS.lock().expect("no holder of this lock panics").iter().filter_map(Weak::upgrade)
        {
            listener.lock().expect("no holder of this lock panics").extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Statements;

/// The id that a request's span carries.
struct RequestId(String);

#[derive(Default)]
struct Fields {
    request: Option<String>,
    summary: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "request.id" => self.request = Some(format!("{value:?}")),
            "summary" => self.summary = format!("{value:?}"),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "summary" {
            value.clone_into(&mut self.summary);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Statements {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        // The log marks a client's own id.
        let request = fields.request.as_deref().and_then(|id| id.strip_prefix("ext-"));
        let (Some(request), Some(span)) = (request, context.span(id)) else { return };
        if request.starts_with(COUNTED) {
            span.extensions_mut().insert(RequestId(request.to_owned()));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(mut scope) = context.event_scope(event) else { return };
        let request = scope.find_map(|span| span.extensions().get::<RequestId>().map(|id| id.0.clone()));
        let Some(request) = request else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        COUNTS
            .lock()
            .expect("no holder of this lock panics")
            .entry(request)
            .or_default()
            .push(fields.summary);
    }
}
