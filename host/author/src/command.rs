//! The command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use heddle_marketplace::{PublisherKey, manifest_schema, write_trusted_keys};
use heddle_runtime::Compiler;

use crate::project::{Language, Project};
use crate::{call, dev, make, package, recorded, start};

/// What authors of plugins do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Writes the folder of a new plugin.
    New {
        /// Id of the plugin, and name of its folder: a-z, 0-9 and '-', 3 to 41 characters.
        name: String,
        #[arg(long, value_enum, default_value_t = Language::Rust)]
        lang: Language,
    },
    /// Builds the component.
    Build(At),
    /// Judges the plugin as a server does, and prints what it may do.
    Check(At),
    /// Prints the JSON Schema of manifests.
    Schema,
    /// Runs one action in this process, and prints what it asked of the host.
    Call(call::Arguments),
    /// Runs one action, and writes it with its outcome as a recorded call.
    Record(recorded::Record),
    /// Runs the recorded calls of the folder `calls`.
    Test(recorded::Test),
    /// Makes a publisher's key, and prints the entry for a server's trusted keys.
    Keygen {
        /// Name of the publisher: the key signs the plugin of this id, and those whose id begins with it and '-'.
        #[arg(long)]
        publisher: String,
        /// New file for the key; keep it secret.
        #[arg(long)]
        out: PathBuf,
    },
    /// Signs the manifest of a package folder again.
    Sign {
        #[arg(long)]
        key: PathBuf,
        folder: PathBuf,
    },
    /// Makes a signed package, as a folder and as an archive.
    Pack(package::Pack),
    /// Builds, sends and switches on the plugin after every change of a file.
    Dev(dev::Dev),
}

/// Which plugin.
#[derive(Debug, Args)]
pub struct At {
    /// Folder of the plugin.
    #[arg(long, default_value = ".")]
    pub(crate) project: PathBuf,
}

impl At {
    pub(crate) fn open(&self) -> anyhow::Result<Project> {
        Project::open(&self.project)
    }
}

/// Carries out a command. `compiler` is a program that ends in [`heddle_runtime::compile_child`]. Returns false where the
/// plugin did not do what was expected of it, which is printed.
///
/// # Errors
/// Says what kept the command from its work, and what would help.
pub fn run(command: Command, compiler: Compiler, out: &mut dyn Write) -> anyhow::Result<bool> {
    match command {
        Command::New { name, lang } => start::new(Path::new(&name), lang, out)?,
        Command::Build(at) => make::build(&at.open()?, out)?,
        Command::Check(at) => return package::check(&at.open()?, compiler, out),
        Command::Schema => writeln!(out, "{}", serde_json::to_string_pretty(&manifest_schema())?)?,
        Command::Call(arguments) => return call::call(&arguments, compiler, out),
        Command::Record(arguments) => return recorded::record(&arguments, compiler, out),
        Command::Test(arguments) => return recorded::test(&arguments, compiler, out),
        Command::Keygen { publisher, out: file } => {
            let key = PublisherKey::generate(&publisher)?;
            key.save(&file).with_context(|| format!("key file '{}' not written", file.display()))?;
            writeln!(out, "{}", write_trusted_keys(&[key.trusted_for_own()]))?;
        }
        Command::Sign { key, folder } => package::sign_folder(&key, &folder, out)?,
        Command::Pack(arguments) => package::pack(&arguments, out)?,
        Command::Dev(arguments) => return dev::dev(&arguments, out),
    }
    Ok(true)
}
