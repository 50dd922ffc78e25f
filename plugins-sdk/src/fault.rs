//! Faults, made in one line or by a [`Table`] of what the vendor answers. The host acts on `effect`: `none` is a promise.

mod probe;
mod table;

use serde_json::Value;

use crate::{Effect, Fault, FaultInfo, FieldError, Response};

pub use probe::refuse_older;
pub use table::{Kind, Row, Table, Words};

/// When a controller without a backend is asked again.
const STARTING_RETRY_MS: u64 = 10_000;
/// How much of the vendor's words a message quotes.
const SAID_CHARS: usize = 400;

fn text(message: impl Into<String>) -> FaultInfo {
    FaultInfo {
        message: message.into(),
        code: None,
        upstream_status: None,
        retry_after_ms: None,
        effect: Effect::None,
        fields: Vec::new(),
    }
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident => $variant:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(message: impl Into<String>) -> Fault {
            Fault::$variant(text(message))
        }
    )*};
}

faults! {
    /// No connection, or it broke.
    connection => Connection,
    /// The device refused the credential.
    authentication => Authentication,
    /// The credential is good, but may not do this.
    denied => Denied,
    timeout => Timeout,
    not_found => NotFound,
    rate_limit => RateLimit,
    /// Another write is under way at the device.
    busy => Busy,
    /// The device is starting or upgrading.
    not_ready => NotReady,
    /// The payload cannot be carried out.
    invalid => Invalid,
    /// The device is not as it was reviewed; nothing was sent.
    state_moved => StateMoved,
    conflict => Conflict,
    /// This device or version cannot do it.
    unsupported => Unsupported,
    generic => Generic,
}

/// The vendor's words as a message quotes them: one line of at most 400 characters, and `no reason given` where there are
/// none.
#[must_use]
pub fn said(words: &str) -> String {
    let line: String = one_line(words).chars().take(SAID_CHARS).collect();
    if line.is_empty() { "no reason given".to_owned() } else { line }
}

/// The same words on one line, whatever control characters stand in them.
fn one_line(words: &str) -> String {
    let line: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

/// What a status says where the body says nothing: it comes from the web server or from a proxy in front of the API.
///
/// Its effect is that of a read. Of a write only the statuses below 500 promise that nothing changed.
#[must_use]
pub fn of_status(response: &Response) -> Fault {
    let status = response.status;
    let fault = match status {
        401 => authentication("the controller refuses the credential"),
        403 => denied("the credential may not do this"),
        404 => not_found("the controller has nothing at this path"),
        408 => timeout("the controller waited for the request in vain"),
        429 => retried(rate_limit("the controller got too many requests"), response),
        502..=504 => not_ready("the controller's web server has no backend; it may be starting")
            .with_retry_after_ms(STARTING_RETRY_MS),
        _ => generic(format!("the controller answered status {status}")),
    };
    fault.with_upstream_status(status)
}

/// The same with the time that the answer names in seconds; a date is not looked at.
fn retried(fault: Fault, response: &Response) -> Fault {
    let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("retry-after"));
    let text = header.and_then(|header| std::str::from_utf8(&header.value).ok());
    match text.and_then(|text| text.trim().parse::<u32>().ok()) {
        Some(secs) => fault.with_retry_after_ms(u64::from(secs) * 1000),
        None => fault,
    }
}

/// What every fault carries, whatever its kind.
pub trait FaultExt: Sized {
    /// Returns what the fault says in addition to its kind.
    fn info(&self) -> &FaultInfo;
    /// Returns the same to be changed. The methods below change single fields of it.
    fn info_mut(&mut self) -> &mut FaultInfo;
    /// Returns the word of its kind, as errors of the API and recorded answers have it: `not_found`.
    #[must_use]
    fn word(&self) -> &'static str;

