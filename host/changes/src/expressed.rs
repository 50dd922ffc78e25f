//! Changes in the words of the model: the adapter says which changes of its own features they are, and those are planned.

use heddle_core::adapter::{FeatureOperation, ModelChange, OfModel};
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
        match asked {
            None => own.push(spec.clone()),
            Some(_) => own.extend(expressed.next().into_iter().flatten()),
        }
    }
    // All changes of a plan are of one place, which the host chose.
    let site = specs.first().and_then(|spec| spec.site.as_ref());
    own.iter_mut().for_each(|spec| spec.site = site.cloned());
    match own.iter().find(|spec| operation_of(adapter, spec).is_none()) {
        Some(strange) => {
            let message = format!(
                "the adapter answered '{}' ({}), which it does not declare",
                strange.feature, strange.operation
            );
            Err(broken(message))
        }
        None => Ok(Some((own, found))),
    }
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
    adapter.description().features.iter().find(|one| one.id == feature)?.model.as_ref()
}

/// The operation of one of the vendor's own features.
fn operation_of<'a>(adapter: &'a Adapter, spec: &ChangeSpec) -> Option<&'a FeatureOperation> {
    let feature = adapter.description().features.iter().find(|one| one.id == spec.feature)?;
    feature.operation(spec.operation).filter(|_| feature.model.is_none())
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
