//! What plugins ask of the server: secrets, values that they keep, operations, events.
//!
//! The runtime has checked what a manifest declares, sizes and counts. Rights, quotas and rates are decided here.

use std::collections::BTreeSet;
use std::sync::Weak;

use heddle_core::OrgId;
use heddle_core::event::NewEvent;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::operation::{OperationKind, StepErrorCode};
use heddle_core::redact::sanitize;
use heddle_core::secret::Secret;
use heddle_fabric::operation::{StepCall, StepError};
use heddle_fabric::provided;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::rate_limit::{self, Limit, Rate};
use heddle_kernel::metrics::RateWindow;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::ActionEffect;
use heddle_runtime::{
    Credential, Emitted, KvEntry, KvOp, KvPage, Of, PluginServices, StandingTimer, Timer, VaultError,
};
use heddle_store::events;
use heddle_store::plugins::organizations;
use heddle_store::plugins::values::{self, Generation, Keeper};
use serde_json::Value;

use crate::index::Index;
use crate::keeping;
use crate::operations::Behalf;
use crate::organization::{context, is_for};
use crate::triggers::timers;

/// Events that a plugin may emit in one organization.
const EVENT_RATE: Rate = Rate::per_minute(120);

/// Does for plugins what the server does. It does not keep the server alive.
pub(crate) struct Services(pub(crate) Weak<App>);

impl Services {
    fn app(&self) -> Result<SharedApp, Fault> {
        self.0.upgrade().ok_or_else(|| Fault::new(FaultKind::NotReady, "the server stops"))
    }
}

#[async_trait::async_trait]
impl PluginServices for Services {
    async fn secrets(
        &self,
        org: OrgId,
        manifest: &Manifest,
        settings: &Value,
    ) -> Result<Credential, VaultError> {
        let failed = |error: &dyn std::fmt::Display| VaultError(error.to_string());
        let app = self.0.upgrade().ok_or_else(|| VaultError("the server stops".to_owned()))?;
        let mut tx = app.db.single().await.map_err(|error| failed(&error))?;
        let rows = organizations::secrets_in_use(&mut tx, org, &manifest.id);
        let rows = rows.await.map_err(|error| failed(&error))?;
        drop(tx);
        let mut fields = Vec::new();
        // What counts is where this call sends, also when the organization set another address meanwhile.
        let is_sent = |name: &str| manifest.capabilities.secrets.rules().iter().any(|rule| rule.name == name);
        for row in rows.into_iter().filter(|row| is_sent(&row.name) && is_for(row, manifest, settings)) {
            let plain = app.keys.open_sealed(&context(&row), &row.secret).map_err(|error| failed(&error))?;
            let text =
                std::str::from_utf8(&plain).map_err(|_| VaultError("it is not in its form".to_owned()))?;
            fields.push((row.name, Secret::new(text)));
        }
        Ok(Credential { fields })
    }

    async fn kv_get(&self, of: &Of<'_>, key: &str) -> Result<Option<KvEntry>, Fault> {
        let app = self.app()?;
        keeping::get(&app, generation(&app, of)?, key).await.map_err(ours)
    }

    async fn kv_apply(&self, of: &Of<'_>, ops: Vec<KvOp>) -> Result<bool, Fault> {
        let app = self.app()?;
        keeping::apply(&app, generation(&app, of)?, of.kv_bytes, ops).await?
    }

