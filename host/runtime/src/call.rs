//! One call into a component: a fresh instance, two clocks, and a judgement of
//! how it ended. Nothing of the instance outlives the call.

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use heddle_core::{Clock, ControllerId, OrgId};
use tokio::runtime::Handle;
use wasmtime::component::InstancePre;
use wasmtime::{Engine, Store, UpdateDeadline, WasmBacktrace};

use crate::admission::{Admission, OfComponent};
use crate::apart::{Apart, LIGHT_CPU};
use crate::api::{CallError, SecretBook, TrapClass, Urgency};
use crate::bindings::exports::heddle::adapter::{changes, files, inventory, lifecycle};
use crate::bindings::heddle::common::types;
use crate::breaker::{Blame, Breaker, Verdict};
use crate::convert::{self, Unfit};
use crate::egress::{Egress, Facts, Outbound};
use crate::limits::{HANDLES_MAX, HOSTCALL_BYTES, Limiter};
use crate::meter::CpuMeter;
use crate::observe::Observer;
use crate::runtime::Tap;
use crate::state::{HeldTurn, Lines, State, Surroundings};
use crate::task::Owned;
use crate::trap::{self, Ending};

/// From so many bytes of answers on, a component that runs out of time or memory is not blamed for it.
const FAT_BYTES: usize = 256 << 10;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) guests: Handle,
    pub(crate) egress: Arc<Egress>,
    pub(crate) apart: Arc<Apart>,
    pub(crate) admission: Admission,
    pub(crate) clock: Clock,
    pub(crate) tap: Option<Tap>,
    pub(crate) observer: OnceLock<Observer>,
}

/// A component that was linked.
pub(crate) struct Component {
    pub(crate) facts: Arc<Facts>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Indices,
    pub(crate) slots: OfComponent,
    pub(crate) breaker: Arc<Breaker>,
}

/// Where the exports of a component are; `changes` and `files` may be absent.
pub(crate) struct Indices {
    pub(crate) lifecycle: lifecycle::GuestIndices,
    pub(crate) inventory: inventory::GuestIndices,
    pub(crate) changes: Option<changes::GuestIndices>,
    pub(crate) files: Option<files::GuestIndices>,
}

/// The exports of one instance.
pub(crate) struct Exports {
    pub(crate) lifecycle: lifecycle::Guest,
    pub(crate) inventory: inventory::Guest,
    pub(crate) changes: Option<changes::Guest>,
    pub(crate) files: Option<files::Guest>,
}

/// What an export answered, before it is converted.
pub(crate) type Raw<T> = wasmtime::Result<Result<T, types::Fault>>;

/// A call that is ready to be made.
pub(crate) struct Prepared<T, R> {
    pub(crate) around: Surroundings,
    pub(crate) cpu: Duration,
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) ask:
        Box<dyn for<'a> FnOnce(&'a Exports, &'a mut Store<State>) -> BoxFuture<'a, Raw<T>> + Send>,
    pub(crate) fit: fn(T) -> Result<R, Unfit>,
    /// About how many bytes [`Self::fit`] works on.
    pub(crate) weigh: fn(&T) -> usize,
    pub(crate) urgency: Urgency,
}

/// How a call ended, before anyone is blamed.
enum End<R> {
    Answer(R),
    Fault(types::Fault),
    Unfit(Unfit),
    Error(wasmtime::Error),
    Wall,
}

/// What is known when a call is over.
struct Report<R> {
    end: End<R>,
    waited: bool,
    denied_growths: u32,
    peak_bytes: usize,
    cpu: Duration,
    lines: String,
}

