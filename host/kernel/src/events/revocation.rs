//! Whether a connection may still serve its caller: the end of a session, or a change of what a user may do, is seen
//! within a second.
//!
//! Every such change is audited in its own transaction, so the audit log says what happened and to which user, also
//! when another process did it. One look serves the whole process; a connection reads its caller again only when an
//! entry is about it.

use std::collections::HashMap;
use std::time::Duration;

use heddle_core::OrgId;
use heddle_store::audit::{self, Done};

use super::connection_slots::Named;
use crate::app::SharedApp;
use crate::caller::Credential;
use crate::http::error::Error;

/// Time to the next look if this process did not change any access.
const INTERVAL: Duration = Duration::from_millis(500);
/// Entries of one read.
const BATCH: u32 = 500;

/// Looks until the service stops.
pub(crate) async fn watch(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut seen = HashMap::new();
    loop {
        if let Err(error) = look(&app, &mut seen).await {
            tracing::warn!(error = %error, "changes of access cannot be seen; tried again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.callers.forgotten() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn look(app: &SharedApp, seen: &mut HashMap<OrgId, i64>) -> Result<(), Error> {
    let slots = &app.hub.slots;
    let organizations = slots.organizations();
    seen.retain(|org, _| organizations.contains(org));
    if organizations.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.read().await?;
    let wanted: Vec<OrgId> = organizations.into_iter().collect();
    for (org, head) in audit::heads(&mut tx, &wanted).await? {
        let Some(mut at) = seen.get(&org).copied() else {
            // Changes between the proof of the first of these connections and now were not seen.
            slots.recheck(|named| named.org == org);
            seen.insert(org, head);
            continue;
        };
        while at < head {
            let done = audit::done_behind(&mut tx, org, at, BATCH).await?;
            let Some(last) = done.last() else { break };
            at = last.seq;
            slots.recheck(|named| named.org == org && done.iter().any(|done| is_about(done, named)));
        }
        seen.insert(org, head.max(at));
    }
    Ok(())
}

/// Whether what was done may have changed the caller of the slot, or what the caller may do.
fn is_about(done: &Done, named: &Named) -> bool {
    let is_target = |id| done.target_id == Some(id);
    match done.target_type.as_str() {
        "user" => is_target(named.user.0),
        "session" => matches!(named.credential, Credential::Session(id) if is_target(id.0)),
        "oauth2_grant" => matches!(named.credential, Credential::App(id) if is_target(id.0)),
        "oauth2_app" => matches!(named.credential, Credential::App(_)),
        "organization" => true,
        _ => done.action.starts_with("site_access."),
    }
}
