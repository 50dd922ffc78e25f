//! Every setting in a typed struct, read and checked once at start: here those that the kernel and the commands read, in
//! features those that features read.
//!
//! Settings come from the environment and, below it, from a file with the same
//! names in lower case: the one that `HEDDLE_CONFIG` names, else `heddle.toml`
//! in the working folder when there is one. Nothing else reads the environment.

mod declare;
mod mail;
mod outgoing;
pub(crate) mod smtp;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use heddle_core::secret::Secret;
use ipnet::IpNet;

use self::declare::OfFeatures;
pub use self::declare::{Item, Lookup, Parse, Setting, Settings, SettingsOf, check_range, read_one};
use crate::settings;

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

settings! {
    /// Settings that the kernel and the commands read.
    pub struct KernelSettings {
        /// development, staging or production. The last two refuse to start without secrets.
        environment: Environment = "ENVIRONMENT", "development";
        /// Address and port to listen on.
        bind_addr: SocketAddr = "BIND_ADDR", "127.0.0.1:8080";
        /// Folder of the embedded database, generated keys and compiled adapters.
        data_dir: PathBuf = "DATA_DIR", "./data";
        /// `sqlite://…` or `postgres://…`; a SQLite file in the data folder when empty.
        database_url: Option<Secret> = "DATABASE_URL", "";
        /// Connections to the database per process.
        db_pool_size: u32 = "DB_POOL_SIZE", "20", from 1 to 1000;
        /// Connections beyond them when all are busy.
        db_max_overflow: u32 = "DB_MAX_OVERFLOW", "30", from 0 to 1000;
        /// Database of the service's own log lines; a second SQLite file in the data folder when empty.
        log_database_url: Option<Secret> = "LOG_DATABASE_URL", "";
        /// Connections to the log database per process.
        log_db_pool_size: u32 = "LOG_DB_POOL_SIZE", "10", from 1 to 1000;
        /// Connections beyond them when all are busy.
        log_db_max_overflow: u32 = "LOG_DB_MAX_OVERFLOW", "15", from 0 to 1000;
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
        /// Networks that controllers may have although the address guard refuses them, such as 127.0.0.0/8.
        egress_extra_networks: Vec<IpNet> = "EGRESS_EXTRA_NETWORKS", "";
        /// Networks or addresses that nothing may be sent to, whatever else is allowed: controllers, identity providers and webhooks.
        egress_denied_networks: Vec<IpNet> = "EGRESS_DENIED_NETWORKS", "";
        /// Private networks in which plugins may have their targets, where they declare it and a person agreed to it.
        plugin_private_networks: Vec<IpNet> = "PLUGIN_PRIVATE_NETWORKS", "";
        /// Hosts that webhooks may go to although they are in a private network, as names or addresses, separated by commas. One on this machine must be in `EGRESS_EXTRA_NETWORKS`, too.
        fabric_webhook_allowed_hosts: Vec<String> = "FABRIC_WEBHOOK_ALLOWED_HOSTS", "";
        /// Where people reach the service, such as `https://heddle.example.org`: links in mails begin with it.
        public_url: Option<String> = "PUBLIC_URL", "";
        /// Mail server: `smtps://user:password@host` speaks TLS from the first byte, `smtp://…` must offer STARTTLS. One on this host may do without: `smtp://localhost:25?tls=opportunistic`.
        smtp_url: Option<Secret> = "SMTP_URL", "";
        /// Sender of mails, such as `Heddle <heddle@example.org>`.
        smtp_from: Option<String> = "SMTP_FROM", "";
        /// File with the certificate authorities (PEM) of the mail server, in place of the system's.
        smtp_ca_file: Option<PathBuf> = "SMTP_CA_FILE", "";
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
        http_header_timeout_secs: u32 = "HTTP_HEADER_TIMEOUT_SECS", "10", from 1 to 300;
        /// Seconds that a request's body may take.
        http_body_timeout_secs: u32 = "HTTP_BODY_TIMEOUT_SECS", "60", from 1 to 3600;
        /// Seconds that a connection stays open without a request.
        http_idle_timeout_secs: u32 = "HTTP_IDLE_TIMEOUT_SECS", "75", from 1 to 3600;
        /// Most connections of clients at once; 0 takes as many as the limit of open files leaves, at most 16384.
        http_connections_max: u32 = "HTTP_CONNECTIONS_MAX", "0";
        /// Most connections of one address (IPv6: one /64) at once; trusted proxies may have more.
        http_connections_per_address: u32 = "HTTP_CONNECTIONS_PER_ADDRESS", "256", from 1 to 1_000_000;
        /// Requests per minute of one principal.
        rate_limit_rpm: u32 = "RATE_LIMIT_RPM", "600", from 1 to 4_294_967_295;
        /// Requests per second of one principal.
        rate_limit_burst: u32 = "RATE_LIMIT_BURST", "120", from 1 to 4_294_967_295;
        /// Accepted and without effect: the limit of the login routes is fixed.
        rate_limit_auth: Option<String> = "RATE_LIMIT_AUTH", "";
        /// Readiness also needs the cache and the log database.
        readiness_strict_deps: bool = "READINESS_STRICT_DEPS", "false";
        /// Refuses to start when the event bus or an adapter cannot be initialised.
        strict_startup: bool = "STRICT_STARTUP", "false";
        /// `text` or `json`.
        log_format: String = "LOG_FORMAT", "text";
        /// What is logged, in the form `info,heddle=debug`.
        log_filter: String = "LOG_FILTER", "info";
        /// Instances of components that can live at once.
        component_instances: u32 = "COMPONENT_INSTANCES", "512", from 1 to 10000;
    }
}

