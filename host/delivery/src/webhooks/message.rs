//! The request to a subscription: the event, or its template with the event filled in, and the headers.

use heddle_core::redact::sanitize;
use heddle_core::template::{self, TemplateError, Values};
use heddle_kernel::keys::Keys;
use heddle_kernel::outgoing::{self, Outgoing};
use heddle_kernel::version::USER_AGENT;
use heddle_store::webhooks::SubscriptionId;
use heddle_store::webhooks::deliveries::DeliveryId;
use http::{HeaderName, HeaderValue, Method, header};
use serde_json::Value;

use super::sealed::{Secrets, Unreadable};

const DELIVERY: HeaderName = HeaderName::from_static("x-heddle-delivery");
const EVENT: HeaderName = HeaderName::from_static("x-heddle-event");

/// An event for a subscription.
pub(super) struct Message<'a> {
    pub(super) delivery: DeliveryId,
    pub(super) subscription: SubscriptionId,
    /// The shown URL; the full one is sealed.
    pub(super) url: &'a str,
    pub(super) sealed: &'a [u8],
    /// `{"payload": …}`.
    pub(super) template: Option<&'a Value>,
    pub(super) event_type: &'a str,
    /// The event as it was queued: without secrets.
    pub(super) event: &'a Value,
}

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsendable {
    /// A retry may help: another process, or this one with the right keys, may open them.
    #[error(transparent)]
    Secrets(#[from] Unreadable),
    /// A retry would not help.
    #[error("{0}")]
    Content(String),
}

impl From<String> for Unsendable {
    fn from(why: String) -> Self {
        Self::Content(why)
    }
}

impl Message<'_> {
    /// Returns the request, or why there can be none.
    pub(super) fn request(&self, keys: &Keys) -> Result<Outgoing, Unsendable> {
        let secrets = Secrets::open(keys, self.subscription, self.sealed)?;
        let url = secrets.url(self.url)?;
        let body = self.body()?;
        let value =
            |text: &str| HeaderValue::from_str(text).map_err(|_| "the event's type is no header".to_owned());
        let mut headers =
            vec![(DELIVERY, value(&self.delivery.to_string())?), (EVENT, value(self.event_type)?)];
        for (name, secret) in &secrets.headers {
            headers.push(outgoing::header(name, secret.expose())?);
        }
        for (name, default) in [(header::CONTENT_TYPE, "application/json"), (header::USER_AGENT, USER_AGENT)]
        {
            if !headers.iter().any(|(given, _)| *given == name) {
                headers.push((name, HeaderValue::from_static(default)));
            }
        }
        Ok(Outgoing {
            method: Method::POST,
            url: url.expose().to_owned(),
            headers,
            body,
            signing_secret: Some(secrets.signing),
            // A subscription has its own secret.
            organization_secrets: Vec::new(),
            is_path_secret: false,
        })
    }

    fn body(&self) -> Result<Vec<u8>, String> {
        let mut sent = match self.template {
            None => self.event.clone(),
            Some(template) => filled(&template["payload"], self.event)
                .map_err(|error| format!("the template cannot be filled: {error}"))?,
        };
        sanitize(&mut sent);
        Ok(sent.to_string().into_bytes())
    }
}

/// Fills the template with the event: `trigger` is its payload, `event` its envelope.
///
/// In a template of an older version, `trigger` was the whole event. No payload has a field of the envelope, so only
/// one of both readings has all values. The present reading is tried first.
fn filled(template: &Value, event: &Value) -> Result<Value, TemplateError> {
    let values = Values { trigger: &event["payload"], event: Some(event), outputs: &[], own: None };
    template::fill(template, &values).or_else(|error| {
        let before = Values { trigger: event, event: None, outputs: &[], own: None };
        template::fill(template, &before).map_err(|_| error)
    })
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::secret::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_filled_and_what_is_secret_goes() {
        let keys = Keys::from_texts("one", "two");
        let clock = Clock::default();
        let (delivery, subscription) = (clock.new_id(), clock.new_id());
        let secrets = Secrets {
            signing: Secret::new("s3cret"),
            headers: vec![("content-type".to_owned(), Secret::new("application/vnd.x+json"))],
            url: Some(Secret::new("https://hook.example/?token=x")),
        };
        let sealed = secrets.seal(&keys, subscription);
        let event = json!({ "event_type": "device.offline", "payload": { "name": "edge", "n": 7 } });
        let message = |template| Message {
            delivery,
            subscription,
            url: "https://hook.example/?…",
            sealed: &sealed,
            template,
            event_type: "device.offline",
            event: &event,
        };
        let plain = message(None).request(&keys).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&plain.body).unwrap(), event);
        assert_eq!(plain.url, "https://hook.example/?token=x");
        let template = json!({ "payload": {
            "text": "{{trigger.name}} is gone", "count": "{{trigger.n}}", "of": "{{event.event_type}}", "token": "x",
        } });
        let filled = message(Some(&template)).request(&keys).unwrap();
        let filled: Value = serde_json::from_slice(&filled.body).unwrap();
        assert_eq!(filled, json!({ "text": "edge is gone", "count": 7, "of": "device.offline" }));
        // As written when `trigger` was the whole event.
        let older = json!({ "payload": { "text": "{{trigger.payload.name}}: {{trigger.event_type}}" } });
        let filled = message(Some(&older)).request(&keys).unwrap();
        let filled: Value = serde_json::from_slice(&filled.body).unwrap();
        assert_eq!(filled, json!({ "text": "edge: device.offline" }));
        let kinds: Vec<_> =
            plain.headers.iter().filter(|(name, _)| name == "content-type").map(|(_, value)| value).collect();
        assert_eq!(kinds, ["application/vnd.x+json"]);
        let missing = json!({ "payload": "{{trigger.site}}" });
        let error = message(Some(&missing)).request(&keys).err().unwrap();
        assert!(matches!(&error, Unsendable::Content(why) if why.contains("trigger.site")), "{error}");
        let elsewhere = Message { subscription: clock.new_id(), ..message(None) };
        assert!(matches!(elsewhere.request(&keys), Err(Unsendable::Secrets(_))));
    }
}
