//! Builds again when a migration is added: the macro that embeds them only watches the ones it knows.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    writeln!(std::io::stdout(), "cargo:rerun-if-changed=../../migrations")
}
