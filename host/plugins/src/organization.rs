//! What an organization sets a plugin to: whether it is on, its settings, and its secrets, which are never shown.

use std::sync::Arc;

use axum::http::StatusCode;
use heddle_core::event::NewEvent;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role, Timestamp};
use heddle_fabric::provided::settle;
use heddle_inventory::adapters::validate;
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::with_difference;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::conditional::IfMatch;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::settings_schema;
use heddle_store::object::{Revised, Revision};
use heddle_store::plugins::organizations::{self, OrganizationRow, SecretRow};
use heddle_store::plugins::storage::{self, StorageRow};
use heddle_store::plugins::values::Keeper;
use heddle_store::plugins::{self, PluginRow, PluginUid, timers, triggers};
use heddle_store::{Tx, events};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::change::live;
use crate::declarations::PLUGIN_SWITCHED;
use crate::index::{Index, Known};
use crate::service::prefix;
use crate::triggers::Occasions;

/// Most characters of a secret.
pub(crate) const SECRET_CHARS_MAX: usize = 4_096;
/// Most bytes of the settings, as JSON.
const SETTINGS_BYTES_MAX: usize = 64 << 10;

/// What an organization sets a plugin to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginOrganization", example = example())]
pub(crate) struct View {
    /// Id of the plugin.
    plugin: String,
    organization_id: OrgId,
    /// The organization uses it.
    enabled: bool,
    /// As the plugin's `config_schema` says.
    #[schemars(with = "Map<String, Value>")]
    settings: Value,
    /// Names of the secrets that are set. Their values are never shown.
    secrets_set: Vec<String>,
    /// Names of the secrets that the plugin declares and the organization has not set, or has set for another address than
    /// the one that they would be sent to now.
    secrets_missing: Vec<String>,
    /// What the plugin stored for the organization. Null where it stores nothing, or was never switched on.
    storage: Option<StorageView>,
    /// Counts edits; 0 before the first.
    revision: i64,
    /// When it was last set; null before the first time.
    updated_at: Option<Timestamp>,
    #[serde(skip)]
    tag: Revision,
}

/// In the form of which version the plugin stored what it has.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginStorage")]
struct StorageView {
    /// Another one than the version that serves while that one takes it over, or could not, and while the plugin is switched
    /// off in the organization.
    version: String,
    /// The version whose form a copy from before the last migration has; a return to it puts the copy back. Null where there
    /// is none.
    kept_version: Option<String>,
    /// Until when the copy is kept.
    kept_until: Option<Timestamp>,
}

impl StorageView {
    fn of(stored: &StorageRow) -> Self {
        Self {
            version: stored.version.clone(),
            kept_version: stored.kept_version.clone(),
            kept_until: stored.kept_until,
        }
    }
}

fn example() -> Value {
    json!({
        "plugin": "acme-tickets", "organization_id": "0192f0c1-2b7a-7cc0-8000-000000000001", "enabled": true,
        "settings": { "server-url": "https://api.example.net" }, "secrets_set": ["api-key"], "secrets_missing": [],
        "storage": { "version": "1.4.0", "kept_version": "1.3.2", "kept_until": "2026-01-12T08:00:00Z" },
        "revision": 1, "updated_at": "2026-01-05T08:00:00Z",
    })
}

impl Revised for View {
    fn revision(&self) -> Revision {
        self.tag
    }
}

/// What an organization is to set a plugin to, whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PluginOrganizationUpdate")]
pub(crate) struct Body {
    /// The organization uses it.
    enabled: bool,
    /// As the plugin's `config_schema` says; none when absent. At most 64 KiB.
    #[serde(default)]
    settings: Map<String, Value>,
}

/// A value that the host puts into the plugin's requests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PluginSecretUpdate")]
pub(crate) struct SecretBody {
    /// Stored sealed, and never shown again.
    #[schemars(with = "String", length(min = 1, max = SECRET_CHARS_MAX))]
    value: Secret,
}

