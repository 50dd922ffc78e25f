//! Prolongs a session that is still good, in place of a login.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::{Renewal, Session};

use super::lifetime::{self, Times};
use super::live::{Live, take_cookies};
use super::login::incomplete;
use super::{matcher, places};
use crate::egress::Outbound;
use crate::egress::wire::Answer;

/// How long a renewal may take: a login has to follow in the same call where it does not work.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time between a renewal that did not work, where the session is used on, and the next one.
pub(super) const PAUSE: TimeDelta = TimeDelta::seconds(30);

impl Outbound {
    /// Returns the session as it is after its renewal. Where that does not work, `open` stays as it is.
    pub(super) async fn prolong(
        &self,
        name: &str,
        (declared, renewal): (&Session, &Renewal),
        open: &Live,
    ) -> Result<Arc<Live>, Fault> {
        let answer = self.ask_within((name, "renewal"), declared, &renewal.request, open, TIMEOUT).await?;
        open.prolonged(declared, renewal, &answer, self.egress.clock.now()).map(Arc::new)
    }
}

impl Live {
    fn prolonged(
        &self,
        declared: &Session,
        renewal: &Renewal,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let body = matcher::json(answer);
        if !matcher::fits(&renewal.expect, answer, body.as_ref()) {
            let mut fault = Fault::new(
                FaultKind::Authentication,
                format!("the renewal was answered with status {}", answer.status),
            )
            .with_code("renewal-refused");
            fault.upstream_status = Some(answer.status);
            return Err(fault);
        }
        // Held until the end: what other answers bring meanwhile is not lost. Without success nothing of this answer stays.
        let (mut known_captures, mut jar) = (self.captures(), self.jar());
        let (mut captures, mut cookies) = (known_captures.clone(), jar.clone());
        take_cookies(&mut cookies, answer);
        for (name, value) in places::replacing(&declared.refresh, answer, body.as_ref()) {
            captures.replace(name, value);
        }
        for capture in &renewal.capture {
            let found = places::value(&capture.from, answer, body.as_ref(), &cookies);
            let found = found.ok_or_else(|| incomplete("renewal", &capture.name))?;
            captures.replace(capture.name.clone(), Secret::new(found));
        }
        let life = declared.ttl_from.as_ref().and_then(|from| lifetime::of(from, answer, body.as_ref(), now));
        *known_captures = captures;
        if declared.cookie_jar {
            *jar = cookies;
        }
        Ok(Self {
            captures: Arc::clone(&self.captures),
            exposed: self.exposed.clone(),
            withheld: self.withheld.clone(),
            cookies: Arc::clone(&self.cookies),
            settings: self.settings.clone(),
            credential: self.credential.clone(),
            secrets: self.secrets.clone(),
            times: Times::from(now, self.times.opened, declared, life),
            rests_until: Mutex::new(None),
        })
    }
}
