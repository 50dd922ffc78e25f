//! The compile child, as a program of its own. The server offers the same as a
//! hidden sub-command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match heddle_runtime::compile_child(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
