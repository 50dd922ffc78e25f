//! The project's own commands: `cargo xtask help` lists them.
//!
//! Wiring only. Each command stands in its module; none is part of the product.

mod apt;
mod autobahn;
mod ci;
mod demo;
mod extism;
mod fuzz;
mod guest;
mod package;
mod phase;
mod plugins;
mod postgres;
mod process;
mod record;
mod registry;
mod run;
mod settings;
mod test_run;
mod tools;
mod vendor;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::Stop;
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Build, run and test the project")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build, encode and sign the adapters and the test guests
    Components,
    /// Start the server with the adapters, ready for writes
    Run {
        /// Also start a practice device of each vendor, set up an organization that knows them, and list the example plugins
        #[arg(long)]
        demo: bool,
    },
    /// Start a practice device of a vendor; `lab <vendor> -- --help` names its options
    Lab {
        /// A folder of `tests/labs`; an unknown one is answered with their names
        vendor: String,
        /// Passed on to its program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Make the description of an adapter from what is known about its vendor's API
    Vendor {
        /// A folder of `adapters`
        name: String,
        /// Show what its facts have otherwise than those of another release, and write nothing
        #[arg(long, value_name = "FACTS")]
        diff: Option<PathBuf>,
    },
    /// Record what the controller of a vendor answers, through the egress of a server, for the tests of its adapter
    ///
    /// Without `--url` it is the practice device. A controller that is named is only read; its credential is taken from
    /// `RECORD_USERNAME`, `RECORD_PASSWORD` and `RECORD_API_KEY`. Its certificate is verified, or pinned by
    /// `RECORD_TLS_FINGERPRINT`.
    Record {
        /// A folder of `adapters`
        vendor: String,
        /// The controller's address, such as `https://192.0.2.1`
        #[arg(long)]
        url: Option<String>,
        /// The controller's settings, a JSON object
        #[arg(long, requires = "url")]
        settings: Option<String>,
        /// The name of the cassette; `device` when it is not given
        #[arg(long, requires = "url")]
        name: Option<String>,
    },
    /// Run all tests, with a `PostgreSQL` of their own and all programs that they need
    Test {
        /// Passed on to `cargo test`, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Measure an optimised build against its baselines; asserts nothing about time
    Bench {
        /// Passed on to the benches, after `--`: those whose names contain a word
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Give the readers of packages and catalogues inputs that are changed until something breaks; needs a C++ compiler
    Fuzz {
        /// Out of archive, manifest, catalog and rules; all of them, one after the other, when none is named
        targets: Vec<String>,
        /// For each of them
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
    /// Run the fuzzing client of a WebSocket test suite; needs Python 2.7
    Autobahn,
    /// Everything that must pass before a change is accepted
    Ci,
    /// Start a `PostgreSQL` and print its URL, until Ctrl-C
    Db,
}

fn main() -> ExitCode {
    match execute() {
        Ok(code) => code,
        Err(error) => {
            process::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute() -> anyhow::Result<ExitCode> {
    let command = Arguments::parse().command;
    let stop = Stop::install()?;
    let workspace = Workspace::locate()?;
    match command {
        Command::Components => package::components(&workspace, &stop).map(|()| ExitCode::SUCCESS),
        Command::Run { demo: false } => run::serve(&workspace, &stop),
        Command::Run { demo: true } => run::demo(&workspace, &stop),
        Command::Lab { vendor, args } => run::lab(&workspace, &stop, &vendor, &args),
        Command::Vendor { name, diff } => {
            vendor::describe(&workspace, &stop, &name, diff.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Command::Record { vendor, url, settings, name } => {
            let named = record::Named { url, settings, name };
            record::record(&workspace, &stop, &vendor, &named).map(|()| ExitCode::SUCCESS)
        }
        Command::Test { args } => ci::test(&workspace, &stop, &args),
        Command::Bench { args } => ci::bench(&workspace, &stop, &args),
        Command::Fuzz { targets, minutes } => fuzz::fuzz(&workspace, &stop, &targets, minutes),
        Command::Autobahn => autobahn::run(&workspace, &stop),
        Command::Ci => ci::ci(&workspace, &stop),
        Command::Db => postgres::serve(&stop),
    }
}
