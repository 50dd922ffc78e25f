//! What every request and every feature of the server needs, and no feature by name: the edge, who calls, the event stream, the
//! audit log, settings, and the shape of a feature.

pub mod app;
pub mod audit;
pub mod bulk;
pub mod cache;
pub mod caller;
pub mod checks;
pub mod config;
pub mod declarations;
pub mod events;
pub mod feature;
pub mod files;
pub mod findings;
pub mod hashing;
mod health;
pub mod http;
pub mod keys;
mod listener;
pub mod logs;
pub mod mail;
pub mod metrics;
pub mod misfit;
pub mod modules;
pub mod names;
pub mod nearest;
pub mod opening;
pub mod outgoing;
pub mod process;
pub mod recent;
pub mod resource;
pub mod retention;
pub mod running;
pub mod sample;
pub mod slug;
mod task;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod unreached;
pub mod version;

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
