//! The time of commands: those of one user run one after the other, and each is cut after a minute.

use std::time::Duration;

use heddle_lab::{Answer, Instant};

use crate::device::Router;
use crate::refusal::Refusal;

/// Seconds after which a command is cut.
const CUT_SECS: u32 = 60;

/// Serves a request behind those of its user that still run. `serve` gives the answer and the seconds that it takes;
/// without a number it never ends.
///
/// A request whose turn comes too late is not executed.
pub(crate) fn paced(
    router: &mut Router,
    user: &str,
    serve: impl FnOnce(&mut Router) -> (Answer, Option<u64>),
) -> Answer {
    let now = Instant::now();
    let limit = router.settings.second * CUT_SECS;
    let waits = router.busy.get(user).map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
    if waits >= limit {
        return Refusal::Cut.answer().after(limit);
    }
    let (answer, secs) = serve(router);
    let takes = secs.and_then(|secs| u32::try_from(secs).ok()).map(|secs| router.settings.second * secs);
    let (answer, takes) = match takes.filter(|takes| *takes < limit) {
        Some(takes) => (answer, takes),
        None => (Refusal::Cut.answer(), limit),
    };
    if !takes.is_zero() {
        router.busy.insert(user.to_owned(), now + waits + takes);
    }
    // A client that gives up does not end the command.
    if (waits + takes).is_zero() { answer } else { answer.after((waits + takes).min(limit)) }
}
