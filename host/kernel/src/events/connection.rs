//! One connection from its opening to its end: its caller, what it asks for, what is sent to it.
//!
//! What it may have is decided in `socket`; how frames come and go is in `wire`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use heddle_core::event::EventTypes;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, SiteId};
use heddle_store::events::Stretch;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{Interval, MissedTickBehavior, interval_at, timeout_at};
use tungstenite::protocol::CloseFrame;
use tungstenite::{Bytes, Message, Utf8Bytes};

use super::fanout::{Cut, FanoutReceiver};
use super::frames::{ClientFrame, ServerFrame, parse};
use super::published::Published;
use super::socket::{Denied, Listener};
use super::wire::{
    Came, End, FAULT, GOING_AWAY, GONE, POLICY, SEND_LIMIT, SLOW, Socket, TRY_AGAIN_LATER, WAITING_MAX,
    first_text, in_time, let_go, read,
};
use crate::app::SharedApp;
use crate::caller::{Caller, Holder, api_key};
use crate::http::error::Error;

const AUTHENTICATION_LIMIT: Duration = Duration::from_secs(10);
const REVALIDATION_INTERVAL: Duration = Duration::from_mins(5);
/// Time to the next check after one that the database did not answer.
const REVALIDATION_RETRY: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Events of one resume.
const RESUME_MAX: usize = 10_000;
/// Events that one resume holds in memory at once.
const RESUME_PAGE: u16 = 100;
/// Events that are written to a connection at once.
const AT_ONCE_MAX: usize = 64;
/// How long a peer may take to close after the close frame.
const LINGER_LIMIT: Duration = Duration::from_secs(2);

const STOPPING: End = End(GOING_AWAY, "service is stopping");
const FULL: End = End(TRY_AGAIN_LATER, "too many connections");
const API_KEY: End = End(POLICY, "API keys are not accepted here: authenticate with an access token");
const NO_AUTH: End = End(POLICY, "first frame must be auth with a token");
const LATE: End = End(POLICY, "authentication took longer than 10 s");
const LATE_BEHIND_COOKIE: End =
    End(POLICY, "the svc_access cookie is not valid, and no auth frame came within 10 s");
const NOT_VALID: End = End(POLICY, "token is not valid");
const UNCHECKED: End = End(TRY_AGAIN_LATER, "token cannot be checked now");
const UNWRITABLE: End = End(FAULT, "frame cannot be written");

/// What is known of a peer when its connection opens.
pub(super) enum Opening {
    /// The peer authenticates within ten seconds.
    Unproved,
    Token(Secret),
    /// A browser sends it by itself: a cookie that is no longer valid says nothing about the peer.
    Cookie(Secret),
    /// A page of an origin that is not allowed.
    ForeignOrigin,
    ApiKey,
}

type Outlet = SplitSink<Socket, Message>;
type Inlet = SplitStream<Socket>;

/// Serves one connection to its end.
pub(super) async fn serve(app: SharedApp, socket: Socket, opening: Opening) {
    let (mut outlet, mut inlet) = socket.split();
    let end = match opening {
        Opening::ForeignOrigin => End(POLICY, "origin not allowed"),
        Opening::ApiKey => API_KEY,
        opening => run(&app, &mut outlet, &mut inlet, opening).await,
    };
    let frame = CloseFrame { code: end.0.into(), reason: Utf8Bytes::from_static(end.1) };
    // A peer that is gone cannot be notified, and one that has closed is answered by reading on.
    let closing = outlet.send(Message::Close(Some(frame)));
    if tokio::time::timeout(SEND_LIMIT, closing).await.is_ok() {
        let rest = async {
            if end.is_of_the_wire() {
                return let_go(outlet, inlet).await;
            }
            while let Some(Ok(_)) = inlet.next().await {}
        };
        tokio::time::timeout(LINGER_LIMIT, rest).await.ok();
    }
}

async fn run(app: &SharedApp, outlet: &mut Outlet, inlet: &mut Inlet, opening: Opening) -> End {
    // Before anything is known of the peer: a connection that does not authenticate takes a slot, too.
    let Some(mut slot) = app.hub.slots.take() else { return FULL };
    // Boxed, as everything that is rare: otherwise each idle connection keeps memory for the largest of these futures.
    let (holder, caller) = match Box::pin(authenticate(app, inlet, opening)).await {
        Ok(authenticated) => authenticated,
        Err(end) => return end,
    };
    let Some(recheck) = slot.name(&caller) else { return FULL };
    // The connection was not notified of a revocation between the proof and now, so it checks again.
    recheck.notify_one();
    let (sender, inbox) = mpsc::channel(WAITING_MAX);
    let listener = Listener::new(caller, app.declared());
    let is_asked = Arc::new(AtomicBool::default());
    let (receiver, pinged_at, asked) = (None, Instant::now(), is_asked.clone());
    let mut connection =
        Connection { app, outlet, inbox, holder, listener, receiver, pinged_at, is_asked: asked };
    tokio::select! {
        end = connection.listen(&recheck) => end,
        never = read(inlet, sender, is_asked) => match never {},
    }
}

