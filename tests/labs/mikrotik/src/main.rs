//! The simulated router as a program: prints its addresses as one line of JSON, and runs until told to stop.

use std::time::Duration;

use clap::Parser;
use heddle_lab_mikrotik::{Release, Router, Settings};

/// The arguments of the program.
#[derive(Parser)]
#[command(about = "A simulated MikroTik router")]
struct Arguments {
    #[command(flatten)]
    lab: heddle_lab::Options,
    /// The release with which it starts.
    #[arg(long, value_enum, default_value_t)]
    release: Release,
    /// A version that it tells in place of that of its release, such as 7.30.1.
    #[arg(long)]
    tells: Option<String>,
    /// How many rules of the filter it has.
    #[arg(long, default_value_t = 11)]
    rules: usize,
    /// A package that is installed, such as user-manager; may be repeated. All that are known when absent.
    #[arg(long)]
    package: Vec<String>,
    /// No package is installed beside the base.
    #[arg(long, conflicts_with = "package")]
    bare: bool,
    /// A virtual router, without the hardware of a board.
    #[arg(long)]
    is_virtual: bool,
    /// How many bytes an export of the configuration has at least.
    #[arg(long, default_value_t = 0)]
    export_bytes_min: usize,
    /// Seconds that a restart takes.
    #[arg(long, default_value_t = 20)]
    boot_secs: u64,
    /// Milliseconds that a second of a command takes.
    #[arg(long, default_value_t = 1000)]
    second_ms: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Arguments::parse();
    let usual = Settings::default();
    let settings = Settings {
        release: options.release,
        told_version: options.tells,
        rules: options.rules,
        packages: (options.bare || !options.package.is_empty()).then_some(options.package),
        is_virtual: options.is_virtual,
        admin: (
            options.lab.username_or(&usual.admin.0).to_owned(),
            options.lab.password_or(&usual.admin.1).to_owned(),
        ),
        is_secure: options.lab.tls,
        export_bytes_min: options.export_bytes_min,
        boot: Duration::from_secs(options.boot_secs),
        second: Duration::from_millis(options.second_ms),
        ..usual
    };
    heddle_lab::run(options.lab.builder(Router::new(settings))).await
}
