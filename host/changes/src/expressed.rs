//! Changes in the words of the model: the adapter says which changes of its own features they are, and those are planned.

use heddle_core::adapter::{Description, FeatureOperation, ModelChange, OfModel};
use heddle_core::change::{ChangeSpec, Danger};
use heddle_core::fault::{Fault, FaultKind};
use heddle_inventory::adapters;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_runtime::{Adapter, Call, CallError, SecretBook};
use serde_json::Value;

use super::gates;
use super::plan::Planned;

/// What the changes are in the vendor's own features; `None` where all of them are already. Its secrets come beside it.
pub(super) async fn express(
    adapter: &Adapter,
    call: &Call,
    specs: &[ChangeSpec],
    secrets: &SecretBook,
) -> Result<Option<(Vec<ChangeSpec>, SecretBook)>, CallError> {
    let asked: Vec<Option<ModelChange>> = specs.iter().map(|spec| in_model(adapter, spec)).collect();
    let of_model: Vec<ModelChange> = asked.iter().flatten().cloned().collect();
    if of_model.is_empty() {
        return Ok(None);
    }
    let (expressed, found) = adapter.express(call, &of_model, secrets).await?;
    if expressed.len() != of_model.len() || expressed.iter().any(Vec::is_empty) {
        return Err(broken("the adapter did not say what each change is"));
    }
    let mut expressed = expressed.into_iter();
    let mut own = Vec::with_capacity(specs.len());
    for (spec, asked) in specs.iter().zip(&asked) {
        let Some(asked) = asked else {
            own.push(spec.clone());
            continue;
        };
        for mut part in expressed.next().into_iter().flatten() {
            // All changes of a plan are of one place, which the host chose.
            part.site.clone_from(&spec.site);
            if let Some(problem) = problem(adapter.description(), asked, &part) {
                return Err(broken(problem));
            }
            own.push(part);
        }
    }
    Ok(Some((own, found)))
}

/// Why a change of the vendor's own is not what a change in the words of the model may become, if it is not.
fn problem(description: &Description, asked: &ModelChange, part: &ChangeSpec) -> Option<String> {
    let (feature, operation) = (&part.feature, part.operation);
    let written = description.written(&asked.kind, &asked.verb);
    let is_used = written.is_some_and(|written| {
        written.uses.iter().any(|(used, of_used)| used == feature && *of_used == operation)
    });
    if !is_used {
        return Some(format!(
            "the adapter answered '{feature}' ({operation}), which it does not declare for '{}' of a {}",
            asked.verb, asked.kind
        ));
    }
    let is_of_site = description.feature(feature).is_some_and(|feature| feature.is_of_site);
    (part.site.is_some() && !is_of_site).then(|| {
        format!(
            "the adapter answered '{feature}', which belongs to the controller and not to one of its sites"
        )
    })
}

fn broken(message: impl Into<String>) -> CallError {
    CallError::Fault(Fault::new(FaultKind::Generic, message).with_code("expression"))
}

/// The change for the adapter to express, where it is in the words of the model.
fn in_model(adapter: &Adapter, spec: &ChangeSpec) -> Option<ModelChange> {
    let model = model_of(adapter, &spec.feature)?;
    Some(ModelChange {
        kind: model.kind.clone(),
        verb: model.verb(spec.operation).to_owned(),
        site: spec.site.clone(),
        payload: spec.payload.clone(),
    })
}

fn model_of<'a>(adapter: &'a Adapter, feature: &str) -> Option<&'a OfModel> {
    adapter.description().feature(feature)?.model.as_ref()
}

/// The operation of one of the vendor's own features.
fn operation_of<'a>(adapter: &'a Adapter, spec: &ChangeSpec) -> Option<&'a FeatureOperation> {
    let feature = adapter.description().feature(&spec.feature)?;
    feature.operation(spec.operation).filter(|_| feature.model.is_none())
}

/// Whether any of the changes is in the words of the model.
pub(super) fn is_in_model(adapter: &Adapter, specs: &[ChangeSpec]) -> bool {
    specs.iter().any(|spec| model_of(adapter, &spec.feature).is_some())
}

