//! Messages as they come, before anything is known of them.

use futures::stream::BoxStream;
use heddle_core::bounds::JsonRoom;
use serde_json::{Value, json};

use super::ended::Ended;
use super::limits::{MESSAGE_DEPTH_MAX, MESSAGE_NODES_MAX};

/// What a connection gives.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// A text that should be JSON.
    Text(Vec<u8>),
    /// A server-sent event: its name, and a text that should be JSON.
    Event(String, Vec<u8>),
    /// Elements of an answer that are new or have changed.
    Elements(Vec<Value>),
    /// Messages may be missing.
    Gap,
}

/// The messages of one connection. Nothing comes behind an end.
pub(super) type Messages = BoxStream<'static, Result<Incoming, Ended>>;

/// What a text turns out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    Messages(Vec<Value>),
    NotJson,
    /// More values than are taken, or nested too deep.
    TooMuch,
}

impl Incoming {
    /// About how much work it is.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Event(_, text) => text.len(),
            // Their text is gone; an element has about so many bytes.
            Self::Elements(elements) => elements.len() * 256,
            Self::Gap => 0,
        }
    }

    pub(super) fn parse(self) -> Parsed {
        match self {
            Self::Text(text) => parse(&text, |value| value),
            Self::Event(event, data) => parse(&data, |data| json!({ "event": event, "data": data })),
            Self::Elements(elements) => Parsed::Messages(elements),
            Self::Gap => Parsed::Messages(Vec::new()),
        }
    }
}

fn parse(text: &[u8], message: impl FnOnce(Value) -> Value) -> Parsed {
    if JsonRoom::of(MESSAGE_NODES_MAX, MESSAGE_DEPTH_MAX).take(text).is_err() {
        return Parsed::TooMuch;
    }
    serde_json::from_slice(text).map_or(Parsed::NotJson, |value| Parsed::Messages(vec![message(value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_json_within_bounds() {
        let text = |text: &str| Incoming::Text(text.as_bytes().to_vec()).parse();
        assert_eq!(text(r#"{"a": 1}"#), Parsed::Messages(vec![json!({"a": 1})]));
        assert_eq!(text("hello"), Parsed::NotJson);
        assert_eq!(text(r#"{"a": 1"#), Parsed::NotJson);
        assert_eq!(text(&format!("[{}1]", "1,".repeat(MESSAGE_NODES_MAX))), Parsed::TooMuch);
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(text(&nested(MESSAGE_DEPTH_MAX + 1)), Parsed::TooMuch);
        assert!(matches!(text(&nested(MESSAGE_DEPTH_MAX)), Parsed::Messages(_)));
        let event = Incoming::Event("dhcp.ack".to_owned(), b"{\"mac\": 1}".to_vec()).parse();
        assert_eq!(event, Parsed::Messages(vec![json!({"event": "dhcp.ack", "data": {"mac": 1}})]));
    }
}