    async fn kv_list(
        &self,
        of: &Of<'_>,
        prefix: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<KvPage, Fault> {
        let app = self.app()?;
        keeping::list(&app, generation(&app, of)?, (prefix, cursor), limit).await.map_err(ours)
    }

    async fn call_operation(
        &self,
        of: &Of<'_>,
        effect: ActionEffect,
        operation: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let behalf = behalf(of)?;
        let app = &behalf.app;
        let kind = provided::kind_of(app, operation).ok_or_else(|| {
            let message = format!("there is no operation '{operation}'");
            Fault::new(FaultKind::NotFound, message).with_code(StepErrorCode::UnknownOperation.as_str())
        })?;
        if !may_call(effect, kind) {
            let message = format!(
                "operation '{operation}' is of kind '{kind}', which an action of the effect '{}' does not call",
                effect.as_str()
            );
            return Err(Fault::new(FaultKind::Denied, message).with_code("effect"));
        }
        let key = behalf.calls.key(&app.keys, (behalf.key.as_str(), of.plugin), operation, &params);
        let call = StepCall {
            app,
            author: &behalf.author,
            event: behalf.event.as_ref(),
            run_id: behalf.run_id,
            key: &key,
            step: behalf.step,
            connection: behalf.connection.as_ref(),
        };
        provided::call(&call, operation, params).await.map_err(fault_of)
    }

    async fn emit(&self, of: &Of<'_>, emitted: Vec<Emitted>) -> Result<(), Fault> {
        let app = self.app()?;
        let keeper = keeper(&app, of)?;
        let new = events_of(&app, of, emitted)?;
        for _ in &new {
            let limit = Limit { key: format!("plugin:{}:{}", of.plugin, of.org_id), rate: EVENT_RATE };
            rate_limit::take_one(&app, limit, RateWindow::Ingest).await.map_err(|_| {
                let message =
                    "a plugin emits at most 120 events a minute in an organization; emit the rest later";
                Fault::new(FaultKind::RateLimit, message).with_code("event-rate")
            })?;
        }
        write_events(&app, keeper, new).await.map_err(ours)
    }

    async fn timers_set(&self, of: &Of<'_>, timers: Vec<Timer>, min_interval_secs: u32) -> Result<(), Fault> {
        let app = self.app()?;
        let keeper = keeper(&app, of)?;
        timers::set(&app, keeper, timers, min_interval_secs).await.map_err(ours)?
    }

    async fn timers_cancel(&self, of: &Of<'_>, names: Vec<String>) -> Result<(), Fault> {
        let app = self.app()?;
        let keeper = keeper(&app, of)?;
        timers::cancel(&app, keeper, &names).await.map_err(ours)
    }

    async fn timers_list(&self, of: &Of<'_>) -> Result<Vec<StandingTimer>, Fault> {
        let app = self.app()?;
        let keeper = keeper(&app, of)?;
        timers::list(&app, keeper).await.map_err(ours)
    }
}

/// Events about to be written, each with the key by which it is the same as an earlier one.
type Keyed = Vec<(Option<String>, NewEvent)>;

fn events_of(app: &App, of: &Of<'_>, emitted: Vec<Emitted>) -> Result<Keyed, Fault> {
    let behalf = behalf(of)?;
    let declared = app.declared();
    let new = emitted.into_iter().map(|one| {
        let own = format!("plugin.{}.", of.plugin);
        let found = declared.events.find(&one.event_type).filter(|_| one.event_type.starts_with(&own));
        let event_type = found.ok_or_else(|| {
            let message = format!("event type '{}' is not declared by the plugin", one.event_type);
            Fault::new(FaultKind::Denied, message).with_code("undeclared-event")
        })?;
        let mut payload = one.payload;
        sanitize(&mut payload);
        let key = one.dedup_key.map(|key| format!("{} {key}", one.event_type));
        let event = NewEvent {
            causation_id: behalf.event.as_ref().map(|event| event.id),
            run_id: Some(behalf.run_id),
            ..NewEvent::of(event_type, of.org_id, payload)
        };
        Ok((key, event))
    });
    new.collect()
}

/// Writes the events whose keys are new, and those without one.
async fn write_events(app: &App, keeper: Keeper, mut new: Keyed) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    new.retain(|(key, _)| key.as_ref().is_none_or(|key| seen.insert(key.clone())));
    let keys: Vec<String> = seen.into_iter().collect();
    let mut tx = app.db.write().await?;
    let fresh = values::note_emitted(&mut tx, keeper, &keys, app.clock.now()).await?;
    new.retain(|(key, _)| key.as_ref().is_none_or(|key| fresh.contains(key)));
    let new: Vec<NewEvent> = new.into_iter().map(|(_, event)| event).collect();
    events::append_all(&mut tx, keeper.org, &new, &app.clock).await?;
    tx.commit().await?;
    Ok(())
}

/// Whether an action of this effect may call operations of this kind. A plugin never tells others anything by the host's
/// own sinks, and never applies: what it stages, a person reviews.
fn may_call(effect: ActionEffect, kind: OperationKind) -> bool {
    match kind {
        OperationKind::Read => true,
        OperationKind::Write => effect == ActionEffect::Stage,
        OperationKind::Sink | OperationKind::Control => false,
    }
}

/// Whose values they are.
fn keeper(app: &App, of: &Of<'_>) -> Result<Keeper, Fault> {
    let plugin = Index::of(app).uid(of.plugin);
    let gone = || Fault::new(FaultKind::NotReady, format!("plugin '{}' is not installed", of.plugin));
    Ok(Keeper { org: of.org_id, plugin: plugin.ok_or_else(gone)? })
}

/// Which values the call sees.
fn generation(app: &App, of: &Of<'_>) -> Result<Generation, Fault> {
    Ok(Generation { keeper: keeper(app, of)?, number: behalf(of)?.generation })
}

/// What the call of the plugin was given.
fn behalf<'a>(of: &Of<'a>) -> Result<&'a Behalf, Fault> {
    of.behalf.downcast_ref::<Behalf>().ok_or_else(|| {
        Fault::new(FaultKind::Unsupported, "nothing is called and emitted while nobody asks for an action")
    })
}

/// A fault of ours, whose cause the log has.
pub(crate) fn ours(error: Error) -> Fault {
    match error {
        Error::Internal(source) => {
            tracing::error!(error = %source, "a service of plugins failed by a fault of ours");
            Fault::new(FaultKind::Generic, "internal error").with_code("internal")
        }
        other => Fault::new(FaultKind::NotReady, other.to_string()),
    }
}

/// Why an operation failed, as a component sees it.
fn fault_of(error: StepError) -> Fault {
    let kind = match error.code {
        StepErrorCode::PermissionDenied => FaultKind::Denied,
        StepErrorCode::UnknownOperation | StepErrorCode::NotFound => FaultKind::NotFound,
        StepErrorCode::InvalidParams | StepErrorCode::TemplateError => FaultKind::Invalid,
        StepErrorCode::RateLimited => FaultKind::RateLimit,
        StepErrorCode::Timeout => FaultKind::Timeout,
        StepErrorCode::SsrfBlocked
        | StepErrorCode::BadStatus
        | StepErrorCode::DeliveryError
        | StepErrorCode::AdapterError
        | StepErrorCode::Internal => FaultKind::Generic,
    };
    Fault::new(kind, error.message).with_code(error.code.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_action_that_stages_calls_what_writes_and_none_calls_a_sink() {
        use ActionEffect::{Outward, Read, Stage};
        for effect in [Read, Stage, Outward] {
            assert!(may_call(effect, OperationKind::Read));
            assert_eq!(may_call(effect, OperationKind::Write), effect == Stage);
            assert!(!may_call(effect, OperationKind::Sink) && !may_call(effect, OperationKind::Control));
        }
    }
}