/// Checks what changes became as if people had staged it: against the schemas of the vendor's features.
pub(super) async fn check(
    adapter: &Adapter,
    specs: &[ChangeSpec],
    secrets: &SecretBook,
) -> Result<(), Error> {
    for (at, spec) in specs.iter().enumerate() {
        let schema = adapter.payload_schema(&spec.feature, spec.operation).await.map_err(Error::internal)?;
        let schema = schema.ok_or_else(|| Error::internal("a declared operation has no compiled schema"))?;
        // As the schema means it: references are longer than what they stand for.
        let mut payload = spec.payload.clone();
        reveal(&mut payload, secrets);
        adapters::validate(&schema, &payload, &format!("expressed_as.{at}.payload"))?;
    }
    Ok(())
}

fn reveal(value: &mut Value, secrets: &SecretBook) {
    match value {
        Value::String(text) => {
            if let Some(secret) = secrets.entries.get(text.as_str()) {
                secret.expose().clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| reveal(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| reveal(field, secrets)),
        _ => {}
    }
}

/// The danger of a plan with all that it became, at least `least`; refused where the caller may not stage each part.
pub(super) fn permitted(
    caller: &Caller,
    adapter: &Adapter,
    planned: &Planned,
    least: Danger,
) -> Result<Danger, Error> {
    let mut danger = planned.plan.as_ref().map_or(least, |(plan, _)| plan.danger.max(least));
    for spec in planned.expressed_as.iter().flatten() {
        let of_part = operation_of(adapter, spec).map_or(Danger::Normal, |operation| operation.danger);
        gates::feature_is_permitted(caller, &spec.feature, of_part)?;
        danger = danger.max(of_part);
    }
    gates::catastrophe_needs_site_admin(caller, danger)?;
    Ok(danger)
}

#[cfg(test)]
mod tests {
    use heddle_core::adapter::{Feature, Filled, Written};
    use heddle_core::change::Operation;
    use serde_json::json;

    use super::*;

    fn feature(id: &str, is_of_site: bool) -> Feature {
        Feature {
            id: id.to_owned(),
            area: "lab".to_owned(),
            title: id.to_owned(),
            kind: None,
            is_of_site,
            natural_key: Vec::new(),
            operations: Vec::new(),
            releases: None,
            model: None,
        }
    }

    fn description() -> Description {
        let used = |feature: &str| (feature.to_owned(), Operation::Create);
        let create = Written {
            verb: "create".to_owned(),
            feature: "acme.model.vlan".to_owned(),
            operation: Operation::Create,
            fields: Vec::new(),
            uses: vec![used("acme.lan.vlan"), used("acme.core.backup")],
        };
        Description {
            vendor: "acme".to_owned(),
            title: "Acme".to_owned(),
            areas: Vec::new(),
            kinds: Vec::new(),
            features: vec![
                feature("acme.lan.vlan", true),
                feature("acme.core.backup", false),
                feature("acme.core.reset", true),
            ],
            model: vec![Filled {
                kind: "vlan".to_owned(),
                fields: Vec::new(),
                is_of_site: true,
                writes: vec![create],
                releases: None,
            }],
        }
    }

    #[test]
    fn a_change_becomes_only_what_its_verb_declares_at_its_place() {
        use Operation::{Create, Delete};
        for (verb, feature, operation, site, said) in [
            ("create", "acme.lan.vlan", Create, Some("a"), None),
            ("create", "acme.lan.vlan", Create, None, None),
            ("create", "acme.core.backup", Create, None, None),
            ("create", "acme.core.backup", Create, Some("a"), Some("belongs to the controller")),
            (
                "create",
                "acme.lan.vlan",
                Delete,
                Some("a"),
                Some("'acme.lan.vlan' (delete), which it does not"),
            ),
            ("create", "acme.core.reset", Create, Some("a"), Some("does not declare for 'create' of a vlan")),
            ("create", "acme.none", Create, None, Some("does not declare")),
            ("delete", "acme.lan.vlan", Create, Some("a"), Some("does not declare for 'delete'")),
        ] {
            let site = site.map(str::to_owned);
            let asked = ModelChange {
                kind: "vlan".to_owned(),
                verb: verb.to_owned(),
                site: site.clone(),
                payload: json!({}),
            };
            let part = ChangeSpec { feature: feature.to_owned(), operation, site, payload: json!({}) };
            let found = problem(&description(), &asked, &part);
            assert_eq!(found.is_some(), said.is_some(), "{verb} {feature}: {found:?}");
            assert!(found.unwrap_or_default().contains(said.unwrap_or_default()), "{verb} {feature}");
        }
    }
}
