//! Calls between processes: a process that committed an event says so, and the others look at once.
//!
//! A call says nothing but "look": events are read from the database, in order and once, whether a call came or not. So
//! a lost call costs half a second, and so does every event while the cache is unavailable.

use std::time::Duration;

use futures::StreamExt as _;
use redis::aio::{PubSubSink, PubSubStream};

use crate::app::SharedApp;
use crate::cache::{Cache, Link};

/// The channel on which processes call each other. Other services that share the cache hear it too, and look without a
/// result.
const CHANNEL: &str = "heddle:events";
/// How long sending a call may take.
const CALL_LIMIT: Duration = Duration::from_secs(1);
/// How often a connection on which nothing comes is tested.
const TRY_PERIOD: Duration = Duration::from_secs(5);
/// Pause before the next attempt to subscribe again.
const RETRY_PERIOD: Duration = Duration::from_millis(500);

/// Makes this process's calls until the service stops. Without a shared cache there is no other process to call.
pub(crate) async fn announce(app: SharedApp) {
    let Cache::Redis(link) = &app.cache else { return };
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.hub.wakes.wanted.notified() => {}
        }
        let name = app.hub.wakes.name.as_str();
        let call = |mut connection| async move {
            redis::cmd("PUBLISH").arg(CHANNEL).arg(name).query_async::<i64>(&mut connection).await
        };
        // The link itself reports when it is lost.
        link.ask(CALL_LIMIT, call).await.ok();
    }
}

/// Hears the others' calls until the service stops.
pub(crate) async fn hear(app: SharedApp) {
    let Cache::Redis(link) = &app.cache else { return };
    let stop = app.tasks.stopping();
    loop {
        let reason = tokio::select! {
            () = stop.cancelled() => return,
            reason = hear_on(&app, link) => reason,
        };
        app.hub.wakes.lose(&reason);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY_PERIOD) => {}
        }
    }
}

/// Listens on one connection to its end. Returns why it ended.
async fn hear_on(app: &SharedApp, link: &Link) -> String {
    let (mut sink, mut calls): (PubSubSink, PubSubStream) = match link.subscribe(CHANNEL).await {
        Ok(subscribed) => subscribed,
        Err(error) => return error.to_string(),
    };
    app.hub.wakes.regain();
    // For calls that were made meanwhile.
    app.hub.look();
    let own = app.hub.wakes.name.as_bytes();
    loop {
        tokio::select! {
            call = calls.next() => match call {
                // This process has looked already.
                Some(call) if call.get_payload_bytes() == own => {}
                Some(_) => app.hub.look(),
                None => return "the connection ended".to_owned(),
            },
            () = tokio::time::sleep(TRY_PERIOD) => {
                match tokio::time::timeout(CALL_LIMIT, sink.ping::<redis::Value>()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return error.to_string(),
                    Err(_) => return format!("no answer within {} ms", CALL_LIMIT.as_millis()),
                }
            }
        }
    }
}
