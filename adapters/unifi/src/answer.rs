//! What an answer of the controller means. Its interfaces have four forms for a failure, of which one comes with any
//! status.

use heddle_sdk::crud::{self, Modelled, Place, Purpose, Vendor, Written};
use heddle_sdk::fault::{Row, Table};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response, fault};
use serde_json::Value;

use crate::beside::Beside;
use crate::login::Login;
use crate::{model, site};

const STARTING_RETRY_MS: u64 = 20_000;
/// The limit of logins lasts minutes.
const LOGIN_RETRY_MS: u64 = 30_000;
const RATE_RETRY_MS: u64 = 5_000;
/// A device that was just seen is adopted at a later try.
const ADOPTION_RETRY_MS: u64 = 15_000;

/// The vendor's answers, in one of the sessions of the manifest.
#[derive(Debug, Clone)]
pub struct Unifi {
    login: Login,
    /// What objects of the model name by ids.
    beside: Beside,
}

impl Unifi {
    /// As the settings of the controller say.
    pub fn of(host: &dyn Host) -> Self {
        Self { login: Login::of(host), beside: Beside::default() }
    }

    /// The same with what objects of a kind of the model name by ids.
    pub(crate) fn beside(host: &dyn Host, kind: &str, site: Option<&str>) -> Result<Self, Fault> {
        Ok(Self { login: Login::of(host), beside: Beside::read(host, kind, site)? })
    }
}

impl Vendor for Unifi {
    fn session(&self) -> &'static str {
        self.login.session()
    }

    fn places_of_page(&self) -> usize {
        // The manifest allows four times as many requests.
        64
    }

    fn scope(&self, host: &dyn Host, wanted: Option<&str>) -> Result<Place, Fault> {
        site::place(host, wanted)
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        match opened(response)? {
            // A controller that is throttled answers with nothing, which must not look like an empty list.
            Value::Null => Err(fault::not_ready("the controller answered with nothing")
                .with_retry_after_ms(STARTING_RETRY_MS)),
            answer => Ok(answer),
        }
    }

    fn written(&self, purpose: Purpose, response: &Response) -> Result<Written, Fault> {
        match opened(response) {
            Ok(_) => Ok(Written::Done),
            // What is gone already is where a delete leads to.
            Err(Fault::NotFound(_)) if purpose == Purpose::Delete => Ok(Written::Done),
            // A refusal of the second interface was seen to have stored the object.
            Err(fault) if response.status >= 500 || response.status == 404 => {
                Err(fault.with_effect(Effect::Possible))
            }
            Err(fault) => Err(fault),
        }
    }

    fn modelled(&self, kind: &str, row: &Value, object: &mut Modelled) -> bool {
        model::complete(&self.beside, kind, row, object)
    }

    fn expressed(
        &self,
        host: &dyn Host,
        asked: &crud::Asked<'_>,
        changes: &mut Vec<crud::Expressed>,
    ) -> Result<(), Fault> {
        model::expressed(self, &self.beside, host, asked, changes)
    }
}

