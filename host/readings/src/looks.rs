//! When the queue of readings is looked at: at an interval, when the bell rings, and when what messages ask for becomes due.

use std::time::Duration;

use heddle_core::Timestamp;
use heddle_kernel::app::SharedApp;
use heddle_store::push::wanted;
use tokio::sync::Notify;

/// How often the queue is looked at without a wake-up.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two looks that start nothing: many rings that come together are one look.
pub(super) const REST: Duration = Duration::from_millis(50);

/// Waits for the next look behind one of that time, but at least for so long.
pub(super) async fn next(app: &SharedApp, bell: &Notify, looked_at: Timestamp, rest: Duration) {
    let due_at = next_due(app, looked_at).await;
    wait(bell, rest, until(due_at, app.clock.now())).await;
}

/// When the next of what messages ask for becomes due. Where the database does not say it, the interval goes on.
async fn next_due(app: &SharedApp, looked_at: Timestamp) -> Option<Timestamp> {
    let mut tx = app.db.single().await.ok()?;
    wanted::next_due(&mut tx, looked_at).await.ok()?
}

fn until(due_at: Option<Timestamp>, now: Timestamp) -> Duration {
    let due_in = due_at.map(|due_at| (due_at - now).to_std().unwrap_or_default());
    due_in.unwrap_or(INTERVAL).min(INTERVAL)
}

async fn wait(bell: &Notify, rest: Duration, until: Duration) {
    let due = tokio::time::sleep(until);
    tokio::time::sleep(rest).await;
    tokio::select! {
        () = bell.notified() => {}
        () = due => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use chrono::TimeDelta;
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn the_queue_is_looked_at_when_something_becomes_due() {
        let now = Clock::default().now();
        let in_millis = |millis| until(Some(now + TimeDelta::milliseconds(millis)), now);
        assert_eq!(until(None, now), INTERVAL);
        assert_eq!(in_millis(300), Duration::from_millis(300));
        assert_eq!(in_millis(5_000), INTERVAL);
        assert_eq!(in_millis(-20), Duration::ZERO, "it became due during the look");
    }

    #[tokio::test]
    async fn many_rings_are_one_look() {
        let (bell, begun) = (Notify::new(), Instant::now());
        bell.notify_one();
        wait(&bell, REST, INTERVAL).await;
        assert!(begun.elapsed() >= REST);
        wait(&bell, Duration::ZERO, REST).await;
        assert!(begun.elapsed() >= REST * 2, "nobody rang");
    }
}
