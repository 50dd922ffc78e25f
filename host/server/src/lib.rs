//! Heddle's server: the list of its features, and the command that serves them.

mod access_control;
mod features;
mod reserved;

pub use features::FEATURES;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::config::Config;
use heddle_kernel::opening::Surroundings;
use heddle_kernel::running::Running;

/// Opens everything but listens to nothing: for commands that only look.
///
/// # Errors
/// Where settings, keys, the database or the component runtime cannot be opened.
pub async fn open(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<SharedApp> {
    App::open(config, surroundings.into(), FEATURES).await
}

/// Opens the database, loads the adapters, takes up what a crash left, and listens.
///
/// # Errors
/// As [`open`], and where the address cannot be bound.
pub async fn start(config: Config, surroundings: impl Into<Surroundings>) -> anyhow::Result<Running> {
    Running::start(config, surroundings, FEATURES).await
}

#[cfg(test)]
#[path = "../commit.rs"]
mod commit;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::commit::of_checkout;

    #[test]
    fn the_commit_is_found_however_git_keeps_it() {
        let base = tempfile::tempdir().unwrap();
        let (git, id) = (base.path().join("main/.git"), "0123456789abcdef0123456789abcdef01234567");
        let found = |folder: &str| of_checkout(&base.path().join(folder)).map(|commit| commit.id);
        assert_eq!(found("main"), None);
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), format!("{id}\n")).unwrap();
        assert_eq!(found("main").as_deref(), Some("0123456789ab"));
        fs::write(git.join("HEAD"), "ref: refs/heads/work\n").unwrap();
        assert_eq!(found("main"), None);
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{id} refs/heads/work\n")).unwrap();
        assert_eq!(found("main").as_deref(), Some("0123456789ab"));
        fs::write(git.join("refs/heads/work"), id.replace('0', "f")).unwrap();
        assert_eq!(found("main").as_deref(), Some("f123456789ab"));
        let linked = git.join("worktrees/side");
        fs::create_dir_all(&linked).unwrap();
        fs::create_dir_all(base.path().join("side")).unwrap();
        fs::write(base.path().join("side/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
        fs::write(linked.join("HEAD"), "ref: refs/heads/work\n").unwrap();
        fs::write(linked.join("commondir"), "../..\n").unwrap();
        assert_eq!(found("side").as_deref(), Some("f123456789ab"));
    }
}
