//! `dev`: after each change of a file the plugin is built, sent to a development server, and switched on there.

use std::io::Write;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use heddle_core::Clock;
use heddle_marketplace::{PublisherKey, TrustedKey, write_archive, write_trusted_keys};
use semver::{BuildMetadata, Prerelease, Version};
use serde_json::{Map, Value, json};

use crate::call::{pairs, params};
use crate::command::At;
use crate::project::Project;
use crate::server::Server;
use crate::tool::{TOKEN, read_bounded};
use crate::{make, package, trust, watch};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(300);
/// Most bytes of a file with a token.
const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// Where a plugin is tried out.
#[derive(Debug, Args)]
pub struct Dev {
    #[command(flatten)]
    at: At,
    /// Address of a development server on this machine.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// File with the access token of a `super_admin`.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// The token itself, where there is no --token-file. It belongs into the variable: other users of this machine see
    /// the options of a command.
    #[arg(long, env = TOKEN, hide_env_values = true)]
    token: Option<String>,
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
    let server = Server::at(&arguments.url, &arguments.token()?)?;
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
        trust::trust(path, round.trusted()?, &round.project.id()?, out)?;
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

impl Dev {
    /// The token of the file, or of the variable.
    fn token(&self) -> anyhow::Result<String> {
        let text = match &self.token_file {
            Some(path) => {
                let bytes = read_bounded(path, TOKEN_BYTES_MAX)?;
                String::from_utf8(bytes).ok().with_context(|| format!("'{}' is no text", path.display()))?
            }
            None => self.token.clone().unwrap_or_default(),
        };
        let token = text.trim();
        let is_plain = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(
            is_plain,
            "HEDDLE_TOKEN, or the file of --token-file, has to hold the access token of a super_admin"
        );
        Ok(token.to_owned())
    }
}

impl Round {
    /// False where the plugin is not active afterwards, or the call that was asked for failed.
    fn carry_out(&self, out: &mut dyn Write) -> anyhow::Result<bool> {
        let begun = Instant::now();
        let component = make::fresh(&self.project, out)?;
        let id = self.project.id()?;
        let mut manifest = self.project.manifest_value()?;
        let version = self.version(&manifest)?;
        manifest["version"] = json!(version);
        let files = package::files(manifest.to_string().as_bytes(), component, &self.key)?;
        let outcome = self
            .server
            .install(&write_archive(&files)?)
            .map_err(|error| anyhow!("{error:#}; {}", self.hint()))?;
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

    /// A version above the author's own, also a pre-release, which grows with the time.
    fn version(&self, manifest: &Value) -> anyhow::Result<String> {
        let written = manifest["version"].as_str().context("manifest.json has no 'version'")?;
        next(written, self.clock.now().timestamp_millis())
    }

    /// What to do where a server does not trust the key.
    fn hint(&self) -> String {
        let entry = self.trusted().map(|key| write_trusted_keys(&[key])).unwrap_or_default();
        format!(
            "where it does not trust the key of this plugin, --trusted-keys names its file of trusted keys \
             (ADAPTER_TRUSTED_KEYS), which needs this entry: {entry}"
        )
    }

    /// The key of this plugin as a server lists it: it signs this plugin and no other.
    fn trusted(&self) -> anyhow::Result<TrustedKey> {
        Ok(self.key.trusted_for(vec![self.project.id()?]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_for_development_is_above_the_written_one_and_grows() {
        assert_eq!(next("1.2.3", 7).unwrap(), "1.2.4-dev.7");
        assert_eq!(next("0.1.0-beta.1+x", 8).unwrap(), "0.1.1-dev.8");
        let above = |written: &str, number| Version::parse(&next(written, number).unwrap()).unwrap();
        for written in ["0.2.0", "0.2.0-rc.1", "0.2.0-zeta.9", "0.2.0-dev.99"] {
            assert!(above(written, 7) > Version::parse(written).unwrap(), "{written}");
            assert!(above(written, 8) > above(written, 7), "{written}");
        }
        // The next steps of its author are above what was tried out before.
        assert!(above("0.2.0", 9) > above("0.2.0-rc.1", 8) && above("0.2.1-alpha", 9) > above("0.2.0", 8));
        for bad in ["1.2", "1.2.x", ""] {
            assert!(next(bad, 1).is_err(), "{bad}");
        }
    }
}
