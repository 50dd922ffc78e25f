//! The frames of the event stream.

use heddle_core::event::Event;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, SiteId, Timestamp};
use serde::{Deserialize, Serialize};

/// What a client says: at most 5 frames per second, of at most 64 KiB. Pings and pongs of the protocol are counted apart,
/// 50 per second.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClientFrame {
    /// The first frame, within 10 s, where the upgrade carried no token, or a cookie that is not valid.
    Auth {
        token: Secret,
    },
    Subscribe {
        subscriptions: Vec<String>,
    },
    Unsubscribe {
        subscriptions: Vec<String>,
    },
    /// Only events of these sites, and those of no site; an empty list lifts the filter.
    SetFilters {
        site_ids: Vec<SiteId>,
    },
    Resume {
        after_seq: i64,
        /// Whose events; the caller's own when absent. Of others only for who hears all organizations.
        organization_id: Option<OrgId>,
    },
    Ping,
}

/// What the service says.
///
/// Beside these frames it sends a ping of the protocol every 30 s, and ends a
/// connection from which nothing came for 60 s.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ServerFrame<'a> {
    Connected {
        available_events: Vec<&'static str>,
    },
    /// At least once: an event that comes again has the same id.
    Event {
        event: &'a Event,
    },
    Subscribed {
        subscriptions: Vec<String>,
    },
    Unsubscribed {
        subscriptions: Vec<String>,
    },
    /// Answers a subscription, or comes by itself when the caller's rights have shrunk.
    SubscriptionDenied {
        patterns: Vec<String>,
        /// All reasons in one text.
        reason: String,
        denials: Vec<Denial>,
    },
    /// The sites that events are narrowed to, without those that the caller cannot read.
    ///
    /// Answers `[]` when the filter was lifted, and also when none of the
    /// given sites is readable: then only events of no site come.
    FiltersSet {
        site_ids: Vec<SiteId>,
    },
    /// All events behind `after_seq` were looked at up to `last_seq`, and those that fit were sent.
    ///
    /// With `truncated` the service stopped at 10,000 events: resume again
    /// after `last_seq` for the rest.
    Resumed {
        organization_id: OrgId,
        last_seq: i64,
        truncated: bool,
    },
    Pong {
        timestamp: Timestamp,
    },
    /// The session has ended; the connection ends with it.
    SessionRevoked,
    Error {
        message: String,
    },
}

/// Patterns that are denied for the same reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Denial {
    pub(super) reason: String,
    pub(super) patterns: Vec<String>,
}
