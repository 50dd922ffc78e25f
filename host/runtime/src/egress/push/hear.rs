//! A channel while it is open: opens its connections, and tells what their messages ask for.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use futures::stream::{SelectAll, select_all};
use heddle_marketplace::push::{Transport, Way};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::Wanted;
use super::ended::Ended;
use super::incoming::{Incoming, Messages, Parsed};
use super::limits::{GAP_EVERY, OPENING_MAX};
use super::open::{Got, Opener};
use super::places::Taken;
use super::rate::{Bucket, Throttle};
use super::rules::{self, Memory};
use super::told::{Counters, Told};
use super::{each, lines, socket, watch};

/// All connections of a channel, and their places.
type Connections = (SelectAll<Messages>, Vec<Taken>);

/// Where a channel tells what it hears.
pub(super) struct Ears {
    pub(super) told: mpsc::Sender<Result<Told, Ended>>,
    pub(super) counters: Arc<Counters>,
    /// Fires when the adapter is taken out of service.
    pub(super) cut: CancellationToken,
}

/// Opens a channel, says whether it is open, and hears it until it ends.
pub(super) async fn run(opener: Arc<Opener>, ears: Ears, is_open: oneshot::Sender<Result<(), Ended>>) {
    let connected = tokio::select! {
        connected = connect(&opener) => connected,
        () = ears.cut.cancelled() => Err(Ended::OutOfService),
    };
    let (mut messages, places) = match connected {
        Ok(connected) => connected,
        Err(ended) => {
            is_open.send(Err(ended)).ok();
            return;
        }
    };
    if is_open.send(Ok(())).is_err() {
        // The caller is gone, and the connections are dropped.
        return;
    }
    let mut hearing = Hearing::new(opener, &ears);
    let ended = hearing.until_end(&mut messages).await;
    drop((messages, places));
    ears.told.send(Err(ended)).await.ok();
}

/// Opens all connections of a channel. A controller that is slow at each of them holds its turn no longer than a dead one.
async fn connect(opener: &Arc<Opener>) -> Result<Connections, Ended> {
    // The turn comes first: what waits for one has no place that others could use.
    let _turn = opener.turn().await?;
    let first = opener.take_place()?;
    timeout(OPENING_MAX, open_all(opener, first)).await.unwrap_or_else(|_| Err(Ended::late()))
}

async fn open_all(opener: &Arc<Opener>, first: Taken) -> Result<Connections, Ended> {
    let mut places = vec![first];
    let way = opener.way().await?;
    let throttle = Arc::new(Throttle::default());
    let Some(declared) = &opener.channel().each else {
        let only = open(opener, way, None, throttle).await?;
        return Ok((select_all([only]), places));
    };
    let objects = each::objects(opener, way, declared).await?;
    let mut all = vec![each::changes(Arc::clone(opener), declared.clone(), objects.clone())];
    for (number, object) in objects.iter().enumerate() {
        if number > 0 {
            places.push(opener.take_place()?);
        }
        all.push(open(opener, way, Some(object), Arc::clone(&throttle)).await?);
    }
    Ok((select_all(all), places))
}

/// Opens one connection.
async fn open(
    opener: &Arc<Opener>,
    way: &Way,
    object: Option<&str>,
    throttle: Arc<Throttle>,
) -> Result<Messages, Ended> {
    let path = opener.path(&way.path, object);
    match opener.channel().transport() {
        Some(Transport::Socket(declared)) => {
            let Got::Open(response) = opener.ask(way, Wanted::Upgrade, &path).await? else {
                return Err(Ended::NotThat);
            };
            let upgraded = response.upgrade().await.map_err(|_| Ended::Broken)?;
            Ok(socket::messages(upgraded, declared, throttle).await)
        }
        Some(Transport::Stream(declared)) => {
            let Got::Open(response) = opener.ask(way, Wanted::of(declared), &path).await? else {
                return Err(Ended::NotThat);
            };
            Ok(lines::messages(Arc::clone(opener), (declared.clone(), path), response, throttle))
        }
        Some(Transport::Watch(declared)) => watch::messages(Arc::clone(opener), declared.clone(), path).await,
        Some(Transport::Hook(_)) | None => Err(Ended::NotThat),
    }
}

