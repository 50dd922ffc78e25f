//! An event that is published: redacted and written once, for all listeners.

use std::sync::OnceLock;

use heddle_core::SiteId;
use heddle_core::event::Event;
use heddle_core::redact::sanitize;
#[cfg(test)]
use heddle_core::{Clock, OrgId, event::EventType};
use heddle_store::events::StoredEvent;
use tungstenite::Utf8Bytes;

use super::frames::ServerFrame;

/// An event that is published, with what decides which callers may see it.
#[derive(Debug)]
pub struct Published {
    pub event: Event,
    pub(crate) site_id: Option<SiteId>,
    frame: OnceLock<Utf8Bytes>,
}

impl From<StoredEvent> for Published {
    fn from(stored: StoredEvent) -> Self {
        let StoredEvent { mut event, site_id, .. } = stored;
        sanitize(&mut event.payload);
        Self::new(event, site_id)
    }
}

impl Published {
    pub(super) fn new(event: Event, site_id: Option<SiteId>) -> Self {
        Self { event, site_id, frame: OnceLock::new() }
    }

    /// Returns the frame that connections are sent: written once for all of them.
    pub(super) fn frame(&self) -> Result<Utf8Bytes, serde_json::Error> {
        if let Some(frame) = self.frame.get() {
            return Ok(frame.clone());
        }
        let frame = serde_json::to_string(&ServerFrame::Event { event: &self.event })?;
        Ok(self.frame.get_or_init(|| frame.into()).clone())
    }
}

/// An event of this type for tests, the first of its organization.
#[cfg(test)]
pub(super) fn sample(org: OrgId, event_type: EventType, site: Option<SiteId>) -> Published {
    let clock = Clock::default();
    let event = Event {
        id: clock.new_id(),
        seq: 1,
        event_type,
        category: event_type.category().to_owned(),
        priority: event_type.priority(),
        organization_id: org,
        occurred_at: clock.now(),
        causation_id: None,
        schema_version: 1,
        payload: serde_json::json!({}),
    };
    Published::new(event, site)
}
