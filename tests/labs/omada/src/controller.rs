//! The controller: its doors, its order of checks, and what a successful write sets off.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use heddle_lab::{Answer, Context, Controller, Outgoing, Request};
use serde_json::{Value, json};

use crate::call::Call;
use crate::doors::LOGIN_PAGE;
use crate::facts::Role;
use crate::outcome::{
    Failure, GENERAL, INVALID, NEEDS_CODE_MODE, NEEDS_PRO, NO_SITE, Outcome, SITE_BUSY, TOO_MANY,
    UNSUPPORTED, WRONG_METHOD, envelope,
};
use crate::router::{Match, Router};
use crate::seed::{self, Seed};
use crate::session::{SessionEnd, Sessions};
use crate::store::{Snapshot, Store};
use crate::timeline::Timeline;

/// Calls of the Open API within one second.
const CALLS_A_SECOND: usize = 10;

/// Faults of this vendor, besides those that every lab has.
const FAULTS: [&str; 5] = ["lying_create", "dropped_write", "site_busy", "token_expired", "session_ended"];

/// A simulated Omada controller.
pub struct Omada {
    /// 32 hexadecimal digits, part of nearly every path.
    pub omadac_id: String,
    /// How a web session that is over looks.
    pub session_end: SessionEnd,
    /// Whether routes for the Pro edition work.
    pub is_pro: bool,
    /// Routes that this controller lacks, as `METHOD v1 site path`; a star at the end stands for any rest.
    pub missing: BTreeSet<String>,
    /// Calls of the Open API in one second; no limit when absent.
    pub rate_limit: Option<usize>,
    /// The version that it tells, whatever its release is.
    pub told_version: Option<String>,
    /// The accounts, and the sessions that are open.
    pub sessions: Sessions,
    pub(crate) seed: Seed,
    pub(crate) store: Store,
    pub(crate) timeline: Timeline,
    /// What the backup files hold, by name.
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    restarts: bool,
    /// When the latest calls of the Open API came.
    pub(crate) recent: VecDeque<u64>,
    /// What it has to send.
    pub(crate) outbox: Vec<Outgoing>,
    pub(crate) router: Router,
}

impl Controller for Omada {
    fn started(&mut self, context: &mut Context) {
        self.now = millis(context);
        seed::plant(self);
    }

    fn advance(&mut self, context: &mut Context) {
        self.now = millis(context);
        self.settle();
        self.carry_out_restart(context);
    }

    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        let answer = self.answer(request, context);
        self.carry_out_restart(context);
        answer
    }

    fn state(&self, _context: &Context) -> Value {
        self.store.to_json()
    }

    fn end_sessions(&mut self, _context: &mut Context) {
        self.sessions.end_all();
    }

    fn edit(&mut self, edit: &Value, context: &mut Context) -> Result<Value, String> {
        self.edited(edit, context)
    }

    fn outgoing(&mut self, _context: &mut Context) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    fn refusal(&self, status: u16, _request: &Request) -> Answer {
        let code = if status == 429 { TOO_MANY } else { GENERAL };
        Answer::json(status, &Failure::new(code).to_json())
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &FAULTS
    }
}

fn millis(context: &Context) -> u64 {
    u64::try_from(context.clock.unix_of(context.now()).as_millis()).unwrap_or(u64::MAX)
}

impl Omada {
    /// A controller with the sites, devices, clients and settings of the seed.
    pub fn new(seed: Seed) -> Self {
        Self {
            omadac_id: "2b8e71f4a90c4d5e8f12a3b4c5d6e7f8".to_owned(),
            session_end: SessionEnd::default(),
            is_pro: false,
            missing: BTreeSet::new(),
            rate_limit: Some(CALLS_A_SECOND),
            told_version: None,
            sessions: Sessions::new(),
            timeline: Timeline::new(seed.step_ms),
            seed,
            store: Store::default(),
            snapshots: BTreeMap::new(),
            now: 0,
            restarts: false,
            recent: VecDeque::new(),
            outbox: Vec::new(),
            router: Router::new(),
        }
    }

    fn answer(&mut self, request: &Request, context: &mut Context) -> Answer {
        let path = request.path.as_str();
        match path {
            "/api/info" => Answer::json(200, &envelope(&Ok(self.info()))),
            "/v3/api-docs" => Answer::json(200, &self.description()),
            _ if path.starts_with("/openapi/authorize/") => {
                let outcome = self.sessions.authorize(request, &self.omadac_id, self.now);
                Answer::json(200, &envelope(&outcome))
            }
            _ if path.starts_with("/openapi/") => self.open_api(request, context),
            _ if path.contains("/api/v2/") => self.web(request, context),
            _ => Answer::html(200, LOGIN_PAGE),
        }
    }

    /// Asks for a restart, which follows the answer of this call.
    pub(crate) fn ask_restart(&mut self) {
        self.restarts = true;
    }