/// The plugin and its manifest. A plugin without any consent has nothing to set.
fn known(app: &App, plugin: &str) -> Result<Arc<Known>, Error> {
    let known = Index::of(app).find(plugin).ok_or(Error::NotFound("plugin"))?;
    let state = live(Some(known.row.clone()))?.state;
    if known.serving().is_none() {
        return Err(Error::Conflict {
            kind: "plugin_state",
            message: format!("'{plugin}' is {state}: a super_admin agrees to what it may do first"),
        });
    }
    Ok(known)
}

fn manifest(known: &Known) -> Result<&Manifest, Error> {
    known.serving().map(|manifest| &**manifest).ok_or(Error::NotFound("plugin"))
}

/// Shows what the caller's organization sets a plugin to.
pub(crate) async fn show(app: &App, caller: &Caller, plugin: &str) -> Result<View, Error> {
    let mut tx = app.db.read().await?;
    let row = live(plugins::find(&mut tx, plugin).await?)?;
    let known = known(app, plugin)?;
    view(&mut tx, caller.org_id, &row, manifest(&known)?).await
}

async fn view(tx: &mut Tx, org: OrgId, row: &PluginRow, manifest: &Manifest) -> Result<View, Error> {
    let set = organizations::find(tx, org, row.id).await?;
    let secrets = organizations::secrets(tx, org, row.id).await?;
    let stored = stored(tx, Keeper { org, plugin: row.id }, manifest).await?;
    Ok(view_of((org, row, manifest), set.as_ref(), &secrets, stored.as_ref()))
}

/// What the plugin stored, where its package stores anything.
async fn stored(tx: &mut Tx, keeper: Keeper, manifest: &Manifest) -> Result<Option<StorageRow>, Error> {
    if manifest.capabilities.kv.is_none() {
        return Ok(None);
    }
    Ok(storage::find(tx, keeper).await?)
}

/// The same, opened where the plugin stored nothing yet.
async fn opened(tx: &mut Tx, keeper: Keeper, manifest: &Manifest) -> Result<Option<StorageRow>, Error> {
    if manifest.capabilities.kv.is_none() {
        return Ok(None);
    }
    Ok(Some(storage::open(tx, keeper, &manifest.version.to_string()).await?))
}

fn view_of(
    (org, row, manifest): (OrgId, &PluginRow, &Manifest),
    set: Option<&OrganizationRow>,
    secrets: &[SecretRow],
    stored: Option<&StorageRow>,
) -> View {
    let settings = set.map_or_else(|| json!({}), |set| set.settings.clone());
    let is_set =
        |name: &str| secrets.iter().any(|secret| secret.name == name && is_for(secret, manifest, &settings));
    let (secrets_set, secrets_missing) = declared(manifest).into_iter().partition(|name| is_set(name));
    View {
        plugin: row.plugin_id.clone(),
        organization_id: org,
        enabled: set.is_some_and(|set| set.is_enabled),
        settings,
        secrets_set,
        secrets_missing,
        storage: stored.map(StorageView::of),
        revision: set.map_or(0, |set| set.revision),
        updated_at: set.map(|set| set.updated_at),
        tag: set.map_or_else(|| Revision::of(row.id, 0), Revised::revision),
    }
}

