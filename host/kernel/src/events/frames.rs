//! The frames of the event stream.

use heddle_core::event::Event;
use heddle_core::nearest::suggestion;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, SiteId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a client sends: at most 5 frames per second, of at most 64 KiB. Pings and pongs of the protocol are counted
/// apart, 50 per second.
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
        /// The organization of the events; the caller's own when absent. Another one only for a caller that sees all
        /// organizations.
        organization_id: Option<OrgId>,
    },
    Ping,
}

/// Every type of a client's frame, as it is written.
const CLIENT_TYPES: [&str; 6] = ["auth", "subscribe", "unsubscribe", "set_filters", "resume", "ping"];
/// Most characters of what was sent that an error quotes.
const FAULT_CHARS_MAX: usize = 200;

/// A frame of a client, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<ClientFrame, String> {
    let error = match serde_json::from_str(text) {
        Ok(frame) => return Ok(frame),
        Err(error) => error,
    };
    let Ok(Value::Object(frame)) = serde_json::from_str(text) else {
        return Err("frame is not a JSON object: send one such as {\"type\": \"ping\"}".to_owned());
    };
    match frame.get("type").and_then(Value::as_str) {
        None => Err(format!("frame has no 'type': it is one of {}", CLIENT_TYPES.join(", "))),
        Some(kind) if CLIENT_TYPES.contains(&kind) => {
            let said = error.to_string().replace('`', "'");
            let said: String =
                said.split(" at line ").next().unwrap_or_default().chars().take(FAULT_CHARS_MAX).collect();
            Err(format!("frame '{kind}' is not right: {said}"))
        }
        Some(kind) => {
            let shown: String = kind.chars().take(60).collect();
            Err(format!("frame type '{shown}' is unknown: {}", suggestion(&shown, CLIENT_TYPES)))
        }
    }
}

/// What the service sends.
///
/// In addition to these frames it sends a ping of the protocol every 30 s, and
/// ends a connection from which nothing came for 60 s.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ServerFrame<'a> {
    Connected {
        /// Number of the newest event of the caller's organization, 0 when it has none: `resume` after it misses
        /// nothing that happens from now on. Null when the database did not answer.
        seq: Option<i64>,
        /// Types that the caller can subscribe to.
        available_events: Vec<&'static str>,
    },
    /// Delivered at least once: an event that comes again has the same id.
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
    /// All events after `after_seq` were looked at up to `last_seq`, and those that fit were sent.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_frame_is_said() {
        for (text, said) in [
            (r#"{"type":"resume"}"#, "frame 'resume' is not right: missing field 'after_seq'"),
            (r#"{"type":"resume","after_seq":"x"}"#, "frame 'resume' is not right: invalid type"),
            (r#"{"type":"resmue","after_seq":1}"#, "frame type 'resmue' is unknown: did you mean 'resume'?"),
            (r#"{"after_seq":1}"#, "frame has no 'type'"),
            ("[1]", "not a JSON object"),
            ("{", "not a JSON object"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(said), "{text}: {found}");
        }
        let long = format!(r#"{{"type":"resume","after_seq":"{}"}}"#, "x".repeat(60_000));
        assert!(parse(&long).unwrap_err().len() < 300);
        assert!(matches!(parse(r#"{"type":"ping"}"#), Ok(ClientFrame::Ping)));
    }
}
