//! The console on the skeleton: its two kinds of host, and the way of a request to the interface that it means.

use heddle_lab::{Answer, Context, Controller, Request};
use serde_json::{Value, json};

use crate::access::Who;
use crate::console::Console;
use crate::reply::{Refusal, console, inner_path, ok};
use crate::row::{row, shown};
use crate::settings::SessionEnd;
use crate::store::GLOBAL;
use crate::{backup, host, official, v1, v2};

/// Faults of this vendor, besides those that every lab has.
const FAULTS: [&str; 14] = [
    "starting",
    "login_limited",
    "login_empty",
    "login_without_csrf",
    "session_ended",
    "csrf_refused",
    "dropped_write",
    "stored_with_error",
    "stale_answer",
    "device_busy",
    "adopt_fails",
    "upgrade_fails",
    "events_refused",
    "events_silent",
];

const START_PAGE: &str =
    "<!DOCTYPE html><html><head><title>UniFi Network</title></head><body>Starting up</body></html>";
const ROOT_PAGE: &str = "<!DOCTYPE html><html><head><title>UniFi OS</title></head><body></body></html>";

impl Controller for Console {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        let answer = self.answer(request, context);
        self.carry_out_restart(context);
        answer
    }

    fn started(&mut self, context: &mut Context) {
        self.plant(context);
    }

    fn advance(&mut self, context: &mut Context) {
        self.tick(context);
    }

    fn state(&self, _context: &Context) -> Value {
        self.store.to_json()
    }

    fn end_sessions(&mut self, _context: &mut Context) {
        self.access.end_all();
        self.stream.close_of(&self.settings.admin.0);
        self.stream.close_of(&self.settings.viewer.0);
    }

    fn restart(&mut self, _context: &mut Context) {
        self.come_down();
    }

    fn edit(&mut self, edit: &Value, context: &mut Context) -> Result<Value, String> {
        let made = self.edited(edit)?;
        self.carry_out_restart(context);
        Ok(made)
    }

    fn refusal(&self, status: u16, request: &Request) -> Answer {
        match status {
            429 => Answer::json(429, &json!({ "error": "rate_limit", "message": "Too many requests" })),
            _ if inner_path(request).starts_with("/integration/") => {
                Refusal::of(status, "api.request.error", "Request refused")
                    .official(inner_path(request), self.now)
            }
            _ if inner_path(request).starts_with("/v2/") => {
                Refusal::new("InternalError").with_status(status).v2()
            }
            _ => Refusal::new("ServerBusy").with_status(status).v1(),
        }
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &FAULTS
    }

    fn socket_texts(&mut self, socket: u64, context: &mut Context) -> Option<Vec<String>> {
        if context.fault_in_background("events_silent").is_some() {
            self.stream.drop_waiting();
        }
        self.sync_devices();
        self.stream.take(socket)
    }

    fn socket_closed(&mut self, socket: u64) {
        self.stream.close(socket);
    }

    /// Single tables of a site: `GET /tables/{site}/{table}`.
    fn control(&mut self, request: &Request, _context: &mut Context) -> Option<Answer> {
        match request.segments().as_slice() {
            ["tables", site, table] => {
                let rows: Vec<_> = self.store.rows(site, table).iter().map(shown).collect();
                Some(Answer::json(200, &json!(rows)))
            }
            _ => None,
        }
    }
}

impl Console {
    fn answer(&mut self, request: &Request, context: &mut Context) -> Answer {
        if request.path == "/" {
            return self.root();
        }
        if self.settings.is_unifi_os() {
            if request.path.starts_with("/proxy/network/") {
                return self.application(request, context);
            }
            return match (request.method.as_str(), request.path.as_str()) {
                ("POST", "/api/auth/login") => self.log_in(request, context),
                ("POST", "/api/auth/logout" | "/api/logout" | "/logout") => self.log_out(request),
                _ => host::answer(self, request),
            };
        }
        match (request.method.as_str(), request.path.as_str()) {
            _ if !self.is_ready() => Answer::html(200, START_PAGE),
            ("POST", "/api/login") => self.log_in(request, context),
            (_, "/api/logout" | "/logout") => self.log_out(request),
            _ => self.application(request, context),
        }
    }

    fn root(&self) -> Answer {
        match (self.settings.is_unifi_os(), self.settings.root_redirects) {
            (true, false) => Answer::html(200, ROOT_PAGE),
            (true, true) => Answer::status(302).with_header("location", "/login"),
            (false, _) => Answer::status(302).with_header("location", "/manage"),
        }
    }

