//! Records how plugins come from one state into another: an event and an audit entry, in the transaction of the change.

use heddle_core::event::NewEvent;
use heddle_core::plugin::PluginState;
use heddle_core::{OrgId, UserId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_store::audit::{self, NewAudit};
use heddle_store::plugins::PluginUid;
use heddle_store::{Tx, events, packages};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::declarations::PLUGIN_STATE_CHANGED;

/// What a change is the work of.
#[derive(Clone, Copy)]
pub enum Actor<'a> {
    Person(&'a By),
    /// The host itself, such as where a plugin failed too often.
    Host(&'a SharedApp),
}

/// The name of the host in records.
pub(crate) const HOST: &str = "heddle";

impl<'a> Actor<'a> {
    pub(crate) fn app(self) -> &'a SharedApp {
        match self {
            Actor::Person(by) => &by.app,
            Actor::Host(app) => app,
        }
    }

    /// The name of the user, or of the host.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Actor::Person(by) => &by.caller.username,
            Actor::Host(_) => HOST,
        }
    }

    pub(crate) fn user(self) -> Option<UserId> {
        match self {
            Actor::Person(by) => Some(by.caller.user_id),
            Actor::Host(_) => None,
        }
    }
}

/// A plugin, and the package of it, that changes its state.
#[derive(Debug, Clone)]
pub(crate) struct Subject<'a> {
    pub(crate) uid: PluginUid,
    pub(crate) plugin: &'a str,
    pub(crate) version: &'a str,
    pub(crate) manifest_sha256: &'a str,
}

/// A change of a state.
#[derive(Debug, Clone)]
pub(crate) struct Change<'a> {
    pub(crate) from: Option<PluginState>,
    pub(crate) to: PluginState,
    pub(crate) reason: Option<&'a str>,
    /// What the audit log says in addition.
    pub(crate) detail: Value,
}

impl Change<'_> {
    /// A change without a reason.
    pub(crate) fn between(from: Option<PluginState>, to: PluginState) -> Self {
        Self { from, to, reason: None, detail: json!({}) }
    }
}

/// Appends the event and the audit entry of a change. Where no person did it, both belong to the organization of the first
/// `super_admin`.
pub(crate) async fn record(
    tx: &mut Tx,
    actor: Actor<'_>,
    subject: &Subject<'_>,
    change: &Change<'_>,
) -> Result<(), Error> {
    let app = actor.app();
    let mut detail = change.detail.clone();
    detail["plugin"] = json!(subject.plugin);
    detail["version"] = json!(subject.version);
    detail["manifest_sha256"] = json!(subject.manifest_sha256);
    detail["before"] = json!({ "state": change.from });
    detail["after"] = json!({ "state": change.to });
    if let Some(reason) = change.reason {
        detail["reason"] = json!(reason);
    }
    let Some(org) = noted(tx, actor, subject.uid, action(change.to), detail).await? else { return Ok(()) };
    let payload = json!({
        "plugin": subject.plugin,
        "version": subject.version,
        "state": change.to,
        "previous_state": change.from,
        "reason": change.reason,
    });
    events::append(tx, &NewEvent::of(PLUGIN_STATE_CHANGED, org, payload), &app.clock).await?;
    tracing::info!(
        component = subject.plugin,
        version = subject.version,
        reason = change.reason,
        "plugin {} {} is {}",
        subject.plugin,
        subject.version,
        change.to
    );
    Ok(())
}

/// Appends an audit entry about a plugin, and returns the organization that it belongs to; `None` before the setup, when
/// there is none.
pub(crate) async fn noted(
    tx: &mut Tx,
    actor: Actor<'_>,
    plugin: PluginUid,
    action: &'static str,
    detail: Value,
) -> Result<Option<OrgId>, Error> {
    note(tx, actor, ("plugin", plugin.0), action, detail).await
}

/// The same about an object of another kind that belongs to the whole service.
pub async fn note(
    tx: &mut Tx,
    actor: Actor<'_>,
    (kind, id): (&'static str, Uuid),
    action: &'static str,
    detail: Value,
) -> Result<Option<OrgId>, Error> {
    match actor {
        Actor::Person(by) => {
            let org = by.caller.org_id;
            by.record_of(tx, (org, kind, id), action, detail).await?;
            Ok(Some(org))
        }
        Actor::Host(app) => {
            let Some(org) = packages::platform_organization(tx).await? else { return Ok(None) };
            let entry = NewAudit {
                org_id: org,
                actor_id: None,
                actor_name: HOST.to_owned(),
                action: action.to_owned(),
                target_type: kind.to_owned(),
                target_id: Some(id),
                detail,
                request_id: None,
                ip: None,
            };
            audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
            Ok(Some(org))
        }
    }
}

/// The name of a change in the audit log.
fn action(to: PluginState) -> &'static str {
    match to {
        PluginState::Received => "plugin.received",
        PluginState::Verified => "plugin.verified",
        PluginState::Compiled => "plugin.compiled",
        PluginState::Linked => "plugin.linked",
        PluginState::Checked => "plugin.checked",
        PluginState::AwaitingConsent => "plugin.awaiting_consent",
        PluginState::Active => "plugin.activated",
        PluginState::Disabled => "plugin.disabled",
        PluginState::Quarantined => "plugin.quarantined",
        PluginState::RolledBack => "plugin.rolled_back",
        PluginState::Rejected => "plugin.rejected",
        PluginState::Removed => "plugin.removed",
    }
}
