//! `dev`: after each change of a file the plugin is built, sent to a development server, and switched on there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use heddle_core::Clock;
use heddle_marketplace::{PublisherKey, parse_trusted_keys, write_archive, write_trusted_keys};
use semver::{BuildMetadata, Prerelease, Version};
use serde_json::{Map, Value, json};

use crate::call::{pairs, params};
use crate::command::At;
use crate::project::Project;
use crate::server::Server;
use crate::tool::read_bounded;
use crate::{make, package, watch};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(300);
/// Most bytes of a list of trusted keys.
const TRUSTED_BYTES_MAX: u64 = 1 << 20;

/// Where a plugin is tried out.
#[derive(Debug, Args)]
pub struct Dev {
    #[command(flatten)]
    at: At,
    /// Address of a development server on this machine.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Access token of a `super_admin`.
    #[arg(long, env = "HEDDLE_TOKEN", hide_env_values = true)]
    token: String,
    /// The server's file of trusted keys: the key of this plugin is added to it.
    #[arg(long)]
    trusted_keys: Option<PathBuf>,
    /// Agrees to what the plugin may do, after it was printed.
    #[arg(long)]
    yes: bool,
    /// A setting of the organization, as name=value; a value that is JSON is taken as such.
    #[arg(long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// An action that is run on the server after each change.
    #[arg(long)]
    call: Option<String>,
    /// The parameters of that action, as JSON.
    #[arg(long, default_value = "{}")]
    params: String,
    /// Ends after the first time instead of waiting for changes.
    #[arg(long)]
    once: bool,
}

/// What stays the same from one change to the next.
struct Round {
    project: Project,
    server: Server,
    key: PublisherKey,
    settings: Map<String, Value>,
    yes: bool,
    call: Option<(String, Value)>,
    clock: Clock,
}

/// Builds and sends the plugin, and again after each change. What fails is printed, and mended by the next change.
pub(crate) fn dev(arguments: &Dev, out: &mut dyn Write) -> anyhow::Result<bool> {
    let project = arguments.at.open()?;
    let key = project.key()?;
    let server = Server::at(&arguments.url, &arguments.token)?;
    let mut settings = Map::new();
    for (name, text) in pairs("--setting", &arguments.settings)? {
        settings.insert(name.to_owned(), serde_json::from_str(text).unwrap_or_else(|_| text.into()));
    }
    let call = arguments.call.clone().map(|action| anyhow::Ok((action, params(&arguments.params)?)));
    let round = Round {
        server,
        key,
        settings,
        yes: arguments.yes,
        call: call.transpose()?,
        clock: Clock::default(),
        project,
    };
    if let Some(path) = &arguments.trusted_keys {
        trust(path, &round.key, out)?;
    }
    loop {
        let seen = watch::files(&round.project.root)?;
        let done = round.carry_out(out);
        if arguments.once {
            return done;
        }
        if let Err(error) = done {
            writeln!(out, "{error:#}")?;
        }
        writeln!(out, "waiting for a change; Ctrl-C ends it")?;
        out.flush()?;
        while watch::files(&round.project.root)? == seen {
            sleep(LOOK);
        }
    }
}

impl Round {
    /// False where the plugin is not active afterwards, or the call that was asked for failed.
    fn carry_out(&self, out: &mut dyn Write) -> anyhow::Result<bool> {
        let begun = Instant::now();
        let component = make::fresh(&self.project, out)?;
        let mut manifest = self.project.manifest_value()?;
        let version = self.version(&manifest)?;
        manifest["version"] = json!(version);
        let files = package::files(manifest.to_string().as_bytes(), component, &self.key)?;
        let outcome = self
            .server
            .install(&write_archive(&files)?)
            .map_err(|error| anyhow!("{error:#}; {}", self.hint()))?;
        let id = self.project.id()?;
        let state = self.agreed(&id, outcome, out)?;
        writeln!(out, "{id} {version} is {state} after {:.1} s", begun.elapsed().as_secs_f32())?;
        if state != "active" {
            return Ok(false);
        }
        self.switch_on(&id)?;
        let Some((action, params)) = &self.call else { return Ok(true) };
        let body = json!({ "operation_id": format!("plugin.{id}.{action}"), "params": params });
        let run = self.server.post("actions", &body)?;
        let step = &run["steps"][0];
        let came = if step["success"] == true { &step["output"] } else { &step["message"] };
        let state = run["state"].as_str().unwrap_or_default();
        writeln!(out, "{action}: {state} after {:.1} s: {came:#}", begun.elapsed().as_secs_f32())?;
        Ok(step["success"] == true)
    }

