//! The socket of one connection: authentication, frames, limits, the end.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures::SinkExt as _;
use heddle_core::event::EventType;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, SiteId};
use heddle_store::events::Stretch;
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::Published;
use super::frames::{ClientFrame, ServerFrame};
use super::lines::{Cut, Line};
use super::socket::{Denied, Listener};
use crate::app::SharedApp;
use crate::auth::{Caller, Holder, api_keys};
use crate::http::error::Error;

const AUTHENTICATION_LIMIT: Duration = Duration::from_secs(10);
const REVALIDATION_INTERVAL: Duration = Duration::from_mins(5);
/// After a check that the database did not answer.
const REVALIDATION_RETRY: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// A listener that does not take a frame in this time is dropped.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// Events of one resume.
const RESUME_MAX: usize = 10_000;
/// Events that one resume holds in memory at once.
const RESUME_PAGE: u16 = 100;
/// Events that are written to a connection at once.
const AT_ONCE_MAX: usize = 64;
/// How long a peer that was told the end may take to go.
const LINGER_LIMIT: Duration = Duration::from_secs(2);
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const PROTOCOL: u16 = 1002;
const NOT_UTF8: u16 = 1007;
const POLICY: u16 = 1008;
const TOO_BIG: u16 = 1009;
const FAULT: u16 = 1011;
const TRY_AGAIN_LATER: u16 = 1013;

/// Why a connection ends: a close code with its reason.
struct End(u16, &'static str);

const STOPPING: End = End(GOING_AWAY, "service is stopping");
const FULL: End = End(TRY_AGAIN_LATER, "too many connections");
const SLOW: End = End(POLICY, "too slow; connect again and resume");
const API_KEY: End = End(POLICY, "API keys are not accepted here: authenticate with an access token");
const UNWRITABLE: End = End(FAULT, "frame cannot be written");

/// What is known of a peer when its connection opens.
pub(super) enum Opening {
    /// It says within ten seconds who it is.
    Unproved,
    Token(Secret),
    /// A page of somebody else's.
    ForeignOrigin,
    ApiKey,
}

/// Serves one connection to its end.
pub(super) async fn serve(app: SharedApp, mut socket: WebSocket, opening: Opening) {
    let end = match opening {
        Opening::ForeignOrigin => End(POLICY, "origin not allowed"),
        Opening::ApiKey => API_KEY,
        Opening::Unproved => run(&app, &mut socket, None).await,
        Opening::Token(token) => run(&app, &mut socket, Some(token)).await,
    };
    let frame = CloseFrame { code: end.0, reason: Utf8Bytes::from_static(end.1) };
    // A peer that is gone cannot be told so, and one that has closed is answered by reading on.
    let closing = socket.send(Message::Close(Some(frame)));
    if tokio::time::timeout(SEND_LIMIT, closing).await.is_ok() {
        // What it still sends would, unread, take the last frame away from it.
        let rest = async { while let Some(Ok(_)) = socket.recv().await {} };
        tokio::time::timeout(LINGER_LIMIT, rest).await.ok();
    }
}

async fn run(app: &SharedApp, socket: &mut WebSocket, token: Option<Secret>) -> End {
    // Before anything is known of the peer: who does not authenticate takes a place, too.
    let Some(mut place) = app.hub.places.take() else { return FULL };
    let authenticated = tokio::time::timeout(AUTHENTICATION_LIMIT, authenticate(app, socket, token)).await;
    let (holder, caller) = match authenticated {
        Ok(Ok(authenticated)) => authenticated,
        Ok(Err(end)) => return end,
        Err(_) => return End(POLICY, "authentication took longer than 10 s"),
    };
    let Some(doubt) = place.name(&caller) else { return FULL };
    // Who was refused between the proof and now was not told of.
    doubt.notify_one();
    let mut connection =
        Connection { app, socket, holder, listener: Listener::new(caller, Instant::now()), line: None };
    connection.listen(&doubt).await
}

async fn authenticate(
    app: &SharedApp,
    socket: &mut WebSocket,
    token: Option<Secret>,
) -> Result<(Holder, Caller), End> {
    let token = match token {
        Some(token) => token,
        None => match socket.recv().await {
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(ClientFrame::Auth { token }) => token,
                _ => return Err(End(POLICY, "first frame must be auth with a token")),
            },
            Some(Ok(Message::Close(_))) | None => return Err(End(NORMAL, "")),
            Some(Ok(_)) => return Err(End(POLICY, "first frame must be auth with a token")),
            Some(Err(error)) => return Err(broken(error)),
        },
    };
    if api_keys::is_one(token.expose()) {
        return Err(API_KEY);
    }
    let proved = async {
        let holder = Holder::of(app, &token)?;
        let caller = holder.caller(app).await?;
        Ok((holder, caller))
    };
    proved.await.map_err(|error: Error| {
        if may_pass(&error) {
            End(TRY_AGAIN_LATER, "token cannot be checked now")
        } else {
            End(POLICY, "token is not valid")
        }
    })
}