/// What the controller's words and statuses mean. A word is a part of a code such as `api.err.IdInvalid`.
const REFUSALS: Table = Table::new(&[
    Row::words(&["loginrequired"], Fault::Authentication, "the session is over"),
    Row::words(
        &["limit_reached", "rate_limit"],
        Fault::RateLimit,
        "the controller got too many logins or calls",
    )
    .with_retry_after_ms(LOGIN_RETRY_MS),
    Row::words(&["nopermission", "forbidden"], Fault::Denied, "the account may not do this: {}"),
    Row::words(
        &["unsupported", "notsupported", "no-gateway"],
        Fault::Unsupported,
        "the devices of the site, or this release, cannot do this: {}",
    ),
    Row::words(
        &["cannotadopt", "cannotadoptunknowndevice"],
        Fault::NotReady,
        "the device is not ready to be adopted, or is adopted already: {}",
    )
    .with_retry_after_ms(ADOPTION_RETRY_MS),
    Row::words(
        &["referredby", "objectreferred", "in-use", "isused"],
        Fault::Conflict,
        "something else uses the object: {}",
    ),
    Row::words(
        &["existed", "exists", "duplicate", "vlanused", "macused", "overlap", "already"],
        Fault::Conflict,
        "the controller has such an object already: {}",
    ),
    Row::words(
        &[
            "idinvalid",
            "notfound",
            "not-found",
            "unknowndevice",
            "unknownstation",
            "unknownuser",
            "unknownsta",
        ],
        Fault::NotFound,
        "the controller does not have it: {}",
    ),
    Row::codes(&[401], Fault::Authentication, "the controller refuses the key or the session: {}"),
    Row::codes(&[403], Fault::Denied, "the account may not do this: {}"),
    Row::codes(&[405], Fault::Unsupported, "this release of the controller does not have this"),
    Row::codes(&[409], Fault::Conflict, "the controller refuses: {}"),
    Row::codes(&[429], Fault::RateLimit, "the controller got too many calls")
        .with_retry_after_ms(RATE_RETRY_MS),
    Row::codes(&[502, 503, 504], Fault::NotReady, "the application of the controller is starting: {}")
        .with_retry_after_ms(STARTING_RETRY_MS),
    Row::codes(&[500], Fault::Generic, "the controller failed: {}").with_effect(Effect::Possible),
    Row::words(&["api.", "unrecognized"], Fault::Invalid, "the controller does not accept it: {}"),
    Row::codes(&[400, 422], Fault::Invalid, "the controller does not accept it: {}"),
    Row::codes(&[404], Fault::Unsupported, "this release of the controller does not have this"),
    Row::rest(Fault::Generic, "the controller refuses ({code}): {}").with_effect(Effect::Possible),
]);

/// The content of an answer that says that it worked; `null` where it says no more.
fn opened(response: &Response) -> Result<Value, Fault> {
    let is_good = (200..300).contains(&response.status);
    if is_good && response.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    let Ok(answer) = serde_json::from_slice::<Value>(&response.body) else {
        return Err(of_page(response));
    };
    match answer.pointer("/meta/rc").and_then(Value::as_str) {
        Some("ok") if is_good => Ok(answer),
        None if is_good => Ok(answer),
        _ => Err(refused(response, &answer)),
    }
}

/// What is no JSON comes from what stands before the application: it answers pages while that starts.
fn of_page(response: &Response) -> Fault {
    match response.status {
        200..=399 | 502..=504 => {
            fault::not_ready("the controller answered with a page instead of its API; it is starting")
                .with_retry_after_ms(STARTING_RETRY_MS)
                .with_upstream_status(response.status)
        }
        _ => REFUSALS.of_status(response, ""),
    }
}

fn refused(response: &Response, answer: &Value) -> Fault {
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    // The row says more than the envelope.
    let codes = ["/data/0/msg", "/meta/msg", "/code", "/error"].map(text);
    let code = codes.into_iter().find(|code| !code.is_empty()).unwrap_or_default();
    let words =
        [code, text("/message")].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
    // The official API says with this status that an object is missing, and tells so in its own form.
    let is_absent = response.status == 404 && answer.get("statusCode").is_some();
    let fault = if is_absent {
        fault::not_found(format!("the controller does not have it: {}", fault::said(&words)))
            .with_upstream_status(response.status)
    } else {
        REFUSALS.of_status(response, &words)
    };
    let fault = if code.is_empty() { fault } else { fault.with_code(format!("vendor:{code}")) };
    match text("/data/0/validationError/field") {
        "" => fault,
        field => fault.with_field(format!("/{field}"), words),
    }
}

/// One read.
pub(crate) fn read(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    let vendor = Unifi::of(host);
    let response = host.send(Request::get(path), Auth::session(vendor.session()))?;
    vendor.content(&response)
}

/// The rows of a list of the first interface.
pub(crate) fn rows(host: &dyn Host, path: &str) -> Result<Vec<Value>, Fault> {
    match read(host, path)?.get_mut("data").map(Value::take) {
        Some(Value::Array(rows)) => Ok(rows),
        _ => Err(fault::generic("the controller answered no list")),
    }
}
