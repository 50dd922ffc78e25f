//! What could follow an event: operations, whether the caller may have them, and how the event's fields fit.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::Permission;
use heddle_core::operation::{OperationKind, OperationTier};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Params;
use heddle_kernel::http::routes::{Routes, doc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::operation::Declaration;
use super::operations::Operations;
use super::provided::OfferedIn;
use super::steps;

heddle_core::words! {
    /// How far the event's payload has what an operation needs.
    pub enum ArtifactMatch {
        /// Every required parameter.
        Full = "full",
        Partial = "partial",
        None = "none",
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Suggestion {
    operation_id: String,
    title: String,
    tier: OperationTier,
    kind: OperationKind,
    owner: String,
    /// Whether the caller could write such a step.
    permitted: bool,
    missing_permission: Option<Permission>,
    artifact_match: ArtifactMatch,
    /// The required parameters.
    params: Vec<Param>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SuggestedParam")]
struct Param {
    name: String,
    artifact_match: ArtifactMatch,
    /// The reference that gives the event's field of this name.
    template: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Suggestions")]
struct Answered {
    source_event: String,
    /// The declared types that it covers.
    event_types: Vec<&'static str>,
    /// The best fitting first.
    operations: Vec<Suggestion>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// A type of events, or a pattern such as `device.*`.
    source_event: String,
}

pub(super) fn routes() -> Routes {
    Routes::default().get(
        "/fabric/connections/suggest",
        Access::Member,
        suggest,
        doc("Operations that could follow an event")
            .named("suggest_connections")
            .query::<Query>()
            .answers::<Answered>(200),
    )
}

async fn suggest(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<Query>,
) -> Result<Answer<Answered>, Error> {
    if let Some(message) = steps::pattern_fault(&app, &query.source_event) {
        return Err(Error::field("source_event", message));
    }
    let types: Vec<_> = app.declared().events.covered(&query.source_event).collect();
    let fields = common_fields(&types.iter().map(|event| event.payload_schema()).collect::<Vec<_>>());
    let here = OfferedIn::in_organization(&app, caller.org_id).await?;
    let mut operations: Vec<Suggestion> = Operations::of(&app)
        .all()
        .filter(|operation| here.has(operation))
        .map(|operation| suggestion(operation.declaration(), &caller, &fields))
        .collect();
    operations
        .sort_by_key(|found| (rank(found.artifact_match), !found.permitted, found.operation_id.clone()));
    let event_types = types.iter().map(|event| event.as_str()).collect();
    Ok(Answer(Answered { source_event: query.source_event, event_types, operations }))
}

fn rank(found: ArtifactMatch) -> u8 {
    match found {
        ArtifactMatch::Full => 0,
        ArtifactMatch::Partial => 1,
        ArtifactMatch::None => 2,
    }
}

/// Fields that every one of these payloads has, with their schemas.
fn common_fields(payloads: &[Value]) -> BTreeMap<String, Value> {
    let Some((first, others)) = payloads.split_first() else { return BTreeMap::new() };
    let fields = first["properties"].as_object().cloned().unwrap_or_default();
    let is_common =
        |name: &str, schema: &Value| others.iter().all(|other| other["properties"][name] == *schema);
    fields.into_iter().filter(|(name, schema)| is_common(name, schema)).collect()
}

/// What a suggestion reads of the schema of parameters; the rest of it, and of those that are not required, stays text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Outline<'a> {
    required: Vec<String>,
    #[serde(borrow)]
    properties: BTreeMap<String, &'a RawValue>,
}

fn suggestion(declaration: &Declaration, caller: &Caller, fields: &BTreeMap<String, Value>) -> Suggestion {
    let schema = declaration.params_schema.document();
    let outline: Outline<'_> = serde_json::from_str(schema.as_str()).unwrap_or_default();
    let wanted = |name: &str| {
        let schema = outline.properties.get(name)?;
        serde_json::from_str(schema.get()).ok()
    };
    let params: Vec<Param> = outline
        .required
        .iter()
        .map(|name| param(name, &wanted(name).unwrap_or_default(), fields.get(name)))
        .collect();
    let matched = params.iter().filter(|param| param.artifact_match == ArtifactMatch::Full).count();
    let is_near = params.iter().any(|param| param.artifact_match == ArtifactMatch::Partial);
    let missing = declaration.permission.filter(|permission| !caller.holds(*permission));
    Suggestion {
        operation_id: declaration.id.clone(),
        title: declaration.title.clone(),
        tier: declaration.tier,
        kind: declaration.kind,
        owner: declaration.owner.clone(),
        permitted: missing.is_none(),
        missing_permission: missing,
        artifact_match: match matched {
            all if all == params.len() => ArtifactMatch::Full,
            0 if !is_near => ArtifactMatch::None,
            _ => ArtifactMatch::Partial,
        },
        params,
    }
}

/// A field of the same name fits; whole when it is of the same type and never null.
fn param(name: &str, wanted: &Value, field: Option<&Value>) -> Param {
    let artifact_match = match field {
        None => ArtifactMatch::None,
        Some(field) if field["type"] == wanted["type"] => ArtifactMatch::Full,
        Some(_) => ArtifactMatch::Partial,
    };
    Param {
        name: name.to_owned(),
        artifact_match,
        template: field.map(|_| format!("{{{{trigger.{name}}}}}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_fit_by_name_and_type() {
        let fields = |types: &[Value]| common_fields(types);
        let one = json!({ "properties": { "id": { "type": "string" }, "n": { "type": "integer" } } });
        let two =
            json!({ "properties": { "id": { "type": "string" }, "n": { "type": ["integer", "null"] } } });
        assert_eq!(fields(&[one.clone(), two]).keys().collect::<Vec<_>>(), ["id"]);
        let common = fields(&[one]);
        let found = param("n", &json!({ "type": "string" }), common.get("n"));
        assert_eq!(
            (found.artifact_match, found.template.as_deref()),
            (ArtifactMatch::Partial, Some("{{trigger.n}}"))
        );
        assert_eq!(
            param("id", &json!({ "type": "string" }), common.get("id")).artifact_match,
            ArtifactMatch::Full
        );
        assert_eq!(param("x", &json!({}), common.get("x")).artifact_match, ArtifactMatch::None);
    }
}
