//! What is written about the service is true.

use heddle_kernel::config::Config;

const README: &str = include_str!("../../README.md");

#[test]
fn the_readme_lists_every_setting_with_its_default() {
    for setting in Config::table(&heddle_server::FEATURES.settings()) {
        let default =
            if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
        let line = format!("| `{}` | {default} | {} |", setting.name, setting.about.trim());
        assert!(README.contains(&line), "README.md has the line: {line}");
    }
}

#[test]
fn every_event_type_has_a_closed_schema() {
    for event_type in crate::support::declared().events.iter() {
        let schema = event_type.payload_schema();
        assert_eq!(schema["additionalProperties"], false, "{event_type}");
        assert!(schema["required"].as_array().is_some_and(|required| !required.is_empty()), "{event_type}");
    }
}
