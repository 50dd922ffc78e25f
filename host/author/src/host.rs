//! What a plugin asks of the server, in this process: storage in memory, canned operations, and a trace of everything.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::ensure;
use heddle_core::OrgId;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::ActionEffect;
use heddle_runtime::{
    Credential, Emitted, Exchange, KvChange, KvEntry, KvExpected, KvListed, KvOp, KvPage, Of, PluginServices,
    StandingTimer, Timer, TimerTimes, VaultError, Witness,
};
use serde_json::{Value, json};

use crate::session::Surroundings;

/// What a server counts for each key beside its bytes.
const KEY_BYTES: usize = 64;
/// Most characters of an answer's body in the trace.
const BODY_CHARS_SHOWN: usize = 400;

/// Serves the calls of one plugin.
pub(crate) struct Services {
    secrets: Vec<(String, Secret)>,
    operations: BTreeMap<String, Value>,
    kept: Mutex<Kept>,
}

/// Values with their versions, by their keys.
pub(crate) type Storage = BTreeMap<String, (Vec<u8>, u64)>;

/// What the calls left. The runtime bounds how much a call asks for.
#[derive(Default)]
struct Kept {
    values: Storage,
    version: u64,
    trace: Vec<String>,
    exchanges: Vec<Exchange>,
    called: Vec<Value>,
    emitted: Vec<Value>,
    timers: BTreeMap<String, Timer>,
    counts: Counts,
}

/// How often a call asked for what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: usize,
    pub(crate) kv: usize,
    pub(crate) operations: usize,
    pub(crate) events: usize,
}

impl Services {
    /// # Errors
    /// A secret is none that the manifest declares.
    pub(crate) fn new(surroundings: &Surroundings, manifest: &Manifest) -> anyhow::Result<Self> {
        let declared = manifest.capabilities.secrets.rules();
        for (name, _) in &surroundings.secrets {
            ensure!(
                declared.iter().any(|rule| rule.name == *name),
                "the manifest declares no secret '{name}' in 'capabilities.secrets'"
            );
        }
        let secrets = surroundings.secrets.iter();
        let stored = surroundings.stored.iter();
        let values =
            stored.zip(1_u64..).map(|((key, value), n)| (key.clone(), (value.clone().into_bytes(), n)));
        let kept = Kept {
            version: u64::try_from(surroundings.stored.len()).unwrap_or(u64::MAX),
            values: values.collect(),
            ..Kept::default()
        };
        Ok(Self {
            secrets: secrets.map(|(name, value)| (name.clone(), Secret::new(value))).collect(),
            operations: surroundings.operations.clone(),
            kept: Mutex::new(kept),
        })
    }

    /// The lines of what was asked for, in order.
    pub(crate) fn trace(&self) -> Vec<String> {
        self.kept().trace.clone()
    }

    /// The requests and their answers as the plugin saw them: without secrets.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.kept().exchanges.clone()
    }

    /// The operations that were called, in order, with their parameters.
    pub(crate) fn called(&self) -> Value {
        self.kept().called.clone().into()
    }

    /// The events that were emitted, in order.
    pub(crate) fn emitted(&self) -> Value {
        self.kept().emitted.clone().into()
    }

    /// What is in the storage now. A value that is no text is written in hexadecimal digits.
    pub(crate) fn stored(&self) -> Value {
        let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "hex": hex::encode(bytes) }),
        };
        let kept = self.kept();
        Value::Object(kept.values.iter().map(|(key, (value, _))| (key.clone(), text(value))).collect())
    }

    /// The storage as it is, to go back to it.
    pub(crate) fn storage(&self) -> Storage {
        self.kept().values.clone()
    }

    /// Makes this the storage again.
    pub(crate) fn put_back(&self, storage: Storage) {
        self.kept().values = storage;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.kept().counts
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn apply(&mut self, kv_bytes: u64, ops: Vec<KvOp>) -> Result<bool, Fault> {
        let (mut values, mut version) = (self.values.clone(), self.version);
        for op in ops {
            let found = values.get(&op.key).map(|(_, version)| *version);
            let is_expected = match op.expected {
                KvExpected::Any => true,
                KvExpected::Absent => found.is_none(),
                KvExpected::Version(wanted) => found == Some(wanted),
            };
            if !is_expected {
                return Ok(false);
            }
            match op.change {
                KvChange::Delete => drop(values.remove(&op.key)),
                // No call lasts until a value is gone.
                KvChange::Set { value, ttl_secs: _ } => {
                    version += 1;
                    values.insert(op.key, (value, version));
                }
            }
        }
        let bytes: usize = values.iter().map(|(key, (value, _))| key.len() + value.len() + KEY_BYTES).sum();
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > kv_bytes) {
            let message = format!("the storage takes {kv_bytes} bytes; this would be {bytes}");
            return Err(Fault::new(FaultKind::Generic, message).with_code("quota"));
        }
        (self.values, self.version) = (values, version);
        Ok(true)
    }
}