    fn carry_out_restart(&mut self, context: &mut Context) {
        if std::mem::take(&mut self.restarts) {
            self.sessions.end_all();
            context.boot(Duration::from_millis(self.timeline.restart_ms()));
        }
    }

    fn info(&self) -> Value {
        json!({
            "controllerVer": self.told_version.as_deref().unwrap_or(self.seed.release.version()), "apiVer": "3", "configured": true, "type": 1,
            "supportApp": true,
            "omadacId": self.omadac_id, "registeredRoot": true, "omadacCategory": "advanced",
            "mspMode": false,
            "omadaCloudUrl": "https://omada.tplinkcloud.com",
        })
    }

    /// The controller's own description of its Open API: paths and methods only.
    fn description(&self) -> Value {
        let mut paths: BTreeMap<String, Value> = BTreeMap::new();
        for route in &crate::facts::facts().routes {
            if !route.is_web && self.has(&route.method, &route.name) {
                let path = paths.entry(format!("/{}", route.parts.join("/"))).or_insert(json!({}));
                path[route.method.to_ascii_lowercase()] =
                    json!({"responses": {"200": {"content": {"*/*": {}}}}});
            }
        }
        json!({"openapi": "3.0.1", "info": {"title": "00 All", "version": "v0.1"}, "paths": paths})
    }

    fn has(&self, method: &str, name: &str) -> bool {
        let whole = format!("{method} {name}");
        !self.missing.iter().any(|missing| {
            whole == *missing || (missing.ends_with('*') && whole.starts_with(missing.trim_end_matches('*')))
        })
    }

    /// Finds the route, checks the call, carries it out, and records a write.
    pub(crate) fn dispatch(&mut self, request: &Request, is_of_user: bool, context: &mut Context) -> Outcome {
        let (route, parameters) = match self.router.find(&request.method, &request.segments()) {
            Match::Found(route, parameters) => (route, parameters),
            // The web surface calls a wrong method an unknown path.
            Match::OtherMethod if request.path.starts_with("/openapi/") => {
                return Err(Failure::new(WRONG_METHOD));
            }
            Match::OtherMethod | Match::Nothing => return Err(Failure::new(UNSUPPORTED)),
        };
        let body = match request.json() {
            Some(body) => body,
            None if !request.body.is_empty() && route.body.is_some() => return Err(Failure::new(INVALID)),
            None => Value::Null,
        };
        let call = Call::new(route, parameters, request.query_pairs().into_iter().collect(), body);
        if !call.exists_in(self.seed.release) || !self.has(&route.method, &route.name) {
            return Err(Failure::new(UNSUPPORTED));
        }
        if route.codes.contains(&NEEDS_CODE_MODE) && !is_of_user {
            return Err(Failure::new(NEEDS_CODE_MODE));
        }
        if route.codes.contains(&NEEDS_PRO) && !self.is_pro {
            return Err(Failure::new(NEEDS_PRO));
        }
        self.check_place(&call)?;
        call.check()?;
        if call.item.id == "bulk.batch" {
            return Ok(self.batch(&call, is_of_user, context));
        }
        if call.is_write() && call.parameters.contains_key("siteId") {
            if context.fault("site_busy", request).is_some() {
                return Err(Failure::new(SITE_BUSY));
            }
            if context.fault("dropped_write", request).is_some() {
                return Ok(Value::Null);
            }
        }
        let outcome = self.carry_out(&call);
        let is_lying = call.route.role == Role::Create
            && outcome.is_ok()
            && context.fault("lying_create", request).is_some();
        if is_lying { Err(Failure::new(GENERAL)) } else { outcome }
    }

    fn check_place(&self, call: &Call) -> Result<(), Failure> {
        let site = call.parameters.get("siteId");
        if site.is_some_and(|site| self.store.find("", "system.site", "siteId", site).is_none()) {
            return Err(Failure::new(NO_SITE));
        }
        self.check_device(call)
    }

    /// Carries out a call that was checked, and records it when it wrote.
    pub(crate) fn carry_out(&mut self, call: &Call) -> Outcome {
        let outcome = match self.special(call) {
            Some(outcome) => outcome,
            None => self.generic(call),
        };
        if call.is_write() && outcome.is_ok() {
            self.after_write(call);
        }
        outcome
    }

    /// The audit log has every write; a change of settings is delivered to the devices of the site.
    fn after_write(&mut self, call: &Call) {
        let id = self.store.new_id();
        let entry = json!({
            "id": id, "time": self.now, "operator": self.sessions.user, "resource": call.item.id,
            "ip": "192.0.2.10",
            "auditType": "Operation", "level": "Information", "result": "Success",
            "content": format!("{} {}", call.route.method, call.route.name), "label": "",
        });
        let log = self.store.rows_mut(call.scope(), "insights.audit-log");
        log.push(entry);
        if log.len() > 2000 {
            log.drain(..500);
        }
        if call.route.role != Role::Do && call.parameters.contains_key("siteId") {
            self.provision(&call.parameters["siteId"]);
        }
    }
}
