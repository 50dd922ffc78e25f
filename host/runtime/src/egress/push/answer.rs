//! What an answer says by its head, and how much of it is looked at where it opens nothing.

use std::time::Duration;

use heddle_core::bounds::JsonRoom;
use heddle_marketplace::push::{Stream, StreamFormat};
use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::limits::REFUSAL_BYTES_MAX;

/// Time for an answer that does not open the channel to come as a whole.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// What the answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The protocol changes to that of WebSocket.
    Upgrade,
    Events,
    Lines,
    /// JSON, whole.
    Document,
}

impl Wanted {
    pub(super) fn of(stream: &Stream) -> Self {
        match stream.format {
            StreamFormat::Sse => Self::Events,
            StreamFormat::JsonLines => Self::Lines,
        }
    }
}

/// Whether the head of an answer says that the channel is open.
pub(super) fn opens(wanted: Wanted, key: &str, response: &reqwest::Response) -> bool {
    let headers = response.headers();
    let is_plain = headers.get(header::CONTENT_ENCODING).is_none_or(|coding| coding == "identity");
    match wanted {
        Wanted::Upgrade => {
            response.status() == StatusCode::SWITCHING_PROTOCOLS
                && has(headers, &header::UPGRADE, "websocket")
                && has(headers, &header::CONNECTION, "upgrade")
                && headers
                    .get(header::SEC_WEBSOCKET_ACCEPT)
                    .is_some_and(|is| is == &derive_accept_key(key.as_bytes()))
                && !headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS)
                && !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL)
        }
        Wanted::Events => {
            let kind =
                headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            let kind = kind.split(';').next().unwrap_or_default().trim();
            response.status() == StatusCode::OK && is_plain && kind.eq_ignore_ascii_case("text/event-stream")
        }
        Wanted::Lines => response.status() == StatusCode::OK && is_plain,
        Wanted::Document => false,
    }
}

/// Whether a header has this word among its own.
fn has(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
}

/// The first bytes of an answer; what is wrong with it, or late, does not matter.
pub(super) async fn beginning(mut response: reqwest::Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = REFUSAL_BYTES_MAX - bytes.len();
            bytes.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            if bytes.len() == REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    // A body that does not end is what it is by then.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, read).await;
    bytes
}

/// A whole answer as JSON, where it is any and not too much.
pub(super) fn parse(bytes: &[u8]) -> Option<Value> {
    JsonRoom::default().take(bytes).ok()?;
    serde_json::from_slice(bytes).ok()
}
