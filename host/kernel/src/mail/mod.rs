//! Mails to people, over SMTP.
//!
//! Mails are sent from background work. Only a request that tests a notification channel waits for the mail server.
//!
//! The caller writes the text of a mail. Recipient and text are never logged here, and the server's answer is not
//! logged either, because it may repeat them.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use heddle_core::Clock;
use heddle_core::secret::Secret;
use lettre::address::AddressError;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, Message};
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use url::Host;

use crate::config::smtp::{Security, Server};
use crate::config::{Config, Environment};

/// Longest duration of one attempt, from the connection to the server's last answer.
const TRY_LIMIT: Duration = Duration::from_secs(10);
/// Pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Mails that are sent at once.
const AT_ONCE_MAX: usize = 4;
/// Mails that may wait for one of these places.
const WAITING_MAX: usize = 500;

/// Longest line that is sent without encoding (RFC 5321 section 4.5.3.1.6).
const LINE_CHARS_MAX: usize = 998;

type Transport = AsyncSmtpTransport<Tokio1Executor>;

/// Sends mails, a few at a time.
#[derive(Debug)]
pub struct Mailer {
    way: Option<Way>,
    places: Arc<Semaphore>,
    senders: Semaphore,
}

#[derive(Debug)]
struct Way {
    transport: Transport,
    from: Mailbox,
    host: String,
}

/// A mail in plain text.
pub struct Mail {
    pub to: String,
    /// One line.
    pub subject: Cow<'static, str>,
    /// Lines end with CRLF. The text may hold a link that authenticates its reader.
    pub text: Secret,
}

/// One of a bounded number of places for work that sends a mail at its end.
#[derive(Debug)]
pub struct Place {
    _held: OwnedSemaphorePermit,
}

/// Why a mail was not sent. Contains no address and no text that the server repeated.
#[derive(Debug, thiserror::Error)]
pub enum Undelivered {
    #[error("no mail server is set")]
    NoServer,
    #[error("address or text cannot be written into a mail")]
    Unwritable,
    #[error("mail server gives no answer within {} s", TRY_LIMIT.as_secs())]
    NoAnswer,
    #[error("mail server cannot be reached: {0}")]
    Unreachable(String),
    #[error("TLS with the mail server fails: {0}")]
    Tls(String),
    #[error("mail server refuses with status {0}")]
    Refused(smtp::response::Code),
    #[error("mail server does not offer what is needed: {0}")]
    Lacks(String),
    #[error("mail server does not speak SMTP")]
    NotSmtp,
    #[error("service is stopping")]
    Stopping,
}

impl Undelivered {
    /// Whether another attempt would fail in the same way.
    fn is_final(&self) -> bool {
        match self {
            Self::Refused(code) => code.severity == smtp::response::Severity::PermanentNegativeCompletion,
            Self::NoServer | Self::Unwritable | Self::Lacks(_) | Self::Stopping => true,
            Self::NoAnswer | Self::Unreachable(_) | Self::Tls(_) | Self::NotSmtp => false,
        }
    }
}

impl From<smtp::Error> for Undelivered {
    fn from(error: smtp::Error) -> Self {
        if let Some(code) = error.status() {
            return Self::Refused(code);
        }
        if error.is_timeout() {
            return Self::NoAnswer;
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        if error.is_tls() || is_certificate(&error) {
            Self::Tls(cause)
        } else if error.is_client() {
            Self::Lacks(cause)
        } else if error.is_response() {
            Self::NotSmtp
        } else {
            Self::Unreachable(cause)
        }
    }
}

/// A failed handshake looks like a broken connection.
fn is_certificate(error: &smtp::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let of_io = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if of_io.is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>) {
            return true;
        }
        cause = inner.source();
    }
    false
}

impl From<AddressError> for Undelivered {
    fn from(_: AddressError) -> Self {
        Self::Unwritable
    }
}

