//! An answer that does not end. Where the manifest says so, the next stream is opened before the old one ends.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use heddle_marketplace::push::Stream;
use tokio::time::{Instant, sleep_until};

use super::answer::Wanted;
use super::decode::Decoder;
use super::ended::Ended;
use super::incoming::{Incoming, Messages};
use super::open::{Got, Opener};
use super::rate::Throttle;

/// How long an old stream is still read when the next one is open: what it has sent may still be under way.
const LINGER: Duration = Duration::from_secs(1);

/// One answer.
struct Reader {
    response: reqwest::Response,
    decoder: Decoder,
    throttle: Arc<Throttle>,
    /// No more is read before.
    paused_until: Option<Instant>,
    /// Reading was paused since this stream became the old one: it may have sent more than was read.
    is_behind: bool,
}

impl Reader {
    /// Waits for bytes; false when the answer has ended. Dropping the future loses nothing.
    async fn fill(&mut self) -> Result<bool, Ended> {
        if let Some(until) = self.paused_until {
            sleep_until(until).await;
            self.paused_until = None;
        }
        let Some(chunk) = self.response.chunk().await.map_err(|_| Ended::Broken)? else { return Ok(false) };
        self.paused_until = self.throttle.take(chunk.len(), Instant::now());
        self.is_behind |= self.paused_until.is_some();
        self.decoder.put(&chunk);
        Ok(true)
    }
}

/// A stream with those that follow it.
struct Lines {
    opener: Arc<Opener>,
    declared: Stream,
    path: String,
    throttle: Arc<Throttle>,
    current: Reader,
    /// The one before, until this time.
    old: Option<(Reader, Instant)>,
    next: Option<BoxFuture<'static, Result<reqwest::Response, Ended>>>,
    renew_at: Option<Instant>,
    silent_at: Option<Instant>,
    /// The current one has ended, and the next one is not open yet.
    is_over: bool,
}

/// The messages of a stream that is open.
pub(super) fn messages(
    opener: Arc<Opener>,
    (declared, path): (Stream, String),
    response: reqwest::Response,
    throttle: Arc<Throttle>,
) -> Messages {
    let current = reader(&declared, response, &throttle);
    let mut lines = Lines {
        opener,
        declared,
        path,
        throttle,
        current,
        old: None,
        next: None,
        renew_at: None,
        silent_at: None,
        is_over: false,
    };
    lines.wind();
    let next = |lines: Option<Lines>| async {
        let mut lines = lines?;
        match lines.next().await {
            Ok(incoming) => Some((Ok(incoming), Some(lines))),
            Err(ended) => Some((Err(ended), None)),
        }
    };
    stream::unfold(Some(lines), next).boxed()
}

fn reader(declared: &Stream, response: reqwest::Response, throttle: &Arc<Throttle>) -> Reader {
    let decoder = Decoder::new(declared.format);
    Reader { response, decoder, throttle: Arc::clone(throttle), paused_until: None, is_behind: false }
}

impl Lines {
    /// Counts the times of a stream that has just been opened.
    fn wind(&mut self) {
        let in_secs = |secs: Option<u32>| secs.map(|secs| Instant::now() + Duration::from_secs(secs.into()));
        self.renew_at = in_secs(self.declared.renew_s);
        self.silent_at = in_secs(self.declared.silence_s);
    }

    async fn next(&mut self) -> Result<Incoming, Ended> {
        loop {
            if let Some(message) = self.current.decoder.pull()? {
                return Ok(message);
            }
            if let Some((old, _)) = &mut self.old
                && let Ok(Some(message)) = old.decoder.pull()
            {
                return Ok(message);
            }
            if let Some(gap) = self.step().await? {
                return Ok(gap);
            }
        }
    }

    /// Waits until something happens. Answers a gap where messages may be missing.
    async fn step(&mut self) -> Result<Option<Incoming>, Ended> {
        let Self { current, old, next, is_over, renew_at, silent_at, .. } = self;
        let (is_over_now, has_next) = (*is_over, next.is_some());
        let (renew, silent) = (*renew_at, *silent_at);
        let linger = old.as_ref().map(|(_, until)| *until);
        let of_old = async {
            match old {
                Some((old, _)) => old.fill().await,
                None => std::future::pending().await,
            }
        };
        let opened = async {
            match next {
                Some(next) => next.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            filled = current.fill(), if !is_over_now => {
                let is_alive = filled?;
                if is_alive {
                    self.silent_at = self.declared.silence_s.map(|secs| Instant::now() + Duration::from_secs(secs.into()));
                } else if has_next {
                    self.is_over = true;
                } else {
                    return Err(Ended::Closed);
                }
            }
            filled = of_old => match filled {
                Ok(true) => {}
                // It has ended by itself, and was read to its end.
                Ok(false) => self.old = None,
                Err(_) => return Ok(self.leave_old()),
            },
            response = opened => return Ok(self.renewed(response?)),
            () = at(linger) => return Ok(self.leave_old()),
            () = at(renew), if !has_next => self.next = Some(self.open()),
            () = at(silent), if !is_over_now => {
                return Err(Ended::Silent { secs: self.declared.silence_s.unwrap_or_default() });
            }
        }
        Ok(None)
    }

    fn open(&self) -> BoxFuture<'static, Result<reqwest::Response, Ended>> {
        let (opener, path, wanted) =
            (Arc::clone(&self.opener), self.path.clone(), Wanted::of(&self.declared));
        // It has its place already, and the lane and the pace of the controller bound it. A turn would let channels of others
        // that are slow to open end one that is healthy.
        async move {
            let way = opener.way().await?;
            match opener.ask(way, wanted, &path).await? {
                Got::Open(response) => Ok(response),
                Got::Document(_) => Err(Ended::NotThat),
            }
        }
        .boxed()
    }

    /// Goes over to the next stream.
    fn renewed(&mut self, response: reqwest::Response) -> Option<Incoming> {
        let next = reader(&self.declared, response, &self.throttle);
        let mut old = std::mem::replace(&mut self.current, next);
        old.is_behind = old.paused_until.is_some();
        let was_over = std::mem::replace(&mut self.is_over, false);
        self.old = (!was_over).then(|| (old, Instant::now() + LINGER));
        self.next = None;
        self.wind();
        was_over.then_some(Incoming::Gap)
    }

    /// Reads no more of the old stream. That is a gap where it was not read as fast as it came.
    fn leave_old(&mut self) -> Option<Incoming> {
        self.old.take().filter(|(old, _)| old.is_behind).map(|_| Incoming::Gap)
    }
}

/// Waits until this time. `None` never comes.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
