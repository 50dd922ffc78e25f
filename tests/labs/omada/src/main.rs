//! The simulated Omada controller as a program: starts one, prints its addresses as one line of JSON, runs
//! until told
//! to stop.

use clap::{Parser, ValueEnum};
use heddle_lab_omada::{Omada, Release, Seed};

/// A simulated Omada controller.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    lab: heddle_lab::Options,
    /// Clients of each site.
    #[arg(long, default_value_t = 40)]
    clients: usize,
    /// Sites.
    #[arg(long, default_value_t = 2)]
    sites: usize,
    /// Software of the controller.
    #[arg(long, value_enum, default_value_t = Software::V62)]
    release: Software,
    /// A version that it tells in place of that of its release, such as 7.0.0.1.
    #[arg(long)]
    tells: Option<String>,
    /// Milliseconds that a step of a device takes.
    #[arg(long, default_value_t = 2000)]
    step_ms: u64,
    /// Client id of the Open API.
    #[arg(long, default_value = "lab-client")]
    client_id: String,
    /// Client secret of the Open API.
    #[arg(long, default_value = "lab-secret")]
    client_secret: String,
    /// Calls of the Open API in one second; 0 for no limit.
    #[arg(long, default_value_t = 10)]
    rate_limit: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Software {
    #[value(name = "5.15")]
    V515,
    #[value(name = "6.0")]
    V60,
    #[value(name = "6.2")]
    V62,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let release = match args.release {
        Software::V515 => Release::V515,
        Software::V60 => Release::V60,
        Software::V62 => Release::V62,
    };
    let Args { sites, clients, step_ms, .. } = args;
    let mut omada = Omada::new(Seed { sites, clients, release, step_ms });
    omada.rate_limit = (args.rate_limit > 0).then_some(args.rate_limit);
    omada.told_version = args.tells;
    omada.sessions.client_id = args.client_id;
    omada.sessions.client_secret = args.client_secret;
    omada.sessions.user = args.lab.username_or("admin").to_owned();
    omada.sessions.password = args.lab.password_or("omada").to_owned();
    heddle_lab::run(args.lab.builder(omada)).await
}