impl Shared {
    /// Calls for a controller: with leave of the breaker, in a slot, on the guests' own threads.
    pub(crate) async fn call<T: Send + 'static, R: Send + 'static>(
        self: &Arc<Self>,
        component: &Arc<Component>,
        org: OrgId,
        controller: ControllerId,
        prepared: Prepared<T, R>,
    ) -> Result<(R, SecretBook), CallError> {
        let urgency = prepared.urgency;
        let pass = match urgency {
            Urgency::UnderWay => Ok(component.breaker.admit_under_way(org, controller)),
            Urgency::Ordinary => component.breaker.admit(org, controller),
        };
        let pass = pass.map_err(|retry_after_secs| CallError::Suspended {
            component: component.facts.manifest.id.clone(),
            retry_after_secs,
        })?;
        let slots = self.admission.enter(&component.slots, org, urgency).await;
        let _slots = slots.ok_or(CallError::Overload)?;
        let outbound = Arc::clone(&prepared.outbound);
        let report = self.run_apart(component, prepared).await?;
        let (result, verdict) = self.judge(component, report, &outbound);
        pass.settle(verdict);
        let (seen, found_no_room) = {
            let mut ledger = outbound.ledger();
            (std::mem::take(&mut ledger.seen), ledger.overloaded)
        };
        if found_no_room && matches!(result, Err(CallError::Fault(_))) {
            // Whatever the component made of it: it was no fault of the device.
            return Err(CallError::Overload);
        }
        result.map(|answer| (answer, seen))
    }

    async fn run_apart<T: Send + 'static, R: Send + 'static>(
        self: &Arc<Self>,
        component: &Arc<Component>,
        prepared: Prepared<T, R>,
    ) -> Result<Report<R>, CallError> {
        let (shared, component) = (Arc::clone(self), Arc::clone(component));
        let work = async move { shared.run(&component, prepared).await };
        Owned::spawn(&self.guests, work)
            .join()
            .await
            .map_err(|error| CallError::host(format!("the call did not end: {error}")))?
    }

    async fn run<T: Send + 'static, R: Send + 'static>(
        &self,
        component: &Component,
        prepared: Prepared<T, R>,
    ) -> Result<Report<R>, CallError> {
        let deadline = prepared.around.deadline;
        let org = prepared.outbound.target.org_id;
        let cpu = CpuMeter::new();
        let mut store = self.store(component, prepared.around, prepared.outbound, &cpu, prepared.cpu);
        let (ask, fit, weigh) = (prepared.ask, prepared.fit, prepared.weigh);
        let work = async {
            let instance = component.pre.instantiate_async(&mut store).await?;
            let exports = Exports {
                lifecycle: component.exports.lifecycle.load(&mut store, &instance)?,
                inventory: component.exports.inventory.load(&mut store, &instance)?,
                changes: component
                    .exports
                    .changes
                    .as_ref()
                    .map(|found| found.load(&mut store, &instance))
                    .transpose()?,
                files: component
                    .exports
                    .files
                    .as_ref()
                    .map(|found| found.load(&mut store, &instance))
                    .transpose()?,
            };
            ask(&exports, &mut store).await
        };
        let outcome = tokio::time::timeout_at(deadline.into(), work).await;
        cpu.stop();
        let state = store.data();
        let (waited, denied_growths, peak_bytes) = (state.waited, state.limiter.denied, state.limiter.peak);
        let lines = state.lines.text();
        // Its memory is no longer needed, and what follows may have to wait.
        drop(store);
        let end = match outcome {
            Err(_) => End::Wall,
            Ok(Err(error)) => End::Error(error),
            Ok(Ok(Err(fault))) => End::Fault(fault),
            Ok(Ok(Ok(answer))) => match self.apart.run(org, weigh(&answer), move || fit(answer)).await? {
                Ok(answer) => End::Answer(answer),
                Err(unfit) => End::Unfit(unfit),
            },
        };
        Ok(Report { end, waited, denied_growths, peak_bytes, cpu: cpu.used(), lines })
    }

