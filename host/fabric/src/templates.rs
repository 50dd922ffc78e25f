//! Connections that others propose: a person takes one, changes it, and creates it.

use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use serde::Deserialize as _;
use serde_json::Value;

use super::connections::NewBody;
use super::operation::Template;
use super::operations::{Operations, Registry};
use super::provided::OfferedIn;
use super::steps;

/// Why no Connection could be created from this body, whatever its event, its operations and their parameters are.
#[must_use]
pub fn fault(app: &App, connection: &Value) -> Option<String> {
    match NewBody::deserialize(connection) {
        Ok(body) => body.checked(app).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// The templates whose events the caller may read and whose operations the caller could use here.
pub(super) async fn offered(app: &App, caller: &Caller, here: &OfferedIn) -> Result<Vec<Template>, Error> {
    let Some(provider) = app.part::<Registry>().provider() else { return Ok(Vec::new()) };
    let registry = Operations::of(app);
    let can_use = |id: &str| {
        registry.find(id).is_some_and(|operation| {
            let permission = operation.declaration().permission;
            here.has(&operation) && permission.is_none_or(|needed| caller.holds(needed))
        })
    };
    let mut tx = app.db.single().await?;
    let mut offered = provider.templates(app, &mut tx, caller.org_id).await?;
    drop(tx);
    offered.retain(|template| {
        let event = template.connection.get("source_event").and_then(Value::as_str).unwrap_or_default();
        steps::require_readable(app, caller, event).is_ok() && operations(template).all(can_use)
    });
    Ok(offered)
}

fn operations(template: &Template) -> impl Iterator<Item = &str> {
    let steps = template.connection.get("steps").and_then(Value::as_array);
    steps.into_iter().flatten().filter_map(|step| step["operation_id"].as_str())
}
