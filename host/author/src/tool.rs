//! Programs that the author has: started with a bound on their time, and named with the command that installs them.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// The longest that a build may take: the first one of a project compiles its libraries.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_mins(20);
/// The longest that an installation may take.
pub(crate) const INSTALL_LIMIT: Duration = Duration::from_mins(5);
/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The variable that holds the token of `dev`. No other program gets it: libraries of a plugin run code of others when they
/// are built or installed.
pub(crate) const TOKEN: &str = "HEDDLE_TOKEN";

/// Runs a program to its end; what it prints goes to standard error.
///
/// # Errors
/// It cannot be started (`missing` says how to get it), failed, or was ended after `limit`.
pub(crate) fn run(command: &mut Command, limit: Duration, missing: &str) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(std::io::stderr()).env_remove(TOKEN);
    let mut child = command.spawn().with_context(|| format!("'{name}' cannot be started: {missing}"))?;
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "'{name}' failed ({status})");
            return Ok(());
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            bail!("'{name}' did not finish within {} s and was ended", limit.as_secs());
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// It cannot be read, or is larger.
pub(crate) fn read_bounded(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let file = std::fs::File::open(path).with_context(|| format!("'{}' cannot be read", path.display()))?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    let is_small = u64::try_from(bytes.len()).is_ok_and(|found| found <= bytes_max);
    ensure!(is_small, "'{}' has more than {bytes_max} bytes", path.display());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_a_bound_on_its_time_and_a_way_to_get_it() {
        let mut long = Command::new("sleep");
        let ended = run(long.arg("60"), Duration::from_millis(50), "").unwrap_err().to_string();
        assert!(ended.contains("did not finish"), "{ended}");
        let mut none = Command::new("heddle-has-no-such-tool");
        let missing = format!("{:#}", run(&mut none, INSTALL_LIMIT, "install it").unwrap_err());
        assert!(missing.contains("install it"), "{missing}");
        assert!(run(&mut Command::new("false"), INSTALL_LIMIT, "").is_err());
    }

    #[test]
    fn a_program_gets_no_token() {
        let mut asks = Command::new("sh");
        asks.args(["-c", "test -z \"$HEDDLE_TOKEN\" && test -n \"$OTHER\""]);
        run(asks.env(TOKEN, "secret").env("OTHER", "1"), INSTALL_LIMIT, "").unwrap();
    }

    #[test]
    fn a_file_has_a_bound_on_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"1234").unwrap();
        assert_eq!(read_bounded(&path, 4).unwrap(), b"1234");
        assert!(read_bounded(&path, 3).unwrap_err().to_string().contains("more than 3 bytes"));
    }
}
