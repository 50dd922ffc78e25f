//! The simulated firewall as a program: prints its addresses as one line of JSON, and runs until told to stop.

use std::time::Duration;

use clap::Parser;
use heddle_lab_pfsense::{Pfsense, Release, Settings};

/// The arguments of the program.
#[derive(Parser)]
#[command(about = "A simulated pfSense firewall with the REST API package")]
struct Arguments {
    #[command(flatten)]
    lab: heddle_lab::Options,
    /// The release of the REST API package.
    #[arg(long, value_enum, default_value_t)]
    release: Release,
    /// The version of pfSense that it tells, such as 2.8.1-RELEASE.
    #[arg(long)]
    tells: Option<String>,
    /// The version to which an update leads; none is available when absent.
    #[arg(long)]
    update_to: Option<String>,
    /// How many filter rules it has.
    #[arg(long, default_value_t = 4)]
    rules: usize,
    /// A package that is installed, such as pfSense-pkg-WireGuard; may be repeated. All that are known when absent.
    #[arg(long)]
    package: Vec<String>,
    /// No package is installed beside the REST API.
    #[arg(long, conflicts_with = "package")]
    bare: bool,
    /// A method of authentication that is switched on: `BasicAuth`, `KeyAuth` or `JWTAuth`; may be repeated.
    #[arg(long, default_value = "BasicAuth")]
    auth: Vec<String>,
    /// An API key of the administrator.
    #[arg(long)]
    api_key: Option<String>,
    /// Milliseconds that a background job runs.
    #[arg(long, default_value_t = 500)]
    job_ms: u64,
    /// Seconds that a restart takes.
    #[arg(long, default_value_t = 20)]
    boot_secs: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Arguments::parse();
    let usual = Settings::default();
    let settings = Settings {
        release: options.release,
        told_version: options.tells,
        update_to: options.update_to,
        rules: options.rules,
        packages: (options.bare || !options.package.is_empty()).then_some(options.package),
        admin: (
            options.lab.username_or(&usual.admin.0).to_owned(),
            options.lab.password_or(&usual.admin.1).to_owned(),
        ),
        api_key: options.api_key.unwrap_or(usual.api_key),
        auth_methods: options.auth,
        job: Duration::from_millis(options.job_ms),
        boot: Duration::from_secs(options.boot_secs),
        ..usual
    };
    heddle_lab::run(options.lab.builder(Pfsense::new(settings))).await
}
