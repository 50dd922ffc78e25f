//! How the API document speaks of the Fabric.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const FABRIC: Glossary = Glossary {
    groups: &[(
        "fabric",
        "Fabric",
        "Connections that lead from an event to operations, their runs, and the catalogue of both.",
    )],
    nouns: &[
        ("/automation/rules", "automation_rule", "automation_rules"),
        ("/fabric/connections", "connection", "connections"),
        ("/fabric/logs", "fabric_log_line", "fabric_log_lines"),
        ("/fabric/runs", "run", "runs"),
    ],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};

pub(crate) const AUTOMATION: Glossary = Glossary {
    groups: &[
        ("actions", "Actions", "Carry out one operation of the catalogue now, with the caller's own rights."),
        ("automation", "Automation", "Rules that an event starts, and schedules that the clock starts."),
    ],
    nouns: &[("/actions", "action", "actions"), ("/automation/schedules", "schedule", "schedules")],
    ..Glossary::EMPTY
};
