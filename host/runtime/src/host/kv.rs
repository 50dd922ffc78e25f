//! Storage for plugins: keys, sizes and counts are checked here, the quota by the server.

use heddle_core::fault::{Fault, FaultKind};

use crate::bindings::heddle::common::types;
use crate::bindings::plugin::heddle::plugin::kv;
use crate::limits::{
    KV_CURSOR_BYTES_MAX, KV_KEY_BYTES_MAX, KV_LIST_MAX, KV_OPS_MAX, KV_TTL_SECS_MAX, KV_VALUE_BYTES_MAX,
};
use crate::reach::{OfPlugin, Own};
use crate::services::{KvChange, KvEntry, KvExpected, KvOp, KvPage};
use crate::state::State;

impl kv::Host for State {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<kv::Entry>, types::Fault>> {
        Ok(match self.get_value(&key).await {
            Ok(found) => Ok(found.map(|KvEntry { value, version }| {
                self.lower("kv.value", &value);
                kv::Entry { value, version }
            })),
            Err(fault) => Err(self.fault(fault)?),
        })
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        ttl_s: Option<u32>,
    ) -> wasmtime::Result<Result<(), types::Fault>> {
        let change = kv::Change::Set(kv::NewValue { value, ttl_s });
        let done = self.apply(vec![kv::Op { key, expected: kv::Expected::Any, change }]).await;
        self.told(done.map(drop))
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<(), types::Fault>> {
        let op = kv::Op { key, expected: kv::Expected::Any, change: kv::Change::Delete };
        let done = self.apply(vec![op]).await;
        self.told(done.map(drop))
    }

    async fn transact(&mut self, ops: Vec<kv::Op>) -> wasmtime::Result<Result<bool, types::Fault>> {
        let done = self.apply(ops).await;
        self.told(done)
    }

    async fn list(
        &mut self,
        prefix: String,
        cursor: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<kv::Page, types::Fault>> {
        Ok(match self.list_keys(&prefix, cursor.as_deref(), limit).await {
            Ok(page) => {
                self.lower("kv.page", format!("{page:?}"));
                Ok(to_guest(page))
            }
            Err(fault) => Err(self.fault(fault)?),
        })
    }
}

impl State {
    /// The outcome of a use as the guest gets it.
    pub(super) fn told<T>(&self, done: Result<T, Fault>) -> wasmtime::Result<Result<T, types::Fault>> {
        Ok(match done {
            Ok(done) => Ok(done),
            Err(fault) => Err(self.fault(fault)?),
        })
    }

    async fn get_value(&mut self, key: &str) -> Result<Option<KvEntry>, Fault> {
        self.waits();
        let mut plugin = self.reach.of_plugin()?;
        take(&mut plugin)?;
        check_key(key)?;
        let found = plugin.plugin.services.kv_get(&plugin.of(), key).await?;
        plugin.account.give(found.as_ref().map_or(0, |found| found.value.len()));
        Ok(found)
    }

    async fn apply(&mut self, ops: Vec<kv::Op>) -> Result<bool, Fault> {
        self.waits();
        let mut plugin = self.reach.of_plugin()?;
        take(&mut plugin)?;
        if plugin.plugin.own == Own::Nothing {
            return Err(plugin.refuse("read-only", "a check changes no storage"));
        }
        let ops = checked(ops)?;
        if ops.is_empty() {
            return Ok(true);
        }
        let (_, bytes_max) = plugin.plugin.own.kv_budget();
        take_bytes(&mut plugin.plugin.spent.kv_bytes, &ops, bytes_max)?;
        plugin.plugin.services.kv_apply(&plugin.of(), ops).await
    }

    async fn list_keys(&mut self, prefix: &str, cursor: Option<&str>, limit: u32) -> Result<KvPage, Fault> {
        self.waits();
        let mut plugin = self.reach.of_plugin()?;
        take(&mut plugin)?;
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        if cursor.is_some_and(|cursor| cursor.len() > KV_CURSOR_BYTES_MAX) {
            return Err(invalid("kv-cursor", "the cursor is the 'next' of an earlier page"));
        }
        let page =
            plugin.plugin.services.kv_list(&plugin.of(), prefix, cursor, limit.clamp(1, KV_LIST_MAX)).await?;
        plugin.account.give(page.items.iter().map(|item| item.key.len()).sum());
        Ok(page)
    }
}

/// Takes the keys and values that are set from the bytes that a call may write.
fn take_bytes(spent: &mut usize, ops: &[KvOp], bytes_max: usize) -> Result<(), Fault> {
    let bytes = |op: &KvOp| match &op.change {
        KvChange::Set { value, .. } => op.key.len() + value.len(),
        KvChange::Delete => 0,
    };
    *spent = spent.saturating_add(ops.iter().map(bytes).sum());
    if *spent > bytes_max {
        let message = format!("a call may write {bytes_max} bytes to its storage");
        return Err(Fault::new(FaultKind::Generic, message).with_code("kv-budget"));
    }
    Ok(())
}

/// Takes one use of the storage from the budget of the call. Only a plugin with the capability comes here: its imports were
/// checked when it was linked.
fn take(plugin: &mut OfPlugin<'_>) -> Result<(), Fault> {
    let (uses_max, _) = plugin.plugin.own.kv_budget();
    let spent = &mut plugin.plugin.spent.kv;
    if *spent >= uses_max {
        let message =
            format!("a call may use its storage {uses_max} times; put changes together in 'transact'");
        return Err(Fault::new(FaultKind::Generic, message).with_code("kv-budget"));
    }
    *spent += 1;
    Ok(())
}

fn invalid(code: &str, message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Invalid, message).with_code(code)
}

fn check_key(key: &str) -> Result<(), Fault> {
    if key.is_empty() || key.len() > KV_KEY_BYTES_MAX || key.chars().any(char::is_control) {
        let message = format!("a key has 1 to {KV_KEY_BYTES_MAX} bytes without control characters");
        return Err(invalid("kv-key", message));
    }
    Ok(())
}

fn checked(ops: Vec<kv::Op>) -> Result<Vec<KvOp>, Fault> {
    if ops.len() > KV_OPS_MAX {
        let message = format!("{} changes at once; {KV_OPS_MAX} are the most", ops.len());
        return Err(invalid("kv-ops", message));
    }
    let mut seen = std::collections::HashSet::new();
    let ops = ops.into_iter().map(checked_op).collect::<Result<Vec<_>, _>>()?;
    match ops.iter().find(|op| !seen.insert(op.key.as_str())) {
        Some(_) => Err(invalid("kv-ops", "a key is changed twice at once; write each key once")),
        None => Ok(ops),
    }
}

fn checked_op(op: kv::Op) -> Result<KvOp, Fault> {
    check_key(&op.key)?;
    let change = match op.change {
        kv::Change::Delete => KvChange::Delete,
        kv::Change::Set(new) => {
            if new.value.len() > KV_VALUE_BYTES_MAX {
                let message =
                    format!("the value has {} bytes; {KV_VALUE_BYTES_MAX} are the most", new.value.len());
                return Err(invalid("kv-value", message));
            }
            if new.ttl_s.is_some_and(|secs| secs == 0 || secs > KV_TTL_SECS_MAX) {
                return Err(invalid("kv-ttl", format!("'ttl-s' is 1 to {KV_TTL_SECS_MAX} seconds")));
            }
            KvChange::Set { value: new.value, ttl_secs: new.ttl_s }
        }
    };
    let expected = match op.expected {
        kv::Expected::Any => KvExpected::Any,
        kv::Expected::Absent => KvExpected::Absent,
        kv::Expected::Version(version) => KvExpected::Version(version),
    };
    Ok(KvOp { key: op.key, expected, change })
}

fn to_guest(page: KvPage) -> kv::Page {
    let items = page.items.into_iter().map(|item| kv::Listed {
        key: item.key,
        version: item.version,
        size_bytes: item.size_bytes,
    });
    kv::Page { items: items.collect(), next: page.next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::KV_WRITTEN_BYTES_MAX;

    fn set(key: &str, bytes: usize, ttl_s: Option<u32>) -> kv::Op {
        let change = kv::Change::Set(kv::NewValue { value: vec![0; bytes], ttl_s });
        kv::Op { key: key.to_owned(), expected: kv::Expected::Any, change }
    }

    #[track_caller]
    fn refused(ops: Vec<kv::Op>, code: &str) {
        assert_eq!(checked(ops).unwrap_err().code.as_deref(), Some(code));
    }

    #[test]
    fn keys_values_and_numbers_are_bounded_before_the_server_is_asked() {
        refused(vec![set("", 1, None)], "kv-key");
        refused(vec![set(&"k".repeat(KV_KEY_BYTES_MAX + 1), 1, None)], "kv-key");
        refused(vec![set("a\nb", 1, None)], "kv-key");
        refused(vec![set("a", KV_VALUE_BYTES_MAX + 1, None)], "kv-value");
        refused(vec![set("a", 1, Some(0))], "kv-ttl");
        refused(vec![set("a", 1, Some(KV_TTL_SECS_MAX + 1))], "kv-ttl");
        refused(vec![set("a", 1, None), set("a", 2, None)], "kv-ops");
        refused((0..=KV_OPS_MAX).map(|n| set(&format!("k{n}"), 1, None)).collect(), "kv-ops");
        let most = (0..KV_OPS_MAX).map(|n| set(&format!("k{n}"), KV_VALUE_BYTES_MAX, Some(1)));
        assert_eq!(checked(most.collect()).unwrap().len(), KV_OPS_MAX);
    }

    #[test]
    fn a_call_writes_so_many_bytes_and_no_more() {
        let (mut spent, ops) = (0, (0..KV_OPS_MAX).map(|n| set(&format!("{n:02}"), 65_534, None)));
        let ops = checked(ops.collect()).unwrap();
        let rounds = KV_WRITTEN_BYTES_MAX / (KV_OPS_MAX * 65_536);
        for _ in 0..rounds {
            take_bytes(&mut spent, &ops, KV_WRITTEN_BYTES_MAX).unwrap();
        }
        assert_eq!(spent, KV_WRITTEN_BYTES_MAX);
        let more = checked(vec![set("a", 0, None)]).unwrap();
        assert_eq!(
            take_bytes(&mut spent, &more, KV_WRITTEN_BYTES_MAX).unwrap_err().code.as_deref(),
            Some("kv-budget")
        );
    }
}
