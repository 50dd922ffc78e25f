//! How long a session is used: what the manifest says, and the device where it says less.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use heddle_core::Timestamp;
use heddle_marketplace::SESSION_SECS_MAX;
use heddle_marketplace::manifest::{Renewal, Session, TtlFrom, TtlUnit};
use serde_json::Value;

use super::places;
use crate::egress::wire::Answer;

/// A session ends this long before the device ends it, or a tenth of its life before.
const MARGIN: TimeDelta = TimeDelta::minutes(1);
/// A device that gives a shorter life would be logged in to all the time.
const LIFE_MIN: TimeDelta = TimeDelta::seconds(10);

/// The times of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// When it was logged in.
    pub(super) opened: Timestamp,
    /// When it was logged in or renewed last.
    pub(super) since: Timestamp,
    /// The session is not used after this time.
    pub(super) until: Timestamp,
}

impl Times {
    /// The times of a session that is logged in, or renewed, now. `life` is what the device gives it.
    pub(super) fn from(
        now: Timestamp,
        opened: Timestamp,
        declared: &Session,
        life: Option<TimeDelta>,
    ) -> Self {
        let most = seconds(declared.ttl_s);
        let life = life.map_or(most, |life| (life - (life / 10).min(MARGIN)).max(LIFE_MIN).min(most));
        let mut until = now + life;
        if let Some(renewal) = &declared.renew {
            until = until.min(opened + age_max(renewal));
        }
        Self { opened, since: now, until }
    }

    /// Whether the session is old enough to be renewed, and may be.
    pub(super) fn asks_for(&self, renewal: &Renewal, now: Timestamp) -> bool {
        now >= self.since + seconds(renewal.after_s) && now < self.opened + age_max(renewal)
    }
}

fn age_max(renewal: &Renewal) -> TimeDelta {
    seconds(renewal.max_age_s.unwrap_or(SESSION_SECS_MAX))
}

fn seconds(seconds: u32) -> TimeDelta {
    TimeDelta::seconds(i64::from(seconds))
}

/// The life that an answer gives the session; `None` where it says nothing of use.
pub(super) fn of(
    place: &TtlFrom,
    answer: &Answer,
    body: Option<&Value>,
    now: Timestamp,
) -> Option<TimeDelta> {
    let text = places::value(&place.from, answer, body, &BTreeMap::new())?;
    let number: i64 = text.trim().parse().ok()?;
    // An end is a time of the device's clock, which need not agree with the host's.
    let device_now = || {
        let date = answer.header("date").and_then(|text| DateTime::parse_from_rfc2822(text).ok());
        date.map_or(now, |date| date.to_utc()).timestamp_millis()
    };
    let millis = match place.unit {
        TtlUnit::Seconds => number.checked_mul(1_000)?,
        TtlUnit::Milliseconds => number,
        TtlUnit::AtSeconds => number.checked_mul(1_000)?.checked_sub(device_now())?,
        TtlUnit::AtMilliseconds => number.checked_sub(device_now())?,
    };
    let most = seconds(SESSION_SECS_MAX).num_milliseconds();
    (millis > 0).then(|| TimeDelta::milliseconds(millis.min(most)))
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use serde_json::json;

    use super::*;
    use crate::egress::tests::{answer, manifest};

    fn session(renew: bool) -> Session {
        let mut session = manifest().auth.remove("main").unwrap();
        session.ttl_s = 3_600;
        session.renew = renew.then(|| {
            let renewal = json!({
                "after-s": 1_800, "max-age-s": 5_000, "expect": {"status": [200]},
                "request": {"method": "POST", "path": "/renew", "effect": "session"}
            });
            serde_json::from_value(renewal).unwrap()
        });
        session
    }

    #[track_caller]
    fn life(unit: &str, value: &Value, expected: Option<i64>) {
        let now = DateTime::parse_from_rfc2822("Wed, 25 Nov 2026 10:00:00 GMT").unwrap().to_utc();
        let place = json!({"from": {"json": "/life"}, "unit": unit});
        let place: TtlFrom = serde_json::from_value(place).unwrap();
        let body = json!({"life": value});
        let found = of(&place, &answer(200, &body), Some(&body), now);
        assert_eq!(found.map(|life| life.num_seconds()), expected, "{unit} {value}");
    }

    #[test]
    fn a_life_is_a_number_in_its_unit() {
        life("seconds", &json!(7_200), Some(7_200));
        life("seconds", &json!("90"), Some(90));
        life("milliseconds", &json!(90_000), Some(90));
        // 2026-11-25 10:00:00 UTC and a minute.
        life("at-seconds", &json!(1_795_600_860), Some(60));
        life("at-milliseconds", &json!(1_795_600_860_000_i64), Some(60));
        for nothing in [json!(0), json!(-5), json!("soon"), json!(null), json!(1.5), json!(i64::MIN)] {
            life("seconds", &nothing, None);
            life("at-milliseconds", &nothing, None);
        }
        life("seconds", &json!(i64::MAX), None);
        life("seconds", &json!(i64::MAX / 1_000), Some(i64::from(SESSION_SECS_MAX)));
    }

    #[test]
    fn an_end_is_compared_with_the_device_s_own_clock() {
        let place = json!({"from": {"header": "X-End"}, "unit": "at-seconds"});
        let place: TtlFrom = serde_json::from_value(place).unwrap();
        let mut answer = answer(200, &json!({}));
        answer.headers.push(("x-end".to_owned(), b"1000000600".to_vec()));
        let now = Clock::default().now();
        assert_eq!(of(&place, &answer, None, now), None, "for this host it is long past");
        answer.headers.push(("date".to_owned(), b"Sun, 09 Sep 2001 01:46:40 GMT".to_vec()));
        assert_eq!(of(&place, &answer, None, now), Some(TimeDelta::minutes(10)));
    }

    #[test]
    fn the_device_shortens_a_life_and_never_extends_it() {
        let now = Clock::default().now();
        let used = |life: Option<i64>| {
            let times = Times::from(now, now, &session(false), life.map(TimeDelta::seconds));
            (times.until - now).num_seconds()
        };
        assert_eq!(used(None), 3_600);
        assert_eq!(used(Some(1_000_000)), 3_600);
        assert_eq!(used(Some(1_800)), 1_740);
        assert_eq!(used(Some(100)), 90);
        assert_eq!(used(Some(1)), 10);
    }

    #[test]
    fn renewals_end_with_the_age_of_the_session() {
        let (opened, session) = (Clock::default().now(), session(true));
        let renewal = session.renew.as_ref().unwrap();
        let after = |secs| opened + TimeDelta::seconds(secs);
        let first = Times::from(opened, opened, &session, None);
        assert!(!first.asks_for(renewal, after(1_799)));
        assert!(first.asks_for(renewal, after(1_800)));
        let second = Times::from(after(1_800), opened, &session, None);
        assert!(!second.asks_for(renewal, after(3_599)));
        let third = Times::from(after(3_600), opened, &session, None);
        assert_eq!(third.until, after(5_000));
        assert!(!third.asks_for(renewal, after(5_400)));
    }
}
