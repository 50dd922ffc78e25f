//! Limits setup on a reachable service to callers that can read its log or its data folder.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use heddle_core::secret::{Secret, random_secret};
use heddle_kernel::app::App;
use heddle_kernel::config::Config;
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_kernel::keys::sync_folder;
use heddle_store::setup;
use subtle::ConstantTimeEq as _;

/// Most wrong tokens, of all clients together, within a minute.
const WRONG_MAX: u32 = 10;
const WRONG_WINDOW: Duration = Duration::from_mins(1);
/// The log message that is written while setup is open.
const INVITATION: &str =
    "setup is open; create the first organization and its administrator, with a password of your own";
/// A shorter file was not written by this program.
const TOKEN_BYTES_MIN: usize = 32;

/// Demands the token of this process, when there is one.
#[derive(Default)]
pub(crate) struct Gate {
    token: OnceLock<Secret>,
    wrong: Mutex<Option<(Instant, u32)>>,
}

impl Gate {
    /// Returns the gate of this process.
    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(super) fn is_shut(&self) -> bool {
        self.token.get().is_some()
    }

    /// # Errors
    /// 403 without the token, 429 after too many wrong tokens.
    pub(super) fn pass(&self, given: Option<&Secret>) -> Result<(), Error> {
        let Some(token) = self.token.get() else { return Ok(()) };
        // Guesses of other clients must not lock out a caller that has the token.
        if given.is_some_and(|given| given.expose().as_bytes().ct_eq(token.expose().as_bytes()).into()) {
            return Ok(());
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = match *wrong {
            Some((since, tries)) if since.elapsed() < WRONG_WINDOW => (since, tries),
            _ => (Instant::now(), 0),
        };
        if tries.1 >= WRONG_MAX {
            return Err(Error::RateLimited(RateExceeded::Minute));
        }
        *wrong = Some((tries.0, tries.1 + 1));
        let (kind, what) = match given {
            None => ("setup_token_required", "setup_token is needed"),
            Some(_) => ("setup_token_invalid", "setup_token is not right"),
        };
        let message = format!(
            "{what}: the log of this server's start shows it, and the file 'setup-token' in its data folder holds it"
        );
        Err(Error::Refused { kind, message })
    }
}

fn path(config: &Config) -> PathBuf {
    config.data_dir.join("setup-token")
}

/// Shuts the gate where the service listens beyond this machine and setup is open, and logs how to open it.
///
/// The token survives a restart. A file that a crash left after the setup is removed.
pub(super) async fn shut(app: &App, addr: SocketAddr) -> anyhow::Result<()> {
    let is_completed = setup::is_completed(&mut app.db.read().await?).await?;
    if is_completed {
        return remove(&app.config).context("file 'setup-token' cannot be removed");
    }
    if app.config.bind_addr.ip().to_canonical().is_loopback() {
        tracing::info!("{INVITATION}: {}", command(addr, None));
        return Ok(());
    }
    let token = read_or_make(&app.config).context("file 'setup-token' cannot be written")?;
    tracing::warn!("{INVITATION}: {}", command(addr, Some(&token)));
    // Called only at the start, so the cell was empty.
    let _ = Gate::of(app).token.set(token);
    Ok(())
}

/// Returns the shell command for the setup. Beside what is required the body has a site, which controllers need.
fn command(addr: SocketAddr, token: Option<&Secret>) -> String {
    let token = token.map(|token| format!(r#""setup_token":"{}","#, token.expose())).unwrap_or_default();
    format!(
        r#"curl -X POST http://{addr}{}/setup/complete -H 'content-type: application/json' -d '{{{token}"organization":{{"name":"Example"}},"admin":{{"username":"admin","email":"admin@example.net","password":"YOUR-PASSWORD"}},"site":{{"name":"Main"}}}}'"#,
        heddle_kernel::http::PREFIX
    )
}

/// Removes the token, which is no longer of use.
pub(super) fn remove(config: &Config) -> io::Result<()> {
    match fs::remove_file(path(config)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_or_make(config: &Config) -> io::Result<Secret> {
    let path = path(config);
    if let Ok(text) = fs::read_to_string(&path)
        && text.trim().len() >= TOKEN_BYTES_MIN
    {
        return Ok(Secret::new(text.trim()));
    }
    let token = random_secret();
    let staging = path.with_extension("new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staging)?;
    writeln!(file, "{}", token.expose())?;
    file.sync_all()?;
    fs::rename(&staging, &path)?;
    sync_folder(&path)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens_and_guessing_ends_soon() {
        let gate = Gate::default();
        gate.pass(None).unwrap();
        gate.token.set(Secret::new("right-right-right-right-right-right")).unwrap();
        let kind = |given: Option<&str>| gate.pass(given.map(Secret::new).as_ref()).map_err(|e| e.kind());
        assert_eq!(kind(None), Err("setup_token_required"));
        assert_eq!(kind(Some("right-right-right-right-right-righ")), Err("setup_token_invalid"));
        assert_eq!(kind(Some("right-right-right-right-right-right")), Ok(()));
        for _ in 2..WRONG_MAX {
            assert_eq!(kind(Some("")), Err("setup_token_invalid"));
        }
        assert_eq!(kind(Some("")), Err("rate_limited"));
        assert_eq!(kind(Some("right-right-right-right-right-right")), Ok(()));
    }
}
