//! The same counters in a Redis, for processes that serve together: one script, one round trip for all limits of a
//! request. The time is the Redis's own, so that all processes agree on it.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

use super::{Limit, Verdict};
use crate::cache::{CacheError, Link};

/// How long a request waits for its verdict.
const ANSWER_LIMIT: Duration = Duration::from_millis(250);
/// What all keys begin with.
const PREFIX: &str = "heddle:limit:";

/// Keys: one counter for each limit. Arguments: requests and milliseconds of each limit.
/// Answers which limit is used up, or 0 and what is left of each. [`super::window`] explains the arithmetic.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local counters, answer = {}, {0}
        for i, key in ipairs(KEYS) do
            local requests, window = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
            local stored = redis.call('HMGET', key, 'bucket', 'current', 'previous')
            local bucket, current, previous = math.floor(now / window), 0, 0
            local passed = bucket - (tonumber(stored[1]) or 0)
            if passed == 0 then
                current, previous = tonumber(stored[2]), tonumber(stored[3])
            elseif passed == 1 then
                previous = tonumber(stored[2])
            end
            local used = previous * (window - now % window) + (current + 1) * window
            if used > requests * window then
                return {i}
            end
            counters[i] = {bucket, current + 1, previous}
            answer[i + 1] = math.floor((requests * window - used) / window)
        end
        for i, key in ipairs(KEYS) do
            local counter = counters[i]
            redis.call('HSET', key, 'bucket', counter[1], 'current', counter[2], 'previous', counter[3])
            redis.call('PEXPIRE', key, 2 * ARGV[2 * i])
        end
        return answer
        ",
    )
});

pub(super) async fn take(link: &Link, limits: &[Limit]) -> Result<Verdict, CacheError> {
    let mut invocation = TAKE.prepare_invoke();
    for limit in limits {
        invocation.key(format!("{PREFIX}{}", limit.key));
        invocation.arg(limit.rate.requests).arg(limit.rate.window_ms);
    }
    // Loads the script when the Redis does not know it, or not any more.
    let run = |mut connection| async move { invocation.invoke_async::<Vec<u32>>(&mut connection).await };
    let mut answer = link.ask(ANSWER_LIMIT, run).await?.into_iter();
    match answer.next().unwrap_or_default() {
        0 => Ok(Verdict::Granted(answer.collect())),
        exceeded => Ok(Verdict::Exceeded(usize::try_from(exceeded - 1).unwrap_or_default())),
    }
}
