//! `heddle-marketplace`: makes the signed files of a catalogue, which any web server serves, and verifies them.
//!
//! A registry is a folder. `public` in it is served; `draft` holds what the next publication will have. Secret keys lie
//! elsewhere: each command takes the files of those that it needs.

mod files;
mod keys;
mod packages;
mod publish;
mod registry;
mod roots;
mod verify;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use heddle_marketplace::catalog::Time;

#[derive(Parser)]
#[command(name = "heddle-marketplace", about = "Make and verify the catalogue of a marketplace", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a key for a role; prints its public half
    Keygen {
        /// What the key is for, such as `root-1`
        #[arg(long)]
        name: String,
        /// New file for the key; keep it secret
        #[arg(long)]
        out: PathBuf,
    },
    /// Make a registry and its first root
    Init(roots::Init),
    /// Prepare the next root: other keys or thresholds of a role, or a new expiry
    Rotate(roots::Rotate),
    /// Add signatures to the prepared root, and publish it once it has enough
    Sign(roots::Sign),
    /// Add a publisher, or keys and ids of one
    Publisher(packages::AddPublisher),
    /// Add a version of a plugin from its package
    Add(packages::Add),
    /// Stop offering a version; where it is installed, it stays
    Yank(packages::Yank),
    /// Revoke a package, component, key or plugin; the next timestamp says so
    Revoke(packages::Revoke),
    /// Sign the draft as the next catalogue, and a timestamp that names it
    Publish(publish::Publish),
    /// Sign a new timestamp for the published catalogue, with all revocations
    Timestamp(publish::Renew),
    /// Go through a registry, or a mirror of its `public`, as a server does
    Verify(verify::Verify),
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // When standard error is closed, there is no place left to report to.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    let now = now();
    match command {
        Command::Keygen { name, out } => keys::make(&name, &out),
        Command::Init(init) => init.execute(now),
        Command::Rotate(rotate) => rotate.execute(now),
        Command::Sign(sign) => sign.execute(),
        Command::Publisher(publisher) => publisher.execute(now),
        Command::Add(add) => add.execute(now),
        Command::Yank(yank) => yank.execute(),
        Command::Revoke(revoke) => revoke.execute(),
        Command::Publish(publish) => publish.execute(now),
        Command::Timestamp(renew) => renew.execute(now),
        Command::Verify(verify) => verify.execute(now),
    }
}

/// The time of the whole command, in whole seconds, as signed files have it.
fn now() -> Time {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tool has no part of the host, which owns the other clock"
    )]
    let now = chrono::Utc::now();
    chrono::SubsecRound::trunc_subsecs(now, 0)
}

fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
