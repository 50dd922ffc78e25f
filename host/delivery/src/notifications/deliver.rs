//! Sends a message to a channel once, in the format of the service behind it.
//!
//! There is no retry, except for mails, which the mailer retries: the caller sees the outcome.

use axum::http::{HeaderName, HeaderValue, Method, header};
use heddle_core::notification::ChannelKind;
use heddle_core::secret::Secret;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_kernel::mail::Mail;
use heddle_kernel::metrics::MailOutcome;
use heddle_kernel::outgoing::{self, Outgoing, Undelivered as Unsent};
use heddle_store::channels::{ChannelId, SealedChannel};
use serde_json::Value;

use super::message::Message;
use super::sealed::WebhookSecrets;
use super::settings::{Email, Ntfy, Webhook, read};

/// Characters of an answer that are passed on.
const ANSWER_CHARS_MAX: usize = 200;

/// The outcome of a delivered message.
#[derive(Debug)]
pub struct Delivered {
    /// Status of the answer, of kinds that are reached by HTTP.
    pub status: Option<u16>,
}

/// Why a message did not arrive. Contains neither a secret address nor a recipient.
#[derive(Debug, thiserror::Error)]
pub enum Undelivered {
    #[error("the destination is refused: {0}")]
    Blocked(String),
    #[error("the service answered {status}: {answer}")]
    BadStatus { status: u16, answer: String },
    #[error("{0}")]
    Failed(String),
}

impl Undelivered {
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::BadStatus { status, .. } => Some(*status),
            Self::Blocked(_) | Self::Failed(_) => None,
        }
    }
}

/// Names the row for which a channel's secret is sealed.
pub(super) fn context(id: ChannelId) -> String {
    format!("channel:{id}")
}

/// Sends a message once, whether the channel is enabled or not.
///
/// # Errors
/// The outer one is a fault of this service.
pub async fn deliver(
    app: &SharedApp,
    found: &SealedChannel,
    message: &Message,
) -> Result<Result<Delivered, Undelivered>, Error> {
    let channel = &found.channel;
    let secret = secret(app, found)?;
    Ok(match channel.kind {
        ChannelKind::Email => mail(app, &read::<Email>(channel)?, message).await,
        ChannelKind::Webhook => {
            let said = message.for_webhook(channel.org_id, channel.id, app.clock.now());
            let secrets = secret.as_ref().map(WebhookSecrets::read).unwrap_or_default();
            match secrets.url(read::<Webhook>(channel)?.url) {
                Some(url) => {
                    send(app, Outgoing { signing_secret: secrets.signing, ..json(url, &said) }).await
                }
                None => Err(Undelivered::Failed("its url cannot be opened: give it again".to_owned())),
            }
        }
        ChannelKind::Slack => send(app, hidden(needed(secret)?, &message.for_slack())).await,
        ChannelKind::Teams => send(app, hidden(needed(secret)?, &message.for_teams())).await,
        ChannelKind::Ntfy => send(app, ntfy(&read::<Ntfy>(channel)?, secret.as_ref(), message)?).await,
    })
}

pub(super) fn secret(app: &App, found: &SealedChannel) -> Result<Option<Secret>, Error> {
    let Some(sealed) = &found.secret else { return Ok(None) };
    let plain = app.keys.open_sealed(&context(found.channel.id), sealed).map_err(Error::internal)?;
    let text = std::str::from_utf8(&plain).map_err(Error::internal)?;
    Ok(Some(Secret::new(text)))
}

fn needed(secret: Option<Secret>) -> Result<String, Error> {
    let secret = secret.ok_or_else(|| Error::internal("a channel of this kind has an address"))?;
    Ok(secret.expose().to_owned())
}

fn json(url: String, said: &Value) -> Outgoing {
    Outgoing {
        method: Method::POST,
        url,
        headers: vec![(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body: said.to_string().into_bytes(),
        signing_secret: None,
        organization_secrets: Vec::new(),
        is_path_secret: false,
    }
}

/// Returns a request to an address that is a secret.
fn hidden(url: String, said: &Value) -> Outgoing {
    Outgoing { is_path_secret: true, ..json(url, said) }
}

fn ntfy(settings: &Ntfy, token: Option<&Secret>, message: &Message) -> Result<Outgoing, Error> {
    let text = |value: &str| HeaderValue::from_str(value).map_err(Error::internal);
    let mut headers = vec![
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (HeaderName::from_static("priority"), HeaderValue::from_static(message.ntfy_priority())),
    ];
    if let Some(title) = message.ntfy_title() {
        headers.push((HeaderName::from_static("title"), text(&title)?));
    }
    if let Some(token) = token {
        let mut value = text(&format!("Bearer {}", token.expose()))?;
        value.set_sensitive(true);
        headers.push((header::AUTHORIZATION, value));
    }
    Ok(Outgoing {
        method: Method::POST,
        url: settings.address(),
        headers,
        body: message.ntfy_body().into_bytes(),
        signing_secret: None,
        organization_secrets: Vec::new(),
        is_path_secret: false,
    })
}

async fn send(app: &SharedApp, request: Outgoing) -> Result<Delivered, Undelivered> {
    let answered = outgoing::send(app, request).await.map_err(|unsent| match unsent {
        Unsent::Blocked(reason) => Undelivered::Blocked(reason),
        Unsent::Unreached(reason) | Unsent::Failed(reason) => Undelivered::Failed(reason),
    })?;
    let status = answered.status;
    if (200..300).contains(&status) {
        return Ok(Delivered { status: Some(status) });
    }
    let answer = answered.text.chars().filter(|letter| !letter.is_control()).take(ANSWER_CHARS_MAX).collect();
    Err(Undelivered::BadStatus { status, answer })
}

/// Sends one mail to each recipient, so that no recipient sees the others. The message has arrived when all mails were
/// sent.
async fn mail(app: &SharedApp, settings: &Email, message: &Message) -> Result<Delivered, Undelivered> {
    let stop = app.tasks.stopping();
    let one = |to: &String| {
        let mail = Mail {
            to: to.clone(),
            subject: message.mail_subject().into(),
            text: Secret::new(message.body.replace('\n', "\r\n")),
        };
        let stop = stop.clone();
        async move {
            let Some(_place) = app.mailer.place() else {
                app.metrics.mail(MailOutcome::Dropped);
                return Err(Undelivered::Failed("too many mails are waiting; try again later".to_owned()));
            };
            let sent = app.mailer.send(&mail, &app.clock, &stop).await;
            app.metrics.mail(if sent.is_ok() { MailOutcome::Sent } else { MailOutcome::Failed });
            sent.map_err(|error| Undelivered::Failed(format!("a mail was not sent: {error}")))
        }
    };
    let sent = futures::future::join_all(settings.recipients.iter().map(one)).await;
    sent.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(Delivered { status: None })
}
