//! The commands of authors as a program of their own, for the tests of this crate. The server offers the same.

use std::process::ExitCode;

use clap::Parser;
use heddle_author::Command;
use heddle_runtime::{Compiler, compile_child};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The word by which the program compiles a component from standard input.
const COMPILE: &str = "plugin-compile";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(COMPILE) {
        return match compile_child(std::io::stdin().lock(), std::io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::from(error.exit_code())
            }
        };
    }
    match carry_out(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(command: Command) -> anyhow::Result<bool> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let compiler =
        Compiler { program: std::env::current_exe()?, args: vec![COMPILE.to_owned()], is_awaited: true };
    heddle_author::run(command, compiler, &mut std::io::stdout())
}
