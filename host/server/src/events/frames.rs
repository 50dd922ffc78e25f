//! The frames of the event stream.

use heddle_core::event::Event;
use heddle_core::{SiteId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClientFrame {
    Auth { token: String },
    Subscribe { subscriptions: Vec<String> },
    Unsubscribe { subscriptions: Vec<String> },
    SetFilters { site_ids: Vec<SiteId> },
    Resume { after_seq: i64 },
    Ping,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ServerFrame<'a> {
    Connected { available_events: Vec<&'static str> },
    Event { event: &'a Event },
    Subscribed { subscriptions: Vec<String> },
    Unsubscribed { subscriptions: Vec<String> },
    SubscriptionDenied { patterns: Vec<String>, reason: String },
    FiltersSet { site_ids: Vec<SiteId> },
    Resumed { last_seq: i64 },
    Pong { timestamp: Timestamp },
    SessionRevoked,
    Error { message: String },
}
