//! What one call reaches beyond its own memory: the controller of an adapter, or what a plugin declares; and nothing while
//! a component is loaded.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, OrgId, id_of_digest};
use heddle_marketplace::plugin::{ActionEffect, HttpTarget, KvCapability};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::api::Target;
use crate::egress::declared::{self, Declared};
use crate::egress::phase::Phase;
use crate::egress::request::denied;
use crate::egress::{Account, CONTROLLER, Egress, Facts, Outbound};
use crate::limits::{
    KV_CALLS_MAX, KV_WRITTEN_BYTES_MAX, MIGRATION_KV_CALLS_MAX, MIGRATION_KV_WRITTEN_BYTES_MAX, REFUSALS_MAX,
    SECRET_LOOKUPS_MAX,
};
use crate::schemas::CompiledSchemas;
use crate::services::{Of, PluginServices};

/// What a call reaches.
pub(crate) struct Reach {
    pub(crate) org: OrgId,
    pub(crate) facts: Arc<Facts>,
    pub(crate) account: Arc<Account>,
    side: Side,
    /// How often the component asked for a secret by its name.
    lookups: u32,
    /// Names of the secrets, once they were asked for; none where they cannot be read.
    names: Option<Vec<String>>,
}

enum Side {
    /// Of a component that is only instantiated, to see what it exports.
    Nothing,
    Adapter(Arc<Outbound>),
    Plugin(Box<PluginReach>),
}

/// What a call of a plugin reaches.
pub(crate) struct PluginReach {
    pub(crate) egress: Arc<Egress>,
    pub(crate) services: Arc<dyn PluginServices>,
    pub(crate) effect: ActionEffect,
    pub(crate) own: Own,
    pub(crate) settings: Arc<Value>,
    pub(crate) request_id: String,
    pub(crate) behalf: Arc<dyn Any + Send + Sync>,
    pub(crate) phase: Phase,
    pub(crate) deadline: Instant,
    /// Compiled payload schemas of its types of events, by their names.
    pub(crate) event_schemas: Arc<CompiledSchemas<String>>,
    pub(crate) opened: HashMap<String, Arc<Outbound>>,
    pub(crate) spent: Spent,
}

/// What of the plugin's own a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// The plugin is only asked whether it can work.
    Nothing,
    /// The storage is brought to this version: much of it is read and written.
    Storage,
    All,
}

impl Own {
    /// Uses of the storage in a call, and bytes of keys and values that it may write.
    pub(crate) fn kv_budget(self) -> (u32, usize) {
        if self == Own::Storage {
            (MIGRATION_KV_CALLS_MAX, MIGRATION_KV_WRITTEN_BYTES_MAX)
        } else {
            (KV_CALLS_MAX, KV_WRITTEN_BYTES_MAX)
        }
    }
}

/// How often a call used what is counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) kv: u32,
    pub(crate) kv_bytes: usize,
    pub(crate) operations: u32,
    pub(crate) events: usize,
    pub(crate) timers: usize,
}

impl Reach {
    /// Of an adapter: one target.
    pub(crate) fn controller(outbound: Arc<Outbound>) -> Self {
        Self {
            org: outbound.target.org_id,
            facts: Arc::clone(&outbound.facts),
            account: Arc::clone(&outbound.account),
            side: Side::Adapter(outbound),
            lookups: 0,
            names: None,
        }
    }

    /// Of a component that is only instantiated.
    pub(crate) fn nothing(egress: &Egress, facts: Arc<Facts>) -> Self {
        let org = OrgId(uuid::Uuid::nil());
        let account = egress.account(org, false);
        Self { org, facts, account, side: Side::Nothing, lookups: 0, names: None }
    }

    /// Of a plugin: its declared targets, and the server's services.
    pub(crate) fn plugin(org: OrgId, facts: Arc<Facts>, plugin: PluginReach) -> Self {
        let account = plugin.egress.account(org, false);
        Self { org, facts, account, side: Side::Plugin(Box::new(plugin)), lookups: 0, names: None }
    }

    /// How often a call of a plugin was refused something, where that is often enough to stop it.
    pub(crate) fn refused_too_often(&self) -> Option<u32> {
        let refused = self.account.ledger().refused();
        (matches!(self.side, Side::Plugin(_)) && refused >= REFUSALS_MAX).then_some(refused)
    }

    /// Opens a target by the name that the component knows it by.
    pub(crate) fn open(&mut self, name: &str) -> Result<Arc<Outbound>, Fault> {
        match &mut self.side {
            Side::Nothing => Err(nothing()),
            Side::Adapter(outbound) if name == CONTROLLER => Ok(Arc::clone(outbound)),
            Side::Adapter(_) => Err(denied("no-target", "an adapter has one target: 'controller'")),
            Side::Plugin(plugin) => {
                if let Some(opened) = plugin.opened.get(name) {
                    return Ok(Arc::clone(opened));
                }
                let Some(target) = self.facts.manifest.capabilities.target(name) else {
                    let declared = &self.facts.manifest.capabilities.http;
                    let names: Vec<&str> = declared.iter().map(|target| target.name.as_str()).collect();
                    let message =
                        format!("this target is not declared; the manifest has {}", declared::few(&names));
                    return Err(refused(&self.account, &self.facts, self.org, "no-target", message));
                };
                let outbound = plugin.outbound(self.org, &self.facts, target, &self.account)?;
                plugin.opened.insert(name.to_owned(), Arc::clone(&outbound));
                Ok(outbound)
            }
        }
    }

