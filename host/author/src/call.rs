//! `call`: one action, here.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Args;
use heddle_runtime::Compiler;
use serde_json::Value;

use crate::command::At;
use crate::host::Services;
use crate::project::Project;
use crate::session::{Done, Session, Surroundings, block_on};
use crate::tool::read_bounded;
use crate::{package, show};

/// Most bytes of a secret in a file.
const SECRET_BYTES_MAX: u64 = 16 << 10;

/// A call of an action.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Id of the action, as the manifest has it.
    pub(crate) action: String,
    /// Parameters, as JSON.
    #[arg(long, default_value = "{}")]
    pub(crate) params: String,
    #[command(flatten)]
    pub(crate) around: Around,
}

/// What a call finds.
#[derive(Debug, Args)]
pub(crate) struct Around {
    #[command(flatten)]
    pub(crate) at: At,
    /// A setting of the organization, as name=value; a value that is JSON is taken as such.
    #[arg(long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// A secret of the organization, as name=value, or name=@FILE with the file that holds it.
    #[arg(long = "secret", value_name = "NAME=VALUE")]
    secrets: Vec<String>,
    /// What is in the storage, as key=text.
    #[arg(long, value_name = "KEY=TEXT")]
    stored: Vec<String>,
    /// The answer of an operation of the Fabric, as id=JSON. Others are refused.
    #[arg(long = "operation", value_name = "ID=JSON")]
    operations: Vec<String>,
}

impl Around {
    pub(crate) fn read(&self) -> anyhow::Result<Surroundings> {
        let mut found = Surroundings::default();
        for (name, text) in pairs("--setting", &self.settings)? {
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            found.settings.insert(name.to_owned(), value);
        }
        for (name, value) in pairs("--secret", &self.secrets)? {
            let value = match value.strip_prefix('@') {
                Some(path) => String::from_utf8(read_bounded(Path::new(path), SECRET_BYTES_MAX)?)
                    .ok()
                    .with_context(|| format!("the secret '{name}' is no text"))?,
                None => value.to_owned(),
            };
            found.secrets.push((name.to_owned(), value.trim_end_matches('\n').to_owned()));
        }
        for (key, text) in pairs("--stored", &self.stored)? {
            found.stored.insert(key.to_owned(), text.to_owned());
        }
        for (id, text) in pairs("--operation", &self.operations)? {
            let answer = serde_json::from_str(text);
            found.operations.insert(id.to_owned(), answer.with_context(|| format!("the answer of '{id}'"))?);
        }
        Ok(found)
    }
}

/// Splits each text at its first `=`.
pub(crate) fn pairs<'a>(option: &str, texts: &'a [String]) -> anyhow::Result<Vec<(&'a str, &'a str)>> {
    let pair = |text: &'a String| match text.split_once('=') {
        Some(pair) => Ok(pair),
        None => bail!("{option} '{text}' is not NAME=VALUE"),
    };
    texts.iter().map(pair).collect()
}

/// Reads the parameters of an action.
pub(crate) fn params(text: &str) -> anyhow::Result<Value> {
    serde_json::from_str(text).context("--params is not JSON")
}

/// Runs an action and prints how it went. False where it failed.
pub(crate) fn call(arguments: &Arguments, compiler: Compiler, out: &mut dyn Write) -> anyhow::Result<bool> {
    let (project, surroundings) = (arguments.around.at.open()?, arguments.around.read()?);
    let asked = (arguments.action.as_str(), params(&arguments.params)?);
    let (session, done) = carry_out(&project, (asked.0, &asked.1), &surroundings, compiler, out)?;
    show::say_done(&session, &done, out)?;
    Ok(done.outcome.is_ok())
}

/// Builds the plugin if a file changed, and runs an action.
pub(crate) fn carry_out(
    project: &Project,
    (action, params): (&str, &Value),
    surroundings: &Surroundings,
    compiler: Compiler,
    out: &mut dyn Write,
) -> anyhow::Result<(Session, Done)> {
    show_log();
    let package = package::verified(project, out)?;
    block_on(async {
        let services = Services::new(surroundings, package.manifest())?;
        let session = Session::open(project, &package, compiler, services).await?;
        let done = session.act(action, params, &surroundings.settings).await?;
        Ok((session, done))
    })?
}

/// From now on the lines that plugins log, and why one was stopped, go to standard error.
pub(crate) fn show_log() {
    let filter = tracing_subscriber::EnvFilter::new("warn,guest=trace");
    let lines = tracing_subscriber::fmt().with_env_filter(filter).without_time().with_writer(std::io::stderr);
    // A second call of this process finds it done.
    lines.try_init().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_its_first_equals_sign_as_border() {
        let texts = ["a=b=c".to_owned(), "d=".to_owned()];
        assert_eq!(pairs("--setting", &texts).unwrap(), [("a", "b=c"), ("d", "")]);
        assert!(pairs("--setting", &["alone".to_owned()]).is_err());
    }
}
