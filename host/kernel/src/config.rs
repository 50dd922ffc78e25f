//! Every setting in one typed struct, read and checked once at start.
//!
//! Settings come from the environment and, below it, from a file with the same
//! names in lower case: the one that `HEDDLE_CONFIG` names, else `heddle.toml`
//! in the working folder when there is one. Nothing else reads the environment.

mod mail;
mod outgoing;
pub(crate) mod smtp;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use heddle_core::secret::Secret;
use ipnet::IpNet;

/// A setting that cannot be used. Names the variable, the value and what is accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    #[error("{name}='{value}' is not accepted: {accepted}")]
    Value { name: &'static str, value: String, accepted: String },
    #[error("{name} must be set when ENVIRONMENT is {environment}: {accepted}")]
    Required { name: &'static str, environment: Environment, accepted: &'static str },
    #[error("configuration file '{path}' cannot be read: {reason}")]
    File { path: String, reason: String },
    #[error("configuration file has unknown setting '{0}'")]
    Unknown(String),
}

/// Every setting that cannot be used, at once. There is at least one.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl std::error::Error for ConfigErrors {}

impl std::fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

heddle_core::words! {
    pub enum Environment {
        Development = "development",
        Staging = "staging",
        Production = "production",
    }
}

/// One line of the settings table.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub default: &'static str,
    pub about: &'static str,
}

/// Text to a setting's type, with words for what is accepted.
trait Parse: Sized {
    const ACCEPTED: &'static str;
    fn parse(text: &str) -> Result<Self, String>;
}

macro_rules! parse_with_from_str {
    ($($type:ty: $accepted:literal,)+) => {$(
        impl Parse for $type {
            const ACCEPTED: &'static str = $accepted;
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| Self::ACCEPTED.to_owned())
            }
        }
    )+};
}

parse_with_from_str! {
    SocketAddr: "an address and port such as 127.0.0.1:8080",
    u32: "a whole number from 0 to 4294967295",
    PathBuf: "a path",
    String: "a text",
}

impl Parse for Secret {
    const ACCEPTED: &'static str = "a text";
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Secret::new(text))
    }
}

impl Parse for bool {
    const ACCEPTED: &'static str = "true or false";
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(Self::ACCEPTED.to_owned()),
        }
    }
}

impl Parse for Environment {
    const ACCEPTED: &'static str = "development, staging or production";
    fn parse(text: &str) -> Result<Self, String> {
        Environment::from_str(text).map_err(|_| Self::ACCEPTED.to_owned())
    }
}

impl<T: Parse> Parse for Option<T> {
    const ACCEPTED: &'static str = T::ACCEPTED;
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }
}

/// A comma-separated list; empty means none.
impl<T: Item> Parse for Vec<T> {
    const ACCEPTED: &'static str = T::ACCEPTED_ITEMS;
    fn parse(text: &str) -> Result<Self, String> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(|item| T::item(item).ok_or_else(|| T::ACCEPTED_ITEMS.to_owned())).collect()
    }
}

trait Item: Sized {
    const ACCEPTED_ITEMS: &'static str;
    fn item(text: &str) -> Option<Self>;
}

/// A plain address is a network of one.
impl Item for IpNet {
    const ACCEPTED_ITEMS: &'static str =
        "networks such as 10.1.0.0/16 or addresses such as 10.1.2.3, separated by commas";
    fn item(text: &str) -> Option<Self> {
        text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
    }
}