    fn log_in(&mut self, request: &Request, context: &mut Context) -> Answer {
        if context.fault("login_limited", request).is_some() {
            let body = json!({
                "code": "AUTHENTICATION_FAILED_LIMIT_REACHED", "message": "Too many attempts",
                "level": "debug",
            });
            return Answer::json(429, &body);
        }
        if context.fault("login_empty", request).is_some() {
            return Answer::status(200);
        }
        if context.fault("starting", request).is_some() && !self.settings.is_unifi_os() {
            return Answer::html(200, START_PAGE);
        }
        let mut answer = if self.settings.is_unifi_os() {
            self.access.log_in_console(&self.settings, request, self.now)
        } else {
            self.access.log_in_classic(&self.settings, request, self.now)
        };
        if context.fault("login_without_csrf", request).is_some() {
            answer.headers.retain(|(name, _)| name != "x-csrf-token");
        }
        answer
    }

    fn log_out(&mut self, request: &Request) -> Answer {
        self.access.log_out(&self.settings, request);
        Answer::json(200, &ok(Vec::new()))
    }

    /// The Network application behind the prefix, or alone.
    fn application(&mut self, request: &Request, context: &mut Context) -> Answer {
        let path = inner_path(request).to_owned();
        if !self.is_ready() || context.fault("starting", request).is_some() {
            return Answer::html(200, START_PAGE);
        }
        if path == "/status" {
            let meta = json!({
                "rc": "ok", "up": true, "server_version": self.settings.version(), "uuid": self.uuid(),
            });
            return Answer::json(200, &json!({ "meta": meta, "data": [] }));
        }
        if context.fault("session_ended", request).is_some() {
            self.access.end_all();
            let is_envelope = self.settings.session_end == SessionEnd::Envelope;
            let status = if is_envelope && path.starts_with("/api/") { 200 } else { 401 };
            return Refusal::new("LoginRequired").with_status(status).v1();
        }
        let (who, headers) = match self.access.admit(&self.settings, request, self.now) {
            Ok(admitted) => admitted,
            Err(refused) => return refused,
        };
        if request.method != "GET" && context.fault("csrf_refused", request).is_some() {
            return console(403, "Invalid CSRF Token");
        }
        let mut answer = self.surfaces(request, &path, &who, context);
        answer.headers.extend(headers);
        answer
    }

    fn surfaces(&mut self, request: &Request, path: &str, who: &Who, context: &mut Context) -> Answer {
        let segments = request.segments();
        let skipped = if self.settings.is_unifi_os() { 2 } else { 0 };
        let parts: Vec<&str> = segments.into_iter().skip(skipped).collect();
        let is_write = !matches!(request.method.as_str(), "GET" | "HEAD");
        let drops = is_write && context.fault("dropped_write", request).is_some();
        let fails = is_write && context.fault("stored_with_error", request).is_some();
        self.before = drops.then(|| self.store.clone());
        let is_lacking = self.lacks(request, path);
        let answer = match parts.as_slice() {
            ["integration", "v1", rest @ ..] if self.settings.is_unifi_os() => {
                official::answer(self, request, rest, who, is_lacking, context)
            }
            ["wss", "s", site, "events"] => return self.open_stream(request, site, who, context),
            ["dl", "backup", name] => return backup::download(self, name),
            ["v2", "api", rest @ ..] if !is_lacking => v2::answer(self, request, rest, who),
            ["v2", ..] => Refusal::not_found().v2(),
            _ if is_lacking => Refusal::not_found().v1(),
            _ => v1::answer(self, request, &parts, who, context),
        };
        if let Some(before) = self.before.take() {
            self.store = before;
        }
        if fails && answer.status < 300 {
            return Refusal::new("InternalError").with_status(500).v1();
        }
        answer
    }

    fn open_stream(&mut self, request: &Request, site: &str, who: &Who, context: &mut Context) -> Answer {
        if context.fault("events_refused", request).is_some()
            || (who.has_key && !self.settings.key_opens_events)
        {
            return console(401, "Unauthorized");
        }
        if !self.store.has_site(site) {
            return Refusal::not_found().v1();
        }
        let account = if who.has_key { String::new() } else { who.name.clone() };
        Answer::web_socket(self.stream.open(site, &account))
    }

    /// The id of the application.
    pub(crate) fn uuid(&self) -> String {
        let first = self.store.rows(GLOBAL, "site").first().cloned().unwrap_or_else(|| row(json!({})));
        crate::row::uuid("application", crate::row::text(&first, "_id"))
    }
}