    /// Switches the plugin on, with the settings that were given in place of those that are there.
    fn switch_on(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("plugins/{id}/organization");
        let there = self.server.get(&path)?;
        let mut settings = there["settings"].as_object().cloned().unwrap_or_default();
        settings.extend(self.settings.clone());
        let wanted = json!({ "enabled": true, "settings": settings });
        if there["enabled"] != true || there["settings"] != wanted["settings"] {
            self.server.put(&path, &wanted)?;
        }
        Ok(())
    }

    /// A version above the author's own and below the next one, which grows with the time.
    fn version(&self, manifest: &Value) -> anyhow::Result<String> {
        let written = manifest["version"].as_str().context("manifest.json has no 'version'")?;
        next(written, self.clock.now().timestamp_millis())
    }

    /// What to do where a server does not trust the key.
    fn hint(&self) -> String {
        format!(
            "where it does not trust the key of this plugin, --trusted-keys names its file of trusted keys \
             (ADAPTER_TRUSTED_KEYS), which needs this entry: {}",
            write_trusted_keys(&[self.key.trusted_for_own()])
        )
    }

    /// Prints what the plugin may do where a person has to agree, and agrees where the author said so. Returns the state.
    fn agreed(&self, id: &str, outcome: Value, out: &mut dyn Write) -> anyhow::Result<String> {
        let state = |outcome: &Value| outcome["state"].as_str().unwrap_or("in no known state").to_owned();
        if outcome["state"] != "awaiting_consent" {
            if let Some(reason) = outcome["reason"].as_str() {
                writeln!(out, "the server says: {reason}")?;
            }
            return Ok(state(&outcome));
        }
        let asked = self.server.get(&format!("plugins/{id}/consent"))?;
        writeln!(out, "a person has to agree: {}", outcome["reason"].as_str().unwrap_or_default())?;
        for item in asked["items"].as_array().into_iter().flatten() {
            let text = |key: &str| item[key].as_str().unwrap_or_default();
            writeln!(out, "  {} risk: {}", text("risk"), text("text"))?;
        }
        if !self.yes {
            writeln!(out, "--yes agrees to it; a super_admin may do so in the API, too")?;
            return Ok(state(&outcome));
        }
        let given = json!({ "grant_hash": asked["grant_hash"] });
        Ok(state(&self.server.post(&format!("plugins/{id}/consent"), &given)?))
    }
}

/// The pre-release of the next patch with this number.
fn next(written: &str, number: i64) -> anyhow::Result<String> {
    let mut version =
        Version::parse(written).with_context(|| format!("the version '{written}' of manifest.json"))?;
    version.patch = version.patch.saturating_add(1);
    version.pre = Prerelease::new(&format!("dev.{number}"))?;
    version.build = BuildMetadata::EMPTY;
    Ok(version.to_string())
}

/// Adds a key to a server's list of trusted keys, which it reads at each package.
fn trust(path: &Path, key: &PublisherKey, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut trusted =
        if path.exists() { parse_trusted_keys(&read_bounded(path, TRUSTED_BYTES_MAX)?)? } else { Vec::new() };
    let own = key.trusted_for_own();
    if trusted.iter().any(|known| known.key == own.key) {
        return Ok(());
    }
    trusted.push(own);
    let staging = path.with_extension(format!("{}.part", std::process::id()));
    ensure!(!staging.exists(), "'{}' is there already", staging.display());
    std::fs::write(&staging, write_trusted_keys(&trusted))?;
    std::fs::rename(&staging, path).with_context(|| format!("'{}' cannot be written", path.display()))?;
    writeln!(out, "'{}' trusts the key '{}' from now on", path.display(), key.publisher())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_for_development_is_above_the_written_one_and_grows() {
        assert_eq!(next("1.2.3", 7).unwrap(), "1.2.4-dev.7");
        assert_eq!(next("0.1.0-beta.1+x", 8).unwrap(), "0.1.1-dev.8");
        for bad in ["1.2", "1.2.x", ""] {
            assert!(next(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_added_once_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted-keys.json");
        let (first, second) =
            (PublisherKey::generate("acme").unwrap(), PublisherKey::generate("greeter").unwrap());
        for key in [&first, &second, &first] {
            trust(&path, key, &mut Vec::new()).unwrap();
        }
        let trusted = parse_trusted_keys(&std::fs::read(&path).unwrap()).unwrap();
        let publishers: Vec<&str> = trusted.iter().map(|key| key.publisher.as_str()).collect();
        assert_eq!(publishers, ["acme", "greeter"]);
        assert!(trusted[1].may_sign("greeter-two") && !trusted[1].may_sign("acme"));
    }
}
