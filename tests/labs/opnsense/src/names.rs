//! Items that others refer to by name: aliases and interface groups.

use crate::choices::{ALIASES, GROUPS};
use crate::config::{Config, Values};

/// Lists that name aliases, networks and interface groups, and the fields that do.
const NAMING: [(&str, &[&str]); 6] = [
    (
        "Firewall/Filter:rules.rule",
        &["source_net", "destination_net", "source_port", "destination_port", "interface", "overload"],
    ),
    (
        "Firewall/Filter:snatrules.rule",
        &["source_net", "destination_net", "target", "destination_port", "interface"],
    ),
    ("Firewall/Filter:onetoone.rule", &["source_net", "destination_net", "interface"]),
    ("Firewall/Filter:npt.rule", &["interface"]),
    (
        "Firewall/DNat:rule",
        &[
            "source.network",
            "source.port",
            "destination.network",
            "destination.port",
            "target",
            "local-port",
            "interface",
        ],
    ),
    (ALIASES, &["content"]),
];

/// Writes the posted name of an alias or a group into everything that uses the old one; a name that is not posted counts
/// as an empty one.
pub(crate) fn follow_rename(node: &str, id: &str, posted: &Values, config: &mut Config) {
    let field = match node {
        ALIASES => "name",
        GROUPS => "ifname",
        _ => return,
    };
    let old = config.value(node, id, field).to_owned();
    let new = posted.get(field).cloned().unwrap_or_default();
    if old.is_empty() || old == new {
        return;
    }
    for (list, fields) in NAMING {
        config.rewrite(list, |_, values| {
            let mut out = values.clone();
            for field in fields {
                let separator = if *field == "content" { "\n" } else { "," };
                if let Some(value) = out.get_mut(*field) {
                    let parts =
                        value.split(separator).map(|part| if part == old { new.as_str() } else { part });
                    *value = parts.collect::<Vec<_>>().join(separator);
                }
            }
            (out != *values).then_some(out)
        });
    }
}

/// Where a name of an alias or a group is used: list and id.
pub(crate) fn uses_of_name(name: &str, config: &Config) -> Option<(&'static str, String)> {
    NAMING.iter().find_map(|(list, fields)| {
        let uses = |values: &Values| {
            fields.iter().any(|field| {
                values.get(*field).is_some_and(|value| value.split([',', '\n']).any(|part| part == name))
            })
        };
        config.rows(list).find(|(_, values)| uses(values)).map(|(id, _)| (*list, id.to_owned()))
    })
}
