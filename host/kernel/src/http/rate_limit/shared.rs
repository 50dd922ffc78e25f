//! The same logs in a Redis, for processes that serve together: one script, one round trip for all limits of a
//! request. The time is the Redis's own, so that all processes agree on it.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

use super::limiter::{Limit, Question, Verdict};
use crate::cache::{CacheError, Link};

/// How long a request waits for its verdict.
const ANSWER_LIMIT: Duration = Duration::from_millis(250);
/// Prefix of all keys. It differs from the prefix of earlier versions, whose counters have another form.
const PREFIX: &str = "heddle:window:";

/// Does what [`super::memory`] does, with the logs of [`super::window`].
static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));

pub(super) async fn ask(link: &Link, question: Question, limits: &[Limit]) -> Result<Verdict, CacheError> {
    let mut invocation = TAKE.prepare_invoke();
    for limit in limits {
        invocation.key(format!("{PREFIX}{}", limit.key));
        invocation.arg(limit.rate.requests).arg(limit.rate.window_ms).arg(limit.rate.group());
    }
    invocation.arg(u8::from(question == Question::Take));
    // Loads the script when the Redis does not know it, or no longer knows it.
    let run = |mut connection| async move { invocation.invoke_async::<Vec<u32>>(&mut connection).await };
    let mut answer = link.ask(ANSWER_LIMIT, run).await?.into_iter();
    match answer.next().unwrap_or_default() {
        0 => Ok(Verdict::Granted(answer.collect())),
        exceeded => Ok(Verdict::Exceeded(usize::try_from(exceeded - 1).unwrap_or_default())),
    }
}
