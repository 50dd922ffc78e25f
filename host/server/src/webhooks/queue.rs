//! Follows the events and queues what is for whom.

use heddle_core::{OrgId, Timestamp};
use heddle_store::Tx;
use heddle_store::events::StoredEvent;
use heddle_store::webhooks::deliveries::{self, NewDelivery};
use heddle_store::webhooks::{self, Listening};
use serde_json::json;

use super::rights::is_for;
use crate::app::{App, SharedApp};
use crate::events::Published;
use crate::events::consumer::{Consumer, Took};
use crate::http::error::Error;

pub(crate) struct Queue;

impl Consumer for Queue {
    const NAME: &'static str = "webhooks";

    async fn wants(
        &self,
        _: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<bool, Error> {
        let listening = webhooks::listening(tx, org).await?;
        Ok(listening.iter().any(|one| events.iter().any(|stored| is_new_for(one, stored))))
    }

    async fn take(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<Took, Error> {
        let now = app.clock.now();
        let mut new = Vec::new();
        for one in webhooks::listening(tx, org).await? {
            let wanted = events.iter().filter(|stored| is_new_for(&one, stored));
            new.extend(wanted.map(|stored| of(app, &one, stored, now)));
        }
        deliveries::insert(tx, &new).await?;
        Ok(Took::All)
    }

    fn taken(&self, app: &SharedApp) {
        app.webhooks.wake();
    }
}

/// What happened before the subscription is not for it.
fn is_new_for(one: &Listening, stored: &StoredEvent) -> bool {
    stored.event.seq > one.after_seq && is_for(one, stored)
}

pub(super) fn of(app: &App, to: &Listening, stored: &StoredEvent, now: Timestamp) -> NewDelivery {
    let event = Published::from(stored.clone()).event;
    NewDelivery {
        id: app.clock.new_id(),
        org_id: event.organization_id,
        subscription_id: to.id,
        event_id: event.id,
        event_type: event.event_type.to_string(),
        seq: event.seq,
        device_id: stored.device_id,
        event: json!(event),
        now,
    }
}
