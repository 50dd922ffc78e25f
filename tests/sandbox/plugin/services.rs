//! A server for plugins: storage in memory, and everything that was asked for is kept.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use heddle_core::OrgId;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::ActionEffect;
use heddle_runtime::{
    Credential, Emitted, KvChange, KvEntry, KvExpected, KvListed, KvOp, KvPage, Of, PluginServices,
    VaultError,
};
use serde_json::{Value, json};

/// The secret of every organization that has some.
pub(super) const KEY: &str = "canary/k+y \"3&=";

/// On whose behalf a call of the tests is made.
#[derive(Debug)]
pub(super) struct Author(pub(super) &'static str);

type Stored = BTreeMap<(OrgId, String), (Vec<u8>, u64)>;

#[derive(Default)]
struct State {
    stored: Stored,
    versions: u64,
    secrets: Vec<OrgId>,
    called: Vec<(String, ActionEffect, String, Value)>,
    emitted: Vec<(OrgId, Emitted)>,
    asked: usize,
}

#[derive(Default)]
pub(super) struct Services(Mutex<State>);

impl Services {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with the lock")
    }

    /// From now on the organization has given the plugin its secrets.
    pub(super) fn give_secrets(&self, org: OrgId) {
        self.lock().secrets.push(org);
    }

    /// Authors, effects, operations and parameters so far.
    pub(super) fn called(&self) -> Vec<(String, ActionEffect, String, Value)> {
        self.lock().called.clone()
    }

    pub(super) fn emitted(&self) -> Vec<(OrgId, Emitted)> {
        self.lock().emitted.clone()
    }

    /// How often the storage, an operation or the stream of events was asked for.
    pub(super) fn asked(&self) -> usize {
        self.lock().asked
    }
}

fn author(of: &Of<'_>) -> String {
    assert_eq!((of.plugin, of.request_id), ("scripted", "sandbox"));
    let behalf: &(dyn Any + Send + Sync) = of.behalf.as_ref();
    behalf.downcast_ref::<Author>().expect("it is handed back as it was given").0.to_owned()
}

#[async_trait::async_trait]
impl PluginServices for Services {
    async fn secrets(&self, org: OrgId, _: &Manifest, _: &Value) -> Result<Credential, VaultError> {
        if !self.lock().secrets.contains(&org) {
            return Ok(Credential::default());
        }
        let field = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        Ok(Credential { fields: vec![field("key", KEY), field("user", "a known user")] })
    }

    async fn kv_get(&self, of: &Of<'_>, key: &str) -> Result<Option<KvEntry>, Fault> {
        author(of);
        let mut state = self.lock();
        state.asked += 1;
        let found = state.stored.get(&(of.org_id, key.to_owned()));
        Ok(found.map(|(value, version)| KvEntry { value: value.clone(), version: *version }))
    }

    async fn kv_apply(&self, of: &Of<'_>, ops: Vec<KvOp>) -> Result<bool, Fault> {
        let mut state = self.lock();
        state.asked += 1;
        let mut stored = state.stored.clone();
        for op in ops {
            let place = (of.org_id, op.key);
            let version = stored.get(&place).map(|(_, version)| *version);
            let is_expected = match op.expected {
                KvExpected::Any => true,
                KvExpected::Absent => version.is_none(),
                KvExpected::Version(wanted) => version == Some(wanted),
            };
            if !is_expected {
                return Ok(false);
            }
            state.versions += 1;
            match op.change {
                KvChange::Delete => drop(stored.remove(&place)),
                KvChange::Set { value, .. } => drop(stored.insert(place, (value, state.versions))),
            }
        }
        let own = stored.iter().filter(|((org, _), _)| *org == of.org_id);
        let bytes: usize = own.map(|((_, key), (value, _))| key.len() + value.len()).sum();
        if bytes as u64 > of.kv_bytes {
            return Err(Fault::new(FaultKind::Generic, "the storage is full").with_code("quota"));
        }
        state.stored = stored;
        Ok(true)
    }

    async fn kv_list(
        &self,
        of: &Of<'_>,
        prefix: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<KvPage, Fault> {
        let mut state = self.lock();
        state.asked += 1;
        let keys = state.stored.iter().filter(|((org, key), _)| {
            *org == of.org_id && key.starts_with(prefix) && cursor.is_none_or(|after| key.as_str() > after)
        });
        let limit = usize::try_from(limit).expect("it is small");
        let items: Vec<KvListed> = keys
            .take(limit)
            .map(|((_, key), (value, version))| KvListed {
                key: key.clone(),
                version: *version,
                size_bytes: value.len() as u64,
            })
            .collect();
        let next = if items.len() == limit { items.last().map(|last| last.key.clone()) } else { None };
        Ok(KvPage { items, next })
    }

    async fn call_operation(
        &self,
        of: &Of<'_>,
        effect: ActionEffect,
        operation: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let mut state = self.lock();
        state.asked += 1;
        state.called.push((author(of), effect, operation.to_owned(), params.clone()));
        Ok(json!({ "done": params }))
    }

    async fn emit(&self, of: &Of<'_>, events: Vec<Emitted>) -> Result<(), Fault> {
        let mut state = self.lock();
        state.asked += 1;
        state.emitted.extend(events.into_iter().map(|event| (of.org_id, event)));
        Ok(())
    }
}

/// On behalf of this author.
pub(super) fn on_behalf_of(name: &'static str) -> Arc<dyn Any + Send + Sync> {
    Arc::new(Author(name))
}