    /// A stable code: "state-moved", "vendor:-1005".
    #[must_use]
    fn with_code(mut self, code: impl Into<String>) -> Self {
        self.info_mut().code = Some(code.into());
        self
    }
    /// The same code for a fault that has none yet.
    #[must_use]
    fn or_code(self, code: impl Into<String>) -> Self {
        if self.info().code.is_some() { self } else { self.with_code(code) }
    }
    /// Says whether the failed call may have changed something at the device. A new fault says
    /// [`Effect::None`], which the host takes as a promise.
    #[must_use]
    fn with_effect(mut self, effect: Effect) -> Self {
        self.info_mut().effect = effect;
        self
    }
    /// Adds the HTTP status with which the device answered. It is for diagnosis: the host decides nothing by
    /// it.
    #[must_use]
    fn with_upstream_status(mut self, status: u16) -> Self {
        self.info_mut().upstream_status = Some(status);
        self
    }
    /// Says after how many milliseconds another try can succeed: for `rate_limit`, `busy` and `not_ready`.
    /// Clients get it as `Retry-After`, rounded up to seconds.
    #[must_use]
    fn with_retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.info_mut().retry_after_ms = Some(retry_after_ms);
        self
    }
    /// Adds what is wrong at a JSON pointer of the payload.
    #[must_use]
    fn with_field(mut self, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        self.info_mut().fields.push(FieldError { pointer: pointer.into(), message: message.into() });
        self
    }
    /// Adds what is wrong with each field, where an answer says it by name: `{"address": "is taken"}`, or several messages
    /// in a list. What is no object adds nothing.
    #[must_use]
    fn with_fields(self, answer: &Value) -> Self {
        answer.as_object().into_iter().flatten().fold(self, |fault, (name, messages)| {
            let text = match messages {
                Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "),
                other => other.as_str().unwrap_or_default().to_owned(),
            };
            let text = Some(one_line(&text)).filter(|text| !text.is_empty());
            fault.with_field(format!("/{name}"), text.unwrap_or_else(|| "is not accepted".to_owned()))
        })
    }
}

macro_rules! info {
    ($fault:expr) => {
        match $fault {
            Fault::Connection(info)
            | Fault::Authentication(info)
            | Fault::Denied(info)
            | Fault::Timeout(info)
            | Fault::NotFound(info)
            | Fault::RateLimit(info)
            | Fault::Busy(info)
            | Fault::NotReady(info)
            | Fault::Invalid(info)
            | Fault::StateMoved(info)
            | Fault::Conflict(info)
            | Fault::Unsupported(info)
            | Fault::Generic(info) => info,
        }
    };
}

impl FaultExt for Fault {
    fn info(&self) -> &FaultInfo {
        info!(self)
    }
    fn info_mut(&mut self) -> &mut FaultInfo {
        info!(self)
    }
    fn word(&self) -> &'static str {
        match self {
            Fault::Connection(_) => "connection",
            Fault::Authentication(_) => "authentication",
            Fault::Denied(_) => "denied",
            Fault::Timeout(_) => "timeout",
            Fault::NotFound(_) => "not_found",
            Fault::RateLimit(_) => "rate_limit",
            Fault::Busy(_) => "busy",
            Fault::NotReady(_) => "not_ready",
            Fault::Invalid(_) => "invalid",
            Fault::StateMoved(_) => "state_moved",
            Fault::Conflict(_) => "conflict",
            Fault::Unsupported(_) => "unsupported",
            Fault::Generic(_) => "generic",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Header;

    #[test]
    fn words_of_the_vendor_are_one_line_of_limited_length() {
        assert_eq!(said("  bad\tvalue\r\n"), "bad value");
        assert_eq!(said(" \n"), "no reason given");
        assert_eq!(said(&"é".repeat(1_000)).chars().count(), 400);
    }

    #[test]
    fn fields_of_an_answer_are_fields_of_the_fault() {
        let answer = json!({ "mtu": "is too small\n", "name": ["is taken", "is long"], "tag": null });
        let fault = invalid("x").with_fields(&answer);
        let fields: Vec<(&str, &str)> = fault
            .info()
            .fields
            .iter()
            .map(|field| (field.pointer.as_str(), field.message.as_str()))
            .collect();
        assert_eq!(
            fields,
            [("/mtu", "is too small"), ("/name", "is taken; is long"), ("/tag", "is not accepted")]
        );
        assert!(invalid("x").with_fields(&json!(["mtu"])).info().fields.is_empty());
    }

    #[test]
    fn a_status_says_what_a_proxy_or_a_web_server_means() {
        let header = |value: &str| Header { name: "Retry-After".to_owned(), value: value.into() };
        let of = |status, headers: Vec<Header>| {
            of_status(&Response { status, reason: None, headers, body: Vec::new(), elapsed_ms: 1 })
        };
        assert!(matches!(of(401, vec![]), Fault::Authentication(_)));
        assert!(matches!(of(403, vec![]), Fault::Denied(_)));
        assert!(matches!(of(404, vec![]), Fault::NotFound(_)));
        assert!(matches!(of(503, vec![]), Fault::NotReady(_)));
        assert!(matches!(of(500, vec![]), Fault::Generic(info) if info.upstream_status == Some(500)));
        for (value, expected) in [("3", Some(3_000)), ("Fri, 01 Jan 2027 00:00:00 GMT", None), ("-1", None)] {
            let found = of(429, vec![header(value)]);
            assert!(matches!(&found, Fault::RateLimit(info) if info.retry_after_ms == expected), "{found:?}");
        }
    }
}
