//! The simulated firewall as a program: prints its addresses as one line of JSON, and runs until told to stop.

use std::time::Duration;

use clap::Parser;
use heddle_lab_opnsense::{Firewall, Release, Settings};

/// The arguments of the program.
#[derive(Parser)]
#[command(
    about = "A simulated OPNsense firewall; --username and --password are key and secret of the administrator"
)]
struct Arguments {
    #[command(flatten)]
    lab: heddle_lab::Options,
    /// The release with which it starts.
    #[arg(long, value_enum, default_value_t)]
    release: Release,
    /// A version that it tells in place of that of its release, such as 27.1.1.
    #[arg(long)]
    tells: Option<String>,
    /// How many filter rules it has.
    #[arg(long, default_value_t = 4)]
    rules: usize,
    /// A plugin that is installed, such as os-frr; may be repeated. All that are known when absent.
    #[arg(long)]
    plugin: Vec<String>,
    /// No plugin is installed.
    #[arg(long, conflicts_with = "plugin")]
    bare: bool,
    /// How many bytes a download of the configuration has at least.
    #[arg(long, default_value_t = 0)]
    backup_bytes_min: usize,
    /// Seconds that a restart takes.
    #[arg(long, default_value_t = 20)]
    boot_secs: u64,
    /// Seconds that a firmware job takes.
    #[arg(long, default_value_t = 10)]
    job_secs: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Arguments::parse();
    let usual = Settings::default();
    let settings = Settings {
        release: options.release,
        told_version: options.tells,
        rules: options.rules,
        plugins: (options.bare || !options.plugin.is_empty()).then_some(options.plugin),
        admin: (
            options.lab.username_or(&usual.admin.0).to_owned(),
            options.lab.password_or(&usual.admin.1).to_owned(),
        ),
        backup_bytes_min: options.backup_bytes_min,
        boot: Duration::from_secs(options.boot_secs),
        job: Duration::from_secs(options.job_secs),
        ..usual
    };
    heddle_lab::run(options.lab.builder(Firewall::new(settings))).await
}
