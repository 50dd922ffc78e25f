//! One channel at one place: opened, listened to, and opened again when it ends.
//!
//! First it is open, then everything that it could have told is asked for: what happened before is found by that reading, what
//! happens behind comes as a message.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_inventory::adapters::call_for;
use heddle_marketplace::push::Channel;
use heddle_runtime::{Ended, Listening, MessageCounts, Place, Whose};

use crate::backoff::Backoff;
use crate::gather::Heard;
use crate::keeper::Context;
use crate::plan::{Connection, site_ref};

/// How often messages are counted that ask for nothing.
const COUNT_EVERY: Duration = Duration::from_secs(10);

/// Keeps a channel open, for as long as it is polled.
pub(crate) async fn keep(context: &Context, at: usize, connection: &Connection) {
    let Some(channel) = context.adapter.manifest().push.get(&connection.channel) else { return };
    let mut backoff = Backoff::default();
    tokio::time::sleep(context.pause).await;
    loop {
        let (ended, open_for) = match open(context, connection).await {
            Ok(listening) => {
                let opened = Instant::now();
                (hear(context, at, (connection, channel), listening).await, Some(opened.elapsed()))
            }
            Err(ended) => (ended, None),
        };
        if let Ended::NoPlace { whose: whose @ (Whose::Process | Whose::Organization), .. } = ended {
            context.finds_no_place(whose, ended.to_string());
        }
        let spread = context.spread(at);
        let wait = backoff.after(&ended, open_for, Instant::now(), spread);
        context.board.lost(at, &ended.to_string(), wait.is_given_up, context.app.clock.now());
        tokio::time::sleep(wait.time).await;
    }
}

async fn open(context: &Context, connection: &Connection) -> Result<Listening, Ended> {
    let target = &context.target;
    // What the row says of the address or the certificate cannot be read: only another setting resolves it.
    let call = call_for(target, &format!("push-{}", target.id))
        .map_err(|_| Ended::Denied("the address of the controller cannot be used".to_owned()))?;
    let opened = context.adapter.listen(&call, &connection.channel, connection.place.clone()).await;
    let outcome = opened.as_ref().map_or_else(Ended::as_str, |_| "open");
    context.measures().opening(&target.vendor, outcome);
    opened
}

/// Takes what an open channel tells until it ends; returns why.
async fn hear(
    context: &Context,
    at: usize,
    (connection, channel): (&Connection, &Channel),
    mut listening: Listening,
) -> Ended {
    let settle = TimeDelta::milliseconds(channel.settle_ms().into());
    context.board.opened(at, context.app.clock.now());
    let whole = match &connection.place {
        Place::Controller => "",
        Place::Site(site_ref) => site_ref,
    };
    context.gap(Heard { channel: at, settle, site_ref: whole }, channel, context.app.clock.now());
    let mut counted = MessageCounts::default();
    loop {
        let next = tokio::time::timeout(COUNT_EVERY, listening.next()).await;
        let counts = listening.counts();
        context.measures().messages(&context.target.vendor, counted, counts);
        counted = counts;
        match next {
            Ok(Ok(told)) => {
                if let Some(site_ref) = site_ref(&told.site, &context.sites) {
                    context.told(Heard { channel: at, settle, site_ref: &site_ref }, &told);
                }
            }
            Ok(Err(ended)) => return ended,
            Err(_elapsed) => {}
        }
    }
}
