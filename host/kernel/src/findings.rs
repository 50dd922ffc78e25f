//! What `heddle doctor` finds, and the lines that it prints of it.

use std::io::Write;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Ok,
    Warn,
    Fail,
}

/// What a check found.
#[derive(Debug)]
pub(crate) struct Finding {
    level: Level,
    what: String,
    /// What to do about it.
    mend: String,
}

/// Everything that was found, in order.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Notes that a check found nothing wrong.
    pub fn ok(&mut self, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, what: what.into(), mend: String::new() });
    }

    /// Notes what needs attention and does not make `heddle doctor` fail. `mend` says what to do about it.
    pub fn warn(&mut self, what: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level: Level::Warn, what: what.into(), mend: mend.into() });
    }

    /// Notes what keeps the server from working and makes `heddle doctor` fail. `mend` says what to do about
    /// it.
    pub fn fail(&mut self, what: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level: Level::Fail, what: what.into(), mend: mend.into() });
    }

    /// Counts the findings of one level. `heddle doctor` succeeds when none is of [`Level::Fail`].
    pub fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }

    /// Writes one line for each finding, in their order, and then the numbers of failures and of warnings.
    pub fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
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
