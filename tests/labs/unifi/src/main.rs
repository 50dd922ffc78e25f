//! The simulated console as a program: prints its addresses as one line of JSON, and runs until told to stop.

use std::time::Duration;

use clap::Parser;
use heddle_lab_unifi::{Console, Kind, Release, Settings};

/// The arguments of the program.
#[derive(Parser)]
#[command(about = "A simulated UniFi console")]
struct Arguments {
    #[command(flatten)]
    lab: heddle_lab::Options,
    /// The host: the vendor's own, or the self-hosted application.
    #[arg(long, value_enum, default_value_t)]
    kind: Kind,
    /// The release of the application.
    #[arg(long, value_enum, default_value_t)]
    release: Release,
    /// A version that it tells in place of that of its release, such as 10.6.106.
    #[arg(long)]
    tells: Option<String>,
    /// An API key of the administrator; may be repeated. A documented one when absent.
    #[arg(long)]
    api_key: Vec<String>,
    /// Sites.
    #[arg(long, default_value_t = 2)]
    sites: usize,
    /// Clients of the first site beside those that have a name.
    #[arg(long, default_value_t = 24)]
    clients: usize,
    /// No site has an adopted gateway.
    #[arg(long)]
    no_gateway: bool,
    /// The firewall has the older rules in place of zones.
    #[arg(long)]
    no_zones: bool,
    /// Logins within two minutes; 0 for no limit.
    #[arg(long, default_value_t = 10)]
    logins_max: usize,
    /// Milliseconds that a step of a device takes.
    #[arg(long, default_value_t = 2000)]
    step_ms: u64,
    /// Milliseconds until a read of devices shows what was written to one.
    #[arg(long, default_value_t = 1500)]
    settle_ms: u64,
    /// Seconds that a restart of the host takes.
    #[arg(long, default_value_t = 20)]
    boot_secs: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Arguments::parse();
    let usual = Settings::default();
    let settings = Settings {
        kind: options.kind,
        release: options.release,
        told_version: options.tells,
        admin: (
            options.lab.username_or(&usual.admin.0).to_owned(),
            options.lab.password_or(&usual.admin.1).to_owned(),
        ),
        api_keys: if options.api_key.is_empty() { usual.api_keys.clone() } else { options.api_key },
        sites: options.sites,
        clients: options.clients,
        has_gateway: !options.no_gateway,
        has_zones: !options.no_zones,
        logins_max: options.logins_max,
        step: Duration::from_millis(options.step_ms),
        settle: Duration::from_millis(options.settle_ms),
        boot: Duration::from_secs(options.boot_secs),
        ..usual
    };
    heddle_lab::run(options.lab.builder(Console::new(settings))).await
}
