//! `record` and `test`: calls with their outcomes, as files that are kept with the plugin.
//!
//! A recorded call meets the same surroundings each time: its settings, what is stored, the answers of operations, and the
//! answers of its targets, which a server in this process gives. It holds no secrets.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use heddle_runtime::Compiler;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::call::{Around, carry_out, params, show_log};
use crate::command::At;
use crate::expect::Expected;
use crate::host::Services;
use crate::placed::SECRET;
use crate::project::Project;
use crate::replay::{Replay, Said};
use crate::session::{Session, Surroundings, block_on};
use crate::tool::read_bounded;
use crate::{expect, make, package, show};

/// The folder of recorded calls.
const FOLDER: &str = "calls";
/// Most bytes of a recorded call.
const BYTES_MAX: u64 = 4 << 20;
/// Most recorded calls of a plugin.
const CALLS_MAX: usize = 1_000;

/// A call to be recorded.
#[derive(Debug, Args)]
pub struct Record {
    /// Name of the recorded call: a-z, 0-9, '-' and '_'. One that exists is not overwritten.
    name: String,
    /// Id of the action, as the manifest has it.
    action: String,
    /// Parameters, as JSON.
    #[arg(long, default_value = "{}")]
    params: String,
    #[command(flatten)]
    around: Around,
}

/// Which recorded calls are run.
#[derive(Debug, Args)]
pub struct Test {
    /// Those whose name has this in it.
    #[arg(default_value = "")]
    filter: String,
    #[command(flatten)]
    at: At,
}

/// A file of a recorded call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    action: String,
    #[serde(default)]
    params: Value,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    settings: Map<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    stored: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    operations: BTreeMap<String, Value>,
    /// What its targets answer, in any order. A request that is not there fails the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exchanges: Vec<Said>,
    expect: Expected,
}

/// Runs an action and writes it with its outcome.
pub(crate) fn record(arguments: &Record, compiler: Compiler, out: &mut dyn Write) -> anyhow::Result<bool> {
    let (project, around) = (arguments.around.at.open()?, arguments.around.read()?);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    ensure!(
        !arguments.name.is_empty() && arguments.name.chars().all(is_plain),
        "'{}' is no name of a recorded call: a-z, 0-9, '-' and '_'",
        arguments.name
    );
    let path = project.root.join(FOLDER).join(format!("{}.json", arguments.name));
    ensure!(!path.exists(), "'{}' is there already; remove it to record it anew", path.display());
    let asked = params(&arguments.params)?;
    let (session, done) = carry_out(&project, (&arguments.action, &asked), &around, compiler, out)?;
    show::say_done(&session, &done, out)?;
    let expect = expect::to_record(&done.outcome, &session.services, session.manifest())?;
    let exchanges = session.services.exchanges();
    let call = Call {
        action: arguments.action.clone(),
        params: asked,
        settings: around.settings,
        stored: around.stored,
        operations: around.operations,
        exchanges: exchanges.iter().map(Said::of).collect::<anyhow::Result<_>>()?,
        expect,
    };
    let text = format!("{}\n", serde_json::to_string_pretty(&call)?);
    let is_small = u64::try_from(text.len()).is_ok_and(|bytes| bytes <= BYTES_MAX);
    ensure!(is_small, "the call has {} bytes; a recorded one has at most {BYTES_MAX}", text.len());
    std::fs::create_dir_all(project.root.join(FOLDER))?;
    std::fs::write(&path, text).with_context(|| format!("'{}' cannot be written", path.display()))?;
    writeln!(
        out,
        "recorded {FOLDER}/{}.json; names and addresses in answers stay in it: look through it",
        arguments.name
    )?;
    Ok(true)
}

/// Runs recorded calls. False where one of them ended in another way.
pub(crate) fn test(arguments: &Test, compiler: Compiler, out: &mut dyn Write) -> anyhow::Result<bool> {
    let project = arguments.at.open()?;
    show_log();
    let calls = find(&project.root.join(FOLDER), &arguments.filter)?;
    ensure!(!calls.is_empty(), "there is no recorded call in '{FOLDER}'; 'heddle plugin record' makes one");
    let component = make::fresh(&project, out)?;
    let mut failed = 0;
    for (name, path) in &calls {
        let call: Call = serde_json::from_slice(&read_bounded(path, BYTES_MAX)?)
            .with_context(|| format!("'{}' is no recorded call", path.display()))?;
        expect::check(&call.expect).with_context(|| format!("'{}'", path.display()))?;
        let (problems, costs) = call.replayed(&project, component.clone(), compiler.clone())?;
        if problems.is_empty() {
            writeln!(out, "{name}: as expected ({costs})")?;
        } else {
            failed += 1;
            writeln!(out, "{name}: FAILED ({costs})\n{}", problems.join("\n"))?;
        }
    }
    writeln!(out, "{} recorded calls, {failed} failed", calls.len())?;
    Ok(failed == 0)
}

fn find(folder: &Path, filter: &str) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|ending| ending == "json") && name.contains(filter) {
            found.push((name, path));
        }
        ensure!(found.len() <= CALLS_MAX, "'{}' has more than {CALLS_MAX} calls", folder.display());
    }
    found.sort();
    Ok(found)
}

impl Call {
    /// Runs the call. Returns what was not as expected, and what it cost.
    fn replayed(
        &self,
        project: &Project,
        component: Vec<u8>,
        compiler: Compiler,
    ) -> anyhow::Result<(Vec<String>, String)> {
        block_on(async {
            let replay = Replay::start(self.exchanges.clone()).await?;
            let mut manifest = project.manifest_value()?;
            let mut settings = self.settings.clone();
            replay.take_the_place(&mut manifest, &mut settings);
            let package = package::verified_as(project, manifest.to_string().as_bytes(), component)?;
            let rules = package.manifest().capabilities.secrets.rules();
            let surroundings = Surroundings {
                secrets: rules.iter().map(|rule| (rule.name.clone(), SECRET.to_owned())).collect(),
                operations: self.operations.clone(),
                stored: self.stored.clone(),
                settings: settings.clone(),
            };
            let services = Services::new(&surroundings, package.manifest())?;
            let session = Session::open(project, &package, compiler, services).await?;
            let params = if self.params.is_null() { json!({}) } else { self.params.clone() };
            let (done, missed) = replay.during(session.act(&self.action, &params, &settings)).await?;
            let found = expect::found(&done.outcome, &session.services);
            Ok((expect::misfits(&self.expect, &found, &missed), show::costs(&session, &done)))
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_so_many_calls() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..=CALLS_MAX {
            std::fs::write(folder.path().join(format!("{n}.json")), "").unwrap();
        }
        assert!(find(folder.path(), "").unwrap_err().to_string().contains("more than 1000 calls"));
        assert_eq!(find(folder.path(), "99").unwrap()[0].0, "199");
    }
}
