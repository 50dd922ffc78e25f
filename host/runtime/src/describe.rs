//! Whether what a component says of itself makes sense.

use std::collections::HashSet;

use heddle_core::adapter::Description;

const ENTRIES_MAX: usize = 1_024;

/// The first thing that is wrong with a description, if anything is.
pub(crate) fn problem(description: &Description, id: &str) -> Option<String> {
    if description.vendor != id {
        return Some(format!("it calls itself '{}', its manifest says '{id}'", description.vendor));
    }
    if description.areas.len() + description.kinds.len() + description.features.len() > ENTRIES_MAX {
        return Some(format!("it has more than {ENTRIES_MAX} areas, kinds and features"));
    }
    let areas = ids("area", description.areas.iter().map(|area| area.id.as_str()));
    let kinds = ids("kind", description.kinds.iter().map(|kind| kind.id.as_str()));
    let features = ids("feature", description.features.iter().map(|feature| feature.id.as_str()));
    let (areas, kinds) = match (areas, kinds, features) {
        (Ok(areas), Ok(kinds), Ok(_)) => (areas, kinds),
        (Err(problem), ..) | (_, Err(problem), _) | (.., Err(problem)) => return Some(problem),
    };
    for kind in &description.kinds {
        if !areas.contains(kind.area.as_str()) {
            return Some(format!("kind '{}' is in the area '{}', which is not declared", kind.id, kind.area));
        }
    }
    for feature in &description.features {
        if !areas.contains(feature.area.as_str()) {
            return Some(format!(
                "feature '{}' is in the area '{}', which is not declared",
                feature.id, feature.area
            ));
        }
        if !feature.id.starts_with(&format!("{id}.")) {
            return Some(format!("feature '{}' does not begin with '{id}.'", feature.id));
        }
        if let Some(kind) = feature.kind.as_deref().filter(|kind| !kinds.contains(kind)) {
            return Some(format!("feature '{}' writes the kind '{kind}', which is not declared", feature.id));
        }
        let mut seen = HashSet::new();
        for operation in &feature.operations {
            if !seen.insert(operation.operation) {
                return Some(format!(
                    "feature '{}' has the operation '{}' twice",
                    feature.id, operation.operation
                ));
            }
            if !operation.payload_schema.is_object() {
                return Some(format!(
                    "the payload schema of '{}' ({}) is not a JSON object",
                    feature.id, operation.operation
                ));
            }
        }
    }
    None
}

fn ids<'a>(what: &str, all: impl Iterator<Item = &'a str>) -> Result<HashSet<&'a str>, String> {
    let mut seen = HashSet::new();
    for id in all {
        let fits = (1..=80).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        if !fits {
            return Err(format!("'{id}' cannot name {what}s; use a-z, 0-9, '.', '_' and '-'"));
        }
        if !seen.insert(id) {
            return Err(format!("{what} '{id}' is declared twice"));
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use heddle_core::adapter::{Area, Feature, FeatureOperation, ObjectKind};
    use heddle_core::change::{Danger, Operation};
    use serde_json::{Value, json};

    use super::*;

    fn description(schema: Value) -> Description {
        let operation = FeatureOperation {
            operation: Operation::Create,
            danger: Danger::Normal,
            payload_schema: schema,
            time_limit_ms: None,
            invertible: true,
        };
        Description {
            vendor: "acme".into(),
            title: "Acme".into(),
            areas: vec![Area { id: "firewall".into(), title: "Firewall".into() }],
            kinds: vec![ObjectKind { id: "rule".into(), area: "firewall".into(), title: "Rule".into() }],
            features: vec![Feature {
                id: "acme.firewall.rule".into(),
                area: "firewall".into(),
                title: "Rule".into(),
                kind: Some("rule".into()),
                natural_key: vec!["name".into()],
                operations: vec![operation],
            }],
        }
    }

    #[test]
    fn a_sound_description_passes() {
        assert_eq!(problem(&description(json!({"type": "object"})), "acme"), None);
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        let good = || description(json!({}));
        assert!(problem(&good(), "other").unwrap().contains("'other'"));
        assert!(problem(&description(json!(true)), "acme").unwrap().contains("schema"));
        let mut bad = good();
        bad.features[0].area = "wifi".into();
        assert!(problem(&bad, "acme").unwrap().contains("'wifi'"));
        let mut bad = good();
        bad.kinds.push(bad.kinds[0].clone());
        assert!(problem(&bad, "acme").unwrap().contains("twice"));
        let mut bad = good();
        bad.features[0].id = "firewall.rule".into();
        assert!(problem(&bad, "acme").unwrap().contains("begin"));
    }
}
