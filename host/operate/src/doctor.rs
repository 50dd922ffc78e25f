//! `heddle doctor`: reports what is wrong and how to mend it. It changes nothing.

mod checks;

use std::io::Write;

use heddle_kernel::config::{Config, ConfigErrors};
use heddle_kernel::feature::{Diagnostic, Feature, Features};
use heddle_kernel::findings::{Findings, Level};

/// Prints one line per check; whether nothing fails.
pub async fn doctor(
    config: Result<Config, ConfigErrors>,
    features: Features,
    out: &mut dyn Write,
) -> std::io::Result<bool> {
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
            checks::database(&config, keys.as_ref(), features, &mut findings).await;
            checks::log_database(&config, &mut findings).await;
            checks::cache(&config, &mut findings).await;
            checks::mail(&config, &mut findings).await;
            let asked = features.iter().flat_map(Feature::diagnostics);
            for diagnostic in asked {
                if let Diagnostic::Settings(ask) = diagnostic {
                    ask(&config, &mut findings);
                }
            }
            checks::address(&config, &mut findings).await;
        }
    }
    findings.print(out)?;
    Ok(findings.count(Level::Fail) == 0)
}
