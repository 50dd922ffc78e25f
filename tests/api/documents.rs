//! What is written about the service is true.

use std::path::Path;

use heddle_kernel::config::Config;

use crate::support::variable;

/// What stands above the rows of the table of settings.
const HEAD: &str = "| setting | default | meaning |\n|---|---|---|\n";

/// `UPDATE_SNAPSHOTS=1` writes them anew.
#[test]
fn the_readme_lists_every_setting_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(HEAD).expect("README.md has a table of settings");
    let (written, after) = rest.split_once("\n\n").expect("the table ends");
    let settings = heddle_server::FEATURES.settings();
    let rows = Config::table(&settings).map(|setting| {
        let default =
            if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
        format!("| `{}` | {default} | {} |", setting.name, setting.about.trim())
    });
    let rows = rows.collect::<Vec<_>>().join("\n");
    if variable("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, format!("{before}{HEAD}{rows}\n\n{after}")).unwrap();
        return;
    }
    assert_eq!(written, rows, "write it anew with UPDATE_SNAPSHOTS=1");
}

#[test]
fn every_event_type_has_a_closed_schema() {
    for event_type in crate::support::declared().events.iter() {
        let schema = event_type.payload_schema();
        assert_eq!(schema["additionalProperties"], false, "{event_type}");
        assert!(schema["required"].as_array().is_some_and(|required| !required.is_empty()), "{event_type}");
    }
}
