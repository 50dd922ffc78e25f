//! Every setting is declared by a feature or the kernel.

use std::collections::BTreeSet;

use heddle_kernel::config::Config;
use heddle_server::FEATURES;

use super::paths::files;
use super::rooms::host;

/// A feature that forgets to declare its settings would fail only when it reads one.
#[test]
fn every_line_of_settings_is_declared_by_a_feature() {
    let declared: BTreeSet<&str> = Config::table(&FEATURES.settings()).map(|setting| setting.name).collect();
    let mut written = BTreeSet::new();
    let mut sources = Vec::new();
    files(&host(), &mut sources);
    for source in sources {
        let text = std::fs::read_to_string(&source).expect("a source can be read");
        let blocks = text.split("settings! {").skip(1).filter_map(|rest| rest.split("\n}\n").next());
        for line in blocks.flat_map(str::lines).filter(|line| !line.trim_start().starts_with("//")) {
            let name = line.split_once(" = \"").and_then(|(_, rest)| rest.split('"').next());
            written.extend(name.map(str::to_owned));
        }
    }
    let undeclared: Vec<&String> = written.iter().filter(|name| !declared.contains(name.as_str())).collect();
    assert!(undeclared.is_empty(), "{undeclared:?} are declared by no feature");
    assert_eq!(written.len(), declared.len());
}
