//! Stored events: a list with filters, read by page or by cursor; a stretch of one organization's numbers; one event.
//!
//! A caller reads what its role and scopes let it read ([`Declared::for_reading`]; the stream's table is narrower), and of its own
//! sites.

use axum::Json;
use axum::extract::State;
use heddle_core::declared::ReadingAccess;
use heddle_core::event::{Event, EventTypes, matches};
use heddle_core::page::{Cursor, CursorPage, Walked};
use heddle_core::{ControllerId, Declared, DeviceId, EventId, OrgId, SiteId, Timestamp};
use heddle_store::StoredEvent;
use heddle_store::events::{self, EventFilter, Numbers};
use serde::Serialize;

use super::patterns;
use super::published::Published;
use super::socket::may_read_without_site;
use crate::app::SharedApp;
use crate::caller::Caller;
use crate::http::conditional::{One, Tag, Tagged, UNEDITED};
use crate::http::error::Error;
use crate::http::extract::{At, Params};
use crate::walk_query;

walk_query! {
    pub(super) struct ListQuery of StoredEvent {
        /// A type, or a pattern such as `device.*`. One that covers no declared type is refused.
        event_type: Option<String>,
        site_id: Option<SiteId>,
        controller_id: Option<ControllerId>,
        device_id: Option<DeviceId>,
        /// From this instant.
        since: Option<Timestamp>,
        /// Before this instant.
        until: Option<Timestamp>,
        /// After this number of one organization, in the order of the numbers; not together with `cursor` or `sort`.
        #[schemars(range(min = 0))]
        after_seq: Option<i64>,
        /// Up to and including this number of one organization, in the order of the numbers; not together with `cursor` or `sort`.
        #[schemars(range(min = 0))]
        until_seq: Option<i64>,
        /// Another organization than the own one; for `super_admin`.
        organization_id: Option<OrgId>,
    }
}

pub(super) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Json<CursorPage<Event>>, Error> {
    let request = query.walk()?;
    let stretch = stretch(&query)?;
    let pattern = query.event_type.as_deref().unwrap_or("*");
    if let Some(message) = patterns::fault(&app.declared().events, pattern) {
        return Err(Error::field("event_type", message));
    }
    let scope = caller.scope();
    if scope.org.is_some() && query.organization_id.is_some_and(|org| org != caller.org_id) {
        return Err(Error::NotFound("organization"));
    }
    let filter = EventFilter {
        // Numbers belong to one organization.
        org: query.organization_id.or(if stretch.is_some() { Some(caller.org_id) } else { scope.org }),
        sites: scope.sites,
        types: readable(&app.declared(), &caller, pattern),
        site_id: query.site_id,
        controller_id: query.controller_id,
        device_id: query.device_id,
        since: query.since,
        until: query.until,
    };
    let mut tx = app.db.read().await?;
    let walked = match stretch {
        Some(stretch) => events::walk_numbers(&mut tx, &filter, stretch, request).await?,
        None => events::walk(&mut tx, &filter, request).await?,
    };
    let shown = Walked {
        items: walked.items.into_iter().map(|stored| Published::from(stored).event).collect(),
        total: walked.total,
        total_is_capped: walked.total_is_capped,
        has_more: walked.has_more,
    };
    let cursor = |event: &Event| Cursor { occurred_at: event.occurred_at, seq: event.seq, id: event.id.0 };
    let mut page = request.of(shown, cursor);
    if stretch.is_some() {
        // A client continues after the last number, which stays valid when rows before it are forgotten.
        page.next_cursor = None;
    }
    Ok(Json(page))
}

/// Which numbers are asked for, if any are.
fn stretch(query: &ListQuery) -> Result<Option<Numbers>, Error> {
    if query.after_seq.is_none() && query.until_seq.is_none() {
        return Ok(None);
    }
    for (field, number) in [("after_seq", query.after_seq), ("until_seq", query.until_seq)] {
        if number.is_some_and(|number| number < 0) {
            return Err(Error::field(field, "numbers of events count from 1; send 0 for all"));
        }
    }
    if query.sort.is_some() {
        return Err(Error::field(
            "sort",
            "sort is along the time; with after_seq or until_seq, events come in the order of their numbers",
        ));
    }
    if query.cursor.is_some() {
        return Err(Error::field(
            "cursor",
            "cursor leads to older events; with after_seq, go on behind the seq of the last one",
        ));
    }
    Ok(Some(Numbers { after: query.after_seq.unwrap_or(0), until: query.until_seq }))
}

/// One event, as clients see it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct View(Event);

impl Tagged for View {
    fn tag(&self) -> Result<Tag, Error> {
        Ok(Tag::of(self.0.id, UNEDITED))
    }
}

pub(super) async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<EventId>,
) -> Result<One<View>, Error> {
    let scope = caller.scope();
    let mut tx = app.db.single().await?;
    let found = events::find(&mut tx, &scope, &readable(&app.declared(), &caller, "*"), id).await?;
    found.map(|stored| One(View(Published::from(stored).event))).ok_or(Error::NotFound("event"))
}

/// The declared types that the pattern covers and the caller may read.
fn readable(declared: &Declared, caller: &Caller, pattern: &str) -> EventTypes {
    declared.events.only(|event_type| {
        let may_read = match declared.for_reading(event_type.as_str()) {
            ReadingAccess::Permission(permission) => caller.holds(permission),
            ReadingAccess::Role(role) => caller.require_unscoped_role(role).is_ok(),
        };
        matches(pattern, event_type.as_str()) && may_read && may_read_without_site(caller, event_type)
    })
}

#[cfg(test)]
mod tests {
    use heddle_core::Role;
    use heddle_core::event::EventType;

    use super::*;

    #[track_caller]
    fn check(role: Role, pattern: &str, expected: &[&str]) {
        let declared = crate::testing::declared();
        let types = readable(&declared, &crate::testing::caller(role), pattern);
        let names: Vec<&str> = types.iter().map(EventType::as_str).collect();
        assert_eq!(names, expected, "{role} {pattern}");
    }

    #[test]
    fn a_caller_reads_what_its_role_lets_it() {
        let declared = crate::testing::declared().events;
        check(Role::SuperAdmin, "*", &declared.iter().map(EventType::as_str).collect::<Vec<_>>());
        check(Role::OrgAdmin, "ingest.*", &["ingest.external"]);
        check(Role::OrgAdmin, "user.created", &["user.created"]);
        check(Role::SiteAdmin, "ingest.*", &[]);
        check(Role::Guest, "controller.*", &[]);
        check(Role::Guest, "device.offline", &["device.offline"]);
        check(Role::Viewer, "controller.sync.*", &["controller.sync.finished"]);
        check(Role::SuperAdmin, "dev*", &[]);
    }
}
