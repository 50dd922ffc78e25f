//! The `heddle` command: wiring only.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use heddle_runtime::Compiler;
use heddle_server::{Config, Running};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Parser)]
#[command(name = "heddle", version, about = "Manages the network infrastructure of many organizations")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the API (the default).
    Serve,
    /// Brings the database to this version and ends.
    Migrate,
    /// Prints the `OpenAPI` document.
    Openapi,
    /// Prints the table of all settings.
    Settings,
    /// Compiles one component from standard input to standard output.
    #[command(hide = true)]
    PluginCompile,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if matches!(arguments.command, Some(Command::PluginCompile)) {
        return match heddle_runtime::compile_child(std::io::stdin().lock(), std::io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("{error:#}")),
        };
    }
    rustls::crypto::ring::default_provider().install_default().ok();
    match run(arguments.command.unwrap_or(Command::Serve)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn fail(message: &str) -> ExitCode {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "heddle: {message}").ok();
    ExitCode::FAILURE
}

fn run(command: Command) -> anyhow::Result<()> {
    let config = Config::from_environment()?;
    init_log(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async move {
        match command {
            Command::Serve => serve(config).await,
            Command::Migrate => migrate(&config).await,
            Command::Openapi => openapi(config).await,
            Command::Settings => settings(),
            Command::PluginCompile => unreachable!("it was taken before the configuration was read"),
        }
    })
}

fn init_log(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log_filter)
        .with_context(|| format!("LOG_FILTER='{}' is not accepted", config.log_filter))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if config.log_format == "json" { lines.json().boxed() } else { lines.boxed() };
    // The log database keeps what is worth it whatever is shown here.
    let kept = heddle_server::logs::layer().with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(kept).init();
    Ok(())
}

fn compiler() -> anyhow::Result<Compiler> {
    Ok(Compiler { program: std::env::current_exe()?, args: vec!["plugin-compile".to_owned()] })
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let running = Running::start(config, compiler()?).await?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping");
    running.stop().await
}

async fn migrate(config: &Config) -> anyhow::Result<()> {
    std::fs::create_dir_all(&config.data_dir)?;
    let pool = heddle_store::PoolSettings {
        connections_max: 1,
        acquire_timeout: std::time::Duration::from_secs(30),
    };
    heddle_store::Db::open(&config.database(), &pool).await.context("database cannot be migrated")?;
    Ok(())
}

async fn openapi(config: Config) -> anyhow::Result<()> {
    use std::io::Write as _;
    let app = heddle_server::App::open(config, compiler()?.into()).await?;
    let document = heddle_server::http::openapi::document(&heddle_server::http::routes(&app));
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&document)?)?;
    Ok(())
}

fn settings() -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    writeln!(out, "| setting | default | meaning |\n|---|---|---|")?;
    for setting in Config::SETTINGS {
        let default = if setting.default.is_empty() { "" } else { &format!("`{}`", setting.default) };
        writeln!(out, "| `{}` | {default} | {} |", setting.name, setting.about.trim())?;
    }
    Ok(())
}