/// Authenticates by what the upgrade carried, or else by the first frame; all of it within ten seconds.
async fn authenticate(app: &SharedApp, inlet: &mut Inlet, opening: Opening) -> Result<(Holder, Caller), End> {
    let deadline = tokio::time::Instant::now() + AUTHENTICATION_LIMIT;
    let (token, late) = match opening {
        Opening::Token(token) => (Some(token), LATE),
        Opening::Cookie(token) => match timeout_at(deadline, prove(app, &token)).await {
            Ok(Err(NOT_VALID | API_KEY)) => (None, LATE_BEHIND_COOKIE),
            Ok(proved) => return proved,
            Err(_) => return Err(LATE),
        },
        Opening::Unproved | Opening::ForeignOrigin | Opening::ApiKey => (None, LATE),
    };
    let proving = async {
        let token = match token {
            Some(token) => token,
            None => named(inlet).await?,
        };
        prove(app, &token).await
    };
    timeout_at(deadline, proving).await.unwrap_or(Err(late))
}

/// The token of the first frame.
async fn named(inlet: &mut Inlet) -> Result<Secret, End> {
    let text = first_text(inlet).await?.ok_or(NO_AUTH)?;
    match serde_json::from_str(&text) {
        Ok(ClientFrame::Auth { token }) => Ok(token),
        _ => Err(NO_AUTH),
    }
}

async fn prove(app: &SharedApp, token: &Secret) -> Result<(Holder, Caller), End> {
    if api_key::is_one(token.expose()) {
        return Err(API_KEY);
    }
    let proved = async {
        let holder = Holder::of(app, token)?;
        let caller = holder.caller(app).await?;
        Ok((holder, caller))
    };
    proved.await.map_err(|error: Error| if may_pass(&error) { UNCHECKED } else { NOT_VALID })
}

/// Whether the error says nothing about the caller.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Internal(_))
}

/// One authenticated connection.
struct Connection<'a> {
    app: &'a SharedApp,
    outlet: &'a mut Outlet,
    /// What the peer sent, in its order.
    inbox: Receiver<Box<Came>>,
    holder: Holder,
    listener: Listener,
    /// There is one while anything is subscribed to.
    receiver: Option<FanoutReceiver>,
    pinged_at: Instant,
    /// Whether a ping was sent since the peer last sent something.
    is_asked: Arc<AtomicBool>,
}

