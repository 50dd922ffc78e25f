//! Tracks the activity of a connection and its deadlines.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::connection_slots::ConnectionSlot;
use crate::config::Config;
use crate::metrics::ConnectionEnd;

/// How long a peer may accept no byte of an answer.
const STALL_LIMIT: Duration = Duration::from_mins(1);
/// Time between two checks of a connection with a request in flight.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(20);
/// How long a connection may take after it was asked to end.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How long a connection may be idle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// From the first byte of a request to the end of its head; from the beginning for the first request.
    pub(super) head: Duration,
    /// Between two requests.
    idle: Duration,
}

impl Limits {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            head: Duration::from_secs(config.http_header_timeout_secs.into()),
            idle: Duration::from_secs(config.http_idle_timeout_secs.into()),
        }
    }

    /// Returns shorter limits, for when slots become scarce.
    pub(super) fn scarce(self) -> Self {
        Self { head: self.head / 4, idle: self.idle / 8 }
    }
}

/// When a connection must be checked again, and the reason to end it then if nothing happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Instant,
    /// `None`: the connection is only checked again.
    pub(super) end: Option<ConnectionEnd>,
}

#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    /// When the connection began, or the last request ended.
    quiet_since: Instant,
    /// Whether a request has come.
    was_used: bool,
    /// Requests that are in flight: their body or answer is not complete.
    under_way: usize,
    /// When the first byte of an incomplete head came.
    head_since: Option<Instant>,
    /// Since when the peer has accepted nothing of what is sent.
    stalled_since: Option<Instant>,
    /// HTTP/2 frames also come between requests: they do not begin a head.
    is_http2: bool,
    /// When the connection was asked to end.
    ending_since: Option<Instant>,
}

impl Activity {
    fn new() -> Self {
        Self(Mutex::new(State {
            quiet_since: Instant::now(),
            was_used: false,
            under_way: 0,
            head_since: None,
            stalled_since: None,
            is_http2: false,
            ending_since: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn received(&self) {
        let mut state = self.state();
        if state.under_way == 0 && !state.is_http2 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    fn wrote(&self, is_stalled: bool) {
        let mut state = self.state();
        if !is_stalled {
            state.stalled_since = None;
            if !state.is_http2 {
                // A slow peer that still accepts an answer is not idle. HTTP/2 also writes answers to pings.
                state.quiet_since = Instant::now();
            }
        } else if state.stalled_since.is_none() {
            state.stalled_since = Some(Instant::now());
        }
    }

    /// The head of a request has come. The request is in flight until the last copy of the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, is_http2: bool) -> Arc<UnderWay> {
        let mut state = self.state();
        (state.is_http2, state.was_used, state.head_since) = (is_http2, true, None);
        state.under_way += 1;
        Arc::new(UnderWay(self.clone()))
    }

    /// The connection became a tunnel, which has its own limits.
    pub(super) fn became_tunnel(&self) {
        self.state().under_way += 1;
    }

    pub(super) fn ends(&self) {
        self.state().ending_since.get_or_insert_with(Instant::now);
    }

    pub(super) fn due(&self, limits: &Limits) -> Due {
        let state = self.state();
        let at = |since: Instant, limit, end| Due { at: since + limit, end: Some(end) };
        match *state {
            // Checked also after the last byte of an answer: that byte is still on its way to the peer.
            State { stalled_since: Some(since), .. } => at(since, STALL_LIMIT, ConnectionEnd::Stalled),
            State { under_way: 1.., .. } => Due { at: Instant::now() + LOOK_INTERVAL, end: None },
            State { ending_since: Some(since), quiet_since, .. } => {
                at(since.max(quiet_since), END_LIMIT, ConnectionEnd::Idle)
            }
            State { was_used: false, quiet_since, .. } => at(quiet_since, limits.head, ConnectionEnd::Head),
            State { head_since: Some(since), .. } => at(since, limits.head, ConnectionEnd::Head),
            State { quiet_since, .. } => at(quiet_since, limits.idle, ConnectionEnd::Idle),
        }
    }
}

/// One request is in flight while this lives.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way = state.under_way.saturating_sub(1);
        if state.under_way == 0 {
            state.quiet_since = Instant::now();
        }
    }
}

/// A body that keeps its request in flight.
pub(super) struct Held<B> {
    pub(super) body: B,
    pub(super) _under_way: Arc<UnderWay>,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Held<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that reports its activity and holds its slot.
pub(super) struct Wire {
    stream: TcpStream,
    activity: Arc<Activity>,
    _place: ConnectionSlot,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, slot: ConnectionSlot) -> Self {
        Self { stream, activity: Arc::new(Activity::new()), _place: slot }
    }

    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    fn told(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.activity.wrote(written.is_pending());
        written
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }
        read
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.told(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.told(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { head: Duration::from_secs(10), idle: Duration::from_secs(75) };

    #[track_caller]
    fn check(activity: &Activity, secs: u64, end: Option<ConnectionEnd>) {
        let due = activity.due(&LIMITS);
        assert_eq!((due.at - Instant::now(), due.end), (Duration::from_secs(secs), end));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_from_its_first_byte_however_slowly_it_comes() {
        let activity = Arc::new(Activity::new());
        check(&activity, 10, Some(ConnectionEnd::Head));
        tokio::time::advance(Duration::from_secs(4)).await;
        activity.received();
        check(&activity, 6, Some(ConnectionEnd::Head));
        drop(activity.begin(false));
        check(&activity, 75, Some(ConnectionEnd::Idle));
        tokio::time::advance(Duration::from_secs(70)).await;
        activity.received();
        tokio::time::advance(Duration::from_secs(3)).await;
        activity.received();
        check(&activity, 7, Some(ConnectionEnd::Head));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_has_time_unless_its_answer_is_not_taken() {
        let activity = Arc::new(Activity::new());
        let under_way = activity.begin(false);
        let copy = under_way.clone();
        activity.received();
        check(&activity, 20, None);
        activity.wrote(true);
        tokio::time::advance(Duration::from_secs(10)).await;
        activity.wrote(true);
        check(&activity, 50, Some(ConnectionEnd::Stalled));
        activity.wrote(false);
        drop(under_way);
        check(&activity, 20, None);
        drop(copy);
        check(&activity, 75, Some(ConnectionEnd::Idle));
        activity.ends();
        check(&activity, 5, Some(ConnectionEnd::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_between_requests_of_http_2_are_no_head_and_a_tunnel_is_never_idle() {
        let activity = Arc::new(Activity::new());
        drop(activity.begin(true));
        activity.received();
        check(&activity, 75, Some(ConnectionEnd::Idle));
        activity.became_tunnel();
        check(&activity, 20, None);
    }
}
