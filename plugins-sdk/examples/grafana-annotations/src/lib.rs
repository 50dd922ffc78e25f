//! Marks times in the diagrams of Grafana, and finds what was marked.

use std::fmt::Write as _;

use heddle_sdk::plugin::{Action, Entry, Host, Plugin, Received, action, settings};
use heddle_sdk::{
    Auth, Effect, Fault, FaultExt as _, Method, Place, Request, Response, fault, register_plugin,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const TARGET: &str = "grafana";
const PATH: &str = "/api/annotations";
/// Most characters of Grafana's own words in a fault.
const SAID_CHARS_MAX: usize = 300;

/// The plugin, with the actions that `manifest.json` declares.
pub(crate) struct Annotations;

impl Plugin for Annotations {
    const ACTIONS: &'static [Entry] = &[action::<Annotate>(), action::<Find>()];

    /// Reads one annotation, so that an address or a token that is wrong is noticed.
    fn check(host: &dyn Host) -> Result<Option<Value>, Fault> {
        let answer = send(host, Request::get(format!("{PATH}?limit=1")))?;
        Ok(Some(json!({ "found": answer.as_array().map_or(0, Vec::len) })))
    }

    /// Events come again where an answer was lost: then there are two annotations of one.
    fn on_events(host: &dyn Host, _: &str, events: &[Received]) -> Result<(), Fault> {
        let Settings { mark, .. } = settings(host)?;
        let is_marked =
            |event: &&Received| mark.as_ref().is_none_or(|types| types.contains(&event.event_type));
        events.iter().filter(is_marked).try_for_each(|event| Annotate::run(host, marked(event)).map(drop))
    }
}

register_plugin!(Annotations: actions, triggers);

#[derive(Deserialize)]
struct Settings {
    #[serde(default = "heddle")]
    tags: Vec<String>,
    /// Types of events that are marked; all where it is absent.
    mark: Option<Vec<String>>,
}

/// Says what happened, with the site where the event has one.
fn marked(event: &Received) -> Mark {
    let of = |key: &str| event.payload[key].as_str();
    let mut text = of("name").or(of("device_name")).or(of("title")).unwrap_or_default().to_owned();
    let status = of("new_status").or(of("status")).or(of("message")).unwrap_or_default();
    for part in [event.event_type.as_str(), status].into_iter().filter(|part| !part.is_empty()) {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{part}");
    }
    Mark {
        text,
        tags: vec![event.event_type.clone()],
        time_ms: Some(event.occurred_at_ms),
        time_end_ms: None,
        dashboard_uid: None,
        panel_id: None,
    }
}

fn heddle() -> Vec<String> {
    vec!["heddle".to_owned()]
}

/// The action `annotate`.
struct Annotate;

#[derive(Deserialize)]
struct Mark {
    text: String,
    #[serde(default)]
    tags: Vec<String>,
    time_ms: Option<u64>,
    time_end_ms: Option<u64>,
    dashboard_uid: Option<String>,
    panel_id: Option<u64>,
}

#[derive(Serialize)]
struct Marked {
    id: u64,
    time_ms: u64,
    tags: Vec<String>,
}

impl Action for Annotate {
    const ID: &'static str = "annotate";
    type Params = Mark;
    type Output = Marked;

    fn run(host: &dyn Host, mark: Mark) -> Result<Marked, Fault> {
        let time_ms = mark.time_ms.unwrap_or_else(|| host.now_ms());
        if mark.time_end_ms.is_some_and(|end| end < time_ms) {
            return Err(fault::invalid("the span ends before it begins")
                .with_field("/time_end_ms", "is before 'time_ms'"));
        }
        let Settings { mut tags, .. } = settings(host)?;
        for tag in mark.tags {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let mut body = json!({ "time": time_ms, "tags": tags, "text": mark.text });
        let more = [
            ("timeEnd", mark.time_end_ms.map(Value::from)),
            ("dashboardUID", mark.dashboard_uid.map(Value::from)),
            ("panelId", mark.panel_id.map(Value::from)),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        let answer = send(host, Request::new(Method::Post, PATH).with_json(&body))?;
        let id = answer["id"].as_u64().ok_or_else(|| {
            // It was taken, and how to name it is not known.
            changed(fault::generic("the answer of Grafana has no id of the annotation"))
        })?;
        Ok(Marked { id, time_ms, tags })
    }
}

/// The action `find`.
struct Find;

#[derive(Deserialize)]
struct Wanted {
    tags: Option<Vec<String>>,
    from_ms: Option<u64>,
    to_ms: Option<u64>,
    limit: Option<u32>,
}

#[derive(Serialize)]
struct FoundAll {
    annotations: Vec<Found>,
}

/// An annotation as Grafana answers it, and as this plugin does.
#[derive(Deserialize, Serialize)]
struct Found {
    id: u64,
    #[serde(rename(deserialize = "time"))]
    time_ms: u64,
    #[serde(rename(deserialize = "timeEnd"), default)]
    time_end_ms: Option<u64>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    text: String,
}

impl Action for Find {
    const ID: &'static str = "find";
    type Params = Wanted;
    type Output = FoundAll;

    fn run(host: &dyn Host, wanted: Wanted) -> Result<FoundAll, Fault> {
        let tags = match wanted.tags {
            Some(tags) => tags,
            None => settings::<Settings>(host)?.tags,
        };
        // Alerts are annotations, too, and no person wrote them.
        let mut path = format!("{PATH}?type=annotation&limit={}", wanted.limit.unwrap_or(100));
        for tag in &tags {
            path.push_str("&tags=");
            path.push_str(&encoded(tag));
        }
        for (name, time) in [("from", wanted.from_ms), ("to", wanted.to_ms)] {
            if let Some(time) = time {
                let _ = write!(path, "&{name}={time}");
            }
        }
        let answer = send(host, Request::get(path))?;
        let annotations = serde_json::from_value(answer)
            .map_err(|error| fault::generic(format!("the answer of Grafana is not understood: {error}")))?;
        Ok(FoundAll { annotations })
    }
}

/// Sends a request, and returns the JSON of a success.
fn send(host: &dyn Host, request: Request) -> Result<Value, Fault> {
    let is_write = request.method != Method::Get;
    let auth = Auth::Inject(vec![(Place::Bearer, "token".into())]);
    let response = host.send(TARGET, request, auth)?;
    if response.status == 200 {
        return response.json();
    }
    Err(refusal(&response, is_write))
}

/// What an answer means that is no success.
fn refusal(response: &Response, is_write: bool) -> Fault {
    let status = response.status;
    let said = response.json().ok().and_then(|body| body["message"].as_str().map(str::to_owned));
    let said = said.map_or_else(String::new, |text| {
        format!(": {}", text.chars().take(SAID_CHARS_MAX).collect::<String>())
    });
    let fault = match status {
        401 => fault::authentication(format!("Grafana refuses the token{said}")),
        403 => fault::denied(format!("the token may not do this{said}")),
        404 => fault::not_found(format!("Grafana has no such dashboard or panel{said}")),
        400 | 422 => fault::invalid(format!("Grafana does not take the annotation{said}")),
        429 => fault::rate_limit(format!("Grafana got too many requests{said}")),
        502..=504 => fault::not_ready(format!("Grafana does not serve at the moment{said}")),
        _ => fault::generic(format!("Grafana answered status {status}{said}")),
    };
    let fault = fault.with_upstream_status(status);
    // A status of 500 or above does not say whether a write was carried out.
    if is_write && status >= 500 { changed(fault) } else { fault }
}

fn changed(mut fault: Fault) -> Fault {
    fault.info_mut().effect = Effect::Possible;
    fault
}

/// A value for a query, percent-encoded as RFC 3986 has it.
fn encoded(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            result.push(char::from(byte));
        } else {
            let _ = write!(result, "%{byte:02X}");
        }
    }
    result
}

#[cfg(test)]
mod tests;