fn shown(op: &KvOp) -> String {
    match &op.change {
        KvChange::Delete => format!("delete '{}'", op.key),
        KvChange::Set { value, .. } => format!("set '{}' to {} bytes", op.key, value.len()),
    }
}

#[async_trait::async_trait]
impl PluginServices for Services {
    async fn secrets(&self, _: OrgId, _: &Manifest, _: &Value) -> Result<Credential, VaultError> {
        Ok(Credential { fields: self.secrets.clone() })
    }

    async fn kv_get(&self, _: &Of<'_>, key: &str) -> Result<Option<KvEntry>, Fault> {
        let mut kept = self.kept();
        let found = kept.values.get(key).cloned();
        kept.counts.kv += 1;
        let size =
            found.as_ref().map_or_else(|| "absent".to_owned(), |(value, _)| format!("{} bytes", value.len()));
        kept.trace.push(format!("kv: get '{key}': {size}"));
        Ok(found.map(|(value, version)| KvEntry { value, version }))
    }

    async fn kv_apply(&self, of: &Of<'_>, ops: Vec<KvOp>) -> Result<bool, Fault> {
        let mut kept = self.kept();
        kept.counts.kv += 1;
        let asked: Vec<String> = ops.iter().map(shown).collect();
        let done = kept.apply(of.kv_bytes, ops);
        let came = match &done {
            Ok(true) => String::new(),
            Ok(false) => ": not done, a value is not the expected one".to_owned(),
            Err(fault) => format!(": {}", fault.message),
        };
        kept.trace.push(format!("kv: {}{came}", asked.join(", ")));
        done
    }

