//! The simulated cluster as a program: prints its addresses as one line of JSON, runs until told to stop.

use std::time::Duration;

use clap::Parser;
use heddle_lab_proxmox::{Proxmox, Setup};

/// A simulated Proxmox VE cluster.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    lab: heddle_lab::Options,
    /// Guests beside those of the household.
    #[arg(long, default_value_t = 0)]
    guests: usize,
    /// Release of the product, as in 8.4.
    #[arg(long, default_value = "9.1")]
    release: String,
    /// A version that it tells in place of that of its release, such as 10.0.1.
    #[arg(long)]
    tells: Option<String>,
    /// Milliseconds that a short task takes.
    #[arg(long, default_value_t = 500)]
    task_ms: u64,
    /// Seconds that a restart of a node takes.
    #[arg(long, default_value_t = 5)]
    boot_secs: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let release = arguments
        .release
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let setup = Setup {
        password: arguments.lab.password_or("proxmox").to_owned(),
        release: release.ok_or_else(|| anyhow::anyhow!("--release is a number like 9.1"))?,
        told_version: arguments.tells,
        guests: arguments.guests,
        task_time: Duration::from_millis(arguments.task_ms),
        boot_time: Duration::from_secs(arguments.boot_secs),
        ..Setup::default()
    };
    heddle_lab::run(arguments.lab.builder(Proxmox::new(setup))).await
}
