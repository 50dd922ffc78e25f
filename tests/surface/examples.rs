//! The document's examples, sent as they are.

use serde_json::{Value, json};

use super::walk::{bytes, filled, word};
use super::world::World;
use crate::fixtures::Ids;
use crate::support::{Operation, on_both};

/// Operations whose example cannot be accepted in a test of all, and why. Each has tests of its own.
const EXAMPLES_OF_ELSEWHERE: &[(&str, &str)] = &[
    ("allow_untested_release", "a controller with an untested release is needed"),
    ("apply_change", "the hash is another plan's"),
    ("apply_change_set", "the hash is another plan's"),
    ("begin_oidc_login", "the world's provider speaks SAML"),
    ("change_password", "it ends the session of the test"),
    ("complete_setup", "it is done already"),
    ("create_app_token", "a code is needed"),
    ("create_change_set", "two pending changes are needed"),
    ("decide_app_consent", "a form is needed"),
    ("consent_plugin", "a plugin is needed"),
    ("distribute_canonical_vlans", "an intent that was read is needed"),
    ("enable_second_factor", "a code is needed"),
    ("extend_change", "a confirm window is needed"),
    ("extend_change_set", "a confirm window is needed"),
    ("finish_oidc_login", "a code is needed"),
    ("install_marketplace_plugin", "a catalogue is needed"),
    ("introspect_app_token", "an app's secret is needed"),
    ("rate_plugin", "a catalogue is needed"),
    ("read_canonical_vlans", "a brain that was read is needed"),
    ("update_marketplace_plugin", "a catalogue is needed"),
    ("stage_drift_put_back", "the drift of the world is adopted by then"),
    ("log_in_for_app", "a form is needed"),
    ("log_in_for_app_with_second_factor", "a code is needed"),
    ("log_in_with_ldap", "a directory is needed"),
    ("log_in_with_second_factor", "a code is needed"),
    ("refresh_tokens", "a token is needed"),
    ("register_organization", "registration is disabled"),
    ("replace_backup_codes", "a code is needed"),
    ("replay_webhook", "the world's webhook is disabled"),
    ("reset_password", "a token is needed"),
    ("revoke_app_token", "an app's secret is needed"),
    ("rollback_plugin", "a plugin is needed"),
    ("set_plugin_organization", "a plugin is needed"),
    ("set_plugin_secret", "a plugin is needed"),
    ("test_credential", "a device is needed"),
];

/// An example with these ids in place of its own.
pub(crate) fn with_ids(example: &Value, name: &str, ids: &Ids) -> Value {
    match example {
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), with_ids(value, name, ids))).collect(),
        ),
        Value::Array(items) => items.iter().map(|item| with_ids(item, name, ids)).collect(),
        Value::String(_) => {
            let id = match name {
                "controller_ids" => "controller_id",
                "ids" => "device_id",
                other => other,
            };
            ids.get(id).map_or_else(|| example.clone(), |id| json!(id))
        }
        other => other.clone(),
    }
}

/// Whether the operation is of a vendor of which the world has no controller, by its path or by the feature that it is shown with.
fn is_of_another_vendor(operation: &Operation) -> bool {
    // The second family of a vendor stands below its own name.
    let of_path = operation.path.split("/gateway-").nth(1).filter(|rest| !rest.starts_with("vpn"));
    let of_path = of_path.or_else(|| operation.path.strip_prefix("/unifi/"));
    of_path.is_some_and(|rest| !rest.starts_with("openwrt-"))
        || word(operation, "feature").is_some_and(|feature| !feature.starts_with("openwrt."))
}

on_both! {
    async fn every_body_has_an_example_that_is_accepted(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let (mut missing, mut refused) = (Vec::new(), Vec::new());
        for operation in contract.operations() {
            let id = operation.definition["operationId"].as_str().unwrap_or_default();
            let Some(content) = operation.definition["requestBody"]["content"].as_object() else { continue };
            let (media, content) = content.iter().next().expect("a body has a media type");
            // A file cannot be shown in a document of JSON.
            if content["schema"]["format"] == "binary" || media == "multipart/form-data" {
                continue;
            }
            let Some(example) = content.get("example") else {
                missing.push(id.to_owned());
                continue;
            };
            if media != "application/json" || id == "change_password" {
                continue;
            }
            let path = filled(operation, &|name| world.own[name].clone());
            let body = with_ids(example, "", &world.own);
            let answer = world.admin.send(&operation.method, &path, Some(bytes(&body))).await;
            let is_elsewhere =
                EXAMPLES_OF_ELSEWHERE.iter().any(|(known, _)| *known == id) || is_of_another_vendor(operation);
            let shape = ["missing", "unknown_field", "type_error"];
            let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
            let is_misshapen = details.iter().any(|detail| shape.iter().any(|kind| detail["type"] == *kind));
            if is_misshapen || (answer.status >= 300 && !is_elsewhere) {
                refused.push(format!("{id}: {} {}", answer.status, answer.text));
            }
        }
        assert!(missing.is_empty(), "assets/examples.json of their rooms lack {missing:?}");
        assert!(refused.is_empty(), "{refused:#?}");
    }
}
