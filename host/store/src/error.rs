//! What can go wrong in the database, as cases that a client can act on.

use sqlx::error::{DatabaseError, ErrorKind};

/// The result of the store's functions. Its error is [`Error`] unless another one is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why the database did not do what was asked. Errors of both databases are sorted into the same cases.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing answers, or the connection broke. Another try may succeed.
    #[error("database gives no answer")]
    Unavailable(#[source] Source),
    /// Others hold the locks or connections. Another try may succeed.
    #[error("database is busy")]
    Busy,
    /// No space is left.
    #[error("database has no space left")]
    Full,
    /// The file or the server accepts no writes.
    #[error("database is read-only")]
    ReadOnly,
    /// The file is damaged, or is no database.
    #[error("database is damaged, or is not a database")]
    Corrupt,
    /// A value that must be unique is taken; names the index.
    #[error("value is taken ('{0}')")]
    Unique(String),
    /// The address is not one of a database; says what would be.
    #[error("database address is not valid: {0}")]
    Url(&'static str),
    /// A newer version of the program has changed the tables.
    #[error(
        "database is at version {found}, this program knows up to {known}: install the newer version again"
    )]
    TooNew { found: i64, known: i64 },
    /// Another process serves the database file; names the lock that it holds.
    #[error(
        "another process serves this database file (it holds the lock on '{0}'); stop it first, \
         or use PostgreSQL, which several processes may serve together"
    )]
    Served(String),
    /// Users whose names are the same in the form in which names are compared; names them. Nothing was changed.
    #[error(
        "users cannot be told apart when upper and lower case and other spellings of a letter are the same: {0}; \
         change the email of one of each two, or remove one, with the version that served this database, \
         and start this version again"
    )]
    SameNames(String),
    /// The tables could not be brought up to date.
    #[error("database cannot be migrated")]
    Migration(#[source] Source),
    /// A fault of ours.
    #[error("database refused a statement")]
    Internal(#[source] Source),
}

impl Error {
    /// Whether this is the refusal of a value that the index `name` keeps unique.
    pub fn is_unique(&self, name: &str) -> bool {
        matches!(self, Error::Unique(index) if index == name)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as Sql;
        match error {
            Sql::Database(ref database) => match classify(database.as_ref()) {
                Some(known) => known,
                None if is_unavailable(database.as_ref()) => Error::Unavailable(Box::new(error)),
                None => Error::Internal(Box::new(error)),
            },
            Sql::PoolTimedOut => Error::Busy,
            Sql::Io(_) | Sql::Tls(_) | Sql::Protocol(_) | Sql::PoolClosed | Sql::WorkerCrashed => {
                Error::Unavailable(Box::new(error))
            }
            other => Error::Internal(Box::new(other)),
        }
    }
}

fn classify(error: &dyn DatabaseError) -> Option<Error> {
    if error.kind() == ErrorKind::UniqueViolation {
        return Some(Error::Unique(unique_index(error)));
    }
    let code = error.code()?;
    if let Some(sqlite) = sqlite_code(error) {
        return match (sqlite & 0xff, sqlite) {
            (5 | 6, _) => Some(Error::Busy),
            // 4874: the file that readers and the writer share could not grow.
            (13, _) | (_, 4874) => Some(Error::Full),
            (8, _) => Some(Error::ReadOnly),
            (11 | 26, _) => Some(Error::Corrupt),
            _ => None,
        };
    }
    match code.as_ref() {
        "40001" | "40P01" | "55P03" => Some(Error::Busy),
        "53100" => Some(Error::Full),
        "25006" => Some(Error::ReadOnly),
        "XX001" | "XX002" => Some(Error::Corrupt),
        _ => None,
    }
}

/// The extended result code, when the error is `SQLite`'s.
fn sqlite_code(error: &dyn DatabaseError) -> Option<i32> {
    error.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    error.code()?.parse().ok()
}

fn is_unavailable(error: &dyn DatabaseError) -> bool {
    match (sqlite_code(error), error.code()) {
        // Input and output failed, or the file cannot be opened.
        (Some(code), _) => matches!(code & 0xff, 10 | 14),
        // The connection failed, too many of them, or the server starts or stops.
        (None, Some(code)) => code.starts_with("08") || code == "53300" || code.starts_with("57P0"),
        (None, None) => false,
    }
}

/// The name of the index. `SQLite` names the columns instead, so they are looked up.
fn unique_index(error: &dyn DatabaseError) -> String {
    if let Some(name) = error.constraint() {
        return name.to_owned();
    }
    let message = error.message();
    let columns = message.rsplit(": ").next().unwrap_or(message);
    match columns {
        "organization.slug" => "organization_slug",
        "app_user.username_folded" => "app_user_username",
        "app_user.email_folded" => "app_user_email",
        "user_session.refresh_hash" => "user_session_refresh",
        "site.org_id, site.slug" => "site_slug",
        "site_grant.user_id, site_grant.site_id" => "site_grant_pkey",
        "device.controller_id, device.identity" => "device_identity",
        "change.controller_id" => "change_one_apply",
        "change.run_key" => "change_run_key",
        "change_saga_part.controller_id" => "change_saga_one_lock",
        "api_key.prefix" => "api_key_prefix",
        "oauth2_grant.code_hash" => "oauth2_grant_code",
        "idempotency.user_id, idempotency.idempotency_key" => "idempotency_pkey",
        "user_identity.provider_id, user_identity.issuer, user_identity.subject" => "user_identity_subject",
        "plugin.plugin_id" => "plugin_name",
        "sso_attempt.state_hash" => "sso_attempt_state",
        "event.org_id, event.seq" => "event_seq",
        "audit.org_id, audit.seq" => "audit_seq",
        // An index over an expression is named itself: index 'app_user_email'.
        other => other.trim_start_matches("index '").trim_end_matches('\''),
    }
    .to_owned()
}