impl Item for String {
    const ACCEPTED_ITEMS: &'static str = "texts, separated by commas";
    fn item(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $field:ident: $type:ty = $name:literal, $default:literal;)+) => {
        #[derive(Debug, Clone)]
        pub struct Config {
            $($(#[doc = $about])+ pub $field: $type,)+
            /// Names of settings that were given and no longer have an effect.
            pub without_effect: Vec<String>,
        }

        impl Config {
            /// The table of all settings, for the documentation.
            pub const SETTINGS: &'static [Setting] = &[
                $(Setting { name: $name, default: $default, about: concat!($($about),+) },)+
            ];

            /// A setting that cannot be read is added to the faults, and gets its default.
            fn from_lookup(lookup: &dyn Fn(&str) -> Option<String>, faults: &mut Vec<ConfigError>) -> Self {
                Self {
                    without_effect: Vec::new(),
                    $($field: {
                        let text = lookup($name).unwrap_or_else(|| $default.to_owned());
                        <$type as Parse>::parse(text.trim()).unwrap_or_else(|accepted| {
                            faults.push(ConfigError::Value { name: $name, value: text, accepted });
                            <$type as Parse>::parse($default).expect("a test reads every default")
                        })
                    },)+
                }
            }
        }
    };
}

settings! {
    /// development, staging or production. The last two refuse to start without secrets.
    environment: Environment = "ENVIRONMENT", "development";
    /// Address and port to listen on.
    bind_addr: SocketAddr = "BIND_ADDR", "127.0.0.1:8080";
    /// Folder of the embedded database, generated keys and compiled adapters.
    data_dir: PathBuf = "DATA_DIR", "./data";
    /// `sqlite://…` or `postgres://…`; a SQLite file in the data folder when empty.
    database_url: Option<Secret> = "DATABASE_URL", "";
    /// Connections to the database per process.
    db_pool_size: u32 = "DB_POOL_SIZE", "20";
    /// Connections beyond them when all are busy.
    db_max_overflow: u32 = "DB_MAX_OVERFLOW", "30";
    /// Database of the service's own log lines; a second SQLite file in the data folder when empty.
    log_database_url: Option<Secret> = "LOG_DATABASE_URL", "";
    /// Connections to the log database per process.
    log_db_pool_size: u32 = "LOG_DB_POOL_SIZE", "10";
    /// Connections beyond them when all are busy.
    log_db_max_overflow: u32 = "LOG_DB_MAX_OVERFLOW", "15";
    /// `redis://…` where several processes serve together; within the process when empty.
    cache_url: Option<Secret> = "CACHE_URL", "";
    /// Signs tokens: at least 32 random bytes. Generated once in development.
    secret_key: Option<Secret> = "SECRET_KEY", "";
    /// Encrypts credentials: at least 32 random bytes. Generated once in development.
    encryption_key: Option<Secret> = "ENCRYPTION_KEY", "";
    /// The encryption key before this one: still opened with until `heddle keys rotate` has ended.
    encryption_key_previous: Option<Secret> = "ENCRYPTION_KEY_PREVIOUS", "";
    /// Encrypts the files of `heddle backup`: at least 12 characters.
    backup_passphrase: Option<Secret> = "BACKUP_PASSPHRASE", "";
    /// While true every write stays staged and nothing is applied. Sessions at devices are still opened and closed, as the packages declare it.
    adapter_read_only: bool = "ADAPTER_READ_ONLY", "true";
    /// Folder with one folder per adapter package.
    adapter_packages: Option<PathBuf> = "ADAPTER_PACKAGES", "";
    /// File with the publishers' keys that are trusted and the adapters that each may sign, as JSON.
    adapter_trusted_keys: Option<PathBuf> = "ADAPTER_TRUSTED_KEYS", "";
    /// Packages that may serve although a newer version did, as `id@version`, separated by commas.
    adapter_downgrades: Vec<String> = "ADAPTER_DOWNGRADES", "";
    /// Networks that controllers may have although the address guard refuses them, such as 127.0.0.0/8.
    egress_extra_networks: Vec<IpNet> = "EGRESS_EXTRA_NETWORKS", "";
    /// Networks or addresses that nothing may be sent to, whatever else is allowed: controllers, identity providers and webhooks.
    egress_denied_networks: Vec<IpNet> = "EGRESS_DENIED_NETWORKS", "";
    /// Hosts that webhooks may go to although they are in a private network, as names or addresses, separated by commas. One on this machine must be in `EGRESS_EXTRA_NETWORKS`, too.
    fabric_webhook_allowed_hosts: Vec<String> = "FABRIC_WEBHOOK_ALLOWED_HOSTS", "";
    /// Signs the requests of `fabric.webhook`; they are not signed when empty.
    fabric_webhook_signing_secret: Option<Secret> = "FABRIC_WEBHOOK_SIGNING_SECRET", "";
    /// Minutes that an access token is good for.
    access_token_minutes: u32 = "ACCESS_TOKEN_EXPIRE_MINUTES", "30";
    /// Days that a refresh token is good for.
    refresh_token_days: u32 = "REFRESH_TOKEN_EXPIRE_DAYS", "7";
    /// Fewest characters of a password, from 8 to 128.
    password_min_length: u32 = "PASSWORD_MIN_LENGTH", "12";
    /// A password needs an upper-case letter.
    password_require_uppercase: bool = "PASSWORD_REQUIRE_UPPERCASE", "true";
    /// A password needs a lower-case letter.
    password_require_lowercase: bool = "PASSWORD_REQUIRE_LOWERCASE", "true";
    /// A password needs a digit.
    password_require_digit: bool = "PASSWORD_REQUIRE_DIGIT", "true";
    /// A password needs a character that is neither a letter nor a digit.
    password_require_special: bool = "PASSWORD_REQUIRE_SPECIAL", "true";
    /// Lets anybody register an organization of their own.
    allow_registration: bool = "ALLOW_REGISTRATION", "false";
    /// Where people reach the service, such as `https://heddle.example.org`: links in mails begin with it.
    public_url: Option<String> = "PUBLIC_URL", "";
    /// Mail server: `smtps://user:password@host` speaks TLS from the first byte, `smtp://…` must offer STARTTLS. One on this host may do without: `smtp://localhost:25?tls=opportunistic`.
    smtp_url: Option<Secret> = "SMTP_URL", "";
    /// Sender of mails, such as `Heddle <heddle@example.org>`.
    smtp_from: Option<String> = "SMTP_FROM", "";
    /// File with the certificate authorities (PEM) of the mail server, in place of the system's.
    smtp_ca_file: Option<PathBuf> = "SMTP_CA_FILE", "";
    /// False where one-time codes cannot be trusted, as on a host with a wrong clock: users cannot set them up then.
    mfa_enrolment: bool = "MFA_ENROLMENT", "true";
    /// Serves the OpenAPI document and its pages, outside production.
    enable_docs: bool = "ENABLE_DOCS", "true";
    /// Serves `/metrics`; in production only together with `METRICS_AUTH_TOKEN`.
    enable_metrics: bool = "ENABLE_METRICS", "true";
    /// Token that readers of `/metrics` present.
    metrics_auth_token: Option<Secret> = "METRICS_AUTH_TOKEN", "";
    /// Origins of other sites whose pages may call the API and open the event stream, separated by commas; the own one always may.
    cors_origins: Vec<String> = "CORS_ORIGINS", "";
    /// Networks or addresses of the proxies before the service: only they may name the client's address and the scheme.
    trusted_proxies: Vec<IpNet> = "TRUSTED_PROXIES", "";
    /// Seconds that the head of a request may take, from its first byte; of a connection's first request, from the beginning.
    http_header_timeout_secs: u32 = "HTTP_HEADER_TIMEOUT_SECS", "10";
    /// Seconds that a request's body may take.
    http_body_timeout_secs: u32 = "HTTP_BODY_TIMEOUT_SECS", "60";
    /// Seconds that a connection stays open without a request.
    http_idle_timeout_secs: u32 = "HTTP_IDLE_TIMEOUT_SECS", "75";
    /// Most connections of clients at once; 0 takes as many as the limit of open files leaves, at most 16384.
    http_connections_max: u32 = "HTTP_CONNECTIONS_MAX", "0";
    /// Most connections of one address (IPv6: one /64) at once; trusted proxies may have more.
    http_connections_per_address: u32 = "HTTP_CONNECTIONS_PER_ADDRESS", "256";
    /// Requests per minute of one principal.
    rate_limit_rpm: u32 = "RATE_LIMIT_RPM", "600";
    /// Requests per second of one principal.
    rate_limit_burst: u32 = "RATE_LIMIT_BURST", "120";
    /// Accepted and without effect: the limit of the login routes is fixed.
    rate_limit_auth: Option<String> = "RATE_LIMIT_AUTH", "";
    /// Readiness also needs the cache and the log database.
    readiness_strict_deps: bool = "READINESS_STRICT_DEPS", "false";
    /// Refuses to start when the event bus or an adapter cannot be initialised.
    strict_startup: bool = "STRICT_STARTUP", "false";
    /// Refuses what goes beyond the quota of an organization's tier.
    enforce_org_quotas: bool = "ENFORCE_ORG_QUOTAS", "false";
    /// Seconds between two readings of a controller, where the controller does not say.
    sync_interval_secs: u32 = "SYNC_INTERVAL_SECS", "60";
    /// Seconds within which a change must be readable at the device when no confirm window is asked for.
    apply_hold_secs: u32 = "APPLY_HOLD_SECS", "30";
    /// Milliseconds that a device gets to carry a change out before it is read back over a new connection; three times as long where the path to it is at risk.
    apply_settle_ms: u32 = "APPLY_SETTLE_MS", "3000";
    /// Hours until a pending change expires, where the organization does not say.
    change_ttl_hours: u32 = "CHANGE_TTL_HOURS", "168";
    /// `text` or `json`.
    log_format: String = "LOG_FORMAT", "text";
    /// What is logged, in the form `info,heddle=debug`.
    log_filter: String = "LOG_FILTER", "info";
    /// Instances of components that can live at once.
    component_instances: u32 = "COMPONENT_INSTANCES", "512";
}