impl Mailer {
    /// Reads the settings; does not connect yet.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let way = match (&config.smtp_url, &config.smtp_from) {
            (Some(url), Some(from)) => Some(Way::open(config, url, from)?),
            _ => None,
        };
        if way.is_none() && config.environment != Environment::Development {
            tracing::warn!("SMTP_URL is not set: nobody can reset a password by mail");
        }
        Ok(Self {
            way,
            places: Arc::new(Semaphore::new(AT_ONCE_MAX + WAITING_MAX)),
            senders: Semaphore::new(AT_ONCE_MAX),
        })
    }

    /// Whether mails can be sent at all.
    pub fn is_set(&self) -> bool {
        self.way.is_some()
    }

    /// Returns a place for work that sends a mail at its end; `None` while all places are taken.
    pub fn place(&self) -> Option<Place> {
        self.places.clone().try_acquire_owned().ok().map(|held| Place { _held: held })
    }

    /// Sends a mail, in at most three attempts. There is no further attempt once the service stops.
    pub async fn send(
        &self,
        mail: &Mail,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Result<(), Undelivered> {
        let way = self.way.as_ref().ok_or(Undelivered::NoServer)?;
        let message = way.message(mail, clock)?;
        let _sender = tokio::select! {
            biased;
            sender = self.senders.acquire() => sender.expect("the places are never closed"),
            () = stop.cancelled() => return Err(Undelivered::Stopping),
        };
        let mut pauses = PAUSES.iter();
        loop {
            let Err(error) = way.hand_over(&message).await else { return Ok(()) };
            let Some(pause) = pauses.next().filter(|_| !error.is_final()) else { return Err(error) };
            tokio::select! {
                () = tokio::time::sleep(*pause) => {}
                () = stop.cancelled() => return Err(error),
            }
        }
    }

    /// Checks whether the server can be reached, proves its identity and accepts our login; returns its name. Sends no
    /// mail.
    pub async fn check(&self) -> Result<&str, Undelivered> {
        let way = self.way.as_ref().ok_or(Undelivered::NoServer)?;
        let asked = tokio::time::timeout(TRY_LIMIT, way.transport.test_connection()).await;
        let is_well = asked.map_err(|_| Undelivered::NoAnswer)??;
        if is_well { Ok(&way.host) } else { Err(Undelivered::NotSmtp) }
    }
}

impl Way {
    fn open(config: &Config, url: &Secret, from: &str) -> anyhow::Result<Self> {
        let server =
            Server::parse(url.expose()).map_err(|accepted| anyhow::anyhow!("SMTP_URL: {accepted}"))?;
        let from = from.parse().context("SMTP_FROM is no address")?;
        let tls = || tls(config, &server.host);
        let tls = match server.security {
            Security::Wrapped => Tls::Wrapper(tls()?),
            Security::Required => Tls::Required(tls()?),
            Security::Opportunistic => Tls::Opportunistic(tls()?),
        };
        let mut builder = Transport::builder_dangerous(&server.host)
            .port(server.port)
            .tls(tls)
            .timeout(Some(TRY_LIMIT))
            .hello_name(hello(config));
        if let Some((user, password)) = &server.login {
            builder = builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()));
        }
        Ok(Self { transport: builder.build(), from, host: server.host })
    }

    fn message(&self, mail: &Mail, clock: &Clock) -> Result<Message, Undelivered> {
        let to = Mailbox::new(None, mail.to.parse()?);
        if mail.subject.chars().any(char::is_control) {
            return Err(Undelivered::Unwritable);
        }
        let text = mail.text.expose();
        let body = if text.is_ascii() && text.lines().all(|line| line.len() <= LINE_CHARS_MAX) {
            // Sent without encoding, however long a link is: encoding would change its characters.
            Body::dangerous_pre_encoded(text.as_bytes().to_vec(), ContentTransferEncoding::SevenBit)
        } else {
            Body::new(text.to_owned())
        };
        let id = format!("<{}@{}>", clock.new_id::<uuid::Uuid>(), self.from.email.domain());
        // Asks automatic responders not to answer (RFC 3834).
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(mail.subject.as_ref())
            .date(SystemTime::from(clock.now()))
            .message_id(Some(id))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .header(ContentType::TEXT_PLAIN)
            .body(body)
            .map_err(|_| Undelivered::Unwritable)
    }

    async fn hand_over(&self, message: &Message) -> Result<(), Undelivered> {
        let sent = tokio::time::timeout(TRY_LIMIT, self.transport.send(message.clone())).await;
        sent.map_err(|_| Undelivered::NoAnswer)??;
        Ok(())
    }
}

/// The system's certificate authorities, or those of `SMTP_CA_FILE` in their place.
fn tls(config: &Config, host: &str) -> anyhow::Result<TlsParameters> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(path) = &config.smtp_ca_file {
        let name = format!("SMTP_CA_FILE '{}'", path.display());
        let pem = std::fs::read(path).with_context(|| format!("{name} cannot be read"))?;
        anyhow::ensure!(
            pem.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----"),
            "{name} holds no certificate: give authorities in PEM form"
        );
        let authorities = Certificate::from_pem(&pem).with_context(|| format!("{name} is not PEM"))?;
        builder = builder.certificate_store(CertificateStore::None).add_root_certificate(authorities);
    }
    builder.build().context("TLS for the mail server cannot be set up")
}

/// Returns the name with which the service greets the mail server.
fn hello(config: &Config) -> ClientId {
    match config.link_host() {
        Some(Host::Domain(name)) => ClientId::Domain(name),
        Some(Host::Ipv4(ip)) => ClientId::Ipv4(ip),
        Some(Host::Ipv6(ip)) => ClientId::Ipv6(ip),
        None => ClientId::default(),
    }
}
