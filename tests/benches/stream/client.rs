//! Clients of the stream: one that reads what it is sent, and a crowd that only waits.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use heddle_core::Clock;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub(super) struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// Connects; with a token it says who it is.
pub(super) async fn connect(base: &str, token: Option<&str>) -> Client {
    let url = format!("{}/api/v1/ws", base.replace("http://", "ws://"));
    let (stream, _) = tokio_tungstenite::connect_async(url).await.expect("the stream accepts");
    let mut client = Client(stream);
    if let Some(token) = token {
        client.say(&json!({ "type": "auth", "token": token })).await;
        assert_eq!(client.hear().await["type"], "connected");
    }
    client
}

impl Client {
    pub(super) async fn subscribe(&mut self) {
        self.say(&json!({ "type": "subscribe", "subscriptions": ["*"] })).await;
        assert_eq!(self.hear().await["type"], "subscribed");
    }

    async fn say(&mut self, frame: &Value) {
        self.0.send(Message::Text(frame.to_string().into())).await.expect("the stream takes a frame");
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.text().await).expect("frames are JSON")
    }

    /// The next text; pings are answered meanwhile.
    pub(super) async fn text(&mut self) -> String {
        loop {
            if let Message::Text(text) =
                self.0.next().await.expect("the stream is open").expect("a good frame")
            {
                return text.to_string();
            }
        }
    }
}

/// Clients that answer pings and nothing else; gone with this value.
#[derive(Default)]
pub(super) struct Idle(Vec<JoinHandle<()>>);

impl Idle {
    pub(super) fn extend(&mut self, clients: Vec<Client>) {
        let wait = |mut client: Client| async move { while let Some(Ok(_)) = client.0.next().await {} };
        #[expect(clippy::disallowed_methods, reason = "a client is the outside world")]
        self.0.extend(clients.into_iter().map(|client| tokio::spawn(wait(client))));
    }

    /// Asserts that no client was dropped.
    pub(super) fn all_wait(&self) {
        let gone = self.0.iter().filter(|waiting| waiting.is_finished()).count();
        assert_eq!(gone, 0, "connections of {} were dropped", self.0.len());
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

pub(super) fn now_micros() -> u64 {
    u64::try_from(Clock::default().now().timestamp_micros()).expect("it is after 1970")
}

/// How long ago the event was written, as it says itself.
pub(super) fn delay(frame: &str) -> Duration {
    let at = frame.split_once("\"at\":").expect("an event says when").1;
    let digits: String = at.chars().take_while(char::is_ascii_digit).collect();
    Duration::from_micros(now_micros().saturating_sub(digits.parse().expect("a number")))
}
