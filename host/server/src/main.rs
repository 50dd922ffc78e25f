//! The `heddle` command: wiring only.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use heddle_kernel::config::Config;
use heddle_runtime::Compiler;
use heddle_server::FEATURES;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

const EXIT_CODES: &str = "Exit status:
  0  it is done; for doctor: nothing fails
  1  it failed and says why; for doctor: something fails
  2  the command line is not understood

Settings come from the environment and heddle.toml: 'heddle settings' lists them.";

#[derive(Parser)]
#[command(
    name = "heddle",
    version = env!("HEDDLE_BUILD"),
    about = "Manages the network infrastructure of many organizations",
    after_help = EXIT_CODES
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the API (the default).
    Serve,
    /// Brings the database to this version and ends. Several may do so at once.
    Migrate,
    /// Writes everything into one file, encrypted with `BACKUP_PASSPHRASE`. The server may be running.
    Backup {
        /// The new file; one that exists is not overwritten.
        file: PathBuf,
    },
    /// Puts a backup into an empty database. What is damaged or does not fit changes nothing.
    Restore {
        /// A file of `heddle backup`.
        file: PathBuf,
    },
    /// Says what is wrong and how to mend it. It changes nothing.
    Doctor,
    /// The keys that the service seals with.
    #[command(subcommand)]
    Keys(Keys),
    /// The audit log.
    #[command(subcommand)]
    Audit(Audit),
    /// Ways back into an account, also while the server runs. What they do is in the audit log.
    #[command(subcommand)]
    User(User),
    /// Prints the `OpenAPI` document. It touches no database and leaves no file.
    Openapi,
    /// Prints the table of all settings.
    Settings,
    /// What authors of plugins do: start, build, check, call, pack, try out. It needs no server and no settings.
    #[command(subcommand)]
    Plugin(heddle_author::Command),
    /// Compiles one component from standard input to standard output.
    #[command(hide = true)]
    PluginCompile,
}

#[derive(Subcommand)]
enum Keys {
    /// Seals everything with the current encryption key. It can be interrupted and run again.
    ///
    /// Set `ENCRYPTION_KEY` to the new key and `ENCRYPTION_KEY_PREVIOUS` to the old one, restart
    /// every server, run this, and remove `ENCRYPTION_KEY_PREVIOUS`. In development, where the keys
    /// are generated, the new one is too.
    Rotate,
}

#[derive(Subcommand)]
enum Audit {
    /// Prints the end of each organization's log: its id, the number of entries, the hash of the last one.
    ///
    /// Keep them where those who can write the database cannot: they show whether entries were cut or replaced.
    Heads,
}

