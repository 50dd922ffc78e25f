//! The calls of a plan.

use serde_json::{Map, Value, json};

use super::binding::{Activation, FeatureBinding, KindBinding, Sends, Verb};
use super::field::{Content, encode, put};
use super::part::Draft;
use super::read::path_of;
use super::{Purpose, Vendor};
use crate::{Fault, NativeCall, Stage, fault};

/// A call with what it is for.
pub(crate) struct Planned {
    pub(crate) call: NativeCall,
    pub(crate) purpose: Purpose,
    pub(crate) part: Option<usize>,
}

fn native(vendor: &dyn Vendor, stage: Stage, method: Verb, path: String, body: Option<Value>) -> NativeCall {
    let call = NativeCall::new(stage, method.method(), path).in_session(vendor.session());
    let call = match body {
        Some(body) => call.with_json(&body),
        // A device that reads JSON wants some, even where it needs none.
        None if method != Verb::Delete => call.with_json(&json!({})),
        None => call,
    };
    // Each call names the state that it leads to; only those of `apply` are never sent twice in any case.
    if stage == Stage::Apply { call } else { call.repeatable() }
}

/// Fields as the vendor takes them.
fn body<'a>(
    binding: &KindBinding,
    root: Option<&str>,
    values: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Value {
    let mut fields = Map::new();
    for (name, value) in values {
        if let Some(field) = binding.fields.get(name) {
            put(&mut fields, binding.place(name), encode(field, value));
        }
    }
    match root {
        Some(root) => json!({ root: fields }),
        None => Value::Object(fields),
    }
}

/// The write that turns what a part is into what it shall be.
pub(crate) fn write(
    vendor: &dyn Vendor,
    stage: Stage,
    at: usize,
    draft: &Draft,
    (kind, feature): (&KindBinding, &FeatureBinding),
    template: Option<&Content>,
) -> Result<Option<Planned>, Fault> {
    let (from, to) = match stage {
        Stage::Restore => (draft.after.as_ref(), draft.before.as_ref()),
        Stage::Apply | Stage::Confirm | Stage::Undo => (draft.before.as_ref(), draft.after.as_ref()),
    };
    let planned = |method, path: &str, body, purpose| {
        let call = native(vendor, stage, method, path_of(path, &draft.id), body);
        Ok(Some(Planned { call, purpose, part: Some(at) }))
    };
    match (from, to) {
        (None, None) => Ok(None),
        (None, Some(to)) => {
            let create = feature.create.as_ref().ok_or_else(|| lacking(kind, "created"))?;
            let values = to.iter().filter(|(name, value)| {
                if stage == Stage::Apply {
                    return draft.asked.contains(*name);
                }
                let default = template.and_then(|template| template.get(*name));
                // What is empty is only told where it would not be empty by itself.
                !value.is_null() || default.is_some_and(|default| !default.is_null())
            });
            let body = body(kind, create.root.as_deref(), values);
            planned(create.method, &create.path, Some(body), Purpose::Create)
        }
        (Some(_), None) => {
            let delete = feature.delete.as_ref().ok_or_else(|| lacking(kind, "deleted"))?;
            planned(delete.method, &delete.path, None, Purpose::Delete)
        }
        (Some(_), Some(to)) => {
            let update = feature.update.as_ref().ok_or_else(|| lacking(kind, "updated"))?;
            let touched = draft.touched(kind);
            if touched.is_empty() {
                return Ok(None);
            }
            let values = to.iter().filter(|(name, value)| match kind.fields.get(*name) {
                Some(field) if field.unread => touched.contains_key(*name) && !value.is_null(),
                Some(field) => update.sends == Sends::Whole || field.always || touched.contains_key(*name),
                None => false,
            });
            let body = body(kind, update.root.as_deref(), values);
            planned(update.method, &update.path, Some(body), Purpose::Update)
        }
    }
}

fn lacking(kind: &KindBinding, done: &str) -> Fault {
    fault::unsupported(format!("a {} cannot be {done} through this adapter", kind.noun))
}

/// The calls that make active what was written, each once.
pub(crate) fn activations(vendor: &dyn Vendor, stage: Stage, all: &[Activation]) -> Vec<Planned> {
    let call = |activation: &Activation| Planned {
        call: native(vendor, stage, activation.method, activation.path.clone(), None),
        purpose: Purpose::Activate,
        part: None,
    };
    all.iter().map(call).collect()
}
