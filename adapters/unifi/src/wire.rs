//! What requests and calls are on the wire: paths with the controller's prefix, ids of sites, and bodies that no binding
//! can write.

use std::cell::RefCell;
use std::collections::BTreeMap;

use heddle_sdk::{
    Auth, ChangePlan, Fault, FaultExt, Host, Level, Method, NativeBody, NativeCall, Phase, Request, Response,
    Saved, Stage, fault, json as sdk_json,
};
use serde_json::{Map, Value, json};

use crate::answer;
use crate::login::Login;

/// Paths of the official API name a site behind this.
const OFFICIAL_SITES: &str = "/integration/v1/sites";
/// Sites that one request asks for.
const SITES_MAX: u32 = 200;
const SETTING: &str = "/get/setting/";
const DEVICES: &str = "/stat/device";
/// Most of the record of a device, which each of its ports and radios would have a copy of.
const STATISTICS: [&str; 9] = [
    "anomalies",
    "downlink_table",
    "dpi_stats",
    "scan_radio_table",
    "speedtest-status",
    "spectrum_table",
    "stat",
    "uptime_stats",
    "vap_table",
];
/// Paths whose body is a list of what the binding writes.
const BATCH: &str = "/users/batch";
/// The same of ids.
const BATCH_DELETE: &str = "/users/batch_delete";
/// A path whose body is a list of types.
const ROLLING: &str = "/cmd/devmgr/set-rollupgrade";

/// The host, asked as this controller wants it. Sites are named by their short name in the paths of all interfaces.
pub(crate) struct Wire<'h> {
    host: &'h dyn Host,
    login: Login,
    /// Ids that the official API has for sites, by their short name.
    ids: RefCell<BTreeMap<String, String>>,
}

impl<'h> Wire<'h> {
    pub(crate) fn of(host: &'h dyn Host) -> Self {
        Self { host, login: Login::of(host), ids: RefCell::default() }
    }

    fn path(&self, path: &str) -> Result<String, Fault> {
        let site = path.strip_prefix(OFFICIAL_SITES).and_then(|rest| rest.strip_prefix('/'));
        let Some((site, rest)) = site.map(|site| site.split_once('/').unwrap_or((site, ""))) else {
            return self.login.path(path);
        };
        let id = self.id_of(site)?;
        self.login.path(&format!("{OFFICIAL_SITES}/{id}/{rest}"))
    }

    /// The id that the official API has for a site.
    fn id_of(&self, site: &str) -> Result<String, Fault> {
        if let Some(id) = self.ids.borrow().get(site) {
            return Ok(id.clone());
        }
        self.read_ids()?;
        let found = self.ids.borrow().get(site).cloned();
        found.ok_or_else(|| fault::invalid(format!("the controller has no site '{site}'")))
    }

    /// Reads the ids that the official API has for all sites.
    fn read_ids(&self) -> Result<(), Fault> {
        let one = |row: &Value| {
            let text = |pointer: &str| sdk_json::text(row, pointer).map(str::to_owned);
            Some((text("/internalReference")?, text("/id")?))
        };
        let mut read = 0_u64;
        loop {
            let path = self.login.path(&format!("{OFFICIAL_SITES}?offset={read}&limit={SITES_MAX}"))?;
            let answer = answer::read(self.host, &path)?;
            let rows = sdk_json::items(&answer, "/data");
            self.ids.borrow_mut().extend(rows.iter().filter_map(one));
            read += rows.len() as u64;
            let is_last = sdk_json::number(&answer, "/totalCount").is_none_or(|total| read >= total);
            if is_last || rows.is_empty() {
                return Ok(());
            }
        }
    }

    fn addressed(&self, request: Request) -> Result<Request, Fault> {
        Ok(Request { path: self.path(&request.path)?, ..request })
    }

    /// Makes the calls of a plan what the controller takes.
    pub(crate) fn finish(&self, plan: &mut ChangePlan) -> Result<(), Fault> {
        let mut kept = Vec::new();
        for call in &mut plan.native {
            if let Some(Value::Object(body)) = call.json() {
                refuse_emptied(call, &body)?;
                let body = tidy(call, body, &mut kept);
                call.body = NativeBody::Json(shaped(&call.path, body).to_string());
            }
            call.path = self.path(&call.path)?;
        }
        kept.sort();
        kept.dedup();
        if !kept.is_empty() {
            plan.warnings.push(format!(
                "what had no value cannot be emptied again, and keeps the new one when the change is taken back: {}",
                kept.join(", ")
            ));
            plan.inverse = None;
        }
        Ok(())
    }
}

/// Whether a call updates an object of the first interface, which keeps what the body leaves out.
fn is_merged(call: &NativeCall) -> bool {
    call.method == Method::Put && call.path.starts_with("/api/")
}

