//! Features in the words of the model: what a package says that it can express, as features that are staged like others.

use heddle_core::Document;
use heddle_core::adapter::{Feature, FeatureOperation, OfModel, Written};
use heddle_core::change::{Danger, Operation};
use heddle_marketplace::description as package;
use heddle_marketplace::model::{self, ModelKind};

use super::{danger_of, operation_of, span};

/// What stages a verb: an operation of the kind's own feature, or an action that is a feature of its own.
fn staged_by(kind: &ModelKind, verb: &str) -> Option<(String, Operation, OfModel)> {
    let own = kind.feature()?;
    let of = |action: Option<&str>| OfModel { kind: kind.id.to_owned(), action: action.map(str::to_owned) };
    let operation = match verb {
        "create" => Operation::Create,
        "update" => Operation::Update,
        "delete" => Operation::Delete,
        action => return Some((format!("{own}.{action}"), Operation::Create, of(Some(action)))),
    };
    Some((own.to_owned(), operation, of(None)))
}

/// A verb as the host shows it.
pub(super) fn written(kind: &ModelKind, written: &package::Written) -> Option<Written> {
    let (feature, operation, _) = staged_by(kind, &written.verb)?;
    let uses = written.uses.iter().map(|used| (used.feature.clone(), operation_of(used.operation)));
    Some(Written {
        verb: written.verb.clone(),
        feature,
        operation,
        fields: written.fields.clone(),
        uses: uses.collect(),
    })
}

/// The features of all verbs that a package can express, in the order of its description.
pub(super) fn features(description: &package::Description) -> Vec<Feature> {
    let mut features: Vec<Feature> = Vec::new();
    for filled in &description.model {
        let Some(kind) = model::find(&filled.kind) else { continue };
        for written in &filled.writes {
            let Some((id, operation, model)) = staged_by(kind, &written.verb) else { continue };
            let Some(operation) = of_operation(description, kind, written, operation) else { continue };
            if let Some(known) = features.iter_mut().find(|known| known.id == id) {
                known.operations.push(operation);
                continue;
            }
            let title = match &model.action {
                Some(action) => format!("{}: {}", kind.title(), action.replace('-', " ")),
                None => kind.title().to_owned(),
            };
            features.push(Feature {
                id,
                area: area_of(description, written),
                title,
                kind: None,
                is_of_site: filled.per.is_site(),
                natural_key: vec!["key".to_owned()],
                operations: vec![operation],
                // Of the features that it becomes, each has its own.
                releases: filled.releases.as_ref().map(span),
                model: Some(model),
            });
        }
    }
    features
}

/// The area of the first of the features that a verb may become.
fn area_of(description: &package::Description, written: &package::Written) -> String {
    let first = written.uses.first();
    let feature = description.features.iter().find(|one| first.is_some_and(|used| used.feature == one.id));
    feature.map(|feature| feature.area.clone()).unwrap_or_default()
}

/// The operation, as dangerous as the worst of those that it may become.
fn of_operation(
    description: &package::Description,
    kind: &ModelKind,
    written: &package::Written,
    operation: Operation,
) -> Option<FeatureOperation> {
    let used = written.uses.iter().filter_map(|used| {
        let feature = description.features.iter().find(|feature| feature.id == used.feature)?;
        feature.operations.iter().find(|one| one.operation == used.operation)
    });
    let used: Vec<_> = used.collect();
    Some(FeatureOperation {
        operation,
        danger: used.iter().map(|one| danger_of(one.danger)).max().unwrap_or(Danger::Normal),
        payload_schema: Document::from(&kind.payload_schema(&written.verb)?),
        time_limit_ms: used.iter().filter_map(|one| one.time_limit_ms).max(),
        invertible: used.iter().all(|one| one.invertible),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verbs_become_features_as_dangerous_as_what_they_use() {
        let operation = |verb: &str, danger: &str| json!({ "operation": verb, "danger": danger, "invertible": true, "payload-schema": {} });
        let uses = |feature: &str, operation: &str| json!([{ "feature": feature, "operation": operation }]);
        let description: package::Description = serde_json::from_value(json!({
            "areas": [{ "id": "network", "title": "Network" }],
            "features": [
                { "id": "acme.net", "area": "network", "title": "Net",
                  "operations": [operation("create", "normal"), operation("delete", "destructive")] },
                { "id": "acme.cycle", "area": "network", "title": "Cycle", "operations": [operation("create", "normal")] },
            ],
            "model": [
                { "kind": "vlan", "fields": [], "writes": [
                    { "verb": "create", "fields": ["vlan_id"], "uses": uses("acme.net", "create") },
                    { "verb": "delete", "uses": uses("acme.net", "delete") },
                ] },
                { "kind": "port", "fields": [], "writes": [{ "verb": "poe-cycle", "uses": uses("acme.cycle", "create") }] },
            ],
        }))
        .unwrap();
        let features = features(&description);
        let ids: Vec<&str> = features.iter().map(|feature| feature.id.as_str()).collect();
        assert_eq!(ids, ["network.vlan", "network.port.poe-cycle"]);
        let dangers: Vec<Danger> = features[0].operations.iter().map(|one| one.danger).collect();
        assert_eq!(dangers, [Danger::Normal, Danger::Destructive]);
        assert_eq!(features[0].area, "network");
        let verbs = features.iter().map(|feature| {
            let operation = feature.operations.last().unwrap().operation;
            feature.model.as_ref().unwrap().verb(operation).to_owned()
        });
        assert_eq!(verbs.collect::<Vec<_>>(), ["delete", "poe-cycle"]);
    }
}