    async fn kv_list(
        &self,
        _: &Of<'_>,
        prefix: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<KvPage, Fault> {
        let mut kept = self.kept();
        kept.counts.kv += 1;
        let mut rest = kept
            .values
            .iter()
            .filter(|(key, _)| key.starts_with(prefix) && cursor.is_none_or(|after| key.as_str() > after));
        let items: Vec<KvListed> = rest
            .by_ref()
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .map(|(key, (value, version))| KvListed {
                key: key.clone(),
                version: *version,
                size_bytes: u64::try_from(value.len()).unwrap_or(u64::MAX),
            })
            .collect();
        let next = rest.next().and_then(|_| items.last().map(|last| last.key.clone()));
        kept.trace.push(format!("kv: list '{prefix}': {} keys", items.len()));
        Ok(KvPage { items, next })
    }

    async fn call_operation(
        &self,
        _: &Of<'_>,
        effect: ActionEffect,
        operation: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let mut kept = self.kept();
        kept.counts.operations += 1;
        kept.called.push(json!({ "id": operation, "params": params }));
        let answer = self.operations.get(operation).cloned();
        let came = if answer.is_some() { "answered" } else { "refused" };
        kept.trace.push(format!("fabric: {} calls {operation} with {params}: {came}", effect.as_str()));
        answer.ok_or_else(|| {
            let message = format!(
                "operation '{operation}' has no answer here; --operation '{operation}=JSON' gives it one"
            );
            Fault::new(FaultKind::NotFound, message).with_code("unknown-operation")
        })
    }

    async fn emit(&self, _: &Of<'_>, events: Vec<Emitted>) -> Result<(), Fault> {
        let mut kept = self.kept();
        for event in events {
            kept.counts.events += 1;
            kept.trace.push(format!("event: {} {}", event.event_type, event.payload));
            let mut written = json!({ "type": event.event_type, "payload": event.payload });
            if let Some(key) = event.dedup_key {
                written["dedup-key"] = json!(key);
            }
            kept.emitted.push(written);
        }
        Ok(())
    }

    async fn timers_set(&self, _: &Of<'_>, timers: Vec<Timer>, _: u32) -> Result<(), Fault> {
        let mut kept = self.kept();
        for timer in timers {
            kept.trace
                .push(format!("timer: set '{}' for '{}': {:?}", timer.name, timer.trigger, timer.times));
            kept.timers.insert(timer.name.clone(), timer);
        }
        Ok(())
    }

    async fn timers_cancel(&self, _: &Of<'_>, names: Vec<String>) -> Result<(), Fault> {
        let mut kept = self.kept();
        kept.trace.push(format!("timer: cancel {}", names.join(", ")));
        kept.timers.retain(|name, _| !names.contains(name));
        Ok(())
    }

    /// Nothing comes here: of a time that is not fixed, the next one is 0.
    async fn timers_list(&self, _: &Of<'_>) -> Result<Vec<StandingTimer>, Fault> {
        let next = |times: &TimerTimes| if let TimerTimes::At(at) = times { *at } else { 0 };
        let kept = self.kept();
        let standing = kept.timers.values();
        Ok(standing
            .map(|timer| StandingTimer { next_at_ms: next(&timer.times), timer: timer.clone() })
            .collect())
    }
}

impl Witness for Services {
    fn exchanged(&self, exchange: Exchange) {
        let mut kept = self.kept();
        kept.counts.requests += 1;
        let came = match &exchange.answer {
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body);
                let begin: String = text.chars().take(BODY_CHARS_SHOWN).flat_map(plain).collect();
                format!("{} ({} bytes) {begin}", answer.status, answer.body.len())
            }
            Err(fault) => format!("no answer ({}: {})", fault.kind.as_str(), fault.message),
        };
        let body = exchange.body.as_ref().map_or_else(String::new, |body| format!(" {body}"));
        kept.trace.push(format!("http: {} {}{body}: {came}", exchange.method, exchange.path));
        kept.exchanges.push(exchange);
    }

    fn exposed(&self, _: &str, _: &[(String, String)]) {}
}

/// A character that changes no other line of a terminal.
fn plain(character: char) -> impl Iterator<Item = char> {
    let is_plain = !character.is_control();
    character.escape_default().filter(move |_| !is_plain).chain(is_plain.then_some(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, bytes: usize, expected: KvExpected) -> KvOp {
        KvOp {
            key: key.to_owned(),
            expected,
            change: KvChange::Set { value: vec![1; bytes], ttl_secs: None },
        }
    }

    #[test]
    fn the_storage_is_atomic_and_has_the_servers_bound() {
        let mut kept = Kept::default();
        assert!(kept.apply(100, vec![set("a", 35, KvExpected::Absent)]).unwrap());
        assert_eq!(
            kept.apply(100, vec![set("a", 36, KvExpected::Any)]).unwrap_err().code.as_deref(),
            Some("quota")
        );
        let ops = vec![set("a", 1, KvExpected::Version(1)), set("b", 1, KvExpected::Version(9))];
        assert!(!kept.apply(1_000, ops).unwrap());
        assert_eq!(kept.values["a"], (vec![1; 35], 1));
        let delete = KvOp { key: "a".to_owned(), expected: KvExpected::Version(1), change: KvChange::Delete };
        assert!(kept.apply(100, vec![delete]).unwrap() && kept.values.is_empty());
    }

    #[test]
    fn what_is_stored_is_told_as_text_where_it_is_text() {
        let kept = Kept {
            values: [("a", b"1".to_vec()), ("b", vec![0xff, 0])].map(|(k, v)| (k.to_owned(), (v, 1))).into(),
            ..Kept::default()
        };
        let services = Services { secrets: Vec::new(), operations: BTreeMap::new(), kept: Mutex::new(kept) };
        assert_eq!(services.stored(), json!({ "a": "1", "b": { "hex": "ff00" } }));
    }

    #[test]
    fn an_answer_writes_no_line_of_the_trace() {
        let text: String = "a\u{1b}[2J\nb".chars().flat_map(plain).collect();
        assert_eq!(text, "a\\u{1b}[2J\\nb");
    }
}
