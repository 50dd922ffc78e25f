//! `heddle doctor`: what is wrong, and how to mend it. It changes nothing.

mod checks;

use std::io::Write;

use crate::config::{Config, ConfigErrors};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

/// What a check found.
#[derive(Debug)]
struct Finding {
    level: Level,
    what: String,
    /// What to do about it.
    mend: String,
}

/// Everything that was found, in order.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, what: what.into(), mend: String::new() });
    }

    fn warn(&mut self, what: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level: Level::Warn, what: what.into(), mend: mend.into() });
    }

    fn fail(&mut self, what: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level: Level::Fail, what: what.into(), mend: mend.into() });
    }

    fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }

    fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for finding in &self.0 {
            let word = match finding.level {
                Level::Ok => "ok  ",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            // One line each, whatever an error's text holds.
            let what = finding.what.replace('\n', " ");
            if finding.mend.is_empty() {
                writeln!(out, "{word}  {what}")?;
            } else {
                writeln!(out, "{word}  {what} -> {}", finding.mend)?;
            }
        }
        writeln!(out, "{} failed, {} to look at", self.count(Level::Fail), self.count(Level::Warn))
    }
}

/// Prints one line per check; whether nothing fails.
pub async fn doctor(config: Result<Config, ConfigErrors>, out: &mut dyn Write) -> std::io::Result<bool> {
    let mut findings = Findings::default();
    match config {
        Err(ConfigErrors(errors)) => {
            for error in errors {
                findings
                    .fail(format!("settings: {error}"), "correct it; 'heddle settings' lists all of them");
            }
        }
        Ok(config) => {
            findings.ok(format!("settings: accepted, ENVIRONMENT is {}", config.environment));
            checks::settings(&config, &mut findings);
            checks::data_folder(&config, &mut findings);
            let keys = checks::keys(&config, &mut findings);
            checks::database(&config, keys.as_ref(), &mut findings).await;
            checks::log_database(&config, &mut findings).await;
            checks::cache(&config, &mut findings).await;
            checks::mail(&config, &mut findings).await;
            checks::adapters(&config, &mut findings);
            checks::address(&config, &mut findings).await;
        }
    }
    findings.print(out)?;
    Ok(findings.count(Level::Fail) == 0)
}