/// Sets a plugin in the caller's organization, whole.
pub(crate) async fn set(by: &By, plugin: &str, if_match: &IfMatch, body: Body) -> Result<View, Error> {
    let By { app, caller, .. } = by;
    caller.require_all_sites()?;
    let known = known(app, plugin)?;
    let manifest = manifest(&known)?;
    if body.enabled && is_called(app, manifest) {
        // It is called with all rights of this user from then on, also beyond the scopes of a key.
        caller.require_unscoped_role(Role::OrgAdmin)?;
    }
    let settings = Value::Object(body.settings);
    if settings.to_string().len() > SETTINGS_BYTES_MAX {
        return Err(Error::field(
            "settings",
            format!("must not have more than {SETTINGS_BYTES_MAX} bytes as JSON"),
        ));
    }
    // The schema was judged when the package was installed.
    let schema = settings_schema(manifest).map_err(Error::internal)?;
    validate(&schema, &settings, "settings")?;
    let (org, now) = (caller.org_id, app.clock.now());

    let mut tx = app.db.write().await?;
    let row = live(plugins::lock(&mut tx, plugin).await?)?;
    if row.serving_sha256.as_ref() != known.current.as_ref().map(|(sha256, _)| sha256) {
        return Err(Error::Conflict {
            kind: "state_moved",
            message: "another package of the plugin serves since; send the settings again".to_owned(),
        });
    }
    let before = organizations::lock(&mut tx, org, row.id).await?;
    let secrets = organizations::secrets(&mut tx, org, row.id).await?;
    let keeper = Keeper { org, plugin: row.id };
    let kept = stored(&mut tx, keeper, manifest).await?;
    let shown = view_of((org, &row, manifest), before.as_ref(), &secrets, kept.as_ref());
    if_match.check(&shown)?;
    let was_enabled = shown.enabled;
    let new = OrganizationRow {
        id: app.clock.new_id(),
        org_id: org,
        plugin_uid: row.id,
        is_enabled: body.enabled,
        settings,
        revision: 1,
        created_at: now,
        updated_at: now,
        author_id: Some(caller.user_id),
        configured: String::new(),
        problem: None,
        configure_at: body.enabled.then_some(now),
        after_seq: events::last_seq(&mut tx, org).await?,
    };
    let set = organizations::set(&mut tx, &new).await?;
    if body.enabled {
        triggers::hasten(&mut tx, keeper, now).await?;
        timers::hasten(&mut tx, keeper, now).await?;
    } else {
        triggers::forget(&mut tx, row.id, Some(org)).await?;
        timers::forget(&mut tx, row.id, Some(org)).await?;
    }
    let kept = opened(&mut tx, keeper, manifest).await?;
    let after = view_of((org, &row, manifest), Some(&set), &secrets, kept.as_ref());
    let detail = with_difference(json!({ "plugin": plugin }), &shown, &after);
    by.record_of(&mut tx, (org, "plugin", row.id.0), "plugin.organization_updated", detail).await?;
    if was_enabled != body.enabled {
        let status = if body.enabled { "enabled" } else { "disabled" };
        let payload = json!({ "plugin": plugin, "new_status": status });
        events::append(&mut tx, &NewEvent::of(PLUGIN_SWITCHED, org, payload), &app.clock).await?;
    }
    tx.commit().await?;
    Occasions::of(app).wake.notify_one();
    // Also when nothing changed: sent again, it does what a fault of the database left undone.
    settle(app, plugin, &prefix(plugin), Some(org)).await?;
    Ok(after)
}

/// What stands in the place of an address with a secret that proves requests to a hook: it is not sent anywhere.
pub(crate) const HOOK_ORIGIN: &str = "hook";

/// Names of the secrets that an organization can give: those that are sent, and those that prove requests to hooks.
fn declared(manifest: &Manifest) -> Vec<String> {
    let sent = manifest.capabilities.secrets.rules().iter().map(|rule| rule.name.clone());
    let mut names: Vec<String> = sent.collect();
    for hook in &manifest.hooks {
        if !names.contains(&hook.signature.secret) {
            names.push(hook.signature.secret.clone());
        }
    }
    names
}

/// Whether anything but a person calls the plugin. That it takes its settings is in its component, not in its manifest.
fn is_called(app: &App, manifest: &Manifest) -> bool {
    let takes_settings = app.runtime.plugin(&manifest.id).is_none_or(|plugin| plugin.has_configuration());
    let migrates = manifest.capabilities.kv.as_ref().is_some_and(|kv| kv.migrates);
    takes_settings || migrates || !(manifest.triggers.is_empty() && manifest.hooks.is_empty())
}

/// Where a secret of this name goes with these settings.
fn origin_of(manifest: &Manifest, name: &str, settings: &Value) -> Option<Result<String, String>> {
    if manifest.hooks.iter().any(|hook| hook.signature.secret == name) {
        return Some(Ok(HOOK_ORIGIN.to_owned()));
    }
    let rule = manifest.capabilities.secrets.rules().iter().find(|rule| rule.name == name)?;
    Some(manifest.capabilities.target(&rule.target)?.origin_with(settings))
}

