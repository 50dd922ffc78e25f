//! The login itself, and its end. Its errors name no secret and no answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::{Apply, ApplyTo, Effect, LoginStep, Request as Declared, Session, When};
use serde_json::Value;

use super::lifetime::Times;
use super::live::{Captures, take_cookies};
use super::template::Values;
use super::{Live, expose, lifetime, matcher, places};
use crate::api::Credential;
use crate::egress::phase::Phase;
use crate::egress::request::{Body, Request, denied};
use crate::egress::wire::{self, Answer, Outgoing};
use crate::egress::{Outbound, budget, credentials, path, phase};

/// The device does not accept the credential.
pub(super) const REFUSED: &str = "login-refused";
/// Bytes of an answer to a login.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(3);

impl Outbound {
    pub(super) async fn log_in(&self, name: &str, declared: &Session) -> Result<Arc<Live>, Fault> {
        let credential = self.credential().await?;
        self.check_shape(name, declared, &credential)?;
        let mut login = Login::default();
        for (n, step) in steps_for(declared, &credential.fields, &self.target.settings)? {
            let values = Values {
                secrets: &credential.fields,
                captures: &login.captures,
                settings: &self.target.settings,
            };
            let request = request(&step.request, &values)?;
            self.pass(name, &format!("login step {}", n + 1), &step.request, &request)?;
            let mut outgoing = Outgoing::of(&request);
            put_headers(&mut outgoing, &step.request, &values)?;
            if declared.cookie_jar {
                outgoing.cookies = login.cookies.clone().into_iter().collect();
            }
            let (route, _paced) = self.login_route().await?;
            let timeout = budget::time_left(self.deadline, None)?;
            let answer =
                wire::exchange(&route, outgoing, timeout, (ANSWER_BYTES_MAX, &self.account.room), false)
                    .await?;
            judge(step, &answer)?;
            take_cookies(&mut login.cookies, &answer);
            login.capture(declared, step, &answer, self.egress.clock.now())?;
        }
        let now = self.egress.clock.now();
        let hidden = self.facts.hidden(&credential);
        let channels = self.facts.manifest.push.values();
        let ways = channels.flat_map(|channel| &channel.ways).filter(|way| way.session == name);
        let carried: Vec<&Apply> = declared.apply.iter().chain(ways.flat_map(|way| &way.apply)).collect();
        let live =
            login.live(declared, &carried, (credential.fields, hidden), self.target.settings.clone(), now);
        for (capture, reason) in &live.withheld {
            tracing::warn!(
                component = self.facts.manifest.id,
                controller.id = %self.target.controller_id,
                session = name,
                "the login's '{capture}' is withheld from the component: {reason}"
            );
        }
        Ok(Arc::new(live))
    }

    /// Refuses a credential that lacks fields of the shape that the session needs.
    fn check_shape(&self, name: &str, declared: &Session, credential: &Credential) -> Result<(), Fault> {
        let shape = declared.credential.as_ref().and_then(|shape| self.facts.manifest.credentials.get(shape));
        let fields: Vec<&str> = credential.fields.iter().map(|(name, _)| name.as_str()).collect();
        match shape.filter(|shape| !shape.is_completed_by(&fields)) {
            None => Ok(()),
            Some(shape) => Err(Fault::new(
                FaultKind::Authentication,
                format!("session '{name}' needs a credential with other fields: {}", shape.in_words()),
            )
            .with_code("credential-incomplete")),
        }
    }

