//! What a call gave, in short: keys with a digest of the rest, so that a cassette does not say everything twice.

use serde_json::{Value, json};

use crate::fault::FaultExt as _;
use crate::{
    ChangePlan, Completeness, DevicePage, DeviceProfile, Fault, ModelPage, NativeBody, Object, ObjectPage,
    Outcome, Readiness, SitePage, Standing,
};

/// Characters of a digest that are kept.
const DIGEST_CHARS: usize = 12;

/// A list, in short: of each entry its key and a digest of what it is, whether more follows, and how complete it is.
#[must_use]
pub fn listed(entries: &[(String, Value)], has_more: bool, complete: &str) -> Value {
    let short = |(key, value): &(String, Value)| format!("{key} {}", digest(value));
    json!({ "items": entries.iter().map(short).collect::<Vec<_>>(), "more": has_more, "complete": complete })
}

fn digest(value: &Value) -> String {
    hex::encode(crate::json::digest(&plain(value))).chars().take(DIGEST_CHARS).collect()
}

/// The value with fractions to twelve digits: a component and its tests may keep their texts, such as `0.50`, or not, and
/// readers of long ones differ in the last digit.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            let rounded = number.as_f64().and_then(|number| format!("{number:.11e}").parse::<f64>().ok());
            rounded.map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

pub(super) fn fault(fault: &Fault) -> Value {
    json!({ "fault": fault.word() })
}

fn completeness(complete: Completeness) -> &'static str {
    match complete {
        Completeness::Complete => "complete",
        Completeness::Partial => "partial",
        Completeness::RightsLimited => "rights_limited",
        Completeness::Unknown => "unknown",
    }
}

pub(super) fn profile(profile: &DeviceProfile) -> Value {
    json!({ "product": profile.product, "version": profile.version })
}

pub(super) fn sites(page: &SitePage) -> Value {
    let entries: Vec<_> = page.items.iter().map(|site| (site.id.clone(), json!(site.name))).collect();
    listed(&entries, page.next.is_some(), "complete")
}

pub(super) fn devices(page: &DevicePage) -> Value {
    let entries = page.items.iter().map(|device| {
        let rest =
            json!([device.name, device.kind, device.model, device.serial, device.mac, device.addresses]);
        (device.identity.clone(), rest)
    });
    let entries: Vec<_> = entries.collect();
    listed(&entries, page.next.is_some(), completeness(page.complete))
}

pub(super) fn object(object: &Object) -> Value {
    listed(&[(object.reference.key.clone(), parsed(&object.body))], false, "complete")
}

pub(super) fn objects(page: &ObjectPage) -> Value {
    let entries = page.items.iter().map(|object| (object.reference.key.clone(), parsed(&object.body)));
    let entries: Vec<_> = entries.collect();
    listed(&entries, page.next.is_some(), completeness(page.complete))
}

pub(super) fn model(page: &ModelPage) -> Value {
    let entries = page.items.iter().map(|object| (object.key.clone(), parsed(&object.fields)));
    let entries: Vec<_> = entries.collect();
    listed(&entries, page.next.is_some(), completeness(page.complete))
}

pub(super) fn plan(plan: &ChangePlan) -> Value {
    let calls = plan.native.iter().map(|call| {
        let body = match &call.body {
            NativeBody::None => Value::Null,
            NativeBody::Json(text) => parsed(text),
            NativeBody::Form(fields) => json!(fields),
            NativeBody::File(file) => json!(file.file),
            NativeBody::Multipart(parts) => json!(parts.iter().map(|part| &part.name).collect::<Vec<_>>()),
        };
        let method = crate::testing::method_word(call.method);
        format!("{method} {} {}", call.path, digest(&body))
    });
    json!({ "calls": calls.collect::<Vec<_>>() })
}

pub(super) fn ready(readiness: &Readiness) -> Value {
    match readiness {
        Readiness::Send(start) => json!({ "send": start.from }),
        Readiness::Nothing(_) => json!("nothing"),
    }
}

pub(super) fn outcome(outcome: Outcome) -> Result<Value, Fault> {
    match outcome {
        Outcome::Done(_) => Ok(json!("done")),
        Outcome::Pending(_) => Ok(json!("pending")),
        Outcome::Failed(failed) => Err(failed),
    }
}

pub(super) fn standing(standing: &Standing) -> Value {
    json!(match standing {
        Standing::Before => "before",
        Standing::After => "after",
        Standing::Adjusted(_) => "adjusted",
        Standing::Stored(_) => "stored",
        Standing::MovedOn(_) => "moved_on",
        Standing::Other(_) => "other",
        Standing::Unseen => "unseen",
    })
}
