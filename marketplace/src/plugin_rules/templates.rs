//! Rules for the Connections that a plugin proposes. Whether one can be created says the server that has the operations.

use super::{DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX, WORD_BYTES_MAX, check_unique, is_word, refused};
use crate::error::PackageError;
use crate::manifest::Manifest;
use crate::plugin::{ConnectionTemplate, operation_id};
use crate::rules::{check_count, check_text};

const TEMPLATES_MAX: usize = 20;
const TEMPLATE_BYTES_MAX: usize = 16 << 10;
/// What is the choice of the person who creates it.
const OF_PEOPLE: &[&str] = &["state", "organization_id"];

pub(super) fn check(manifest: &Manifest) -> Result<(), PackageError> {
    check_count("templates", manifest.templates.len(), TEMPLATES_MAX)?;
    check_unique("template", manifest.templates.iter().map(|template| template.id.as_str()))?;
    for template in &manifest.templates {
        let problem = problem(manifest, template);
        problem.map_or(Ok(()), |problem| Err(refused("template", &template.id, problem)))?;
        check_text("template title", &template.title, TITLE_BYTES_MAX)?;
        if !template.description.is_empty() {
            check_text("template description", &template.description, DESCRIPTION_BYTES_MAX)?;
        }
    }
    Ok(())
}

fn problem(manifest: &Manifest, template: &ConnectionTemplate) -> Option<String> {
    if !is_word(&template.id, WORD_BYTES_MAX) {
        return Some("an id has 1 to 41 characters of a-z, 0-9 and '-', and begins with a letter".to_owned());
    }
    let Some(connection) = template.connection.as_object() else {
        return Some("its 'connection' is the body of POST /fabric/connections, an object".to_owned());
    };
    if template.connection.to_string().len() > TEMPLATE_BYTES_MAX {
        return Some(format!("its 'connection' has at most {TEMPLATE_BYTES_MAX} bytes"));
    }
    if let Some(key) = OF_PEOPLE.iter().find(|key| connection.contains_key(**key)) {
        return Some(format!(
            "its 'connection' has '{key}', which is for the person who creates it; leave it out"
        ));
    }
    let event = connection.get("source_event").and_then(|event| event.as_str()).unwrap_or_default();
    let operations = template.operations();
    let (Some(_), false) = (operations.first(), event.is_empty()) else {
        return Some(
            "its 'connection' has a 'source_event' and 'steps', each with an 'operation_id'".to_owned(),
        );
    };
    let own = own_operations(manifest);
    let prefix = format!("plugin.{}.", manifest.id);
    let is_own = |name: &str| name.starts_with(&prefix);
    if let Some(unknown) = operations.iter().find(|id| is_own(id) && !own.iter().any(|one| one == *id)) {
        return Some(format!("its step '{unknown}' is no action or tool of the manifest"));
    }
    if is_own(event) && manifest.event_type(event).is_none() {
        return Some(format!("its event '{event}' is not declared in 'event-types'"));
    }
    (!is_own(event) && !operations.iter().any(|id| is_own(id))).then(|| {
        "it uses nothing of the plugin: name an action or a tool in a step, or an event of 'event-types'"
            .to_owned()
    })
}

/// Ids of the actions and tools in the Fabric.
fn own_operations(manifest: &Manifest) -> Vec<String> {
    let actions = manifest.actions.iter().map(|action| &action.id);
    let tools = manifest.tools.iter().map(|tool| &tool.id);
    actions.chain(tools).map(|id| operation_id(&manifest.id, id)).collect()
}
