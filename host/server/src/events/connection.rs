//! The socket of one connection: authentication, frames, limits, the end.

use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use heddle_core::SiteId;
use heddle_core::secret::Secret;
use heddle_store::events::Stretch;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::Published;
use super::frames::{ClientFrame, ServerFrame};
use super::socket::Listener;
use crate::app::SharedApp;
use crate::auth::{Caller, Identity, identify, recheck};
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
const RESUME_PAGE: u16 = 500;
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;
const TRY_AGAIN_LATER: u16 = 1013;

/// Why a connection ends: a close code with its reason.
struct End(u16, &'static str);

const STOPPING: End = End(GOING_AWAY, "service is stopping");
const FULL: End = End(TRY_AGAIN_LATER, "too many connections");

/// Serves one connection to its end. `token` came with the upgrade, if one did.
pub(super) async fn serve(
    app: SharedApp,
    mut socket: WebSocket,
    token: Option<Secret>,
    origin_is_allowed: bool,
) {
    let end = if origin_is_allowed {
        run(&app, &mut socket, token).await
    } else {
        End(POLICY, "origin not allowed")
    };
    let frame = CloseFrame { code: end.0, reason: Utf8Bytes::from_static(end.1) };
    let closing = socket.send(Message::Close(Some(frame)));
    // A peer that is gone cannot be told so.
    let _ = tokio::time::timeout(SEND_LIMIT, closing).await;
}

async fn run(app: &SharedApp, socket: &mut WebSocket, token: Option<Secret>) -> End {
    // Before anything is known of the peer: who does not authenticate takes a place, too.
    let Some(mut place) = app.hub.places.take() else { return FULL };
    let authenticated = tokio::time::timeout(AUTHENTICATION_LIMIT, authenticate(app, socket, token)).await;
    let (identity, caller) = match authenticated {
        Ok(Ok(authenticated)) => authenticated,
        Ok(Err(end)) => return end,
        Err(_) => return End(POLICY, "authentication took longer than 10 s"),
    };
    if !place.name(caller.user_id) {
        return FULL;
    }
    listen(app, socket, identity, caller).await
}

async fn authenticate(
    app: &SharedApp,
    socket: &mut WebSocket,
    token: Option<Secret>,
) -> Result<(Identity, Caller), End> {
    let token = match token {
        Some(token) => token,
        None => match socket.recv().await {
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(ClientFrame::Auth { token }) => token,
                _ => return Err(End(POLICY, "first frame must be auth with a token")),
            },
            _ => return Err(End(POLICY, "first frame must be auth with a token")),
        },
    };
    let proved = async {
        let identity = identify(app, token.expose())?;
        Ok((identity, recheck(app, identity).await?))
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

async fn listen(app: &SharedApp, socket: &mut WebSocket, identity: Identity, caller: Caller) -> End {
    let mut events = app.hub.listen();
    let mut listener = Listener::new(caller, Instant::now());
    let mut revalidation = every(REVALIDATION_INTERVAL);
    let mut ping = every(PING_INTERVAL);
    let stop = app.tasks.stopping();
    let connected = ServerFrame::Connected { available_events: listener.available() };
    if let Err(end) = send(socket, &connected).await {
        return end;
    }
    loop {
        let result = tokio::select! {
            () = stop.cancelled() => return STOPPING,
            _ = revalidation.tick() => match revalidate(app, socket, &mut listener, identity).await {
                Ok(next) => {
                    revalidation.reset_after(next);
                    Ok(())
                }
                Err(end) => Err(end),
            },
            _ = ping.tick() => if listener.is_silent(Instant::now()) {
                Err(End(POLICY, "nothing came for 60 s"))
            } else {
                transmit(socket, Message::Ping(Vec::new().into())).await
            },
            message = socket.recv() => match message {
                Some(Ok(message)) => received(app, socket, &mut listener, message).await,
                Some(Err(_)) | None => return End(NORMAL, ""),
            },
            event = events.recv() => match event {
                Ok(published) => deliver(socket, &listener, &published).await,
                Err(RecvError::Lagged(_)) => return End(POLICY, "too slow; connect again and resume"),
                Err(RecvError::Closed) => return STOPPING,
            },
        };
        if let Err(end) = result {
            return end;
        }
    }
}

/// Ticks first when one period is over; what was missed is not made up for.
fn every(period: Duration) -> Interval {
    let mut interval = interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Asks the database again who is listening, and answers when to ask next.
///
/// Not the token: it proved who connected, and is shorter-lived than a connection.
async fn revalidate(
    app: &SharedApp,
    socket: &mut WebSocket,
    listener: &mut Listener,
    identity: Identity,
) -> Result<Duration, End> {
    match recheck(app, identity).await {
        Ok(caller) => {
            if let Some(ended) = listener.renew(caller) {
                let frame =
                    ServerFrame::SubscriptionDenied { patterns: ended.patterns, reason: ended.reason };
                send(socket, &frame).await?;
            }
            Ok(REVALIDATION_INTERVAL)
        }
        Err(error) if may_pass(&error) => {
            tracing::warn!(error = %error, "a listener's session cannot be checked; tried again");
            Ok(REVALIDATION_RETRY)
        }
        Err(_) => {
            send(socket, &ServerFrame::SessionRevoked).await?;
            Err(End(POLICY, "session is revoked"))
        }
    }
}

async fn deliver(socket: &mut WebSocket, listener: &Listener, published: &Published) -> Result<(), End> {
    if listener.wants(published) {
        send(socket, &ServerFrame::Event { event: &published.event }).await?;
    }
    Ok(())
}

async fn received(
    app: &SharedApp,
    socket: &mut WebSocket,
    listener: &mut Listener,
    message: Message,
) -> Result<(), End> {
    // A pong answers our own ping.
    if !matches!(message, Message::Pong(_) | Message::Close(_)) && !listener.may_send(Instant::now()) {
        return Err(End(POLICY, "more than 5 frames per second"));
    }
    let result = match message {
        Message::Text(text) => answer(app, socket, listener, &text).await,
        Message::Binary(_) => send_error(socket, "frames are JSON text").await,
        // The protocol's answer to a ping is sent below us.
        Message::Ping(_) | Message::Pong(_) => Ok(()),
        Message::Close(_) => Err(End(NORMAL, "")),
    };
    // After the answer: while we were busy sending, silence is not the peer's.
    listener.heard(Instant::now());
    result
}

async fn answer(
    app: &SharedApp,
    socket: &mut WebSocket,
    listener: &mut Listener,
    text: &str,
) -> Result<(), End> {
    let Ok(frame) = serde_json::from_str(text) else {
        let known = "frame is not one of subscribe, unsubscribe, set_filters, resume, ping";
        return send_error(socket, known).await;
    };
    match frame {
        ClientFrame::Subscribe { subscriptions } => {
            if let Some(denied) = listener.subscribe(subscriptions) {
                let frame =
                    ServerFrame::SubscriptionDenied { patterns: denied.patterns, reason: denied.reason };
                send(socket, &frame).await?;
            }
            send(socket, &ServerFrame::Subscribed { subscriptions: listener.subscriptions() }).await
        }
        ClientFrame::Unsubscribe { subscriptions } => {
            listener.unsubscribe(&subscriptions);
            send(socket, &ServerFrame::Unsubscribed { subscriptions: listener.subscriptions() }).await
        }
        ClientFrame::SetFilters { site_ids } => set_filters(app, socket, listener, &site_ids).await,
        ClientFrame::Resume { after_seq } => resume(app, socket, listener, after_seq).await,
        ClientFrame::Ping => send(socket, &ServerFrame::Pong { timestamp: app.clock.now() }).await,
        ClientFrame::Auth { .. } => send_error(socket, "connection is authenticated already").await,
    }
}

/// Narrows to the sites that the caller can read, or lifts the filter; unknown sites are left out silently.
async fn set_filters(
    app: &SharedApp,
    socket: &mut WebSocket,
    listener: &mut Listener,
    site_ids: &[SiteId],
) -> Result<(), End> {
    if site_ids.is_empty() {
        listener.set_sites(None);
        return send(socket, &ServerFrame::FiltersSet { site_ids: Vec::new() }).await;
    }
    let visible = async {
        let mut tx = app.db.read().await?;
        heddle_store::sites::visible(&mut tx, &listener.caller.scope(), site_ids).await
    };
    let Ok(site_ids) = visible.await else {
        return send_error(socket, "sites cannot be read; try again").await;
    };
    listener.set_sites(Some(site_ids.clone()));
    send(socket, &ServerFrame::FiltersSet { site_ids }).await
}

/// Sends what the connection missed in its own organization, oldest first.
async fn resume(
    app: &SharedApp,
    socket: &mut WebSocket,
    listener: &Listener,
    after_seq: i64,
) -> Result<(), End> {
    let stop = app.tasks.stopping();
    let mut last_seq = after_seq;
    let mut read = 0;
    let truncated = loop {
        if stop.is_cancelled() {
            return Err(STOPPING);
        }
        let Ok(page) = missed(app, listener, last_seq).await else {
            return send_error(socket, "events cannot be read; try again").await;
        };
        read += page.events.len();
        last_seq = page.last_seq;
        for stored in page.events {
            deliver(socket, listener, &Published::from(stored)).await?;
        }
        if !page.is_full || read >= RESUME_MAX {
            break page.is_full;
        }
    };
    send(socket, &ServerFrame::Resumed { last_seq, truncated }).await
}

async fn missed(app: &SharedApp, listener: &Listener, after_seq: i64) -> Result<Stretch, Error> {
    let mut tx = app.db.read().await?;
    let page = u32::from(RESUME_PAGE);
    Ok(heddle_store::events::list(&mut tx, listener.caller.org_id, after_seq, &[], page).await?)
}

async fn send_error(socket: &mut WebSocket, message: &str) -> Result<(), End> {
    send(socket, &ServerFrame::Error { message: message.to_owned() }).await
}

async fn send(socket: &mut WebSocket, frame: &ServerFrame<'_>) -> Result<(), End> {
    let text = serde_json::to_string(frame).map_err(|_| End(1011, "frame cannot be written"))?;
    transmit(socket, Message::Text(text.into())).await
}

async fn transmit(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    match tokio::time::timeout(SEND_LIMIT, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End(NORMAL, "")),
        Err(_) => Err(End(POLICY, "too slow; connect again and resume")),
    }
}
