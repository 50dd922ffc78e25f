//! Plugins as clients see them.

use std::sync::Arc;

use heddle_core::operation::OperationKind;
use heddle_core::plugin::PluginState;
use heddle_core::{Role, Timestamp};
use heddle_fabric::provided::kind_of;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_marketplace::Verified;
use heddle_marketplace::grant::{Grant, Item, Risk};
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::operation_id;
use heddle_store::object::{Revised, Revision};
use heddle_store::plugins::{PluginRow, VersionRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::turns::Turns;

/// What organizations read of a plugin that is active and that this process does not serve.
const NOT_SERVED: &str = "it does not serve in this process now; a super_admin sees why";

/// The state of a package that was sent, or of a plugin that was changed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginOutcome", example = outcome_example())]
pub struct Outcome {
    /// Id of the plugin.
    id: String,
    /// Version of the package, such as `1.4.0`.
    version: String,
    /// How this package stands: `rejected` where it cannot serve, `awaiting_consent` where a person has to agree first.
    state: PluginState,
    /// Why it stands so, where that needs a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The step that a rejected package failed at.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<PluginState>,
    /// SHA-256 of its manifest, hexadecimal: names this very package.
    manifest_sha256: String,
    #[serde(skip)]
    revision: Revision,
}

fn outcome_example() -> Value {
    json!({
        "id": "acme-tickets",
        "version": "1.0.0",
        "state": "awaiting_consent",
        "reason": "nobody has agreed to what it may do yet",
        "manifest_sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    })
}

impl Outcome {
    pub(crate) fn of(row: &PluginRow, version: &VersionRow) -> Self {
        Self {
            id: row.plugin_id.clone(),
            version: version.version.clone(),
            state: version.state,
            reason: version.reason.clone(),
            failed_at: version.step,
            manifest_sha256: version.manifest_sha256.clone(),
            revision: row.revision(),
        }
    }

    /// How an adapter stands that was just installed.
    pub fn of_adapter(package: &Verified) -> Self {
        let manifest = package.manifest();
        Self {
            id: manifest.id.clone(),
            version: manifest.version.to_string(),
            state: PluginState::Active,
            reason: None,
            failed_at: None,
            manifest_sha256: package.manifest_sha256().to_owned(),
            revision: Revision::of(Uuid::nil(), 0),
        }
    }
}

impl Revised for Outcome {
    fn revision(&self) -> Revision {
        self.revision
    }
}

/// A plugin that is or was installed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plugin", example = plugin_example())]
pub(crate) struct View {
    /// Its id, which its operations, permissions and events begin with behind `plugin.`.
    id: String,
    /// Name for people.
    name: Option<String>,
    /// Name of the publisher.
    publisher: Option<String>,
    state: PluginState,
    /// Why it stands so; null where that needs no reason.
    reason: Option<String>,
    /// Version of the package that serves when the plugin is active, or waits where none ever served.
    version: Option<String>,
    /// SHA-256 of the manifest of that package, hexadecimal.
    manifest_sha256: Option<String>,
    /// Another package waits for consent; what serves goes on meanwhile.
    is_update_waiting: bool,
    /// Why this process does not serve it although it is active; null where it does. Only a `super_admin` reads the reason.
    behind: Option<String>,
    /// It is switched on in the caller's organization.
    enabled: bool,
    /// What it does when it is asked.
    actions: Vec<ActionView>,
    /// Permissions that it brings, for roles and API keys.
    permissions: Vec<TitleView>,
    /// Types of events that it emits.
    event_types: Vec<TitleView>,
    /// Secrets that an organization gives it.
    secrets: Vec<SecretView>,
    /// JSON Schema of an organization's settings.
    #[schemars(with = "Map<String, Value>")]
    config_schema: Value,
    /// Counts edits.
    revision: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip)]
    tag: Revision,
}

/// Something that a plugin does when it is asked.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginAction")]
struct ActionView {
    /// Id of the operation in the Fabric, which shows its schemas.
    operation_id: String,
    /// Name for people.
    title: String,
    /// What it does, in words.
    description: String,
    /// `read`, `stage` (changes that a person reviews) or `outward` (at its own servers).
    effect: &'static str,
    /// What a caller needs for it.
    permission: Option<String>,
}

/// A permission or a type of events.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginName")]
struct TitleView {
    /// The name itself, such as `plugin.acme-tickets.manage`.
    id: String,
    /// Name for people.
    title: String,
}

/// A secret, and where it is put.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginSecretRule")]
struct SecretView {
    /// Its name.
    name: String,
    /// The server that it is sent to, by its name in the manifest.
    target: String,
    /// Places in requests that it is put into, such as `header:x-key`.
    places: Vec<String>,
}

fn plugin_example() -> Value {
    json!({
        "id": "acme-tickets", "name": "Tickets", "publisher": "acme", "state": "active", "reason": null,
        "version": "1.0.0",
        "manifest_sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "is_update_waiting": false, "behind": null, "enabled": true,
        "actions": [{
            "operation_id": "plugin.acme-tickets.open", "title": "Open a ticket", "description": "", "effect": "outward",
            "permission": null,
        }],
        "permissions": [], "event_types": [],
        "secrets": [{ "name": "api-key", "target": "api", "places": ["header:x-key"] }],
        "config_schema": { "type": "object", "additionalProperties": false },
        "revision": 2, "created_at": "2026-01-05T08:00:00Z", "updated_at": "2026-01-05T08:00:00Z",
    })
}

impl Revised for View {
    fn revision(&self) -> Revision {
        self.tag
    }
}

impl View {
    /// `current` is the manifest of the package that counts, with its SHA-256.
    pub(crate) fn of(
        app: &App,
        caller: &Caller,
        row: &PluginRow,
        current: Option<&(String, Arc<Manifest>)>,
        enabled: bool,
    ) -> Self {
        let manifest = current.map(|(_, manifest)| &**manifest);
        let titles = |id: &str, title: &str| TitleView { id: id.to_owned(), title: title.to_owned() };
        Self {
            id: row.plugin_id.clone(),
            name: manifest.map(|manifest| manifest.name.clone()),
            publisher: manifest.map(|manifest| manifest.publisher.clone()),
            state: row.state,
            reason: row.reason.clone(),
            version: manifest.map(|manifest| manifest.version.to_string()),
            manifest_sha256: current.map(|(sha256, _)| sha256.clone()),
            is_update_waiting: row.serving_sha256.is_some() && row.waiting_sha256.is_some(),
            behind: behind(app, caller, row),
            enabled,
            actions: manifest.map(actions).unwrap_or_default(),
            permissions: manifest
                .into_iter()
                .flat_map(|manifest| manifest.permissions.iter().map(|one| titles(&one.id, &one.title)))
                .collect(),
            event_types: manifest
                .into_iter()
                .flat_map(|manifest| {
                    manifest.event_types.iter().map(|one| titles(&one.event_type, &one.title))
                })
                .collect(),
            secrets: manifest.map(secrets).unwrap_or_default(),
            config_schema: manifest.map_or_else(no_settings, config_schema),
            revision: row.revision,
            created_at: row.created_at,
            updated_at: row.updated_at,
            tag: row.revision(),
        }
    }
}

/// Why this process does not serve a plugin that is active. The reason may name files and settings of the operator.
fn behind(app: &App, caller: &Caller, row: &PluginRow) -> Option<String> {
    let reason = Turns::of(app).behind(&row.plugin_id).filter(|_| row.state == PluginState::Active)?;
    let is_operator = caller.require_unscoped_role(Role::SuperAdmin).is_ok();
    Some(if is_operator { reason } else { NOT_SERVED.to_owned() })
}

fn actions(manifest: &Manifest) -> Vec<ActionView> {
    let view = |action: &heddle_marketplace::plugin::Action| ActionView {
        operation_id: operation_id(&manifest.id, &action.id),
        title: action.title.clone(),
        description: action.description.clone(),
        effect: action.effect.as_str(),
        permission: action.permission.clone(),
    };
    manifest.actions.iter().map(view).collect()
}

fn secrets(manifest: &Manifest) -> Vec<SecretView> {
    let view = |rule: &heddle_marketplace::plugin::SecretRule| SecretView {
        name: rule.name.clone(),
        target: rule.target.clone(),
        places: rule.places.iter().map(ToString::to_string).collect(),
    };
    manifest.capabilities.secrets.rules().iter().map(view).collect()
}

fn no_settings() -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

fn config_schema(manifest: &Manifest) -> Value {
    manifest.config_schema.clone().unwrap_or_else(no_settings)
}

/// The plugins that are installed, by id. They are few, so there are no pages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plugins")]
pub(crate) struct List {
    pub(crate) items: Vec<View>,
}

/// What a person is asked to agree to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginConsent", example = consent_example())]
pub(crate) struct Consent {
    /// Version of the package that it is about: the one that waits, or else the one that was agreed to.
    pub(crate) version: String,
    /// SHA-256 of the package's manifest, hexadecimal.
    pub(crate) manifest_sha256: String,
    /// The publisher whose key signed it, by the name in the trusted keys.
    pub(crate) publisher: String,
    /// SHA-256 of the public key that signed it.
    pub(crate) key_id: String,
    /// The package waits for it.
    pub(crate) is_needed: bool,
    /// Why it waits; null when it does not.
    pub(crate) reason: Option<String>,
    /// Names the package and what it may do: send it to agree to exactly that.
    pub(crate) grant_hash: String,
    /// Everything that the package may do, high risks first.
    pub(crate) items: Vec<ItemView>,
    /// What it may do that was not agreed to before; everything where nothing was.
    pub(crate) added: Vec<ItemView>,
    /// What was agreed to before, and it does not ask for.
    pub(crate) removed: Vec<ItemView>,
}

/// One thing that a package may do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginConsentItem")]
pub struct ItemView {
    /// In words.
    text: String,
    /// `high` or `low`.
    risk: &'static str,
}

impl From<Item> for ItemView {
    fn from(item: Item) -> Self {
        Self { text: item.text, risk: Risk::as_str(item.risk) }
    }
}

/// What a grant allows, in words, high risks first.
#[must_use]
pub fn in_words(app: &App, grant: &Grant) -> Vec<ItemView> {
    let is_read = |operation: &str| kind_of(app, operation) == Some(OperationKind::Read);
    grant.items(is_read).into_iter().map(Into::into).collect()
}

fn consent_example() -> Value {
    let item = json!({ "text": "puts the secret 'api-key' into requests to 'api': in the header 'x-key'", "risk": "high" });
    json!({
        "version": "1.0.0", "publisher": "acme", "is_needed": true, "reason": "nobody has agreed to what it may do yet",
        "manifest_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "key_id": "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9",
        "grant_hash": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "items": [item], "added": [item], "removed": [],
    })
}
