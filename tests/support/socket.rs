//! A client of the event stream.

use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::{Api, PATIENCE};

pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    /// Connects without saying who.
    pub(crate) async fn connect(api: &Api) -> Self {
        Self::connect_at(api, "/ws").await
    }

    pub(crate) async fn connect_at(api: &Api, path: &str) -> Self {
        let url = format!("{}/api/v1{path}", api.base().replace("http://", "ws://"));
        let (stream, _) = tokio_tungstenite::connect_async(url).await.expect("the stream accepts");
        Self { stream }
    }

    /// Connects with headers of the upgrade.
    pub(crate) async fn connect_with(api: &Api, headers: &[(&'static str, &str)]) -> Self {
        let url = format!("{}/api/v1/ws", api.base().replace("http://", "ws://"));
        let mut request = url.into_client_request().expect("the address is good");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        let (stream, _) = tokio_tungstenite::connect_async(request).await.expect("the stream accepts");
        Self { stream }
    }

    /// Connects and authenticates; `connected` was received.
    pub(crate) async fn authenticated(api: &Api) -> Self {
        let mut socket = Self::connect(api).await;
        socket.send(&json!({ "type": "auth", "token": api.token() })).await;
        assert_eq!(socket.next().await["type"], "connected");
        socket
    }

    /// Connects, authenticates and subscribes.
    pub(crate) async fn subscribe(api: &Api, patterns: &[&str]) -> Self {
        let mut socket = Self::connect(api).await;
        socket.send(&json!({ "type": "auth", "token": api.token() })).await;
        assert_eq!(socket.next().await["type"], "connected");
        socket.send(&json!({ "type": "subscribe", "subscriptions": patterns })).await;
        assert_eq!(socket.next().await["type"], "subscribed");
        socket
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        self.stream.send(Message::Text(frame.to_string().into())).await.expect("the stream takes a frame");
    }

    /// The next frame; fails the test after twenty seconds of silence.
    pub(crate) async fn next(&mut self) -> Value {
        self.next_within(PATIENCE).await
    }

    /// The next frame, however long it takes up to this.
    pub(crate) async fn next_within(&mut self, limit: Duration) -> Value {
        match self.receive(limit).await {
            Message::Text(text) => serde_json::from_str(&text).expect("frames are JSON"),
            other => panic!("expected a text frame, got {other:?}"),
        }
    }

    /// The code and the reason that the server closes with.
    pub(crate) async fn close_reason(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.receive(PATIENCE).await {
                let frame = frame.expect("the server says why");
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }

    /// The code that the server closes with.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.receive(PATIENCE).await {
                return frame.map_or(0, |frame| frame.code.into());
            }
        }
    }

    async fn receive(&mut self, limit: Duration) -> Message {
        loop {
            let message = tokio::time::timeout(limit, self.stream.next()).await;
            let message =
                message.expect("a frame in time").expect("the stream is open").expect("a good frame");
            if !matches!(message, Message::Ping(_) | Message::Pong(_)) {
                return message;
            }
        }
    }

    /// The first event whose payload has all of this, whatever comes before it; fails the test after [`PATIENCE`].
    pub(crate) async fn event_saying(&mut self, says: &Value) -> Value {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let frame = self.next().await;
            if has(&frame["event"]["payload"], says) {
                return frame["event"].clone();
            }
        }
        panic!("no event says {says}");
    }

    /// The first event of this type, whatever comes before it.
    pub(crate) async fn event(&mut self, event_type: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["event"]["event_type"] == event_type {
                return frame["event"].clone();
            }
        }
    }
}

/// Whether a value has all of another one: of objects those fields, of anything else the same.
fn has(value: &Value, part: &Value) -> bool {
    match part {
        Value::Object(fields) => fields.iter().all(|(name, part)| has(&value[name.as_str()], part)),
        other => value == other,
    }
}
