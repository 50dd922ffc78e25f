//! `fabric.notify`: sends a message through a channel, or to the administrators of the organization.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::notification::Severity;
use heddle_core::operation::StepErrorCode;
use heddle_core::redact::mask_text;
use heddle_delivery::notifications::deliver::{Undelivered, deliver};
use heddle_delivery::notifications::notices::tell_administrators;
use heddle_delivery::notifications::{BODY_CHARS_MAX, Message, SUBJECT_CHARS_MAX};
use heddle_kernel::http::error::Error;
use heddle_store::channels;
use heddle_store::channels::ChannelId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sink;
use crate::declarations::EVENT_WRITE;
use crate::operation::{Declaration, Operation, StepCall, StepError, object_schema, params_of};

const ID: &str = "fabric.notify";

pub(crate) struct Notify(Declaration);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    channel_id: Option<ChannelId>,
    subject: String,
    body: String,
    #[serde(default = "info")]
    severity: Severity,
}

fn info() -> Severity {
    Severity::Info
}

impl Notify {
    pub(crate) fn new() -> Self {
        let words = (
            ID,
            "Notify",
            "Sends a message through a channel of the organization; without one, a notice to its \
             administrators inside the service.",
        );
        let params = json!({
            "channel_id": {
                "type": ["string", "null"], "format": "uuid",
                "description": "Channel of the organization; absent, its administrators get a notice",
            },
            "subject": {
                "type": "string", "minLength": 1, "maxLength": SUBJECT_CHARS_MAX,
                "examples": ["Device offline"],
            },
            "body": {
                "type": "string", "maxLength": BODY_CHARS_MAX, "examples": ["Device edge is offline."],
            },
            "severity": { "type": "string", "enum": Severity::ALL, "default": "info" },
        });
        let output = json!({
            "channel_id": { "type": ["string", "null"], "format": "uuid" },
            "notice_id": {
                "type": ["string", "null"], "format": "uuid", "description": "Where no channel was named",
            },
            "status": { "type": ["integer", "null"], "description": "Of the channel's answer by HTTP" },
        });
        let params = object_schema(params, &["subject", "body"]);
        let output = object_schema(output, &["channel_id", "notice_id", "status"]);
        Self(sink(words, EVENT_WRITE, &params, output))
    }
}

impl Operation for Notify {
    fn declaration(&self) -> &Declaration {
        &self.0
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        async move {
            let params: Params = params_of(params)?;
            let message = message(&params)?;
            match params.channel_id {
                Some(id) => through(call, id, &message).await,
                None => inside(call, &message).await,
            }
        }
        .boxed()
    }
}

fn message(params: &Params) -> Result<Message, StepError> {
    let invalid = |text: String| StepError::new(StepErrorCode::InvalidParams, text);
    // One line: it becomes a header of a mail or of a request.
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut subject = params.subject.chars().map(plain).collect::<String>().trim().to_owned();
    let mut body = params.body.replace("\r\n", "\n").replace('\0', "\u{fffd}");
    if !(1..=SUBJECT_CHARS_MAX).contains(&subject.chars().count()) {
        return Err(invalid(format!("subject must have 1 to {SUBJECT_CHARS_MAX} characters")));
    }
    if body.chars().count() > BODY_CHARS_MAX {
        return Err(invalid(format!("body must have at most {BODY_CHARS_MAX} characters")));
    }
    mask_text(&mut subject);
    mask_text(&mut body);
    Ok(Message { subject, body, severity: params.severity, source: ID })
}

async fn through(call: &StepCall<'_>, id: ChannelId, message: &Message) -> Result<Value, StepError> {
    let found = async {
        let mut tx = call.app.db.read().await?;
        // The author's own organization, also where the author could see more.
        let scope = heddle_store::Scope::organization(call.author.org_id);
        channels::find_sealed(&mut tx, &scope, id).await
    };
    let found = found.await.map_err(|error| fault(&Error::from(error)))?.ok_or_else(|| {
        StepError::new(StepErrorCode::NotFound, format!("channel {id} does not exist in the organization"))
    })?;
    if !found.channel.is_enabled {
        let message = format!("channel '{}' is disabled; enable it, or take another", found.channel.label);
        return Err(StepError::new(StepErrorCode::DeliveryError, message));
    }
    match deliver(call.app, &found, message).await.map_err(|error| fault(&error))? {
        Ok(delivered) => Ok(json!({ "channel_id": id, "notice_id": null, "status": delivered.status })),
        Err(undelivered) => {
            let code = match &undelivered {
                Undelivered::Blocked(_) => StepErrorCode::SsrfBlocked,
                Undelivered::BadStatus { .. } => StepErrorCode::BadStatus,
                Undelivered::Failed(_) => StepErrorCode::DeliveryError,
            };
            let output = json!({ "channel_id": id, "notice_id": null, "status": undelivered.status() });
            Err(StepError { code, message: undelivered.to_string(), output: Some(output) })
        }
    }
}

async fn inside(call: &StepCall<'_>, message: &Message) -> Result<Value, StepError> {
    let told = async {
        let mut tx = call.app.db.write().await?;
        let origin = Some(format!("{}:{}", call.run_id, call.key));
        let id = tell_administrators(&mut tx, call.app, call.author.org_id, message, origin).await?;
        tx.commit().await?;
        Ok::<_, Error>(id)
    };
    let id = told.await.map_err(|error| fault(&error))?;
    Ok(json!({ "channel_id": null, "notice_id": id, "status": null }))
}

/// Writes the cause to the log; a run shows that the service itself failed.
fn fault(error: &Error) -> StepError {
    tracing::error!(error = %error, cause = ?std::error::Error::source(error), "a notification could not be made");
    StepError::new(StepErrorCode::Internal, "internal error")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(subject: &str, body: &str) -> Result<Message, StepErrorCode> {
        let params = json!({ "subject": subject, "body": body });
        message(&params_of(params).unwrap()).map_err(|error| error.code)
    }

    #[test]
    fn a_subject_is_one_line_and_both_are_bounded() {
        let message = checked(" Line\r\ndown ", "a\r\nb").unwrap();
        assert_eq!((message.subject.as_str(), message.body.as_str()), ("Line  down", "a\nb"));
        assert_eq!(message.severity, Severity::Info);
        for (subject, body) in [("  ", ""), (&*"s".repeat(201), ""), ("s", &*"b".repeat(4001))] {
            assert_eq!(checked(subject, body).unwrap_err(), StepErrorCode::InvalidParams);
        }
        assert_eq!(checked("s", "-----BEGIN PRIVATE KEY-----").unwrap().body, "***");
    }

    #[test]
    fn what_is_not_declared_is_refused() {
        for params in [json!({ "subject": "s" }), json!({ "subject": "s", "body": "b", "to": "x" })] {
            assert_eq!(params_of::<Params>(params).unwrap_err().code, StepErrorCode::InvalidParams);
        }
    }
}