/// The end of the names of the vendors' own flags that `ADAPTER_READ_ONLY` has replaced.
const LEGACY_GATE: &str = "_READ_ONLY";

/// Secrets that documentation and examples have used; never accepted outside development.
const KNOWN_SECRETS: &[&str] = &["changeme", "change-me", "secret", "insecure", "default", "example"];

impl Config {
    /// Reads the environment and `heddle.toml`.
    pub fn from_environment() -> Result<Self, ConfigErrors> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
        let environment: BTreeMap<String, String> = std::env::vars().collect();
        let file = match environment.get("HEDDLE_CONFIG") {
            Some(path) => read_file(Path::new(path), true)?,
            None => read_file(Path::new("heddle.toml"), false)?,
        };
        Self::from_maps(&environment, &file)
    }

    /// The environment wins over the file.
    pub fn from_maps(
        environment: &BTreeMap<String, String>,
        file: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigErrors> {
        let known = |key: &str| Self::SETTINGS.iter().any(|s| s.name.eq_ignore_ascii_case(key));
        let is_legacy = |key: &str| key.to_ascii_uppercase().ends_with(LEGACY_GATE);
        let unknown = file.keys().filter(|key| !known(key) && !is_legacy(key));
        let mut faults: Vec<ConfigError> = unknown.cloned().map(ConfigError::Unknown).collect();
        let lookup =
            |name: &str| environment.get(name).or_else(|| file.get(&name.to_ascii_lowercase())).cloned();
        let mut config = Self::from_lookup(&lookup, &mut faults);
        config.without_effect = environment
            .keys()
            .chain(file.keys())
            .filter(|name| is_legacy(name) && !known(name) || name.eq_ignore_ascii_case("RATE_LIMIT_AUTH"))
            .map(|name| name.to_ascii_uppercase())
            .collect();
        config.check(&mut faults);
        if faults.is_empty() { Ok(config) } else { Err(ConfigErrors(faults)) }
    }

    fn check(&self, faults: &mut Vec<ConfigError>) {
        if self.log_format != "text" && self.log_format != "json" {
            faults.push(ConfigError::Value {
                name: "LOG_FORMAT",
                value: self.log_format.clone(),
                accepted: "text or json".to_owned(),
            });
        }
        if self.apply_settle_ms.saturating_mul(3) >= self.apply_hold_secs.saturating_mul(1000) {
            faults.push(ConfigError::Value {
                name: "APPLY_SETTLE_MS",
                value: self.apply_settle_ms.to_string(),
                accepted: "less than a third of APPLY_HOLD_SECS, so that the device can be read in time"
                    .to_owned(),
            });
        }
        if let Some(origin) = self.cors_origins.iter().find(|origin| !is_origin(origin)) {
            faults.push(ConfigError::Value {
                name: "CORS_ORIGINS",
                value: origin.clone(),
                accepted:
                    "origins such as https://app.example.org, separated by commas: scheme, host and port, \
                           no path and no '*'"
                        .to_owned(),
            });
        }
        self.check_mail(faults);
        self.check_outgoing(faults);
        for (name, key) in [("SECRET_KEY", &self.secret_key), ("ENCRYPTION_KEY", &self.encryption_key)] {
            faults.extend(self.check_key(name, key.as_ref().map(Secret::expose)).err());
        }
        self.check_ranges(faults);
        self.check_addresses(faults);
        if let Some(token) = &self.metrics_auth_token
            && self.environment != Environment::Development
            && is_weak(token.expose(), 16)
        {
            faults.push(ConfigError::Value {
                name: "METRICS_AUTH_TOKEN",
                value: "(hidden)".to_owned(),
                accepted: "at least 16 random bytes, for example from 'openssl rand -hex 24'".to_owned(),
            });
        }
        if self.environment == Environment::Production
            && self.egress_extra_networks.iter().any(|n| n.addr().is_loopback() || n.prefix_len() == 0)
        {
            faults.push(ConfigError::Value {
                name: "EGRESS_EXTRA_NETWORKS",
                value: "a loopback network or everything".to_owned(),
                accepted: "in production only networks that are neither".to_owned(),
            });
        }
    }

    fn check_ranges(&self, faults: &mut Vec<ConfigError>) {
        let ranges = [
            ("DB_POOL_SIZE", self.db_pool_size, 1, 1_000),
            ("DB_MAX_OVERFLOW", self.db_max_overflow, 0, 1_000),
            ("LOG_DB_POOL_SIZE", self.log_db_pool_size, 1, 1_000),
            ("LOG_DB_MAX_OVERFLOW", self.log_db_max_overflow, 0, 1_000),
            ("ACCESS_TOKEN_EXPIRE_MINUTES", self.access_token_minutes, 1, 1_440),
            ("REFRESH_TOKEN_EXPIRE_DAYS", self.refresh_token_days, 1, 365),
            ("RATE_LIMIT_RPM", self.rate_limit_rpm, 1, u32::MAX),
            ("RATE_LIMIT_BURST", self.rate_limit_burst, 1, u32::MAX),
            ("SYNC_INTERVAL_SECS", self.sync_interval_secs, 1, 86_400),
            ("APPLY_HOLD_SECS", self.apply_hold_secs, 1, 600),
            ("CHANGE_TTL_HOURS", self.change_ttl_hours, 1, 8_760),
            ("PASSWORD_MIN_LENGTH", self.password_min_length, 8, 128),
            ("HTTP_HEADER_TIMEOUT_SECS", self.http_header_timeout_secs, 1, 300),
            ("HTTP_BODY_TIMEOUT_SECS", self.http_body_timeout_secs, 1, 3_600),
            ("HTTP_IDLE_TIMEOUT_SECS", self.http_idle_timeout_secs, 1, 3_600),
            ("HTTP_CONNECTIONS_PER_ADDRESS", self.http_connections_per_address, 1, 1_000_000),
            ("COMPONENT_INSTANCES", self.component_instances, 1, 10_000),
        ];
        let outside = ranges.into_iter().filter(|(_, value, min, max)| !(min..=max).contains(&value));
        faults.extend(outside.map(|(name, value, min, max)| {
            let accepted = format!("a whole number from {min} to {max}");
            ConfigError::Value { name, value: value.to_string(), accepted }
        }));
    }

    /// They may hold passwords, and so are not quoted.
    fn check_addresses(&self, faults: &mut Vec<ConfigError>) {
        const DATABASE: &str = "sqlite://FILE or postgres://USER:PASSWORD@HOST:PORT/NAME";
        const CACHE: &str = "redis://USER:PASSWORD@HOST:PORT/NUMBER";
        let addresses = [
            ("DATABASE_URL", &self.database_url, &["sqlite:", "postgres://", "postgresql://"][..], DATABASE),
            (
                "LOG_DATABASE_URL",
                &self.log_database_url,
                &["sqlite:", "postgres://", "postgresql://"],
                DATABASE,
            ),
            ("CACHE_URL", &self.cache_url, &["redis://", "rediss://", "redis+unix://", "unix://"], CACHE),
        ];
        let fits = |url: &Secret, schemes: &[&str]| schemes.iter().any(|s| url.expose().starts_with(s));
        for (name, url, schemes, accepted) in addresses {
            if url.as_ref().is_some_and(|url| !fits(url, schemes)) {
                let (value, accepted) = ("(hidden)".to_owned(), accepted.to_owned());
                faults.push(ConfigError::Value { name, value, accepted });
            }
        }
    }

    fn check_key(&self, name: &'static str, key: Option<&str>) -> Result<(), ConfigError> {
        const ACCEPTED: &str = "at least 32 random bytes, for example from 'openssl rand -base64 48'";
        match key {
            None if self.environment == Environment::Development => Ok(()),
            None => Err(ConfigError::Required { name, environment: self.environment, accepted: ACCEPTED }),
            Some(key) => {
                if is_weak(key, 32) {
                    return Err(ConfigError::Value {
                        name,
                        value: "(hidden)".to_owned(),
                        accepted: ACCEPTED.to_owned(),
                    });
                }
                Ok(())
            }
        }
    }

    /// Where the database is, with the embedded default filled in. It may hold a password.
    pub fn database(&self) -> String {
        match &self.database_url {
            Some(url) => url.expose().to_owned(),
            None => format!("sqlite://{}?mode=rwc", self.data_dir.join("heddle.db").display()),
        }
    }

    /// Where the database of the log lines is, in the same way.
    pub fn log_database(&self) -> String {
        match &self.log_database_url {
            Some(url) => url.expose().to_owned(),
            None => format!("sqlite://{}?mode=rwc", self.data_dir.join("logs.db").display()),
        }
    }
}

