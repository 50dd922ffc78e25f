//! Forgets what need not be kept: old events, sessions that ended, processes that are gone.
//!
//! One process does it for all, once an hour, a bounded number of rows at a
//! time. The audit log is never trimmed.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::webhook::DeliveryState;
use heddle_core::{OrgId, Timestamp};
use heddle_store::{
    Tx, events, idempotency, notices, oauth2, organizations, password_resets, processes, runs, sessions, sso,
    unknown_logins, webhooks::deliveries,
};

use crate::app::SharedApp;
use crate::events::keeping::event_retention_days;
use crate::http::error::Error;

/// How often it is looked whether it is time.
const INTERVAL: Duration = Duration::from_mins(10);
/// Before the first look, so that a start is not slowed down.
const START_DELAY: Duration = Duration::from_secs(30);
/// Name of the duty among those of all processes.
const DUTY: &str = "retention";
const EVERY: TimeDelta = TimeDelta::hours(1);
/// The longest that one round takes; the next goes on.
const ROUND_LIMIT: Duration = Duration::from_mins(30);
/// Rows that one transaction forgets.
const BATCH: u32 = 1_000;
const SESSION_DAYS: i64 = 30;
const PROCESS_DAYS: i64 = 7;
/// As long as a request with an `Idempotency-Key` may be sent again.
const KEYED_ANSWER_DAYS: i64 = 1;
/// After the links have expired.
const PASSWORD_RESET_DAYS: i64 = 1;
/// Long enough that nobody waits for it, to see whose failures are forgotten.
const UNKNOWN_LOGIN_DAYS: i64 = 90;
const NOTICE_DAYS: i64 = 30;
/// Runs of Connections, after they ended.
const RUN_DAYS: i64 = 30;
/// Codes, tokens and grants of apps, after they expired.
const APP_DAYS: i64 = 1;
const DELIVERED_DAYS: i64 = 7;
/// Long enough that a receiver can be mended and what it missed sent again.
const DEAD_DELIVERY_DAYS: i64 = 30;

pub(crate) async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut nap = START_DELAY;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(nap) => {}
        }
        nap = INTERVAL;
        match round_if_due(&app).await {
            Ok(Some(forgotten)) => tracing::info!(rows = forgotten, "retention forgot {forgotten} rows"),
            Ok(None) => {}
            Err(error) => tracing::warn!(error = %error, "retention did not end; tried again later"),
        }
    }
}

/// One round, unless a process did one within the hour; answers how many rows it forgot.
pub async fn round_if_due(app: &SharedApp) -> Result<Option<u64>, Error> {
    let (owner, now) = (app.membership.term()?.id, app.clock.now());
    let mut tx = app.db.write().await?;
    let is_ours = processes::take_duty(&mut tx, DUTY, owner, now, EVERY).await?;
    tx.commit().await?;
    if is_ours { round(app, now).await.map(Some) } else { Ok(None) }
}

/// What is forgotten in batches.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Events(OrgId),
    Sessions,
    SpentTokens,
    SpentChallenges,
    Processes,
    KeyedAnswers,
    AppTokens,
    AppGrants,
    PasswordResets,
    UnknownLogins,
    SsoAttempts,
    Deliveries(DeliveryState),
    AbandonedDeliveries,
    /// Not forgotten: put in their places.
    StrayDeliveries,
    Notices,
    Runs,
}

impl Kind {
    async fn forget(self, tx: &mut Tx, before: Timestamp) -> heddle_store::Result<u64> {
        match self {
            Kind::Events(org) => events::trim(tx, org, before, BATCH).await,
            Kind::Sessions => sessions::trim(tx, before, BATCH).await,
            Kind::SpentTokens => sessions::trim_spent(tx, before, BATCH).await,
            Kind::SpentChallenges => sessions::trim_challenges(tx, before, BATCH).await,
            Kind::Processes => processes::trim(tx, before, BATCH).await,
            Kind::AppTokens => oauth2::trim(tx, before, BATCH).await,
            Kind::AppGrants => oauth2::trim_grants(tx, before, BATCH).await,
            Kind::KeyedAnswers => idempotency::trim(tx, before, BATCH).await,
            Kind::PasswordResets => password_resets::trim(tx, before, BATCH).await,
            Kind::UnknownLogins => unknown_logins::trim(tx, before, BATCH).await,
            Kind::Notices => notices::trim(tx, before, BATCH).await,
            Kind::Runs => runs::trim(tx, before, BATCH).await,
            Kind::SsoAttempts => sso::trim_attempts(tx, before, BATCH).await,
            Kind::Deliveries(state) => deliveries::trim(tx, state, before, BATCH).await,
            Kind::AbandonedDeliveries => deliveries::trim_abandoned(tx, before, BATCH).await,
            Kind::StrayDeliveries => deliveries::mend(tx, before, BATCH).await,
        }
    }
}

async fn round(app: &SharedApp, now: Timestamp) -> Result<u64, Error> {
    let started = Instant::now();
    let mut tx = app.db.read().await?;
    let settings = organizations::settings(&mut tx).await?;
    drop(tx);
    let mut kinds = vec![
        (Kind::StrayDeliveries, 0),
        (Kind::Sessions, SESSION_DAYS),
        (Kind::SpentTokens, SESSION_DAYS),
        (Kind::Processes, PROCESS_DAYS),
        (Kind::KeyedAnswers, KEYED_ANSWER_DAYS),
        (Kind::AppTokens, APP_DAYS),
        (Kind::AppGrants, APP_DAYS),
        (Kind::PasswordResets, PASSWORD_RESET_DAYS),
        (Kind::Notices, NOTICE_DAYS),
        (Kind::UnknownLogins, UNKNOWN_LOGIN_DAYS),
        (Kind::Runs, RUN_DAYS),
        // They say themselves when they end.
        (Kind::SsoAttempts, 0),
        (Kind::SpentChallenges, 0),
        (Kind::Deliveries(DeliveryState::Delivered), DELIVERED_DAYS),
        (Kind::Deliveries(DeliveryState::Dead), DEAD_DELIVERY_DAYS),
        (Kind::AbandonedDeliveries, DEAD_DELIVERY_DAYS),
    ];
    kinds.extend(settings.iter().map(|(org, settings)| (Kind::Events(*org), event_retention_days(settings))));
    let mut forgotten = 0;
    for (kind, days) in kinds {
        let before = now - TimeDelta::days(days);
        loop {
            if app.tasks.stopping().is_cancelled() || started.elapsed() > ROUND_LIMIT {
                return Ok(forgotten);
            }
            // Each batch is a transaction of its own: nobody waits long for it.
            let mut tx = app.db.write().await?;
            let rows = kind.forget(&mut tx, before).await?;
            tx.commit().await?;
            forgotten += rows;
            if rows < u64::from(BATCH) {
                break;
            }
        }
    }
    Ok(forgotten)
}
