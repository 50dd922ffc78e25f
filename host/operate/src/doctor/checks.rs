//! The checks, one function each.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use heddle_core::Clock;
use heddle_core::secret::Secret;
use heddle_kernel::config::{Config, Environment};
use heddle_kernel::feature::{Diagnostic, Feature, Features, Sealing};
use heddle_kernel::findings::Findings;
use heddle_kernel::keys::{KeyTexts, Keys, key_file};
use heddle_kernel::mail::Mailer;
use heddle_store::{Db, PoolSettings, Tx, sealed};
use rustix::fs::Access;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::rotate::reason;

const POOL: PoolSettings = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_secs(5) };
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Below this the disk is nearly full.
const FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;
/// Below this, writes will soon fail.
const FREE_BYTES_LEAST: u64 = 32 * 1024 * 1024;
const POSTGRES_MAJOR_MIN: i64 = 13;
/// Clock differences that cause a warning, and that make tokens and windows wrong.
const CLOCK_SECS_WARN: i64 = 2;
const CLOCK_SECS_FAIL: i64 = 60;
/// Most rows of each table that are opened as a sample.
const SAMPLE_ROWS: i64 = 200;

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

pub(super) fn settings(config: &Config, findings: &mut Findings) {
    for name in &config.without_effect {
        findings.warn(format!("settings: {name} has no effect any more"), "remove it");
    }
    if config.environment == Environment::Development && !config.bind_addr.ip().is_loopback() {
        findings.warn(
            format!(
                "settings: ENVIRONMENT is development and BIND_ADDR {} is not of this host only",
                config.bind_addr
            ),
            "set ENVIRONMENT=production, or listen on 127.0.0.1",
        );
    }
    if config.trusted_proxies.iter().any(|network| network.prefix_len() == 0) {
        findings.warn(
            "settings: TRUSTED_PROXIES trusts every address, so anybody can name the client's address",
            "name only the networks of your proxies",
        );
    }
    if config.adapter_read_only {
        findings.ok("settings: ADAPTER_READ_ONLY is true, so changes can be staged and none can be applied");
    } else {
        findings.ok("settings: ADAPTER_READ_ONLY is false, so reviewed changes can be applied");
    }
    match &config.backup_passphrase {
        None => findings.warn(
            "settings: BACKUP_PASSPHRASE is not set, so no backup can be made",
            "set it, keep it apart from the backups, and run 'heddle backup' regularly",
        ),
        Some(given) if given.expose().chars().count() < super::super::PASSPHRASE_CHARS_MIN => findings.fail(
            "settings: BACKUP_PASSPHRASE is too short, so no backup can be made",
            "give at least 12 characters",
        ),
        Some(_) => findings.ok("settings: BACKUP_PASSPHRASE is set"),
    }
}

pub(super) fn data_folder(config: &Config, findings: &mut Findings) {
    let name = format!("DATA_DIR '{}'", config.data_dir.display());
    if !config.data_dir.is_dir() {
        if config.data_dir.exists() {
            findings.fail(format!("{name}: is not a folder"), "give the path of a folder");
        } else {
            findings.warn(format!("{name}: does not exist yet"), "it is created at the first start");
        }
        return;
    }
    if rustix::fs::access(&config.data_dir, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        findings.fail(format!("{name}: cannot be written"), "give it to the user that the service runs as");
        return;
    }
    match rustix::fs::statvfs(&config.data_dir) {
        Err(error) => {
            findings.warn(format!("{name}: its free space is not known: {error}"), "look at the disk");
        }
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let what = format!("{name}: writable, {} MiB free", free / (1024 * 1024));
            match free {
                0..FREE_BYTES_LEAST => {
                    findings.fail(what, "free space on that disk: nothing can be written soon");
                }
                FREE_BYTES_LEAST..FREE_BYTES_MIN => findings.warn(what, "free space on that disk"),
                _ => findings.ok(what),
            }
        }
    }
}

/// Finds the keys, where there are any.
pub(super) fn keys(config: &Config, findings: &mut Findings) -> Option<Keys> {
    let texts = match KeyTexts::find(config) {
        Ok(Some(texts)) => texts,
        Ok(None) => {
            findings.warn("keys: there are none yet", "they are generated at the first start in development");
            return None;
        }
        Err(error) => {
            findings.fail(
                format!("keys: {}", chain(&error)),
                "restore keys.json from a backup, or its permissions",
            );
            return None;
        }
    };
    let file = key_file(config);
    if let Ok(about) = std::fs::metadata(&file)
        && about.permissions().mode() & 0o077 != 0
    {
        findings
            .warn("keys: keys.json can be read by other users", format!("chmod 600 '{}'", file.display()));
    }
    let keys = texts.keys();
    findings.ok(format!("keys: the encryption key is {}", keys.key_id()));
    Some(keys)
}

