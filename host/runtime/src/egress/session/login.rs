//! The login itself, and its end. Its errors name no secret and no answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::{
    Apply, ApplyTo, CaptureFrom, Effect, LoginStep, Request as Declared, Session,
};
use serde_json::Value;

use super::template::Values;
use super::{Live, expose, matcher, take_cookies};
use crate::egress::phase::Phase;
use crate::egress::request::{Body, Request, denied};
use crate::egress::wire::{self, Answer, Outgoing};
use crate::egress::{Outbound, budget, path, phase};

/// The device does not accept the credential.
pub(super) const REFUSED: &str = "login-refused";
/// Bytes of an answer to a login.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(3);

impl Outbound {
    pub(super) async fn log_in(&self, name: &str, declared: &Session) -> Result<Arc<Live>, Fault> {
        let credential = self.credential().await?;
        let mut login = Login { captures: BTreeMap::new(), exposed: Vec::new(), cookies: BTreeMap::new() };
        for (n, step) in declared.login.iter().enumerate() {
            let values = Values {
                secrets: &credential.fields,
                captures: &login.captures,
                settings: &self.target.settings,
            };
            let request = request(&step.request, &values)?;
            self.pass(name, &format!("login step {}", n + 1), &step.request, &request)?;
            let mut outgoing = Outgoing::of(&request);
            if declared.cookie_jar {
                outgoing.cookies = login.cookies.clone().into_iter().collect();
            }
            let timeout = budget::time_left(self.deadline, None)?;
            let route = self.route().await?;
            let answer =
                wire::exchange(&route, outgoing, timeout, (ANSWER_BYTES_MAX, &self.room), false).await?;
            judge(step, &answer)?;
            take_cookies(&mut login.cookies, &answer);
            login.capture(step, &answer)?;
        }
        let live = login.live(declared, credential.fields, self.target.settings.clone());
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

    /// Lets a request of a login or logout through: it reads, or the manifest declares that it changes the
    /// session, which was shown when the package was installed. What changes the session leaves a line in the log.
    ///
    /// The same with and without `ADAPTER_READ_ONLY`: without a session nothing could be read either.
    fn pass(&self, session: &str, step: &str, declared: &Declared, request: &Request) -> Result<(), Fault> {
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
        let values = Values { secrets: &[], captures: &open.captures, settings: &open.settings };
        let work = async {
            let request = request(logout, &values)?;
            self.pass(name, "logout", logout, &request)?;
            let outgoing = open.apply(&request, declared)?;
            let route = self.route().await?;
            wire::exchange(&route, outgoing, LOGOUT_TIMEOUT, (ANSWER_BYTES_MAX, &self.room), false).await
        };
        if let Err(fault) = work.await {
            tracing::debug!(controller.id = %self.target.controller_id, "logout did not work: {}", fault.message);
        }
    }
}

fn request(declared: &Declared, values: &Values<'_>) -> Result<Request, Fault> {
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

struct Login {
    captures: BTreeMap<String, Secret>,
    exposed: Vec<(String, String)>,
    cookies: BTreeMap<String, String>,
}

impl Login {
    fn capture(&mut self, step: &LoginStep, answer: &Answer) -> Result<(), Fault> {
        let body = matcher::json(answer);
        for capture in &step.capture {
            let found = match &capture.from {
                CaptureFrom::Json(pointer) => body.as_ref().and_then(|body| text_at(body, pointer)),
                CaptureFrom::Header(name) => answer.header(&name.to_ascii_lowercase()).map(str::to_owned),
                CaptureFrom::Cookie(name) => self.cookies.get(name).cloned(),
            };
            let Some(found) = found.filter(|found| !found.is_empty()) else {
                return Err(Fault::new(
                    FaultKind::NotReady,
                    format!("the login's answer has no '{}'", capture.name),
                )
                .with_code("login-incomplete"));
            };
            if capture.expose {
                self.exposed.push((capture.name.clone(), found.clone()));
            }
            self.captures.insert(capture.name.clone(), Secret::new(found));
        }
        Ok(())
    }

    fn live(self, declared: &Session, mut credential: Vec<(String, Secret)>, settings: Value) -> Live {
        // A user name is no secret: tasks and owners are called by it.
        let fields = credential.iter().filter(|(name, _)| crate::api::is_secret_field(name));
        let mut secrets: Vec<Secret> = fields.map(|(_, secret)| secret.clone()).collect();
        let is_hidden = |name: &str| !self.exposed.iter().any(|(exposed, _)| exposed == name);
        secrets.extend(self.captures.iter().filter(|(name, _)| is_hidden(name)).map(|(_, s)| s.clone()));
        // Also where no jar keeps them: a cookie is what a session is.
        let cookies = self.cookies.values().map(|value| Secret::new(value.as_str()));
        let known: Vec<Secret> = secrets.iter().cloned().chain(cookies).collect();
        let (mut exposed, mut withheld) = (Vec::new(), Vec::new());
        for (name, value) in self.exposed {
            match expose::refusal(&value, &known) {
                None => exposed.push((name, value)),
                Some(reason) => {
                    secrets.push(Secret::new(value));
                    withheld.push((name, reason));
                }
            }
        }
        // Only what each request carries of it is kept.
        credential.retain(|(name, _)| declared.apply.iter().any(|apply| names_secret(apply, name)));
        Live {
            until: Instant::now() + Duration::from_secs(u64::from(declared.ttl_s)),
            captures: self.captures,
            exposed,
            withheld,
            cookies: Mutex::new(if declared.cookie_jar { self.cookies } else { BTreeMap::new() }),
            settings,
            credential,
            secrets,
        }
    }
}

fn names_secret(apply: &Apply, name: &str) -> bool {
    let place = format!("{{{{secret.{name}}}}}");
    apply.value.contains(&place) || matches!(&apply.to, ApplyTo::Basic(username) if username.contains(&place))
}

/// A text or a number; a batch answers with its first element that has it.
fn text_at(body: &Value, pointer: &str) -> Option<String> {
    let found = body
        .pointer(pointer)
        .or_else(|| body.as_array()?.iter().find_map(|element| element.pointer(pointer)))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