    fn store(
        &self,
        component: &Component,
        around: Surroundings,
        outbound: Arc<Outbound>,
        cpu: &CpuMeter,
        budget: Duration,
    ) -> Store<State> {
        let org = outbound.target.org_id;
        let turn = HeldTurn::default();
        let state = State {
            turn: Arc::clone(&turn),
            limiter: Limiter::new(component.facts.bounds.memory_bytes),
            table: wasmtime::component::ResourceTable::new(),
            around,
            outbound,
            clock: self.clock.clone(),
            started: Instant::now(),
            lines: Lines::default(),
            waited: false,
            tap: self.tap.clone(),
        };
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(HOSTCALL_BYTES);
        store.set_max_component_handles(HANDLES_MAX);
        let meter = cpu.clone();
        store.call_hook(move |_, hook| {
            if hook.exiting_host() {
                meter.start();
            } else {
                meter.stop();
            }
            Ok(())
        });
        let (meter, apart) = (cpu.clone(), Arc::clone(&self.apart));
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |mut context| {
            meter.stop();
            let used = meter.used();
            if used > budget {
                return Ok(UpdateDeadline::Interrupt);
            }
            let heavy = (used > LIGHT_CPU).then_some(org);
            if heavy.is_some() {
                // For its turn; and whatever it held is first offered to others.
                context.data_mut().waits();
            }
            let (meter, apart, held) = (meter.clone(), Arc::clone(&apart), Arc::clone(&turn));
            // The runtime's own yield: the engine's could be run again at once and starve others.
            let next = async move {
                tokio::task::yield_now().await;
                if let Some(org) = heavy {
                    let turn = apart.turn(org).await;
                    *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
                }
                meter.start();
            };
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(next)))
        });
        store
    }

    fn judge<R>(
        &self,
        component: &Component,
        report: Report<R>,
        outbound: &Outbound,
    ) -> (Result<R, CallError>, Verdict) {
        let denied = outbound.ledger().denied;
        let sound =
            if denied > 0 { Verdict::Failed { points: 1, blame: Blame::Component } } else { Verdict::Sound };
        let class = match &report.end {
            End::Answer(_) | End::Fault(_) => None,
            End::Wall => Some(Ending::Component(TrapClass::Wall)),
            End::Unfit(Unfit::Size(_) | Unfit::Name(_)) => Some(Ending::Component(TrapClass::TooLarge)),
            End::Unfit(Unfit::Form(_)) => Some(Ending::Component(TrapClass::Abi)),
            End::Error(error) => Some(trap::classify(error, report.denied_growths)),
        };
        let Some(ending) = class else {
            return match report.end {
                End::Answer(answer) => (Ok(answer), sound),
                End::Fault(fault) => (Err(CallError::Fault(convert::fault(fault))), sound),
                End::Unfit(_) | End::Error(_) | End::Wall => unreachable!("these have a class"),
            };
        };
        let class = match ending {
            Ending::Overload => {
                tracing::error!("the pool of instances is full although admission bounds it");
                return (Err(CallError::Overload), Verdict::Open);
            }
            Ending::Host => return (Err(CallError::host(reason(&report.end))), Verdict::Open),
            Ending::Component(class) => class,
        };
        let reference = self.clock.new_id::<uuid::Uuid>().to_string();
        let (name, version) =
            (component.facts.manifest.id.clone(), component.facts.manifest.version.to_string());
        tracing::warn!(
            component = name,
            component.version = version,
            reference,
            class = %class,
            cpu_ms = u64::try_from(report.cpu.as_millis()).unwrap_or(u64::MAX),
            peak_kib = report.peak_bytes >> 10,
            backtrace = backtrace(&report.end),
            lines = report.lines,
            "adapter {name} {version} was stopped ({class}): {}", reason(&report.end)
        );
        let verdict = match class {
            // A component that waited for the device is not to blame for its silence.
            TrapClass::Wall if report.waited => Verdict::Open,
            TrapClass::Abi => Verdict::Failed { points: 3, blame: Blame::Border },
            TrapClass::TooLarge => Verdict::Failed { points: 1, blame: Blame::Target },
            // How much there was to work on follows from the device.
            TrapClass::Cpu | TrapClass::Resource if outbound.answered() > FAT_BYTES => {
                Verdict::Failed { points: 1, blame: Blame::Target }
            }
            _ => Verdict::Failed { points: 1, blame: Blame::Component },
        };
        (Err(CallError::Trap { component: name, version, class, reference }), verdict)
    }
}

fn reason<R>(end: &End<R>) -> String {
    match end {
        End::Error(error) => error.root_cause().to_string(),
        End::Unfit(unfit) => unfit.to_string(),
        End::Wall => "its time is over".to_owned(),
        End::Answer(_) | End::Fault(_) => String::new(),
    }
}

/// Names of functions, innermost first.
fn backtrace<R>(end: &End<R>) -> String {
    let End::Error(error) = end else { return String::new() };
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let names: Vec<&str> =
        trace.frames().iter().take(16).map(|frame| frame.func_name().unwrap_or("<unknown>")).collect();
    names.join(" < ")
}