/// Whether the error says nothing about the caller.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Internal(_))
}

/// What the peer did to the protocol, in the protocol's words (RFC 6455 section 7.4.1).
fn broken(error: axum::Error) -> End {
    use tungstenite::error::CapacityError;
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. })) => {
            End(TOO_BIG, "a frame has at most 65536 bytes")
        }
        Some(tungstenite::Error::Utf8(_)) => End(NOT_UTF8, "text is not UTF-8"),
        Some(tungstenite::Error::Protocol(_)) => End(PROTOCOL, "not a frame of RFC 6455"),
        _ => End(NORMAL, ""),
    }
}

/// One authenticated connection.
struct Connection<'a> {
    app: &'a SharedApp,
    socket: &'a mut WebSocket,
    holder: Holder,
    listener: Listener,
    /// There is one while anything is subscribed to.
    line: Option<Line>,
}

impl Connection<'_> {
    async fn listen(&mut self, doubt: &Notify) -> End {
        let mut revalidation = every(REVALIDATION_INTERVAL);
        let mut ping = every(PING_INTERVAL);
        let stop = self.app.tasks.stopping();
        let connected = ServerFrame::Connected { available_events: self.listener.available() };
        if let Err(end) = self.send(&connected).await {
            return end;
        }
        loop {
            let result = tokio::select! {
                () = stop.cancelled() => return STOPPING,
                () = doubt.notified() => self.revalidate(&mut revalidation).await,
                _ = revalidation.tick() => self.revalidate(&mut revalidation).await,
                _ = ping.tick() => if self.listener.is_silent(Instant::now()) {
                    Err(End(POLICY, "nothing came for 60 s"))
                } else {
                    self.transmit(Message::Ping(Bytes::new())).await
                },
                message = self.socket.recv() => match message {
                    Some(Ok(message)) => self.received(message).await,
                    Some(Err(error)) => return broken(error),
                    None => return End(NORMAL, ""),
                },
                published = next(&mut self.line) => match published {
                    Ok(published) => self.deliver_all(published).await,
                    Err(Cut) => return SLOW,
                },
            };
            if let Err(end) = result {
                return end;
            }
        }
    }

    /// Asks the database again who is listening.
    ///
    /// Not the token of a session: it proved who connected, and is shorter-lived than a connection.
    async fn revalidate(&mut self, next: &mut Interval) -> Result<(), End> {
        let is_known = self.ask_again().await?;
        next.reset_after(if is_known { REVALIDATION_INTERVAL } else { REVALIDATION_RETRY });
        Ok(())
    }

    /// The same; false when the database could not say.
    async fn ask_again(&mut self) -> Result<bool, End> {
        let Ok(turn) = self.app.hub.proofs.acquire().await else { return Err(STOPPING) };
        let asked = self.holder.caller(self.app).await;
        // Whoever does not read what follows holds nobody else's turn.
        drop(turn);
        match asked {
            Ok(caller) => {
                let ended = self.listener.renew(caller);
                self.tune();
                if let Some(ended) = ended {
                    self.deny(ended).await?;
                }
                Ok(true)
            }
            Err(error) if may_pass(&error) => {
                tracing::warn!(error = %error, "a listener's session cannot be checked; tried again");
                Ok(false)
            }
            Err(_) => {
                self.send(&ServerFrame::SessionRevoked).await?;
                Err(End(POLICY, "session is revoked"))
            }
        }
    }

    /// Gets what is subscribed to now, and nothing else.
    fn tune(&mut self) {
        let types = self.listener.types();
        if types.is_empty() {
            self.line = None;
            return;
        }
        let lines = &self.app.hub.lines;
        self.line.get_or_insert_with(|| lines.open()).carry(self.listener.organization(), &types);
    }

    /// An event and those that wait behind it, in one go.
    async fn deliver_all(&mut self, first: Arc<Published>) -> Result<(), End> {
        let mut frames = Vec::new();
        let mut next = Some(first);
        while let Some(published) = next {
            if self.listener.wants(&published) {
                frames.push(published.frame().map_err(|_| UNWRITABLE)?);
            }
            let has_room = frames.len() < AT_ONCE_MAX;
            next = if has_room { self.line.as_mut().and_then(Line::try_next) } else { None };
        }
        self.transmit_all(frames).await
    }

    async fn received(&mut self, message: Message) -> Result<(), End> {
        // A pong answers our own ping.
        if !matches!(message, Message::Pong(_) | Message::Close(_)) && !self.listener.may_send(Instant::now())
        {
            return Err(End(POLICY, "more than 5 frames per second"));
        }
        let result = match message {
            Message::Text(text) => self.answer(&text).await,
            Message::Binary(_) => self.send_error("frames are JSON text").await,
            // The protocol's answer to a ping is sent below us.
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(End(NORMAL, "")),
        };
        // After the answer: while we were busy sending, silence is not the peer's.
        self.listener.heard(Instant::now());
        result
    }

    async fn answer(&mut self, text: &str) -> Result<(), End> {
        let Ok(frame) = serde_json::from_str(text) else {
            let known = "frame is not one of subscribe, unsubscribe, set_filters, resume, ping";
            return self.send_error(known).await;
        };
        match frame {
            ClientFrame::Subscribe { subscriptions } => self.subscribe(subscriptions).await,
            ClientFrame::Unsubscribe { subscriptions } => {
                self.listener.unsubscribe(&subscriptions);
                self.tune();
                let subscriptions = self.listener.subscriptions();
                self.send(&ServerFrame::Unsubscribed { subscriptions }).await
            }
            ClientFrame::SetFilters { site_ids } => self.set_filters(&site_ids).await,
            ClientFrame::Resume { after_seq } => self.resume(after_seq).await,
            ClientFrame::Ping => self.send(&ServerFrame::Pong { timestamp: self.app.clock.now() }).await,
            ClientFrame::Auth { .. } => self.send_error("connection is authenticated already").await,
        }
    }

    async fn subscribe(&mut self, patterns: Vec<String>) -> Result<(), End> {
        let asked = patterns.len();
        let denied = self.listener.subscribe(patterns);
        self.tune();
        let is_accepted = denied.as_ref().is_none_or(|denied| denied.patterns.len() < asked);
        if let Some(denied) = denied {
            self.deny(denied).await?;
        }
        if is_accepted {
            let subscriptions = self.listener.subscriptions();
            self.send(&ServerFrame::Subscribed { subscriptions }).await?;
        }
        Ok(())
    }

    async fn deny(&mut self, denied: Denied) -> Result<(), End> {
        self.send(&ServerFrame::SubscriptionDenied { patterns: denied.patterns, reason: denied.reason }).await
    }

    /// Narrows to the sites that the caller can read, or lifts the filter; unknown sites are left out silently.
    async fn set_filters(&mut self, site_ids: &[SiteId]) -> Result<(), End> {
        if site_ids.is_empty() {
            self.listener.set_sites(None);
            return self.send(&ServerFrame::FiltersSet { site_ids: Vec::new() }).await;
        }
        let visible = async {
            let mut tx = self.app.db.read().await?;
            heddle_store::sites::visible(&mut tx, &self.listener.caller.scope(), site_ids).await
        };
        let Ok(site_ids) = visible.await else {
            return self.send_error("sites cannot be read; try again").await;
        };
        self.listener.set_sites(Some(site_ids.clone()));
        self.send(&ServerFrame::FiltersSet { site_ids }).await
    }

    /// Sends what the connection missed in its own organization, oldest first.
    async fn resume(&mut self, after_seq: i64) -> Result<(), End> {
        let stop = self.app.tasks.stopping();
        let mut last_seq = after_seq;
        let mut read = 0;
        let truncated = loop {
            if stop.is_cancelled() {
                return Err(STOPPING);
            }
            if read > 0 {
                // It can take long, and rights can end meanwhile.
                self.ask_again().await?;
            }
            let (org, types) = (self.listener.caller.org_id, self.listener.types());
            let Ok(page) = missed(self.app, org, last_seq, &types).await else {
                return self.send_error("events cannot be read; try again").await;
            };
            read += page.events.len();
            last_seq = page.last_seq;
            let missed = page.events.into_iter().map(Published::from);
            let wanted = missed.filter(|published| self.listener.wants(published));
            let frames: Result<Vec<Utf8Bytes>, _> = wanted.map(|published| published.frame()).collect();
            self.transmit_all(frames.map_err(|_| UNWRITABLE)?).await?;
            if !page.is_full || read >= RESUME_MAX {
                break page.is_full;
            }
        };
        self.send(&ServerFrame::Resumed { last_seq, truncated }).await
    }

    async fn send_error(&mut self, message: &str) -> Result<(), End> {
        self.send(&ServerFrame::Error { message: message.to_owned() }).await
    }

    async fn send(&mut self, frame: &ServerFrame<'_>) -> Result<(), End> {
        let text = serde_json::to_string(frame).map_err(|_| UNWRITABLE)?;
        self.transmit(Message::Text(text.into())).await
    }

    async fn transmit(&mut self, message: Message) -> Result<(), End> {
        in_time(self.socket.send(message)).await
    }

    async fn transmit_all(&mut self, frames: Vec<Utf8Bytes>) -> Result<(), End> {
        let socket = &mut *self.socket;
        in_time(async {
            for frame in frames {
                socket.feed(Message::Text(frame)).await?;
            }
            socket.flush().await
        })
        .await
    }
}

