//! The socket of one connection: authentication, frames, limits, the end.

use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use tokio::sync::broadcast::error::RecvError;

use super::Published;
use super::frames::{ClientFrame, ServerFrame};
use super::socket::Listener;
use crate::app::SharedApp;
use crate::auth::{Caller, authenticate_token};

const AUTHENTICATION_LIMIT: Duration = Duration::from_secs(10);
const REVALIDATION_INTERVAL: Duration = Duration::from_mins(5);
/// A listener that does not take a frame in this time is dropped.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// Events of one resume.
const RESUME_MAX: u32 = 10_000;
const POLICY: u16 = 1008;
const TRY_AGAIN_LATER: u16 = 1013;

/// Why a connection ends: a close code with its reason.
struct End(u16, &'static str);

/// Serves one connection to its end. `token` came with the upgrade, if one did.
pub(super) async fn serve(
    app: SharedApp,
    mut socket: WebSocket,
    token: Option<String>,
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

async fn run(app: &SharedApp, socket: &mut WebSocket, token: Option<String>) -> End {
    let authenticated = tokio::time::timeout(AUTHENTICATION_LIMIT, authenticate(app, socket, token)).await;
    let (caller, token) = match authenticated {
        Ok(Ok(authenticated)) => authenticated,
        Ok(Err(end)) => return end,
        Err(_) => return End(POLICY, "authentication took longer than 10 s"),
    };
    let user = caller.user_id;
    if !app.hub.admit(user) {
        return End(TRY_AGAIN_LATER, "too many connections");
    }
    let end = listen(app, socket, caller, &token).await;
    app.hub.leave(user);
    end
}

async fn authenticate(
    app: &SharedApp,
    socket: &mut WebSocket,
    token: Option<String>,
) -> Result<(Caller, String), End> {
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
    match authenticate_token(app, &token).await {
        Ok(caller) => Ok((caller, token)),
        Err(_) => Err(End(POLICY, "token is not valid")),
    }
}

async fn listen(app: &SharedApp, socket: &mut WebSocket, caller: Caller, token: &str) -> End {
    let mut events = app.hub.listen();
    let mut listener = Listener::new(caller);
    let mut revalidation =
        tokio::time::interval_at(tokio::time::Instant::now() + REVALIDATION_INTERVAL, REVALIDATION_INTERVAL);
    let stop = app.tasks.stopping();
    let connected = ServerFrame::Connected { available_events: listener.available() };
    if let Err(end) = send(socket, &connected).await {
        return end;
    }
    loop {
        let result = tokio::select! {
            () = stop.cancelled() => return End(1001, "service is stopping"),
            _ = revalidation.tick() => revalidate(app, socket, token).await,
            frame = socket.recv() => match frame {
                Some(Ok(Message::Text(text))) => received(app, socket, &mut listener, &text).await,
                Some(Ok(Message::Binary(_))) => send_error(socket, "frames are JSON text").await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return End(1000, ""),
            },
            event = events.recv() => match event {
                Ok(published) => deliver(socket, &listener, &published).await,
                Err(RecvError::Lagged(_)) => return End(POLICY, "too slow; connect again and resume"),
                Err(RecvError::Closed) => return End(1001, "service is stopping"),
            },
        };
        if let Err(end) = result {
            return end;
        }
    }
}

async fn revalidate(app: &SharedApp, socket: &mut WebSocket, token: &str) -> Result<(), End> {
    if authenticate_token(app, token).await.is_ok() {
        return Ok(());
    }
    send(socket, &ServerFrame::SessionRevoked).await?;
    Err(End(POLICY, "session is revoked"))
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
    text: &str,
) -> Result<(), End> {
    if !listener.may_send(Instant::now()) {
        return Err(End(POLICY, "more than 5 frames per second"));
    }
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
        ClientFrame::SetFilters { site_ids } => {
            let site_ids = listener.set_sites(site_ids);
            send(socket, &ServerFrame::FiltersSet { site_ids }).await
        }
        ClientFrame::Resume { after_seq } => resume(app, socket, listener, after_seq).await,
        ClientFrame::Ping => send(socket, &ServerFrame::Pong { timestamp: app.clock.now() }).await,
        ClientFrame::Auth { .. } => send_error(socket, "connection is authenticated already").await,
    }
}

/// Sends what the connection missed in its own organization, oldest first.
async fn resume(
    app: &SharedApp,
    socket: &mut WebSocket,
    listener: &Listener,
    after_seq: i64,
) -> Result<(), End> {
    let missed = async {
        let mut tx = app.db.read().await?;
        heddle_store::events::list(&mut tx, listener.caller.org_id, after_seq, &[], RESUME_MAX).await
    };
    let Ok(missed) = missed.await else {
        return send_error(socket, "events cannot be read; try again").await;
    };
    let mut last_seq = after_seq;
    for stored in missed {
        last_seq = stored.event.seq;
        deliver(socket, listener, &Published::from(stored)).await?;
    }
    send(socket, &ServerFrame::Resumed { last_seq }).await
}

async fn send_error(socket: &mut WebSocket, message: &str) -> Result<(), End> {
    send(socket, &ServerFrame::Error { message: message.to_owned() }).await
}

async fn send(socket: &mut WebSocket, frame: &ServerFrame<'_>) -> Result<(), End> {
    let text = serde_json::to_string(frame).map_err(|_| End(1011, "frame cannot be written"))?;
    match tokio::time::timeout(SEND_LIMIT, socket.send(Message::Text(text.into()))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End(1000, "")),
        Err(_) => Err(End(POLICY, "too slow; connect again and resume")),
    }
}
