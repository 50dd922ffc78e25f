//! What the service counts of itself.
//!
//! Families of what every server has are declared here; a feature declares its own ([`Metrics::families`]).
//! A label takes its values from a closed set:
//! routes, installed adapters, event types. Nothing that grows with tenants,
//! users, devices or ids may become one.

use heddle_core::event::{EventType, EventTypes};
use heddle_runtime::Observed;
use heddle_store::PoolUse;
use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::http::error::Error;

/// Seconds of an adapter call: the longest allowed takes a minute.
const CALL_BUCKETS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Why a name or a label cannot be refused by the library.
const LITERAL: &str = "names and labels are literals that a test has registered";

heddle_core::words! {
    /// The limit that a request exceeded.
    pub enum RateWindow {
        Burst = "burst",
        Minute = "minute",
        Auth = "auth",
        /// The limit of events that are handed in from outside.
        Ingest = "ingest",
    }
}

heddle_core::words! {
    /// What became of a mail.
    pub enum MailOutcome {
        Sent = "sent",
        Failed = "failed",
        /// Too many were waiting already.
        Dropped = "dropped",
    }
}

heddle_core::words! {
    /// Why a connection was not accepted.
    pub enum ConnectionRefusal {
        /// The maximum number of connections is open.
        Total = "total",
        /// The address has its maximum number of connections.
        Address = "address",
        /// The machine refused, for example for lack of files.
        Machine = "machine",
    }
}

heddle_core::words! {
    /// The limit of time that ended a connection.
    pub enum ConnectionEnd {
        /// The head of a request did not come.
        Head = "head",
        /// There was no request.
        Idle = "idle",
        /// The peer did not take the answer.
        Stalled = "stalled",
    }
}

/// What is measured only when the metrics are read.
#[derive(Debug)]
pub(crate) struct GaugeValues<'a> {
    pub(crate) subsystems: &'a [(&'static str, bool)],
    pub(crate) pools: &'a [(&'static str, PoolUse)],
    pub(crate) last_look_age_secs: f64,
    pub(crate) websocket_connections: usize,
}

/// Counts what this process has done since its start. Other processes of the same database count for
/// themselves, so Prometheus has to ask each of them.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(crate) requests: IntCounterVec,
    pub(crate) request_duration: HistogramVec,
    pub(crate) requests_in_flight: IntGauge,
    pub(crate) connections_open: IntGauge,
    connections_refused: IntCounterVec,
    connections_timed_out: IntCounterVec,
    adapter_calls: IntCounterVec,
    adapter_call_duration: HistogramVec,
    events: IntCounterVec,
    rate_limited: IntCounterVec,
    mails: IntCounterVec,
    gauges: Gauges,
}

/// Families of what is measured only when the metrics are read.
#[derive(Debug)]
struct Gauges {
    last_look_age: Gauge,
    websocket_connections: IntGauge,
    subsystem_up: IntGaugeVec,
    connections_open: IntGaugeVec,
    connections_idle: IntGaugeVec,
    connections_max: IntGaugeVec,
}

impl Metrics {
    /// `log_lines_dropped` is counted where lines are dropped.
    pub(crate) fn new(log_lines_dropped: IntCounter, events: &EventTypes) -> Self {
        let registry = Registry::new();
        let families = Families(&registry);
        families.add(log_lines_dropped);
        families.process();
        let (requests, request_duration, requests_in_flight) = Self::of_requests(&families);
        let (connections_open, connections_refused, connections_timed_out) = Self::of_connections(&families);
        Self {
            requests,
            request_duration,
            requests_in_flight,
            connections_open,
            connections_refused,
            connections_timed_out,
            adapter_calls: families.counters(
                "heddle_adapter_calls_total",
                "Calls into adapters, by how they ended.",
                &["adapter", "operation", "outcome"],
            ),
            adapter_call_duration: families.histogram(
                "heddle_adapter_call_duration_seconds",
                "Time that calls into adapters took.",
                &["adapter", "operation"],
                CALL_BUCKETS,
            ),
            events: families.counters_of(
                "heddle_events_published_total",
                "Events that this process published.",
                "event_type",
                events.iter().map(EventType::as_str),
            ),
            rate_limited: families.counters_of(
                "heddle_rate_limited_total",
                "Requests that a rate limit refused.",
                "window",
                RateWindow::ALL.iter().map(|window| window.as_str()),
            ),
            mails: families.counters_of(
                "heddle_mails_total",
                "Mails that were to be sent, by what became of them.",
                "outcome",
                MailOutcome::ALL.iter().map(|outcome| outcome.as_str()),
            ),
            gauges: Gauges::new(&families),
            registry,
        }
    }

    /// What is counted of connections.
    fn of_connections(families: &Families<'_>) -> (IntGauge, IntCounterVec, IntCounterVec) {
        let open = families.gauge("http_connections_open", "Connections that clients have to this process.");
        let refused = families.counters_of(
            "http_connections_refused_total",
            "Connections that were not accepted, by the bound that was reached.",
            "reason",
            ConnectionRefusal::ALL.iter().map(|reason| reason.as_str()),
        );
        let timed_out = families.counters_of(
            "http_connections_timed_out_total",
            "Connections that a limit of time ended.",
            "reason",
            ConnectionEnd::ALL.iter().map(|reason| reason.as_str()),
        );
        (open, refused, timed_out)
    }

