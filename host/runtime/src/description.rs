//! What an adapter manages: from the words of the package to those of the host, and what it says to its component.

use std::collections::HashMap;

use heddle_core::adapter::{Area, Description, Feature, FeatureOperation, Filled, KindFile, ObjectKind};
use heddle_core::change;
use heddle_core::release::ReleaseSpan;
use heddle_marketplace::description as package;
use heddle_marketplace::model;
use heddle_marketplace::release::Span;
use serde_json::value::RawValue;

mod written;

use written::written;

/// What a package says of its kinds, features and model to its own component, as JSON texts by their ids.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    pub(crate) kinds: HashMap<String, String>,
    pub(crate) features: HashMap<String, String>,
    pub(crate) model: HashMap<String, String>,
}

impl Bindings {
    pub(crate) fn of(description: &package::Description) -> Self {
        fn texts<'a>(
            all: impl Iterator<Item = (&'a String, &'a Option<Box<RawValue>>)>,
        ) -> HashMap<String, String> {
            all.filter_map(|(id, binding)| Some((id.clone(), binding.as_ref()?.get().to_owned()))).collect()
        }
        Self {
            kinds: texts(description.kinds.iter().map(|kind| (&kind.id, &kind.binding))),
            features: texts(description.features.iter().map(|feature| (&feature.id, &feature.binding))),
            model: texts(description.model.iter().map(|filled| (&filled.kind, &filled.binding))),
        }
    }
}

/// The description as the host shows it; `id` and `name` are the manifest's.
pub(crate) fn shown(id: &str, name: &str, description: &package::Description) -> Description {
    let kind = |kind: &package::Kind| ObjectKind {
        id: kind.id.clone(),
        area: kind.area.clone(),
        title: kind.title.clone(),
        is_of_site: kind.per.unwrap_or_default().is_site(),
        releases: kind.releases.as_ref().map(span),
        file: kind
            .file
            .as_ref()
            .map(|file| KindFile { name: file.name.clone(), content_type: file.content_type.clone() }),
    };
    let features = description.features.iter().map(feature);
    let of_model = written::features(description);
    Description {
        vendor: id.to_owned(),
        title: name.to_owned(),
        areas: description
            .areas
            .iter()
            .map(|area| Area { id: area.id.clone(), title: area.title.clone() })
            .collect(),
        kinds: description.kinds.iter().map(kind).collect(),
        features: features.chain(of_model).collect(),
        model: description.model.iter().map(filled).collect(),
    }
}

fn span(span: &Span) -> ReleaseSpan {
    ReleaseSpan { from: span.from.clone(), to: span.to.clone() }
}

fn filled(filled: &package::Filled) -> Filled {
    let writes =
        model::find(&filled.kind).map(|kind| filled.writes.iter().filter_map(|one| written(kind, one)));
    Filled {
        kind: filled.kind.clone(),
        fields: filled.fields.clone(),
        is_of_site: filled.per.is_site(),
        writes: writes.into_iter().flatten().collect(),
        releases: filled.releases.as_ref().map(span),
    }
}

fn feature(feature: &package::Feature) -> Feature {
    let of = |operation: &package::FeatureOperation| FeatureOperation {
        operation: operation_of(operation.operation),
        danger: danger_of(operation.danger),
        payload_schema: operation.payload_schema.clone().into(),
        time_limit_ms: operation.time_limit_ms,
        invertible: operation.invertible,
    };
    Feature {
        id: feature.id.clone(),
        area: feature.area.clone(),
        title: feature.title.clone(),
        kind: feature.kind.clone(),
        is_of_site: feature.per.is_site(),
        natural_key: feature.natural_key.clone(),
        operations: feature.operations.iter().map(of).collect(),
        releases: feature.releases.as_ref().map(span),
        model: None,
    }
}

fn operation_of(operation: package::Operation) -> change::Operation {
    match operation {
        package::Operation::Create => change::Operation::Create,
        package::Operation::Update => change::Operation::Update,
        package::Operation::Delete => change::Operation::Delete,
    }
}

fn danger_of(danger: package::Danger) -> change::Danger {
    match danger {
        package::Danger::Normal => change::Danger::Normal,
        package::Danger::Destructive => change::Danger::Destructive,
        package::Danger::Catastrophic => change::Danger::Catastrophic,
    }
}