impl Connection<'_> {
    async fn listen(&mut self, recheck: &Notify) -> End {
        let mut revalidation = every(REVALIDATION_INTERVAL);
        let mut ping = every(PING_INTERVAL);
        let mut names = self.app.names.changes();
        let stop = self.app.tasks.stopping();
        if let Err(end) = Box::pin(self.welcome()).await {
            return end;
        }
        loop {
            let result = tokio::select! {
                () = stop.cancelled() => return STOPPING,
                () = recheck.notified() => Box::pin(self.revalidate(&mut revalidation)).await,
                _ = revalidation.tick() => Box::pin(self.revalidate(&mut revalidation)).await,
                _ = ping.tick() => self.ping().await,
                Ok(()) = names.changed() => {
                    self.listener.learn(self.app.declared());
                    self.tune();
                    Ok(())
                }
                came = self.inbox.recv() => match came.map(|came| *came) {
                    Some(Came::Text(text, _place)) => Box::pin(self.answer(&text)).await,
                    Some(Came::Binary) => Box::pin(self.send_error("frames are JSON text")).await,
                    Some(Came::End(end)) => return end,
                    None => return GONE,
                },
                published = next(&mut self.receiver) => match published {
                    Ok(published) => self.deliver_all(published).await,
                    Err(Cut) => return SLOW,
                },
            };
            if let Err(end) = result {
                return end;
            }
        }
    }

    async fn welcome(&mut self) -> Result<(), End> {
        let seq = newest(self.app, self.listener.caller.org_id).await;
        self.send(&ServerFrame::Connected { seq, available_events: self.listener.available() }).await
    }

    /// Reads the caller from the database again.
    ///
    /// The token of a session is not checked again: it proved the caller at the start, and is shorter-lived than a
    /// connection.
    async fn revalidate(&mut self, next: &mut Interval) -> Result<(), End> {
        let is_known = self.ask_again().await?;
        next.reset_after(if is_known { REVALIDATION_INTERVAL } else { REVALIDATION_RETRY });
        Ok(())
    }

    /// Reads the caller again; false when the database did not answer.
    async fn ask_again(&mut self) -> Result<bool, End> {
        let Ok(turn) = self.app.hub.proofs.acquire().await else { return Err(STOPPING) };
        let asked = self.holder.caller(self.app).await;
        // A peer that does not read what follows must not hold up the turn of other connections.
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

    /// Makes the receiver listen to what is subscribed to now, and nothing else.
    fn tune(&mut self) {
        let types = self.listener.types();
        if types.is_empty() {
            self.receiver = None;
            return;
        }
        let fanout = &self.app.hub.fanout;
        self.receiver
            .get_or_insert_with(|| fanout.receiver())
            .listen_to(self.listener.organization(), &types);
    }

    /// Sends an event and those that wait behind it, in one go.
    async fn deliver_all(&mut self, first: Arc<Published>) -> Result<(), End> {
        let mut frames = Vec::new();
        let mut next = Some(first);
        while let Some(published) = next {
            if self.listener.wants(&published) {
                frames.push(published.frame().map_err(|_| UNWRITABLE)?);
            }
            let has_room = frames.len() < AT_ONCE_MAX;
            next = if has_room { self.receiver.as_mut().and_then(FanoutReceiver::try_next) } else { None };
        }
        self.transmit_all(frames).await
    }

    /// Sends a ping, so that the peer shows that it is alive.
    async fn ping(&mut self) -> Result<(), End> {
        self.pinged_at = Instant::now();
        self.transmit(Message::Ping(Bytes::new())).await?;
        self.is_asked.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn answer(&mut self, text: &str) -> Result<(), End> {
        let frame = match parse(text) {
            Ok(frame) => frame,
            Err(message) => return self.send_error(&message).await,
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
            ClientFrame::Resume { after_seq, organization_id } => {
                let org = organization_id.unwrap_or(self.listener.caller.org_id);
                self.resume(org, after_seq).await
            }
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
        let (reason, patterns) = (denied.reason(), denied.patterns);
        self.send(&ServerFrame::SubscriptionDenied { patterns, reason, denials: denied.denials }).await
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

    /// Sends what the connection missed in an organization, oldest first.
    async fn resume(&mut self, org: OrgId, after_seq: i64) -> Result<(), End> {
        let stop = self.app.tasks.stopping();
        let mut last_seq = after_seq;
        let mut read = 0;
        let truncated = loop {
            if stop.is_cancelled() {
                return Err(STOPPING);
            }
            if read > 0 {
                // A resume can take long, and rights can end meanwhile.
                self.ask_again().await?;
            }
            if self.pinged_at.elapsed() >= PING_INTERVAL {
                self.ping().await?;
            }
            if self.listener.organization().is_some_and(|own| own != org) {
                return self.send_error("events of another organization are not yours to resume").await;
            }
            let types = self.listener.types();
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
        self.send(&ServerFrame::Resumed { organization_id: org, last_seq, truncated }).await
    }

    async fn send_error(&mut self, message: &str) -> Result<(), End> {
        self.send(&ServerFrame::Error { message: message.to_owned() }).await
    }

    async fn send(&mut self, frame: &ServerFrame<'_>) -> Result<(), End> {
        let text = serde_json::to_string(frame).map_err(|_| UNWRITABLE)?;
        self.transmit(Message::Text(text.into())).await
    }

    async fn transmit(&mut self, message: Message) -> Result<(), End> {
        in_time(self.outlet.send(message)).await
    }

    async fn transmit_all(&mut self, frames: Vec<Utf8Bytes>) -> Result<(), End> {
        let outlet = &mut *self.outlet;
        in_time(async {
            for frame in frames {
                outlet.feed(Message::Text(frame)).await?;
            }
            outlet.flush().await
        })
        .await
    }
}

/// Returns the number of the organization's newest event; `None` when the database does not answer.
async fn newest(app: &SharedApp, org: OrgId) -> Option<i64> {
    let mut tx = app.db.single().await.ok()?;
    heddle_store::events::last_seq(&mut tx, org).await.ok()
}

/// Reads events of the subscribed types only; others are neither read nor sent. When no more of these follow, the last
/// number is the newest one.
async fn missed(app: &SharedApp, org: OrgId, after_seq: i64, types: &EventTypes) -> Result<Stretch, Error> {
    let mut tx = app.db.read().await?;
    let newest = heddle_store::events::last_seq(&mut tx, org).await?.max(after_seq);
    if types.is_empty() {
        return Ok(Stretch { events: Vec::new(), last_seq: newest, unknown: None, is_full: false });
    }
    let page = u32::from(RESUME_PAGE);
    let found = heddle_store::events::list(&mut tx, types, org, after_seq, Some(types), page).await?;
    let last_seq = if found.is_full { found.last_seq } else { newest };
    Ok(Stretch { last_seq, ..found })
}

/// Waits for the next event of a receiver; waits without end where there is no receiver.
async fn next(receiver: &mut Option<FanoutReceiver>) -> Result<Arc<Published>, Cut> {
    match receiver {
        Some(receiver) => receiver.next().await,
        None => std::future::pending().await,
    }
}

/// Ticks first when one period is over; what was missed is not made up for.
fn every(period: Duration) -> Interval {
    let mut interval = interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
