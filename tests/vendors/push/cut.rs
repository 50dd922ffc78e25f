//! A connection that breaks loses nothing.

use serde_json::Value;

use super::Telling;
use crate::support::until;
use crate::vendors::practice::Vendor;

async fn what_changed_while_a_channel_was_cut_is_found(vendor: &'static dyn Vendor) {
    let Some(mut telling) = Telling::start(vendor, "3600").await else { return };
    // Of a controller that opens its channels the service sees no connection: what it cannot send, it sends again.
    let Some(_) = telling.refusal() else { return };
    telling.lab.device.cut();
    until("the channel is lost", async || telling.push().await["state"] != "live").await;
    telling.edit(0);
    telling.lab.device.mend();
    telling.event_of(0).await;
    assert_eq!(telling.stands("live").await, Value::Null);
    // It tells as before.
    telling.edit(1);
    telling.event_of(1).await;
}

test_each_vendor!(what_changed_while_a_channel_was_cut_is_found);
