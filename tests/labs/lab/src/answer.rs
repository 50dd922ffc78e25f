//! The answer of a controller.

use std::time::Duration;

use serde_json::Value;

/// How the answer leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    #[default]
    Sent,
    /// Sent, and the connection closes.
    Last,
    /// Never sent: the connection closes instead.
    Lost,
}

/// One HTTP answer, as the controller makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 100 to 999; other values are sent as 500.
    pub status: u16,
    /// The reason phrase, when it is not the usual one of the status. Bytes that HTTP does not allow become spaces.
    pub reason: Option<String>,
    /// Names and values in order; a name may come several times. Pairs that HTTP does not allow are left out.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Vec<u8>,
    pub(crate) delay: Duration,
    pub(crate) delivery: Delivery,
    /// The answer stays open, as this one of the controller.
    pub(crate) open: Option<Open>,
}

/// An answer that does not end, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// The connection becomes a WebSocket.
    Socket(u64),
    /// The body is a stream.
    Stream(u64),
}

impl Answer {
    /// A status and nothing else.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            reason: None,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            delivery: Delivery::Sent,
            open: None,
        }
    }

    /// The connection becomes a WebSocket, which the controller knows by this number from now on.
    ///
    /// A request that asks for no WebSocket gets 400 instead.
    pub fn web_socket(number: u64) -> Self {
        Self { open: Some(Open::Socket(number)), ..Self::status(101) }
    }

    /// A body of the given content type that does not end: the controller knows it by this number, as a WebSocket, and its
    /// texts are sent as they are. The number is none of an open WebSocket.
    pub fn stream(number: u64, content_type: &str) -> Self {
        Self { open: Some(Open::Stream(number)), ..Self::status(200) }
            .with_header("content-type", content_type)
    }

    /// A body of the given content type.
    pub fn body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::status(status) }.with_header("content-type", content_type)
    }

    /// A JSON body, `application/json`.
    pub fn json(status: u16, value: &Value) -> Self {
        Self::body(status, "application/json", value.to_string())
    }

    /// A body of `text/plain`.
    pub fn text(status: u16, text: &str) -> Self {
        Self::body(status, "text/plain", text)
    }

    /// A body of `text/html`.
    pub fn html(status: u16, html: &str) -> Self {
        Self::body(status, "text/html", html)
    }

    /// The request was executed, but its answer never leaves: the connection closes.
    pub fn lost() -> Self {
        Self { delivery: Delivery::Lost, ..Self::status(500) }
    }

    /// Sets the reason phrase.
    #[must_use]
    pub fn with_reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Closes the connection after the answer.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.delivery = Delivery::Last;
        self
    }

    /// Sends the answer this much real time later; what it did is done at once.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}