pub(super) async fn database(
    config: &Config,
    keys: Option<&Keys>,
    features: Features,
    findings: &mut Findings,
) {
    let db = match Db::open_as_is(&config.database(), &POOL).await {
        Ok(Some(db)) => db,
        Ok(None) => {
            findings.warn(
                "database: there is none yet",
                "it is created by 'heddle migrate' or at the first start",
            );
            return;
        }
        Err(error) => {
            let mend = match &error {
                heddle_store::Error::Corrupt => "restore the last backup into an empty DATA_DIR",
                _ => "check DATABASE_URL, and that the database runs and lets this host in",
            };
            findings.fail(format!("database: {}", chain(&error)), mend);
            return;
        }
    };
    if let Err(error) = look_into(&db, keys, features, findings).await {
        findings
            .fail(format!("database: {}", chain(&error)), "mend the database, or restore the last backup");
    }
    db.close().await;
}

async fn look_into(
    db: &Db,
    keys: Option<&Keys>,
    features: Features,
    findings: &mut Findings,
) -> heddle_store::Result<()> {
    server(db, findings).await?;
    let faults = db.integrity_faults().await?;
    if !faults.is_empty() {
        findings.fail(
            format!("database: the file is damaged: {}", faults.join("; ")),
            "stop the service and restore the last backup into an empty DATA_DIR",
        );
        return Ok(());
    }
    let schema = db.schema().await?;
    match schema.version {
        None => {
            findings.warn("database: it is empty", "run 'heddle migrate', or start the service");
            return Ok(());
        }
        Some(found) if found > schema.known => {
            findings.fail(
                format!("database: it is at version {found}, this program knows up to {}", schema.known),
                "install the newer Heddle again",
            );
            return Ok(());
        }
        Some(found) if !schema.altered.is_empty() => {
            findings.fail(
                format!(
                    "database: it is at version {found}, and its migrations {:?} are not this program's",
                    schema.altered
                ),
                "use the Heddle that made it",
            );
            return Ok(());
        }
        Some(found) if schema.pending > 0 => {
            findings.warn(
                format!("database: it is at version {found}, this program at {}", schema.known),
                "make a backup with the version before, then run 'heddle migrate' or start the service",
            );
            return Ok(());
        }
        Some(found) => findings.ok(format!("database: sound, at version {found}")),
    }
    let mut tx = db.read().await?;
    if let Some(keys) = keys {
        seals(&mut tx, keys, features, findings).await?;
    }
    for diagnostic in features.iter().flat_map(Feature::diagnostics) {
        if let Diagnostic::Rows(ask) = diagnostic {
            ask(&mut tx, findings).await?;
        }
    }
    Ok(())
}

async fn server(db: &Db, findings: &mut Findings) -> heddle_store::Result<()> {
    let before = Clock::default().now();
    let Some((version, clock)) = db.server().await? else { return Ok(()) };
    let what = format!("database: PostgreSQL {version}");
    if version < POSTGRES_MAJOR_MIN {
        findings.fail(what, format!("upgrade it to {POSTGRES_MAJOR_MIN} or newer"));
    } else {
        findings.ok(what);
    }
    let apart = (clock - before).num_seconds().abs();
    let what = format!("database: its clock is {apart} s from this host's");
    match apart {
        0..CLOCK_SECS_WARN => findings.ok(what),
        CLOCK_SECS_WARN..CLOCK_SECS_FAIL => findings.warn(what, "let both hosts set their clocks by NTP"),
        _ => findings.fail(what, "let both hosts set their clocks by NTP"),
    }
    Ok(())
}

/// Whether what is sealed opens: by key, and for a sample of the rows.
async fn seals(
    tx: &mut Tx,
    keys: &Keys,
    features: Features,
    findings: &mut Findings,
) -> heddle_store::Result<()> {
    let (mut under_current, mut under_previous) = (0, 0);
    let mut unknown: BTreeMap<String, i64> = BTreeMap::new();
    let mut broken = Vec::new();
    for Sealing { column, .. } in features.sealed() {
        for share in sealed::shares(tx, column).await? {
            if keys.is_current(&share.mark) {
                under_current += share.rows;
            } else if keys.knows(&share.mark) {
                under_previous += share.rows;
            } else {
                let id = hex::encode(share.mark.get(1..).unwrap_or_default());
                *unknown.entry(id).or_default() += share.rows;
            }
        }
        for row in sealed::under_others(tx, column, &[], None, SAMPLE_ROWS).await? {
            let context = format!("{}:{}", column.table, row.id);
            if keys.knows(&row.bytes) && keys.open_sealed(&context, &row.bytes).is_err() {
                broken.push(reason(keys, column, &row));
            }
        }
    }
    for (id, rows) in &unknown {
        findings.fail(
            format!("secrets: {rows} rows are sealed with the key {id}, which is not configured"),
            "set ENCRYPTION_KEY or ENCRYPTION_KEY_PREVIOUS to that key",
        );
    }
    if under_previous > 0 {
        findings.warn(
            format!("secrets: {under_previous} rows are still under the previous key"),
            "run 'heddle keys rotate'",
        );
    }
    for what in &broken {
        findings.fail(format!("secrets: {what}"), "enter that credential again, or discard that change");
    }
    if unknown.is_empty() && broken.is_empty() {
        findings.ok(format!("secrets: {} rows are sealed, and open", under_current + under_previous));
    }
    Ok(())
}