/// Whether a secret was given for the address that it would be sent to now. Who changes the address, the settings' or the
/// package's, gets no secret by it.
pub(crate) fn is_for(secret: &SecretRow, manifest: &Manifest, settings: &Value) -> bool {
    origin_of(manifest, &secret.name, settings).is_some_and(|origin| origin.as_ref() == Ok(&secret.origin))
}

/// What the sealed bytes of a secret open for.
pub(crate) fn context(row: &SecretRow) -> String {
    format!("plugin_secret:{}", row.id)
}

/// Sets a secret of the caller's organization that the plugin declares.
pub(crate) async fn set_secret(
    by: &By,
    plugin: &str,
    name: &str,
    body: SecretBody,
) -> Result<StatusCode, Error> {
    let By { app, caller, .. } = by;
    caller.require_all_sites()?;
    let chars = body.value.expose().chars().count();
    if !(1..=SECRET_CHARS_MAX).contains(&chars) {
        return Err(Error::field("value", format!("must have 1 to {SECRET_CHARS_MAX} characters")));
    }
    let known = known(app, plugin)?;
    let manifest = manifest(&known)?;
    let names = declared(manifest);
    if !names.iter().any(|known| known == name) {
        let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Error::Unknown(format!("plugin '{plugin}' declares no secret '{name}'; it has {has}")));
    }
    let (org, now) = (caller.org_id, app.clock.now());
    let mut tx = app.db.write().await?;
    let uid = locked(&mut tx, plugin).await?;
    let set = organizations::lock(&mut tx, org, uid).await?;
    let settings = set.map_or_else(|| json!({}), |set| set.settings);
    let origin = origin_of(manifest, name, &settings).ok_or(Error::NotFound("secret"))?;
    let origin = origin.map_err(|problem| Error::Conflict {
        kind: "settings_unfit",
        message: format!(
            "{problem}; PUT /plugins/{plugin}/organization says first where the secret is to be sent"
        ),
    })?;
    let there = organizations::secrets(&mut tx, org, uid).await?;
    let mut row = there.into_iter().find(|row| row.name == name).unwrap_or_else(|| SecretRow {
        id: app.clock.new_id(),
        org_id: org,
        plugin_uid: uid,
        name: name.to_owned(),
        origin: String::new(),
        secret: Vec::new(),
        created_at: now,
        updated_at: now,
    });
    let is_new = row.secret.is_empty();
    row.secret = app.keys.seal(&context(&row), body.value.expose().as_bytes());
    (row.origin, row.updated_at) = (origin, now);
    organizations::put_secret(&mut tx, &row).await?;
    let (before, after) = (if is_new { "absent" } else { "set" }, "set");
    tell(&mut tx, by, uid, "plugin.secret_set", (plugin, name), (before, after)).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a secret of the caller's organization.
pub(crate) async fn remove_secret(by: &By, plugin: &str, name: &str) -> Result<StatusCode, Error> {
    let By { app, caller, .. } = by;
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let uid = locked(&mut tx, plugin).await?;
    if !organizations::remove_secret(&mut tx, caller.org_id, uid, name).await? {
        return Err(Error::NotFound("secret"));
    }
    tell(&mut tx, by, uid, "plugin.secret_removed", (plugin, name), ("set", "absent")).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The plugin, which nothing removes until the transaction ends.
async fn locked(tx: &mut Tx, plugin: &str) -> Result<PluginUid, Error> {
    Ok(live(plugins::lock(tx, plugin).await?)?.id)
}

/// Writes an audit entry without any value.
async fn tell(
    tx: &mut Tx,
    by: &By,
    uid: PluginUid,
    action: &'static str,
    (plugin, name): (&str, &str),
    (before, after): (&str, &str),
) -> Result<(), Error> {
    let detail = json!({
        "plugin": plugin, "name": name, "before": { "value": before }, "after": { "value": after },
    });
    by.record_of(tx, (by.caller.org_id, "plugin", uid.0), action, detail).await
}
