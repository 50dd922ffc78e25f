//! The two surfaces: who is let in, how often, and the HTTP form of an outcome.

use heddle_lab::{Answer, Context, Request};
use serde_json::{Value, json};

use crate::controller::Omada;
use crate::outcome::{Failure, NO_CONTROLLER, Outcome, SIGNED_OUT, TOO_MANY, envelope};
use crate::session::SessionEnd;

impl Omada {
    pub(crate) fn open_api(&mut self, request: &Request, context: &mut Context) -> Answer {
        if context.fault("token_expired", request).is_some() {
            self.sessions.expire_tokens();
        }
        let is_of_user = match self.sessions.admit(request, self.now) {
            Ok(is_of_user) => is_of_user,
            Err(failure) => return Answer::json(failure.status, &failure.to_json()),
        };
        let id = request.path.split('/').nth(3).unwrap_or_default();
        if id != self.omadac_id && id != "msp" {
            // The one answer without a content type.
            let mut answer = Answer::status(200);
            answer.body = Failure::new(NO_CONTROLLER).to_json().to_string().into_bytes();
            return answer;
        }
        if self.is_over_rate() {
            return Answer::json(429, &Failure::new(TOO_MANY).to_json());
        }
        let outcome = self.dispatch(request, is_of_user, context);
        answer_of(outcome, &request.path)
    }

    fn is_over_rate(&mut self) -> bool {
        let Some(limit) = self.rate_limit else { return false };
        while self.recent.front().is_some_and(|at| at + 1000 <= self.now) {
            self.recent.pop_front();
        }
        let is_over = self.recent.len() >= limit;
        if !is_over {
            self.recent.push_back(self.now);
        }
        is_over
    }

    pub(crate) fn web(&mut self, request: &Request, context: &mut Context) -> Answer {
        if context.fault("session_ended", request).is_some() {
            self.sessions.end_web_sessions();
        }
        let mut parts = request.path.trim_start_matches('/').splitn(2, "/api/v2/");
        if parts.next() != Some(self.omadac_id.as_str()) {
            return Answer::json(200, &Failure::new(NO_CONTROLLER).to_json());
        }
        let path = parts.next().unwrap_or_default();
        if path == "login" {
            return self.web_login(request);
        }
        if !self.sessions.is_signed_in(request, self.now) {
            return self.signed_out(path);
        }
        let outcome = match path {
            "loginStatus" => Ok(json!({"login": true})),
            "logout" => {
                self.sessions.log_out(request);
                Ok(Value::Null)
            }
            "users/current" => Ok(self.current_user()),
            _ => self.dispatch(request, true, context),
        };
        answer_of(outcome, &request.path)
    }

    fn web_login(&mut self, request: &Request) -> Answer {
        let body = request.json().unwrap_or(Value::Null);
        let text = |name: &str| body[name].as_str().unwrap_or_default();
        match self.sessions.log_in(text("username"), text("password"), self.now) {
            Ok((session, token)) => {
                let cookie = format!("TPOMADA_SESSIONID={session}; Path=/; HttpOnly; Secure");
                Answer::json(200, &envelope(&Ok(json!({"token": token})))).with_header("set-cookie", &cookie)
            }
            Err(failure) => Answer::json(200, &failure.to_json()),
        }
    }

    fn signed_out(&self, path: &str) -> Answer {
        match self.session_end {
            _ if path == "loginStatus" => Answer::json(200, &Failure::new(SIGNED_OUT).to_json()),
            SessionEnd::Html => Answer::html(200, LOGIN_PAGE),
            SessionEnd::Redirect => {
                Answer::status(302).with_header("location", &format!("/{}/login", self.omadac_id))
            }
            SessionEnd::Code => Answer::json(200, &Failure::new(SIGNED_OUT).to_json()),
        }
    }

    fn current_user(&self) -> Value {
        let sites = self.store.rows("", "system.site").iter();
        let sites: Vec<Value> =
            sites.map(|site| json!({"name": site["name"], "key": site["siteId"]})).collect();
        json!({
            "id": "66a000000000000000000001", "name": self.sessions.user, "roleType": 0,
            "omadacId": self.omadac_id,
            "privilege": {"all": true, "lastVisited": sites.first().map(|site| site["key"].clone()),
            "sites": sites},
        })
    }
}

pub(crate) const LOGIN_PAGE: &str =
    "<!DOCTYPE html><html><head><title>Omada Controller</title></head><body id=\"login\"></body></html>";

fn answer_of(outcome: Outcome, path: &str) -> Answer {
    match &outcome {
        // Refused before the controller's own logic: no envelope.
        Err(failure) if failure.status == 400 => {
            let body = json!({"timestamp": 0, "status": 400, "error": "Bad Request", "path": path});
            Answer::json(400, &body)
        }
        Err(failure) => Answer::json(failure.status, &failure.to_json()),
        Ok(_) => Answer::json(200, &envelope(&outcome)),
    }
}