    /// Lets a request of a login or logout through: it reads, or the manifest declares that it changes the
    /// session, which was shown when the package was installed. What changes the session leaves a line in the log.
    ///
    /// The same with and without `ADAPTER_READ_ONLY`: without a session nothing could be read either.
    pub(super) fn pass(
        &self,
        session: &str,
        step: &str,
        declared: &Declared,
        request: &Request,
    ) -> Result<(), Fault> {
        if phase::check(Phase::Read, &self.facts.manifest.reads, request).is_ok() {
            return Ok(());
        }
        match declared.effect {
            // The path as it is declared: filled in, it may hold a secret.
            Some(Effect::Session) => tracing::info!(
                component = self.facts.manifest.id,
                component.version = %self.facts.manifest.version,
                organization.id = %self.target.org_id,
                controller.id = %self.target.controller_id,
                session,
                step,
                method = declared.method,
                path = declared.path,
                "sends a request that changes the session at the device"
            ),
            None => {
                return Err(denied(
                    "login-step",
                    format!(
                        "{step} of session '{session}' ({} {}) may write and does not declare its effect",
                        declared.method, declared.path
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Tells the device that the session is over; whether it listens does not matter.
    pub(super) async fn log_out(&self, name: &str, open: &Live, declared: &Session, logout: &Declared) {
        let answer = self.ask_within((name, "logout"), declared, logout, open, LOGOUT_TIMEOUT).await;
        if let Err(fault) = answer {
            tracing::debug!(controller.id = %self.target.controller_id, "logout did not work: {}", fault.message);
        }
    }

    /// Sends a renewal or a logout within the session, with at most half of the time that the call has left.
    pub(super) async fn ask_within(
        &self,
        (name, step): (&str, &str),
        declared: &Session,
        asked: &Declared,
        open: &Live,
        most: Duration,
    ) -> Result<Answer, Fault> {
        let credential = self.credential().await?;
        let captures = open.captures().values.clone();
        let values = Values { secrets: &credential.fields, captures: &captures, settings: &open.settings };
        let sent = request(asked, &values)?;
        self.pass(name, step, asked, &sent)?;
        let mut outgoing = open.apply(&sent, declared)?;
        put_headers(&mut outgoing, asked, &values)?;
        let (route, _paced) = self.login_route().await?;
        let timeout = (budget::time_left(self.deadline, None)? / 2).min(most);
        wire::exchange(&route, outgoing, timeout, (ANSWER_BYTES_MAX, &self.account.room), false).await
    }
}

pub(super) fn request(declared: &Declared, values: &Values<'_>) -> Result<Request, Fault> {
    let unusable = |what: &str| {
        Fault::new(FaultKind::Generic, format!("the manifest's login has a {what} that cannot be used"))
            .with_code("login-declaration")
    };
    let body = match (&declared.json, &declared.form) {
        (Some(json), _) => Body::Json(values.json(json)?),
        (None, Some(form)) => Body::Form(
            form.iter()
                .map(|(name, value)| Ok((name.clone(), values.text(value)?)))
                .collect::<Result<_, Fault>>()?,
        ),
        (None, None) => Body::None,
    };
    let request = Request {
        method: http::Method::from_bytes(declared.method.as_bytes()).map_err(|_| unusable("method"))?,
        path: values.path(&declared.path)?,
        headers: Vec::new(),
        body,
        timeout: None,
        max_response: None,
    };
    path::check(&request.path).map_err(|_| unusable("path"))?;
    Ok(request)
}

/// Puts in the headers and the Basic authorization that a request declares; they win over those of the session.
pub(super) fn put_headers(
    outgoing: &mut Outgoing,
    declared: &Declared,
    values: &Values<'_>,
) -> Result<(), Fault> {
    if let Some(basic) = &declared.basic {
        credentials::basic(outgoing, &values.text(&basic.username)?, &values.text(&basic.password)?)?;
    }
    for (name, value) in &declared.headers {
        credentials::header(outgoing, name, &values.text(value)?)?;
    }
    Ok(())
}

/// The steps that are for this credential and these settings, with their places among all.
fn steps_for<'s>(
    declared: &'s Session,
    credential: &[(String, Secret)],
    settings: &Value,
) -> Result<Vec<(usize, &'s LoginStep)>, Fault> {
    let holds =
        |step: &LoginStep| step.when.as_ref().is_none_or(|when| when_holds(when, credential, settings));
    let steps: Vec<_> = declared.login.iter().enumerate().filter(|(_, step)| holds(step)).collect();
    if steps.is_empty() && !declared.login.is_empty() {
        return Err(Fault::new(
            FaultKind::Authentication,
            "no step of the login is for what the credential and the settings of the controller have",
        )
        .with_code("credential-incomplete"));
    }
    Ok(steps)
}

pub(in crate::egress) fn when_holds(when: &When, credential: &[(String, Secret)], settings: &Value) -> bool {
    let secret = when.secret.as_ref().is_none_or(|wanted| credential.iter().any(|(name, _)| name == wanted));
    let setting = when.setting.as_ref().is_none_or(|name| {
        let found = settings.get(name).filter(|value| !value.is_null());
        found.is_some_and(|value| when.is.is_empty() || when.is.contains(value))
    });
    secret && setting
}

fn judge(step: &LoginStep, answer: &Answer) -> Result<(), Fault> {
    let body = matcher::json(answer);
    if step.denied.as_ref().is_some_and(|denied| matcher::fits(denied, answer, body.as_ref())) {
        return Err(
            Fault::new(FaultKind::Authentication, "the device refused the credential").with_code(REFUSED)
        );
    }
    if matcher::fits(&step.expect, answer, body.as_ref()) {
        return Ok(());
    }
    let mut fault = Fault::new(
        FaultKind::NotReady,
        format!(
            "the login was answered with status {} in a way that is neither success nor refusal",
            answer.status
        ),
    )
    .with_code("login-unexpected");
    fault.upstream_status = Some(answer.status);
    Err(fault)
}

#[derive(Default)]
struct Login {
    captures: BTreeMap<String, Secret>,
    exposed: Vec<(String, String)>,
    cookies: BTreeMap<String, String>,
    /// The life that the device gave the session; that of the last answer that says one.
    life: Option<TimeDelta>,
}

impl Login {
    fn capture(
        &mut self,
        declared: &Session,
        step: &LoginStep,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let body = matcher::json(answer);
        let life = declared.ttl_from.as_ref().and_then(|from| lifetime::of(from, answer, body.as_ref(), now));
        self.life = life.or(self.life);
        for capture in &step.capture {
            let Some(found) = places::value(&capture.from, answer, body.as_ref(), &self.cookies) else {
                return Err(incomplete("login", &capture.name));
            };
            if capture.expose {
                self.exposed.push((capture.name.clone(), found.clone()));
            }
            self.captures.insert(capture.name.clone(), Secret::new(found));
        }
        Ok(())
    }

    fn live(
        self,
        declared: &Session,
        carried: &[&Apply],
        (mut credential, secrets): (Vec<(String, Secret)>, Vec<Secret>),
        settings: Value,
        now: Timestamp,
    ) -> Live {
        let is_hidden = |name: &str| !self.exposed.iter().any(|(exposed, _)| exposed == name);
        let hidden = self.captures.iter().filter(|(name, _)| is_hidden(name)).map(|(_, s)| s.clone());
        // Also where no jar keeps them: a cookie is what a session is.
        let cookies = self.cookies.values().map(|value| Secret::new(value.as_str()));
        let known: Vec<Secret> = secrets.iter().cloned().chain(hidden).chain(cookies).collect();
        let (mut exposed, mut withheld) = (Vec::new(), Vec::new());
        for (name, value) in self.exposed {
            match expose::refusal(&value, &known) {
                None => exposed.push((name, value)),
                Some(reason) => withheld.push((name, reason)),
            }
        }
        // Only what each request carries of it is kept.
        credential.retain(|(name, _)| carried.iter().any(|apply| names_secret(apply, name)));
        Live {
            times: Times::from(now, now, declared, self.life),
            captures: Arc::new(Mutex::new(Captures::of(self.captures))),
            exposed,
            withheld,
            cookies: Arc::new(Mutex::new(if declared.cookie_jar { self.cookies } else { BTreeMap::new() })),
            settings,
            credential,
            secrets,
            rests_until: Mutex::new(None),
        }
    }
}

fn names_secret(apply: &Apply, name: &str) -> bool {
    let place = format!("{{{{secret.{name}}}}}");
    apply.value.contains(&place) || matches!(&apply.to, ApplyTo::Basic(username) if username.contains(&place))
}

/// An answer that worked, and lacks what it was sent for.
pub(super) fn incomplete(what: &str, name: &str) -> Fault {
    Fault::new(FaultKind::NotReady, format!("the {what}'s answer has no '{name}'"))
        .with_code("login-incomplete")
}