/// All settings, those of the features included.
#[derive(Debug, Clone)]
pub struct Config {
    common: KernelSettings,
    /// Names of settings that were given and no longer have an effect.
    pub without_effect: Vec<String>,
    of_features: OfFeatures,
}

impl std::ops::Deref for Config {
    type Target = KernelSettings;

    fn deref(&self) -> &KernelSettings {
        &self.common
    }
}

impl std::ops::DerefMut for Config {
    fn deref_mut(&mut self) -> &mut KernelSettings {
        &mut self.common
    }
}

/// The end of the names of the vendors' own flags that `ADAPTER_READ_ONLY` has replaced.
const LEGACY_GATE: &str = "_READ_ONLY";

/// Secrets that documentation and examples have used; never accepted outside development.
const KNOWN_SECRETS: &[&str] = &["changeme", "change-me", "secret", "insecure", "default", "example"];

impl Config {
    /// The lines of all settings: first the kernel's, then the features' in their order.
    pub fn table(declared: &[SettingsOf]) -> impl Iterator<Item = &'static Setting> {
        KernelSettings::TABLE.iter().chain(declared.iter().flat_map(|settings| settings.table))
    }

    /// The settings that a feature declared.
    ///
    /// # Panics
    /// Where no feature of the program declares them.
    pub fn of<S: Settings>(&self) -> &S {
        self.of_features.get().expect("a feature of the program declares these settings")
    }

    /// Reads the environment and `heddle.toml`, for the settings that these features declare.
    pub fn from_environment(declared: &[SettingsOf]) -> Result<Self, ConfigErrors> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
        let environment: BTreeMap<String, String> = std::env::vars().collect();
        let file = match environment.get("HEDDLE_CONFIG") {
            Some(path) => read_file(Path::new(path), true)?,
            None => read_file(Path::new("heddle.toml"), false)?,
        };
        Self::from_maps(&environment, &file, declared)
    }

    /// The environment wins over the file.
    pub fn from_maps(
        environment: &BTreeMap<String, String>,
        file: &BTreeMap<String, String>,
        declared: &[SettingsOf],
    ) -> Result<Self, ConfigErrors> {
        let known = |key: &str| Self::table(declared).any(|s| s.name.eq_ignore_ascii_case(key));
        let is_legacy = |key: &str| key.to_ascii_uppercase().ends_with(LEGACY_GATE);
        let unknown = file.keys().filter(|key| !known(key) && !is_legacy(key));
        let mut faults: Vec<ConfigError> = unknown.cloned().map(ConfigError::Unknown).collect();
        let lookup =
            |name: &str| environment.get(name).or_else(|| file.get(&name.to_ascii_lowercase())).cloned();
        let common = KernelSettings::read(&lookup, &mut faults);
        let features = declared.iter().copied();
        let of_features = OfFeatures::read(features, &lookup, common.environment, &mut faults);
        let without_effect = environment
            .keys()
            .chain(file.keys())
            .filter(|name| is_legacy(name) && !known(name) || name.eq_ignore_ascii_case("RATE_LIMIT_AUTH"))
            .map(|name| name.to_ascii_uppercase())
            .collect();
        let config = Self { common, without_effect, of_features };
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
pub fn is_weak(secret: &str, bytes_min: usize) -> bool {
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