pub(super) async fn log_database(config: &Config, findings: &mut Findings) {
    let Some(url) = &config.log_database_url else { return };
    let reached = match Db::open_as_is(url.expose(), &POOL).await {
        Ok(Some(db)) => {
            let answer = db.read().await.map(drop);
            db.close().await;
            answer.map(|()| true)
        }
        Ok(None) => Ok(false),
        Err(error) => Err(error),
    };
    match reached {
        Ok(true) => findings.ok("log database: answers"),
        Ok(false) => findings.warn("log database: there is none yet", "it is created at the first start"),
        Err(error) => findings.fail(
            format!("log database: {}", chain(&error)),
            "check LOG_DATABASE_URL, and that the database runs and lets this host in",
        ),
    }
}

pub(super) async fn cache(config: &Config, findings: &mut Findings) {
    let Some(url) = &config.cache_url else { return };
    match tokio::time::timeout(ANSWER_LIMIT, ping_cache(url)).await {
        Ok(Ok(what)) => findings.ok(format!("cache: {what}")),
        Ok(Err(reason)) => {
            findings.fail(format!("cache: {reason}"), "check CACHE_URL, and that the cache runs");
        }
        Err(_) => findings.fail("cache: gives no answer", "check CACHE_URL, and that the cache runs"),
    }
}

async fn ping_cache(url: &Secret) -> Result<&'static str, String> {
    let url: url::Url = url.expose().parse().map_err(|_| "CACHE_URL is no address".to_owned())?;
    let host = url.host_str().ok_or("CACHE_URL names no host")?;
    let address = (host.trim_matches(['[', ']']), url.port().unwrap_or(6379));
    let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    if url.scheme() == "rediss" {
        return Ok("accepts connections (it speaks TLS and was not asked more)");
    }
    let asked = async {
        stream.write_all(b"PING\r\n").await?;
        let mut answer = [0; 64];
        let got = stream.read(&mut answer).await?;
        Ok::<_, std::io::Error>(answer[..got].to_vec())
    };
    match asked.await.map_err(|error| error.to_string())?.as_slice() {
        answer if answer.starts_with(b"+PONG") => Ok("answers"),
        // The server checks the password of the URL at its start.
        answer if answer.starts_with(b"-NOAUTH") => Ok("answers, and asks for a password"),
        _ => Err("something answers that is no Redis".to_owned()),
    }
}

/// Checks whether the mail server accepts our login. No mail is sent.
pub(super) async fn mail(config: &Config, findings: &mut Findings) {
    if config.smtp_url.is_none() {
        let what = "mail: SMTP_URL is not set, so nobody can reset a password by mail";
        if config.environment == Environment::Development {
            findings.ok(format!("{what}; links are written to the log in development"));
        } else {
            findings.warn(what, "set SMTP_URL, SMTP_FROM and PUBLIC_URL");
        }
        return;
    }
    let mailer = match Mailer::open(config) {
        Ok(mailer) => mailer,
        Err(error) => {
            findings.fail(format!("mail: {error:#}"), "correct the settings that begin with SMTP_");
            return;
        }
    };
    match mailer.check().await {
        Ok(host) => findings.ok(format!("mail: {host} answers and lets us in")),
        Err(error) => findings.fail(
            format!("mail: {error}"),
            "check SMTP_URL and SMTP_CA_FILE, and that the server lets this host in",
        ),
    }
}

pub(super) async fn address(config: &Config, findings: &mut Findings) {
    let address = config.bind_addr;
    match TcpListener::bind(address).await {
        Ok(_) => findings.ok(format!("address: {address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => findings.warn(
            format!("address: {address} is in use"),
            "nothing if Heddle itself is running there; else stop the other process or change BIND_ADDR",
        ),
        Err(error) => findings.fail(
            format!("address: cannot listen on {address}: {error}"),
            "set BIND_ADDR to an address of this host and a port that the user may open",
        ),
    }
}
