//! Without a channel a controller is read as if it had none.

use serde_json::Value;

use super::Telling;
use crate::support::until;
use crate::vendors::practice::Vendor;

async fn a_channel_that_is_refused_says_so_and_the_interval_goes_on(vendor: &'static dyn Vendor) {
    let Some(mut telling) = Telling::start(vendor, "2").await else { return };
    let Some((refusal, expected)) = telling.refusal() else { return };
    telling.lab.device.refuse(refusal);
    let reason = telling.stands("polling").await;
    assert!(reason.as_str().is_some_and(|reason| reason.contains(expected)), "{reason}");
    telling.edit(0);
    telling.event_of(0).await;
    assert_eq!(telling.push().await["reason"], reason, "it is still refused");
    // A person who has put it right need not wait until it is tried again.
    telling.lab.device.mend();
    telling.switch(false).await;
    until("it is switched off", async || telling.push().await["reason"] != reason).await;
    telling.switch(true).await;
    assert_eq!(telling.stands("live").await, Value::Null);
}

test_each_vendor!(a_channel_that_is_refused_says_so_and_the_interval_goes_on);