/// Refuses to empty a field that an update cannot empty: `null` is refused there, and what is left out stays.
fn refuse_emptied(call: &NativeCall, body: &Map<String, Value>) -> Result<(), Fault> {
    if call.stage != Stage::Apply || !is_merged(call) {
        return Ok(());
    }
    let emptied = body.iter().filter(|(_, value)| value.is_null());
    let pointers: Vec<String> = emptied.map(|(name, _)| format!("/{name}")).collect();
    if pointers.is_empty() {
        return Ok(());
    }
    let fault = fault::invalid("the controller keeps what an update leaves out, and takes no 'none'");
    Err(pointers.into_iter().fold(fault, |fault, pointer| fault.with_field(pointer, "cannot be emptied")))
}

/// The body without what the controller refuses: `null`, and of an object that is written back also what is empty. Names
/// of fields that an update cannot empty are noted.
fn tidy(call: &NativeCall, body: Map<String, Value>, kept: &mut Vec<String>) -> Map<String, Value> {
    let is_back = call.stage == Stage::Restore;
    let is_merged = is_merged(call);
    let is_new = call.method == Method::Post;
    let mut out = Map::new();
    for (name, value) in body {
        let is_empty = value == "" || value.as_array().is_some_and(Vec::is_empty);
        if value.is_null() && is_back && is_merged {
            kept.push(name);
            continue;
        }
        let is_unset = value.is_null() || is_back && is_new && is_empty;
        if !is_unset {
            out.insert(name, value);
        }
    }
    out
}

/// The body in the form that its path wants.
fn shaped(path: &str, mut body: Map<String, Value>) -> Value {
    if path.ends_with(BATCH) {
        json!([body])
    } else if path.ends_with(BATCH_DELETE) {
        json!([body.remove("_id")])
    } else if path.ends_with(ROLLING) {
        body.remove("types").unwrap_or_default()
    } else {
        Value::Object(body)
    }
}

/// The answer with what is needed of it: about one group of settings no other group, and of devices no statistics.
fn picked(path: &str, mut response: Response) -> Response {
    let key = path.split_once(SETTING).map(|(_, key)| key);
    if key.is_none() && !path.ends_with(DEVICES) {
        return response;
    }
    let Ok(mut answer) = serde_json::from_slice::<Value>(&response.body) else { return response };
    let Some(rows) = answer.get_mut("data").and_then(Value::as_array_mut) else { return response };
    if let Some(key) = key {
        rows.retain(|group| group.get("key").is_none_or(|own| own == key));
    } else {
        let fields = rows.iter_mut().filter_map(Value::as_object_mut);
        fields.for_each(|fields| fields.retain(|name, _| !STATISTICS.contains(&name.as_str())));
    }
    response.body = answer.to_string().into_bytes();
    response
}

impl Host for Wire<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        let path = request.path.clone();
        self.host.send(self.addressed(request)?, auth).map(|response| picked(&path, response))
    }
    fn save(&self, request: Request, auth: Auth) -> Result<Saved, Fault> {
        self.host.save(self.addressed(request)?, auth)
    }
    fn send_all(&self, requests: Vec<Request>, auth: Auth, parallel: u8) -> Vec<Result<Response, Fault>> {
        let paths: Vec<String> = requests.iter().map(|request| request.path.clone()).collect();
        let addressed: Result<Vec<Request>, Fault> =
            requests.into_iter().map(|request| self.addressed(request)).collect();
        match addressed {
            Err(fault) => paths.iter().map(|_| Err(fault.clone())).collect(),
            Ok(requests) => {
                let answers = self.host.send_all(requests, auth, parallel);
                let one = |(answer, path): (Result<Response, Fault>, &String)| {
                    answer.map(|response| picked(path, response))
                };
                answers.into_iter().zip(&paths).map(one).collect()
            }
        }
    }
    fn reset_session(&self, name: &str) {
        self.host.reset_session(name);
    }
    fn session_facts(&self, name: &str) -> Result<Vec<(String, String)>, Fault> {
        self.host.session_facts(name)
    }
    fn settings(&self) -> Value {
        self.host.settings()
    }
    fn kind_binding(&self, id: &str) -> Option<Value> {
        self.host.kind_binding(id)
    }
    fn feature_binding(&self, id: &str) -> Option<Value> {
        self.host.feature_binding(id)
    }
    fn model_binding(&self, kind: &str) -> Option<Value> {
        self.host.model_binding(kind)
    }
    fn now_ms(&self) -> u64 {
        self.host.now_ms()
    }
    fn phase(&self) -> Phase {
        self.host.phase()
    }
    fn deadline_ms(&self) -> u32 {
        self.host.deadline_ms()
    }
    fn log(&self, level: Level, message: &str, fields: &[(&str, &str)]) {
        self.host.log(level, message, fields);
    }
    fn report_progress(&self, percent: u8, message: &str) {
        self.host.report_progress(percent, message);
    }
    fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }
}
