//! A host for native tests of plugins: answers come from closures, storage is in memory, and what was sent, called and
//! emitted is kept.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Change, Event, Expected, Host, Listed, Op, Page, Standing, Stored, Timer, When};
use crate::{Auth, Fault, FaultExt as _, Request, Response, fault};

type Answer<'a> = dyn Fn(&str, &Request, &Auth) -> Result<Response, Fault> + 'a;
type Operation<'a> = dyn Fn(&str, &Value) -> Result<Value, Fault> + 'a;

/// A host of a test. Time does not pass, so that no value is gone after its seconds.
pub struct FakeHost<'a> {
    answer: Box<Answer<'a>>,
    operation: Box<Operation<'a>>,
    /// Targets and requests so far, in order.
    pub sent: RefCell<Vec<(String, Request)>>,
    /// Operations and parameters so far, in order.
    pub called: RefCell<Vec<(String, Value)>>,
    pub emitted: RefCell<Vec<Event>>,
    /// What is stored, with the version of each value.
    pub stored: RefCell<BTreeMap<String, (Vec<u8>, u64)>>,
    /// Timers that are set, by their names. Nothing calls them here.
    pub timers: RefCell<BTreeMap<String, Timer>>,
    /// Most bytes of keys and values together.
    pub kv_bytes: usize,
    pub settings: Value,
    /// What `now_ms` says.
    pub now_ms: Cell<u64>,
    version: Cell<u64>,
}

impl std::fmt::Debug for FakeHost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHost").field("emitted", &self.emitted).finish_non_exhaustive()
    }
}

impl<'a> FakeHost<'a> {
    /// Makes a host that answers every request by this closure, which gets the target's name. It knows no operations;
    /// its storage is empty and takes 1 MiB.
    pub fn new(answer: impl Fn(&str, &Request, &Auth) -> Result<Response, Fault> + 'a) -> Self {
        FakeHost {
            answer: Box::new(answer),
            operation: Box::new(|id, _| Err(fault::not_found(format!("there is no operation '{id}'")))),
            sent: RefCell::default(),
            called: RefCell::default(),
            emitted: RefCell::default(),
            stored: RefCell::default(),
            timers: RefCell::default(),
            kv_bytes: 1 << 20,
            settings: Value::Object(serde_json::Map::new()),
            now_ms: Cell::new(1_700_000_000_000),
            version: Cell::new(0),
        }
    }

    /// Makes a host without targets.
    #[must_use]
    pub fn alone() -> Self {
        Self::new(|target, _, _| Err(fault::denied(format!("there is no target '{target}'"))))
    }

    /// The same host, which answers calls of operations by this closure.
    #[must_use]
    pub fn with_operations(mut self, operation: impl Fn(&str, &Value) -> Result<Value, Fault> + 'a) -> Self {
        self.operation = Box::new(operation);
        self
    }
}

impl Host for FakeHost<'_> {
    fn send(&self, target: &str, request: Request, auth: Auth) -> Result<Response, Fault> {
        let answer = (self.answer)(target, &request, &auth);
        self.sent.borrow_mut().push((target.to_owned(), request));
        answer
    }
    fn settings(&self) -> Value {
        self.settings.clone()
    }
    fn kv_get(&self, key: &str) -> Result<Option<Stored>, Fault> {
        let stored = self.stored.borrow();
        Ok(stored.get(key).map(|(value, version)| Stored { value: value.clone(), version: *version }))
    }
    fn kv_transact(&self, ops: &[Op]) -> Result<bool, Fault> {
        let mut stored = self.stored.borrow().clone();
        for op in ops {
            let version = stored.get(&op.key).map(|(_, version)| *version);
            let is_expected = match op.expected {
                Expected::Any => true,
                Expected::Absent => version.is_none(),
                Expected::Version(wanted) => version == Some(wanted),
            };
            if !is_expected {
                return Ok(false);
            }
            match &op.change {
                Change::Delete => drop(stored.remove(&op.key)),
                Change::Set(new) => {
                    self.version.set(self.version.get() + 1);
                    stored.insert(op.key.clone(), (new.value.clone(), self.version.get()));
                }
            }
        }
        let bytes: usize = stored.iter().map(|(key, (value, _))| key.len() + value.len()).sum();
        if bytes > self.kv_bytes {
            let message = format!("the storage takes {} bytes; this would be {bytes}", self.kv_bytes);
            return Err(fault::generic(message).with_code("quota"));
        }
        *self.stored.borrow_mut() = stored;
        Ok(true)
    }
    fn kv_list(&self, prefix: &str, cursor: Option<&str>, limit: u32) -> Result<Page, Fault> {
        let stored = self.stored.borrow();
        let mut rest = stored
            .iter()
            .filter(|(key, _)| key.starts_with(prefix) && cursor.is_none_or(|after| key.as_str() > after));
        let items: Vec<Listed> = rest
            .by_ref()
            .take(limit.clamp(1, 1_000) as usize)
            .map(|(key, (value, version))| Listed {
                key: key.clone(),
                version: *version,
                size_bytes: value.len() as u64,
            })
            .collect();
        let next = rest.next().and_then(|_| items.last().map(|last| last.key.clone()));
        Ok(Page { items, next })
    }
    fn call(&self, operation: &str, params: &Value) -> Result<Value, Fault> {
        self.called.borrow_mut().push((operation.to_owned(), params.clone()));
        (self.operation)(operation, params)
    }
    fn emit(&self, events: &[Event]) -> Result<(), Fault> {
        self.emitted.borrow_mut().extend(events.iter().cloned());
        Ok(())
    }
    fn set_timers(&self, timers: &[Timer]) -> Result<(), Fault> {
        self.timers.borrow_mut().extend(timers.iter().map(|timer| (timer.name.clone(), timer.clone())));
        Ok(())
    }
    fn cancel_timers(&self, names: &[String]) -> Result<(), Fault> {
        self.timers.borrow_mut().retain(|name, _| !names.contains(name));
        Ok(())
    }
    /// The next time of one by an expression is not computed here, and is 0.
    fn timers(&self) -> Result<Vec<Standing>, Fault> {
        let next = |timer: &Timer| match &timer.when {
            When::AtMs(at) => *at,
            When::EveryS(secs) => self.now_ms.get() + u64::from(*secs) * 1_000,
            When::Cron(_) => 0,
        };
        let timers = self.timers.borrow();
        Ok(timers.values().map(|timer| Standing { next_at_ms: next(timer), timer: timer.clone() }).collect())
    }
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }
}
