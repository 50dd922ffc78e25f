//! Limits that the operating system sets for this process: the number of open files, and that its memory is never
//! written to a file.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

use crate::config::Config;

/// Files that are always open: libraries, logs, timers, packages, pipes of children.
const FILES_OF_PROCESS: u64 = 64;
/// Files of one connection to an `SQLite` database: the file, its log and its index.
const FILES_PER_DATABASE_CONNECTION: u64 = 3;
/// The share of the files that is kept for connections to controllers, receivers and providers.
const OUTGOING_SHARE: u64 = 4;
const FILES_OUTGOING_MAX: u64 = 4_096;
/// Most connections, even where the files would allow more: each takes memory, too.
const CONNECTIONS_MAX: u64 = 16_384;
/// Fewest connections with which the service is of use.
const CONNECTIONS_MIN: u64 = 8;

/// Lets the process open as many files as the operator's limit allows, and returns that number.
pub fn raise_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(error = %error, files.max = limit.current, "limit of open files cannot be raised");
        return limit.current.unwrap_or(u64::MAX);
    }
    limit.maximum.unwrap_or(u64::MAX)
}

/// Keeps keys and credentials out of core dumps, and out of reach of other processes of the same user.
pub fn forbid_core_dumps() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(error = %error, "core dumps cannot be limited");
    }
    // The limit has no effect where dumps are piped into a program.
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(error = %error, "process cannot be kept from being dumped");
    }
}

/// Returns how many connections may come in, so that files are left for outgoing connections and for the databases.
pub(crate) fn connections(config: &Config, files: u64) -> usize {
    let pools =
        [config.db_pool_size, config.db_max_overflow, config.log_db_pool_size, config.log_db_max_overflow];
    let databases = (pools.into_iter().map(u64::from).sum::<u64>() + 2) * FILES_PER_DATABASE_CONNECTION;
    let outgoing = (files / OUTGOING_SHARE).min(FILES_OUTGOING_MAX);
    let left = files.saturating_sub(FILES_OF_PROCESS + databases + outgoing).max(CONNECTIONS_MIN);
    let asked = u64::from(config.http_connections_max);
    if asked > left {
        tracing::warn!(
            "HTTP_CONNECTIONS_MAX={asked} is more than {files} open files allow: {left} connections are accepted"
        );
    }
    let max = if asked == 0 { left.min(CONNECTIONS_MAX) } else { asked.min(left) };
    usize::try_from(max).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        let config = |max: &str| {
            let settings = [("HTTP_CONNECTIONS_MAX".to_owned(), max.to_owned())].into();
            Config::from_maps(&settings, &std::collections::BTreeMap::new(), &[]).unwrap()
        };
        for files in [64, 256, 1_024, 4_096, 1_048_576, u64::MAX] {
            let max = connections(&config("0"), files) as u64;
            assert!((CONNECTIONS_MIN..=CONNECTIONS_MAX).contains(&max), "{files}: {max}");
            assert!(max == CONNECTIONS_MIN || max <= files - files.min(16_384) / 4, "{files}: {max}");
        }
        assert_eq!(connections(&config("100"), 1_048_576), 100);
        assert!(connections(&config("5000"), 1_024) < 1_000);
    }
}
