//! The wire of one connection: what a peer sends is read and counted as it comes, also while something is sent to it.
//!
//! What it sends waits in its order until the connection has time for it. Pings and pongs of the protocol are counted
//! here and answered by the library. The library puts the parts of a message together: here they count as one message,
//! in `meter` as parts.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::stream::{SplitSink, SplitStream};
use futures::{Stream, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::WebSocketStream;
use tungstenite::{Error, Message, Utf8Bytes};

use super::meter::{Metered, TooManyParts};
use super::pace::Pace;

/// A connection whose peer is counted.
pub(super) type Socket = WebSocketStream<Metered<TokioIo<Upgraded>>>;

const FRAMES_PER_SECOND: usize = 5;
/// Pings and pongs of the protocol.
const CONTROLS_PER_SECOND: usize = 50;
/// A peer from which nothing came for so long is gone.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// A peer that does not take a frame in this time is dropped.
pub(super) const SEND_LIMIT: Duration = Duration::from_secs(10);
/// Most frames that may wait: more than a peer may send while one frame is sent to it. Beyond it the peer is read no
/// further (back-pressure), and what it sends then counts when it is read.
pub(super) const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 256 * 1024;

const NORMAL: u16 = 1000;
pub(super) const GOING_AWAY: u16 = 1001;
const PROTOCOL: u16 = 1002;
const NOT_UTF8: u16 = 1007;
pub(super) const POLICY: u16 = 1008;
const TOO_BIG: u16 = 1009;
pub(super) const FAULT: u16 = 1011;
pub(super) const TRY_AGAIN_LATER: u16 = 1013;

/// Why a connection ends: a close code with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End(pub(super) u16, pub(super) &'static str);

/// The peer is gone, or has closed the connection.
pub(super) const GONE: End = End(NORMAL, "");
pub(super) const SLOW: End = End(POLICY, "too slow; connect again and resume");
const SILENT: End = End(POLICY, "nothing came for 60 s");
const TOO_MANY: End = End(POLICY, "more than 5 frames per second");
const TOO_MANY_PARTS: End = End(POLICY, "more than 200 parts of messages per second");
const TOO_MANY_CONTROLS: End = End(POLICY, "more than 50 pings and pongs per second");

/// What came from the peer and waits.
#[derive(Debug)]
pub(super) enum Came {
    /// With the room that it takes while it waits.
    Text(Utf8Bytes, OwnedSemaphorePermit),
    Binary,
    /// The last.
    End(End),
}

/// Reads until the peer ends the connection, or it has to be ended; the end comes after what the peer sent before it.
///
/// `is_asked`: whether a ping was sent since the peer last sent something. A peer that was not asked is not silent.
pub(super) async fn read(
    stream: &mut SplitStream<Socket>,
    to: Sender<Box<Came>>,
    is_asked: Arc<AtomicBool>,
) -> Infallible {
    let room = Arc::new(Semaphore::new(WAITING_BYTES_MAX));
    let mut counts = Counts::default();
    loop {
        let came = match tokio::time::timeout(SILENCE_MAX, stream.next()).await {
            Ok(message) => {
                is_asked.store(false, Ordering::Relaxed);
                counts.judge(message, Instant::now())
            }
            Err(_) if is_asked.load(Ordering::Relaxed) => Err(SILENT),
            Err(_) => continue,
        };
        let came = match came {
            Ok(None) => continue,
            Ok(Some(Message::Text(text))) => {
                let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
                // A message is smaller than the room, which is never closed.
                let Ok(place) = room.clone().acquire_many_owned(bytes).await else { continue };
                // A copy, so that other bytes that came in the same buffer are not kept with it.
                Came::Text(Utf8Bytes::from(text.as_str()), place)
            }
            Ok(Some(_)) => Came::Binary,
            Err(end) => Came::End(end),
        };
        let is_last = matches!(came, Came::End(_));
        if to.send(Box::new(came)).await.is_err() || is_last {
            return std::future::pending().await;
        }
    }
}

/// Returns the first text that comes; pings may come before it.
pub(super) async fn first_text<S>(stream: &mut S) -> Result<Option<Utf8Bytes>, End>
where
    S: Stream<Item = Result<Message, Error>> + Unpin,
{
    let mut counts = Counts::default();
    loop {
        match counts.judge(stream.next().await, Instant::now())? {
            None => {}
            Some(Message::Text(text)) => return Ok(Some(text)),
            Some(_) => return Ok(None),
        }
    }
}

impl End {
    /// Whether nothing that comes after it can be understood.
    pub(super) fn is_of_the_wire(self) -> bool {
        matches!(self.0, PROTOCOL | NOT_UTF8 | TOO_BIG) || self == TOO_MANY_PARTS
    }
}

/// Leaves a peer that is no longer understood. What it still sends is read and discarded: unread, it would take the
/// last frame away from the peer.
pub(super) async fn let_go(outlet: SplitSink<Socket, Message>, inlet: SplitStream<Socket>) {
    let Ok(mut socket) = outlet.reunite(inlet) else { return };
    let wire = socket.get_mut();
    if wire.shutdown().await.is_ok() {
        wire.discard().await;
    }
}

/// Waits until a frame is sent. A peer that does not take it in time is slow; one that is gone is gone.
pub(super) async fn in_time(sending: impl Future<Output = Result<(), Error>>) -> Result<(), End> {
    match tokio::time::timeout(SEND_LIMIT, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(GONE),
        Err(_) => Err(SLOW),
    }
}

/// What the peer did to the protocol, in the protocol's words (RFC 6455 section 7.4.1).
fn broken(error: &Error) -> End {
    use tungstenite::error::CapacityError;
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            End(TOO_BIG, "a frame has at most 65536 bytes")
        }
        Error::Utf8(_) => End(NOT_UTF8, "text is not UTF-8"),
        Error::Protocol(_) => End(PROTOCOL, "not a frame of RFC 6455"),
        Error::Io(error) if TooManyParts::is(error) => TOO_MANY_PARTS,
        _ => GONE,
    }
}

