//! A reader of the guide: carries its commands out in one folder, beside the server that they ask.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::Block;
use crate::support::{Database, Options, Process, environment, heddle_binary};

/// The address of the server in the guide.
const ADDRESS: &str = "http://127.0.0.1:8080";
/// The line that a script prints before each block.
const MARK: &str = "--- the next block ---\n";

/// A reader of the guide.
pub(super) struct Reader<'a> {
    /// What the commands find and leave: files, and the variables that they set.
    pub(super) folder: &'a Path,
    /// Texts of the guide, and what stands in their place here.
    pub(super) places: Vec<(&'static str, String)>,
}

impl Reader<'_> {
    /// Carries out blocks, each of which has to succeed, with the settings of this server. What earlier blocks have set is
    /// known, also where the server was restarted since.
    pub(super) async fn follow(&self, server: &Process, options: &Options, blocks: &[Block]) -> Shown {
        let mut script = script(blocks).replace(ADDRESS, server.api.base());
        for (of_guide, here) in &self.places {
            script = script.replace(of_guide, here);
        }
        let output = run(&script, self.folder, options).await;
        let outputs = output.split(MARK).skip(1).map(str::to_owned);
        let shown: Vec<_> = blocks.iter().map(|block| block.text.clone()).zip(outputs).collect();
        assert_eq!(shown.len(), blocks.len(), "each block is run: {output}");
        Shown(shown)
    }
}

/// The blocks as one script that ends at the first failure.
fn script(blocks: &[Block]) -> String {
    // Other than a real one, a server of a test has another port after a restart.
    let mut script =
        format!("set -euo pipefail\n[ ! -e variables ] || . ./variables\napi={ADDRESS}/api/v1\n");
    for block in blocks {
        script.extend(["printf '%s' '", MARK, "'\n", &block.text, "\n"]);
    }
    // The guide writes its variables in lower case, and settings are in upper case.
    script.push_str("declare -p $(compgen -v | grep '^[a-z]') > variables\n");
    // A refusal of the server would go unnoticed otherwise; the guide shows two on purpose.
    script
        .replace("curl -s ", "curl -sS --fail-with-body ")
        .replace("| jq .error\n", "| jq .error || true\n")
        .replace("-d '{\"force\":true}' | jq .\n", "-d '{\"force\":true}' | jq . || true\n")
}

/// Runs a script in the environment that a reader of the guide has. Returns its output.
async fn run(script: &str, folder: &Path, options: &Options) -> String {
    let programs = heddle_binary().parent().expect("the program is in a folder").display().to_string();
    let mut environment = environment(folder, &Database::Sqlite, options);
    environment.insert("PATH".to_owned(), format!("{programs}:/usr/local/bin:/usr/bin:/bin"));
    environment.insert("HOME".to_owned(), folder.display().to_string());
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).env_clear().envs(environment).current_dir(folder);
    let output = bash.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_mins(5), output).await.expect("the guide ends in time");
    let output = output.expect("bash starts");
    let (shown, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{shown}\n{errors}\nof\n{script}", output.status);
    shown.into_owned()
}

/// What blocks showed: the text of each, and its output.
pub(super) struct Shown(Vec<(String, String)>);

impl Shown {
    /// The output of the block that begins so.
    #[track_caller]
    pub(super) fn by(&self, beginning: &str) -> &str {
        let found = self.0.iter().find(|(text, _)| text.starts_with(beginning));
        &found.unwrap_or_else(|| panic!("no block begins with '{beginning}'")).1
    }

    /// The block that begins so shows each of these parts.
    #[track_caller]
    pub(super) fn has(&self, beginning: &str, parts: &[&str]) {
        let shown = self.by(beginning);
        for part in parts {
            assert!(shown.contains(part), "'{part}' is shown by '{beginning}':\n{shown}");
        }
    }
}
