//! The simulated router as a program: starts one, prints its addresses as one line of JSON, runs until told to stop.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use heddle_lab_openwrt::Router;

/// A simulated router that speaks ubus over HTTP.
#[derive(Parser)]
struct Options {
    /// Address of the router's HTTP port.
    #[arg(long, default_value = "127.0.0.1:8180")]
    listen: SocketAddr,
    /// Address of the control port.
    #[arg(long, default_value = "127.0.0.1:8181")]
    control: SocketAddr,
    /// Password of root.
    #[arg(long, default_value = "openwrt")]
    password: String,
    /// Serve HTTPS with a self-signed certificate.
    #[arg(long)]
    tls: bool,
    /// The release that it tells.
    #[arg(long, default_value = "24.10.0")]
    release: String,
    /// Seconds that a restart takes.
    #[arg(long, default_value_t = 5)]
    boot_secs: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let builder = Router::builder()
        .password(&options.password)
        .releases(&options.release, "24.10.4")
        .listen(options.listen)
        .control(options.control)
        .boot_time(Duration::from_secs(options.boot_secs));
    let router = if options.tls { builder.tls() } else { builder }.try_start().await?;
    router.run().await
}