/// How many frames came lately.
#[derive(Debug)]
struct Counts {
    said: Pace,
    controls: Pace,
}

impl Default for Counts {
    fn default() -> Self {
        Self { said: Pace::of(FRAMES_PER_SECOND), controls: Pace::of(CONTROLS_PER_SECOND) }
    }
}

impl Counts {
    /// Returns the message that has to be answered; none for frames that the library answers.
    fn judge(&mut self, came: Option<Result<Message, Error>>, now: Instant) -> Result<Option<Message>, End> {
        match came {
            None | Some(Ok(Message::Close(_))) => Err(GONE),
            Some(Err(error)) => Err(broken(&error)),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                if self.controls.takes(now) {
                    Ok(None)
                } else {
                    Err(TOO_MANY_CONTROLS)
                }
            }
            Some(Ok(said)) => {
                if self.said.takes(now) {
                    Ok(Some(said))
                } else {
                    Err(TOO_MANY)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tungstenite::Bytes;

    use super::*;

    fn text(counts: &mut Counts, at: Instant) -> Result<Option<Message>, End> {
        counts.judge(Some(Ok(Message::Text("{}".into()))), at)
    }

    fn pong(counts: &mut Counts, at: Instant) -> Result<Option<Message>, End> {
        counts.judge(Some(Ok(Message::Pong(Bytes::new()))), at)
    }

    #[test]
    fn the_sixth_frame_within_a_second_is_too_many() {
        let mut counts = Counts::default();
        let now = Instant::now();
        assert!((0..5).all(|_| text(&mut counts, now).is_ok()));
        assert_eq!(text(&mut counts, now).err(), Some(TOO_MANY));
        assert!(text(&mut counts, now + Duration::from_millis(1001)).is_ok());
    }

    #[test]
    fn five_in_every_second_are_never_too_many_and_one_more_always_is() {
        let start = Instant::now();
        for gap in [0, 1, 100, 199] {
            let mut counts = Counts::default();
            // Bursts of five, a second from first to first.
            for burst in 0..20_u64 {
                for n in 0..5 {
                    let at = start + Duration::from_millis(burst * 1000 + n * gap);
                    assert!(text(&mut counts, at).is_ok(), "{gap} ms: burst {burst}, frame {n}");
                }
            }
            let at = start + Duration::from_millis(19 * 1000 + 4 * gap);
            assert_eq!(text(&mut counts, at).err(), Some(TOO_MANY), "{gap} ms");
        }
    }

    #[test]
    fn pings_and_pongs_have_a_limit_of_their_own() {
        let mut counts = Counts::default();
        let now = Instant::now();
        assert!((0..50).all(|_| matches!(pong(&mut counts, now), Ok(None))));
        assert!((0..5).all(|_| text(&mut counts, now).is_ok()));
        assert_eq!(pong(&mut counts, now).err(), Some(TOO_MANY_CONTROLS));
        assert_eq!(counts.judge(None, now).err(), Some(GONE));
    }
}