/// Whether the origin is written as a browser writes it, for it is compared with what a browser sends.
fn is_origin(text: &str) -> bool {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    is_web
        && !text.contains('*')
        && url::Url::parse(text).is_ok_and(|url| url.origin().ascii_serialization() == text)
}

/// Whether a secret is too short, too uniform, or one of those that examples use.
fn is_weak(secret: &str, bytes_min: usize) -> bool {
    let lower = secret.to_ascii_lowercase();
    let distinct: std::collections::BTreeSet<char> = secret.chars().collect();
    secret.len() < bytes_min || distinct.len() < 8 || KNOWN_SECRETS.iter().any(|word| lower.contains(word))
}

fn read_file(path: &Path, required: bool) -> Result<BTreeMap<String, String>, ConfigError> {
    let error = |reason: String| ConfigError::File { path: path.display().to_string(), reason };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && !required => {
            return Ok(BTreeMap::new());
        }
        Err(cause) => return Err(error(cause.to_string())),
    };
    let table: toml::Table =
        text.parse().map_err(|cause: toml::de::Error| error(cause.message().to_owned()))?;
    let plain = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        toml::Value::Array(items) => items
            .iter()
            .map(|i| i.as_str().map_or_else(|| i.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(","),
        other => other.to_string(),
    };
    Ok(table.into_iter().map(|(key, value)| (key, plain(value))).collect())
}

#[cfg(test)]
mod tests;
