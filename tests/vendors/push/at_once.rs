//! An edit at a controller becomes an event, although the next reading of all is far away.

use std::time::{Duration, Instant};

use super::Telling;
use crate::vendors::practice::Vendor;

/// An edit is an event within this time, however busy the machine is. The next reading of all is an hour away.
const LIMIT: Duration = Duration::from_secs(30);
const EDITS: usize = 5;
/// Pause between two edits: readings for messages rest in between, and a device that gets a new configuration tells so twice.
const PAUSE: Duration = Duration::from_secs(3);

async fn what_a_controller_tells_is_an_event_within_seconds(vendor: &'static dyn Vendor) {
    let Some(mut telling) = Telling::start(vendor, "3600").await else { return };
    let mut took = Vec::new();
    for number in 0..EDITS {
        tokio::time::sleep(PAUSE).await;
        telling.settled().await;
        let began = Instant::now();
        telling.edit(number);
        let event = tokio::time::timeout(LIMIT, telling.event_of(number)).await;
        took.push(began.elapsed());
        assert!(event.is_ok(), "{}: no event of edit {number}: {took:?}", vendor.id());
    }
    eprintln!("{}: edits were events after {took:?}", vendor.id());
}

test_each_vendor!(what_a_controller_tells_is_an_event_within_seconds);