#[derive(Subcommand)]
enum User {
    /// Takes the second factor of a user away and ends the user's sessions.
    ResetMfa {
        /// User name or email.
        login: String,
    },
    /// Prints a link by which a user can set a new password once.
    ResetPassword {
        /// User name or email.
        login: String,
    },
    /// Lifts the lock that failed logins put on a user.
    Unlock {
        /// User name or email.
        login: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if matches!(arguments.command, Some(Command::PluginCompile)) {
        return match heddle_runtime::compile_child(std::io::stdin().lock(), std::io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                fail(&format!("{error:#}"));
                ExitCode::from(error.exit_code())
            }
        };
    }
    // What is written is for this user alone, whatever the caller's mask.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustls::crypto::ring::default_provider().install_default().ok();
    let done = match arguments.command {
        Some(Command::Doctor) => doctor(),
        Some(Command::Settings) => settings().map(|()| true),
        Some(Command::Plugin(command)) => plugin(command),
        command => run(command.unwrap_or(Command::Serve)).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn fail(message: &str) -> ExitCode {
    writeln!(std::io::stderr(), "heddle: {message}").ok();
    ExitCode::FAILURE
}

fn run(command: Command) -> anyhow::Result<()> {
    let config = Config::from_environment(&FEATURES.settings())?;
    init_log(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async move {
        match command {
            Command::Serve => serve(config).await,
            Command::Migrate => heddle_operate::migrate(&config, &mut std::io::stdout()).await,
            Command::Backup { file } => {
                interruptible(heddle_operate::backup(&config, &file, &mut std::io::stdout())).await
            }
            Command::Restore { file } => {
                interruptible(heddle_operate::restore(&config, FEATURES, &file, &mut std::io::stdout())).await
            }
            Command::Keys(Keys::Rotate) => {
                interruptible(heddle_operate::rotate(&config, FEATURES, &mut std::io::stdout())).await
            }
            Command::Audit(Audit::Heads) => {
                heddle_operate::audit_heads(&config, &mut std::io::stdout()).await
            }
            Command::User(command) => user(&config, command).await,
            Command::Openapi => openapi(config).await,
            Command::PluginCompile | Command::Doctor | Command::Settings | Command::Plugin(_) => {
                unreachable!("they were taken before the configuration was read")
            }
        }
    })
}

fn init_log(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log_filter).with_context(|| {
        format!("LOG_FILTER='{}' is not accepted: levels such as info,heddle=debug", config.log_filter)
    })?;
    // A file of log lines holds no colours.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = if config.log_format == "json" { lines.json().boxed() } else { lines.boxed() };
    // What the log database keeps does not depend on what is shown here.
    let kept = heddle_kernel::logs::layer().with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(kept).init();
    Ok(())
}

fn compiler() -> anyhow::Result<Compiler> {
    let (program, args) = (std::env::current_exe()?, vec!["plugin-compile".to_owned()]);
    Ok(Compiler { program, args, is_awaited: false })
}

async fn serve(config: Config) -> anyhow::Result<()> {
    heddle_kernel::process::limits::forbid_core_dumps();
    let running = heddle_server::start(config, compiler()?).await?;
    stop_signal().await?;
    tracing::info!("stopping");
    running.stop().await
}

async fn stop_signal() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

async fn user(config: &Config, command: User) -> anyhow::Result<()> {
    let out = &mut std::io::stdout();
    match command {
        User::ResetMfa { login } => heddle_operate::reset_mfa(config, FEATURES, &login, out).await,
        User::ResetPassword { login } => heddle_operate::reset_password(config, FEATURES, &login, out).await,
        User::Unlock { login } => heddle_operate::unlock(config, FEATURES, &login, out).await,
    }
}

/// Runs work that ends in order when the process is asked to stop: what was begun is rolled back.
async fn interruptible(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::select! {
        done = work => done,
        stopped = stop_signal() => {
            stopped?;
            anyhow::bail!("interrupted")
        }
    }
}

fn plugin(command: heddle_author::Command) -> anyhow::Result<bool> {
    let compiler = Compiler { is_awaited: true, ..compiler()? };
    heddle_author::run(command, compiler, &mut std::io::stdout())
}

/// Looks at the settings too, so they are not read before it.
fn doctor() -> anyhow::Result<bool> {
    let config = Config::from_environment(&FEATURES.settings());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(heddle_operate::doctor(config, FEATURES, &mut std::io::stdout()))?)
}

async fn openapi(config: Config) -> anyhow::Result<()> {
    let (config, folder) = heddle_operate::without_traces(config);
    let app = heddle_server::open(config, compiler()?).await?;
    let document =
        heddle_kernel::http::openapi::document(&heddle_kernel::http::routes(&app), &app.declared());
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&document)?)?;
    app.db.close().await;
    drop(folder);
    Ok(())
}

fn settings() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| setting | default | meaning |\n|---|---|---|")?;
    for setting in Config::table(&FEATURES.settings()) {
        let default = if setting.default.is_empty() { "" } else { &format!("`{}`", setting.default) };
        writeln!(out, "| `{}` | {default} | {} |", setting.name, setting.about.trim())?;
    }
    Ok(())
}
