//! A WebSocket to a controller. Nothing is sent but pings, answers to pings, and the end.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _, stream};
use heddle_marketplace::push::Socket;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use super::ended::Ended;
use super::frames::{Metered, TooManyFrames};
use super::incoming::{Incoming, Messages};
use super::limits::MESSAGE_BYTES_MAX;
use super::rate::Throttle;

/// Bytes that are read at once: there are many sockets, and little comes.
const READ_BYTES: usize = 4 << 10;
/// Time for a ping to leave.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

struct Open {
    socket: WebSocketStream<Metered<reqwest::Upgraded>>,
    ping: Duration,
    silence_s: u32,
    next_ping: Instant,
    silent_at: Instant,
}

/// The messages of a socket whose controller has agreed to the protocol.
pub(super) async fn messages(
    upgraded: reqwest::Upgraded,
    declared: &Socket,
    throttle: Arc<Throttle>,
) -> Messages {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(READ_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let metered = Metered::new(upgraded, throttle);
    let socket = WebSocketStream::from_raw_socket(metered, Role::Client, Some(config)).await;
    let (ping, now) = (Duration::from_secs(declared.ping_s.into()), Instant::now());
    let silence_s = declared.silence_s;
    let silent_at = now + Duration::from_secs(silence_s.into());
    let open = Open { socket, ping, silence_s, next_ping: now + ping, silent_at };
    let next = |open: Option<Open>| async {
        let mut open = open?;
        match open.next().await {
            Ok(text) => Some((Ok(Incoming::Text(text)), Some(open))),
            Err(ended) => Some((Err(ended), None)),
        }
    };
    stream::unfold(Some(open), next).boxed()
}

impl Open {
    async fn next(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            let Self { socket, next_ping, silent_at, .. } = self;
            tokio::select! {
                came = socket.next() => {
                    let message = came.ok_or(Ended::Closed)?.map_err(|error| of_error(&error))?;
                    self.silent_at = Instant::now() + Duration::from_secs(self.silence_s.into());
                    match message {
                        Message::Text(text) => return Ok(text.as_bytes().to_vec()),
                        Message::Binary(bytes) => return Ok(bytes.to_vec()),
                        Message::Close(_) => return Err(Ended::Closed),
                        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                    }
                }
                () = sleep_until(*next_ping) => {
                    let sent = timeout(PING_TIMEOUT, socket.send(Message::Ping(Bytes::new()))).await;
                    sent.map_err(|_| Ended::Broken)?.map_err(|error| of_error(&error))?;
                    self.next_ping = Instant::now() + self.ping;
                }
                () = sleep_until(*silent_at) => return Err(Ended::Silent { secs: self.silence_s }),
            }
        }
    }
}

fn of_error(error: &Error) -> Ended {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => Ended::Closed,
        Error::Capacity(_) => Ended::TooLarge,
        Error::Io(error) if TooManyFrames::is(error) => Ended::TooMuch,
        _ => Ended::Broken,
    }
}