struct Hearing<'e> {
    opener: Arc<Opener>,
    ears: &'e Ears,
    bucket: Bucket,
    memory: Memory,
    /// No gap is told before, however many messages are missing.
    quiet_until: Option<Instant>,
    /// Messages are missing, and that is not told yet.
    has_gap: bool,
}

impl<'e> Hearing<'e> {
    fn new(opener: Arc<Opener>, ears: &'e Ears) -> Self {
        let (bucket, memory) = (Bucket::new(Instant::now()), Memory::default());
        Self { opener, ears, bucket, memory, quiet_until: None, has_gap: false }
    }

    async fn until_end(&mut self, messages: &mut SelectAll<Messages>) -> Ended {
        loop {
            let gap_at = self.quiet_until.filter(|_| self.has_gap);
            let gap_is_due = async {
                match gap_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let heard = tokio::select! {
                () = self.ears.cut.cancelled() => Err(Ended::OutOfService),
                () = gap_is_due => self.missed().await,
                next = messages.next() => match next {
                    Some(Ok(incoming)) => self.hear(incoming).await,
                    Some(Err(ended)) => Err(ended),
                    None => Err(Ended::Closed),
                },
            };
            if let Err(ended) = heard {
                return ended;
            }
        }
    }

    async fn hear(&mut self, incoming: Incoming) -> Result<(), Ended> {
        let counters = &self.ears.counters;
        if incoming == Incoming::Gap {
            return self.tell(rules::gap(self.opener.channel(), &self.opener.place)).await;
        }
        if !self.bucket.takes(Instant::now()) {
            counters.dropped.fetch_add(1, Ordering::Relaxed);
            return self.missed().await;
        }
        let bytes = incoming.bytes();
        let (opener, mut memory) = (Arc::clone(&self.opener), std::mem::take(&mut self.memory));
        let work = move || {
            let told = match incoming.parse() {
                Parsed::Messages(messages) => Ok(all_wanted(&opener, &messages, &mut memory)),
                other => Err(other),
            };
            (memory, told)
        };
        let done = self.opener.egress.apart.run(self.opener.target.org_id, bytes, work).await;
        // The work panicked, or the process stops.
        let (memory, told) = done.map_err(|_| Ended::OutOfService)?;
        self.memory = memory;
        let count = match &told {
            Ok(told) if told.is_empty() => &counters.ignored,
            Ok(_) => &counters.read,
            Err(_) => &counters.dropped,
        };
        count.fetch_add(1, Ordering::Relaxed);
        match told {
            Ok(told) => {
                for told in told {
                    self.tell(told).await?;
                }
                Ok(())
            }
            // It could have said anything.
            Err(Parsed::TooMuch) => self.missed().await,
            Err(_) => Ok(()),
        }
    }

    /// Messages are missing: tells so, now or when the last time is long enough ago.
    async fn missed(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        self.has_gap = self.quiet_until.is_some_and(|until| until > now);
        if self.has_gap {
            return Ok(());
        }
        self.quiet_until = Some(now + GAP_EVERY);
        self.tell(rules::gap(self.opener.channel(), &self.opener.place)).await
    }

    async fn tell(&self, told: Told) -> Result<(), Ended> {
        tokio::select! {
            // Without a listener this ends, whatever it ends with.
            sent = self.ears.told.send(Ok(told)) => sent.map_err(|_| Ended::Closed),
            () = self.ears.cut.cancelled() => Err(Ended::OutOfService),
        }
    }
}

/// What messages ask for that came at once, each thing once.
fn all_wanted(opener: &Opener, messages: &[Value], memory: &mut Memory) -> Vec<Told> {
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    for message in messages {
        for told in rules::wanted(opener.channel(), &opener.place, message, memory) {
            if seen.insert((told.rule, told.site.clone())) {
                all.push(told);
            }
        }
    }
    all
}