    /// What is counted and timed of requests.
    fn of_requests(families: &Families<'_>) -> (IntCounterVec, HistogramVec, IntGauge) {
        let requests = families.counters(
            "http_requests_total",
            "Requests that were answered, by route template.",
            &["method", "route", "status"],
        );
        let request_duration = families.histogram(
            "http_request_duration_seconds",
            "Time from a request to the head of its answer.",
            &["method", "route"],
            prometheus::DEFAULT_BUCKETS,
        );
        let requests_in_flight =
            families.gauge("http_requests_in_flight", "Requests that are not answered yet.");
        (requests, request_duration, requests_in_flight)
    }

    pub(crate) fn adapter_call(&self, call: &Observed<'_>) {
        self.adapter_calls.with_label_values(&[call.adapter, call.operation, call.outcome]).inc();
        let seconds = call.duration.as_secs_f64();
        self.adapter_call_duration.with_label_values(&[call.adapter, call.operation]).observe(seconds);
    }

    pub(crate) fn event_published(&self, event_type: EventType) {
        self.events.with_label_values(&[event_type.as_str()]).inc();
    }

    /// A rate limit refused a request.
    pub fn rate_limited(&self, window: RateWindow) {
        self.rate_limited.with_label_values(&[window.as_str()]).inc();
    }

    pub(crate) fn connection_refused(&self, reason: ConnectionRefusal) {
        self.connections_refused.with_label_values(&[reason.as_str()]).inc();
    }

    pub(crate) fn connection_ended(&self, reason: ConnectionEnd) {
        self.connections_timed_out.with_label_values(&[reason.as_str()]).inc();
    }

    /// Counts one mail. The code that wants a mail sent calls it, because the mailer itself does not count.
    pub fn mail(&self, outcome: MailOutcome) {
        self.mails.with_label_values(&[outcome.as_str()]).inc();
    }

    /// Where a feature declares its families.
    pub fn families(&self) -> Families<'_> {
        Families(&self.registry)
    }

    /// Everything in Prometheus' text form.
    pub(crate) fn text(&self, values: &GaugeValues<'_>) -> Result<String, Error> {
        self.gauges.set(values);
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(Error::internal)
    }
}

impl Gauges {
    fn new(families: &Families<'_>) -> Self {
        Self {
            last_look_age: families.gauge_of_seconds(
                "heddle_events_last_look_age_seconds",
                "Seconds since this process last saw which events are committed.",
            ),
            websocket_connections: families.gauge(
                "heddle_websocket_connections",
                "Authenticated connections to the event stream of this process.",
            ),
            subsystem_up: families.gauges(
                "heddle_subsystem_up",
                "1 while the subsystem works, else 0.",
                &["subsystem"],
            ),
            connections_open: families.gauges(
                "heddle_database_connections_open",
                "Open connections of this process.",
                &["database"],
            ),
            connections_idle: families.gauges(
                "heddle_database_connections_idle",
                "Open connections that nobody uses.",
                &["database"],
            ),
            connections_max: families.gauges(
                "heddle_database_connections_max",
                "The most connections that this process opens.",
                &["database"],
            ),
        }
    }

    fn set(&self, values: &GaugeValues<'_>) {
        let number = |count: u32| i64::from(count);
        for (subsystem, is_up) in values.subsystems {
            self.subsystem_up.with_label_values(&[*subsystem]).set(i64::from(*is_up));
        }
        for (database, used) in values.pools {
            self.connections_open.with_label_values(&[*database]).set(number(used.open));
            self.connections_idle.with_label_values(&[*database]).set(number(used.idle));
            self.connections_max.with_label_values(&[*database]).set(number(used.max));
        }
        self.last_look_age.set(values.last_look_age_secs);
        self.websocket_connections.set(i64::try_from(values.websocket_connections).unwrap_or(i64::MAX));
    }
}

/// Declares families and registers them.
pub struct Families<'a>(&'a Registry);

impl Families<'_> {
    fn add<C: Collector + Clone + 'static>(&self, family: C) -> C {
        self.0.register(Box::new(family.clone())).expect(LITERAL);
        family
    }

    /// What runs, and what the operating system says of it.
    fn process(&self) {
        self.0.register(Box::new(ProcessCollector::for_self())).expect(LITERAL);
        let help = "Always 1; the labels say what runs.";
        let build = self.gauges("heddle_build_info", help, &["version", "api_version"]);
        build.with_label_values(&[crate::version::VERSION, crate::version::API_VERSION]).set(1);
    }

    /// Declares counters by these labels. A combination of their values appears with its first use. A name
    /// that is declared twice, or that Prometheus does not allow, panics, as with every family.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels).expect(LITERAL))
    }

    /// Counters by one label whose words are known: each is there from the start, at 0.
    pub fn counters_of(
        &self,
        name: &str,
        help: &str,
        label: &str,
        words: impl IntoIterator<Item = &'static str>,
    ) -> IntCounterVec {
        let counters = self.counters(name, help, &[label]);
        words.into_iter().for_each(|word| drop(counters.with_label_values(&[word])));
        counters
    }

    /// Declares gauges of whole numbers by these labels. A combination of their values appears when it is
    /// first set, and keeps its number until it is set again.
    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels).expect(LITERAL))
    }

    /// Declares a gauge of a whole number, without labels. It is 0 until it is set.
    pub fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::new(name, help).expect(LITERAL))
    }

    /// Declares a gauge of seconds with their fractions, without labels. It is 0 until it is set.
    pub fn gauge_of_seconds(&self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::new(name, help).expect(LITERAL))
    }

    /// Declares histograms by these labels, with the upper ends of their buckets. A combination of the labels' values appears
    /// with its first use.
    pub fn histogram(&self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(HistogramVec::new(options, labels).expect(LITERAL))
    }
}