    /// Whether the component can name this secret. The names are read once; a credential that cannot be read has none, and
    /// using one of its secrets says why.
    pub(crate) async fn has_secret(&mut self, name: &str) -> bool {
        self.lookups = self.lookups.saturating_add(1);
        if self.lookups > SECRET_LOOKUPS_MAX {
            return false;
        }
        if self.names.is_none() {
            self.names = Some(self.secret_names().await.unwrap_or_default());
        }
        self.names.as_ref().is_some_and(|names| names.iter().any(|known| known == name))
    }

    async fn secret_names(&self) -> Result<Vec<String>, Fault> {
        match &self.side {
            Side::Nothing => Ok(Vec::new()),
            Side::Adapter(outbound) => outbound.secret_names().await,
            Side::Plugin(plugin) => {
                let (services, manifest) = (plugin.services.as_ref(), &self.facts.manifest);
                let asked = (manifest, &*plugin.settings);
                let given = declared::secrets(services, self.org, asked, &self.account).await?;
                Ok(given.fields.into_iter().map(|(name, _)| name).collect())
            }
        }
    }

    /// What plugins have beyond adapters, and what is needed to ask the server for it. No adapter comes here: its imports
    /// were checked when it was linked.
    pub(crate) fn of_plugin(&mut self) -> Result<OfPlugin<'_>, Fault> {
        match &mut self.side {
            Side::Nothing => Err(nothing()),
            Side::Adapter(_) => Err(denied("no-plugin", "an adapter has no services of plugins")),
            Side::Plugin(plugin) => {
                Ok(OfPlugin { org: self.org, facts: &self.facts, account: &self.account, plugin })
            }
        }
    }
}

/// A call of a plugin that asks for a service.
pub(crate) struct OfPlugin<'a> {
    pub(crate) org: OrgId,
    pub(crate) facts: &'a Arc<Facts>,
    pub(crate) account: &'a Account,
    pub(crate) plugin: &'a mut PluginReach,
}

impl OfPlugin<'_> {
    /// On whose behalf the server is asked.
    pub(crate) fn of(&self) -> Of<'_> {
        let manifest = &self.facts.manifest;
        Of {
            org_id: self.org,
            plugin: &manifest.id,
            kv_bytes: manifest.capabilities.kv.as_ref().map_or(0, KvCapability::bytes_max),
            request_id: &self.plugin.request_id,
            behalf: &self.plugin.behalf,
        }
    }

    /// A refusal of something that the plugin may not do; it counts against the component.
    pub(crate) fn refuse(&self, code: &str, message: impl Into<String>) -> Fault {
        refused(self.account, self.facts, self.org, code, message)
    }
}

/// A refusal that counts against a plugin. The log has the first ones of a call.
fn refused(account: &Account, facts: &Facts, org: OrgId, code: &str, message: impl Into<String>) -> Fault {
    let fault = denied(code, message);
    if account.refuse() {
        tracing::warn!(
            component = facts.manifest.id,
            organization.id = %org,
            code = fault.code,
            "a plugin was refused something: {}", fault.message
        );
    }
    fault
}

fn nothing() -> Fault {
    denied("no-call", "a component reaches nothing while it is loaded")
}

impl PluginReach {
    fn outbound(
        &self,
        org: OrgId,
        facts: &Arc<Facts>,
        target: &HttpTarget,
        account: &Arc<Account>,
    ) -> Result<Arc<Outbound>, Fault> {
        let id = own_id(org, &facts.manifest.id, Some(&target.name));
        let unset = |problem: String| Fault::new(FaultKind::Invalid, problem).with_code("target-address");
        let url = target.url_with(&self.settings).map_err(unset)?;
        let peer = Target {
            org_id: org,
            controller_id: id,
            url,
            tls: TlsPolicy::default(),
            credential_id: id.0.into(),
            credential_version: 0,
            settings: Value::Null,
            site_ref: None,
        };
        let declared = Declared {
            target: target.clone(),
            effect: self.effect,
            services: Arc::clone(&self.services),
            settings: Arc::clone(&self.settings),
        };
        let time = (self.phase, self.deadline);
        let (egress, facts) = (Arc::clone(&self.egress), Arc::clone(facts));
        Ok(Arc::new(Outbound::of_plugin(egress, facts, peer, time, declared, Arc::clone(account))))
    }
}

/// Names a target of a plugin in one organization, or with none the plugin there, where controllers have their id:
/// connections, lanes and circuits are kept by it.
pub(crate) fn own_id(org: OrgId, plugin: &str, target: Option<&str>) -> ControllerId {
    let mut hash = Sha256::new_with_prefix(b"heddle-plugin-peer\0");
    hash.update(org.0.as_bytes());
    // Neither name has a zero byte.
    hash.update(plugin.as_bytes());
    hash.update([0]);
    hash.update(target.unwrap_or_default().as_bytes());
    id_of_digest(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn organizations_plugins_and_targets_share_nothing() {
        let (one, two): (OrgId, OrgId) = (Clock::default().new_id(), Clock::default().new_id());
        let ids = [
            own_id(one, "acme", None),
            own_id(two, "acme", None),
            own_id(one, "acme", Some("api")),
            own_id(two, "acme", Some("api")),
            own_id(one, "acme", Some("wiki")),
            own_id(one, "acmea", Some("pi")),
            own_id(one, "globex", Some("api")),
        ];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(own_id(one, "acme", Some("api")), ids[2]);
    }
}