/// Only of types that are subscribed to: others are neither read nor sent, and the last number is the newest then.
async fn missed(app: &SharedApp, org: OrgId, after_seq: i64, types: &[EventType]) -> Result<Stretch, Error> {
    let mut tx = app.db.read().await?;
    let newest = heddle_store::events::last_seq(&mut tx, org).await?.max(after_seq);
    if types.is_empty() {
        return Ok(Stretch { events: Vec::new(), last_seq: newest, unknown: None, is_full: false });
    }
    let page = u32::from(RESUME_PAGE);
    let found = heddle_store::events::list(&mut tx, org, after_seq, types, page).await?;
    let last_seq = if found.is_full { found.last_seq } else { newest };
    Ok(Stretch { last_seq, ..found })
}

/// The next event of a line; never, where there is none.
async fn next(line: &mut Option<Line>) -> Result<Arc<Published>, Cut> {
    match line {
        Some(line) => line.next().await,
        None => std::future::pending().await,
    }
}

/// A peer that does not take what is sent is slow; one that is gone is gone.
async fn in_time(sending: impl Future<Output = Result<(), axum::Error>>) -> Result<(), End> {
    match tokio::time::timeout(SEND_LIMIT, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End(NORMAL, "")),
        Err(_) => Err(SLOW),
    }
}

/// Ticks first when one period is over; what was missed is not made up for.
fn every(period: Duration) -> Interval {
    let mut interval = interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
