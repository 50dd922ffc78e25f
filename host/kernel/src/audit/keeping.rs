//! Keeps the ends of the audit logs up to date, and reports a log that does not continue its known end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use heddle_core::OrgId;
use heddle_store::audit::{self, Head};

use crate::app::{App, SharedApp};
use crate::http::error::Error;

/// Time between two looks at all heads.
const LOOK_INTERVAL: Duration = Duration::from_mins(5);
/// Time between two writes of the heads to the log.
const SAY_INTERVAL: Duration = Duration::from_hours(1);
/// Heads that one statement reads.
const PAGE_ROWS: i64 = 1_000;

/// Looks at all heads from time to time, until the process ends.
pub(crate) async fn keep(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut said = HashMap::new();
    let mut last_said = Instant::now();
    loop {
        let is_time = last_said.elapsed() >= SAY_INTERVAL;
        if is_time {
            last_said = Instant::now();
        }
        look(&app, is_time.then_some(&mut said)).await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
        }
    }
}

/// Keeps the heads as they are at the end of the process, and writes them to the log.
pub(crate) async fn keep_last(app: &App) {
    look(app, Some(&mut HashMap::new())).await;
}

async fn look(app: &App, mut said: Option<&mut HashMap<OrgId, i64>>) {
    if let Err(error) = look_at_all(app, &mut said).await {
        tracing::warn!(error = %error, "ends of audit logs cannot be kept; tried again");
    }
}

async fn look_at_all(app: &App, said: &mut Option<&mut HashMap<OrgId, i64>>) -> Result<(), Error> {
    let mut after = None;
    loop {
        let mut tx = app.db.read().await?;
        let page = audit::heads_behind(&mut tx, after, PAGE_ROWS).await?;
        for head in &page {
            let goes_on = match app.audit_kept.of(head.org_id) {
                // A log that was cut and has grown again has a higher number, and another entry in the kept place.
                Some(known) if head.seq > known.seq => {
                    audit::hash_at(&mut tx, head.org_id, known.seq).await? == Some(known.hash)
                }
                _ => true,
            };
            look_at(app, head, goes_on, said);
        }
        drop(tx);
        match page.last() {
            Some(last) => after = Some(last.org_id),
            None => break,
        }
    }
    app.audit_kept.save(&app.audit_key).map_err(Error::internal)
}

fn look_at(app: &App, head: &Head, goes_on: bool, said: &mut Option<&mut HashMap<OrgId, i64>>) {
    if !goes_on || !head.is_authentic(&app.audit_key) || !app.audit_kept.take(head) {
        tracing::error!(
            organization.id = %head.org_id,
            audit.seq = head.seq,
            "audit log of organization {} was altered in the database: its end, entry {}, is not what was written",
            head.org_id,
            head.seq
        );
    }
    if let Some(said) = said
        && said.insert(head.org_id, head.seq) != Some(head.seq)
    {
        tracing::info!(
            organization.id = %head.org_id,
            audit.seq = head.seq,
            audit.hash = head.hash,
            "audit log of organization {} ends with entry {}, hash {}",
            head.org_id,
            head.seq,
            head.hash
        );
    }
}
