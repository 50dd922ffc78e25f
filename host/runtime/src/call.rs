//! One call into a component: a fresh instance, two clocks, and a judgement of
//! how it ended. Nothing of the instance outlives the call.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::{Clock, ControllerId, OrgId};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::component::InstancePre;
use wasmtime::{Engine, Store, UpdateDeadline, WasmBacktrace};
use wasmtime_wasi::filesystem::WasiFilesystemCtx;

use crate::admission::{Admission, OfComponent};
use crate::apart::{Apart, LIGHT_CPU};
use crate::api::{CallError, OUT_OF_SERVICE, SecretBook, TrapClass, Urgency};
use crate::bindings::heddle::common::types;
use crate::breaker::{Blame, Breaker, Verdict};
use crate::convert::{self, Unfit};
use crate::egress::{Account, Egress, Facts};
use crate::exports::{Exported, Exports};
use crate::limits::{HANDLES_MAX, HOSTCALL_BYTES, Limiter, REFUSALS_LOGGED};
use crate::lines::Lines;
use crate::load::LoadError;
use crate::meter::CpuMeter;
use crate::observe::Observer;
use crate::reach::Reach;
use crate::runtime::Tap;
use crate::services::PluginServices;
use crate::state::{HeldTurn, State, Surroundings};
use crate::task::Owned;
use crate::trap::{self, Ending, RefusedTooOften};

/// From so many bytes of answers on, a component that runs out of time or memory is not blamed for it.
const FAT_BYTES: usize = 256 << 10;

/// Wall time of instantiating a component when it is loaded.
const TRIAL_WALL: Duration = Duration::from_secs(10);
/// Components that are instantiated to try them at the same time. Their instances are in addition to those of calls.
pub(crate) const TRIALS: usize = 1;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) guests: Handle,
    pub(crate) egress: Arc<Egress>,
    pub(crate) apart: Arc<Apart>,
    pub(crate) admission: Admission,
    /// Turns to instantiate a component when it is loaded.
    pub(crate) trials: Semaphore,
    pub(crate) clock: Clock,
    pub(crate) tap: Option<Tap>,
    pub(crate) observer: OnceLock<Observer>,
    pub(crate) services: OnceLock<Arc<dyn PluginServices>>,
}

/// A component that was linked.
pub(crate) struct Component {
    pub(crate) facts: Arc<Facts>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
    pub(crate) slots: OfComponent,
    pub(crate) breaker: Arc<Breaker>,
    /// Fires when its calls are to end at once.
    pub(crate) cut: CancellationToken,
    pub(crate) provenance: Provenance,
}

/// What a component came in, and who signed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// SHA-256 of the archive, lower-case hex; `None` for a package of a folder.
    pub archive_sha256: Option<String>,
    /// Ids of the trusted keys that signed the package.
    pub key_ids: Vec<String>,
}

/// What an export answered, before it is converted.
pub(crate) type Raw<T> = wasmtime::Result<Result<T, types::Fault>>;

/// Calls a function of an export.
pub(crate) type Ask<T> =
    Box<dyn for<'a> FnOnce(Exported<'a>, &'a mut Store<State>) -> BoxFuture<'a, Raw<T>> + Send>;

/// Names the type of a closure, which the compiler does not infer.
pub(crate) fn ask<T>(
    ask: impl for<'a> FnOnce(Exported<'a>, &'a mut Store<State>) -> BoxFuture<'a, Raw<T>> + Send + 'static,
) -> Ask<T> {
    Box::new(ask)
}

/// A call that is ready to be made.
pub(crate) struct Prepared<T, R> {
    pub(crate) around: Surroundings,
    pub(crate) cpu: Duration,
    pub(crate) reach: Reach,
    pub(crate) ask: Ask<T>,
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
    /// It ended while it waited because it wanted to.
    pausing: bool,
    denied_growths: u32,
    peak_bytes: usize,
    cpu: Duration,
    lines: String,
}

impl Shared {
    /// Calls for a controller, or for what stands in its place for a plugin: with leave of the breaker, in a slot, on the
    /// guests' own threads.
    pub(crate) async fn call<T: Send + 'static, R: Send + 'static>(
        self: &Arc<Self>,
        component: &Arc<Component>,
        controller: ControllerId,
        prepared: Prepared<T, R>,
    ) -> Result<(R, SecretBook), CallError> {
        let (urgency, org) = (prepared.urgency, prepared.reach.org);
        let pass = match urgency {
            Urgency::UnderWay => Ok(component.breaker.admit_under_way(org, controller)),
            Urgency::Ordinary => component.breaker.admit(org, controller),
        };
        let pass = pass.map_err(|retry_after_secs| CallError::Suspended {
            kind: component.facts.manifest.kind.as_str(),
            component: component.facts.manifest.id.clone(),
            retry_after_secs,
        })?;
        let slots = self.admission.enter(&component.slots, org, urgency).await;
        let _slots = slots.ok_or(CallError::Overload)?;
        if Instant::now() >= prepared.around.deadline {
            // It waited for its slot until its time was over.
            return Err(CallError::Overload);
        }
        let account = Arc::clone(&prepared.reach.account);
        let ended = tokio::select! {
            biased;
            () = component.cut.cancelled() => Err(out_of_service(component)),
            ended = self.run_apart(component, prepared) => ended,
        };
        let result = match ended {
            Ok(report) => {
                let (result, verdict) = self.judge(component, report, &account);
                pass.settle(verdict);
                result
            }
            Err(error) => Err(error),
        };
        count_refusals(component, org, &account);
        let (seen, found_no_room, left) = {
            let mut ledger = account.ledger();
            (std::mem::take(&mut ledger.seen), ledger.overloaded, ledger.left > 0)
        };
        match result {
            Ok(answer) => Ok((answer, seen)),
            // What left is not forgotten, whatever the component made of it.
            Err(error) if left => Err(error.after_effect()),
            // Whatever the component made of it: it was no fault of the device.
            Err(CallError::Fault(_)) if found_no_room => Err(CallError::Overload),
            Err(error) => Err(error),
        }
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
        let org = prepared.reach.org;
        let cpu = CpuMeter::new();
        let mut store = self.store(component, prepared.around, prepared.reach, &cpu, prepared.cpu);
        let (ask, fit, weigh) = (prepared.ask, prepared.fit, prepared.weigh);
        let work = async {
            let instance = component.pre.instantiate_async(&mut store).await?;
            ask(Exported { exports: &component.exports, instance }, &mut store).await
        };
        let outcome = tokio::time::timeout_at(deadline.into(), cpu.watch(work)).await;
        cpu.stop();
        let state = store.data();
        let (waited, denied_growths, peak_bytes) = (state.waited, state.limiter.denied, state.limiter.peak);
        let pausing = state.pausing.load(Ordering::Relaxed);
        state.lines.finish();
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
        Ok(Report { end, waited, pausing, denied_growths, peak_bytes, cpu: cpu.spent(), lines })
    }

    /// Instantiates a component once and loads its exports, which shows whether their types are those of the interface:
    /// until then only their names were looked at. It has the bounds of a call, and reaches nothing.
    ///
    /// # Errors
    /// Says why the component cannot be called, or that this machine could not try it.
    pub(crate) async fn tried(self: &Arc<Self>, component: &Arc<Component>) -> Result<(), LoadError> {
        self.tried_within(component, TRIAL_WALL).await
    }

    pub(crate) async fn tried_within(
        self: &Arc<Self>,
        component: &Arc<Component>,
        wall: Duration,
    ) -> Result<(), LoadError> {
        let (shared, component) = (Arc::clone(self), Arc::clone(component));
        let work = async move {
            let _one = shared.trials.acquire().await;
            let (facts, deadline) = (Arc::clone(&component.facts), Instant::now() + wall);
            let (cpu, budget) = (CpuMeter::new(), facts.bounds.cpu);
            let reach = Reach::nothing(&shared.egress, Arc::clone(&facts));
            let around = Surroundings::of_trial(facts.manifest.id.clone(), deadline);
            let mut store = shared.store(&component, around, reach, &cpu, budget);
            let work = async {
                let instance = component.pre.instantiate_async(&mut store).await?;
                component.exports.load_all(&mut store, &instance)
            };
            match tokio::time::timeout_at(deadline.into(), cpu.watch(work)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(LoadError::Link(format!("{error:#}"))),
                Err(_) => Err(LoadError::NotReady { secs: wall.as_secs() }),
            }
        };
        let ended = Owned::spawn(&self.guests, work).join().await;
        ended.unwrap_or_else(|error| Err(LoadError::Untried(error.to_string())))
    }

    fn store(
        &self,
        component: &Component,
        around: Surroundings,
        reach: Reach,
        cpu: &CpuMeter,
        budget: Duration,
    ) -> Store<State> {
        let org = reach.org;
        let turn = HeldTurn::default();
        let state = State {
            turn: Arc::clone(&turn),
            limiter: Limiter::new(component.facts.bounds.memory_bytes),
            lines: Lines::new(&around.component, &around.request_id),
            table: wasmtime::component::ResourceTable::new(),
            around,
            reach,
            clock: self.clock.clone(),
            started: Instant::now(),
            waited: false,
            pausing: Arc::default(),
            random_bytes: 0,
            tap: self.tap.clone(),
            files: WasiFilesystemCtx::default(),
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
            let used = match meter.used() {
                little if little <= LIGHT_CPU => little,
                _ => meter.spent(),
            };
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
        account: &Account,
    ) -> (Result<R, CallError>, Verdict) {
        let (denied, denied_for_data) = {
            let ledger = account.ledger();
            (ledger.denied, ledger.denied_for_data)
        };
        let refused = match (denied, denied_for_data) {
            (0, 0) => None,
            // Its data led there: that says nothing of the component at other organizations.
            (0, _) => Some(Blame::Target),
            _ => Some(Blame::Component),
        };
        let sound = refused.map_or(Verdict::Sound, |blame| Verdict::Failed { points: 1, blame });
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
                End::Fault(fault) => (Err(CallError::Fault(answered(convert::fault(fault)))), sound),
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
        let kind = component.facts.manifest.kind.as_str();
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
            "{kind} {name} {version} was stopped ({class}): {}", reason(&report.end)
        );
        let verdict = match class {
            // A component that waited for the device is not to blame for its silence.
            TrapClass::Wall if report.waited && !report.pausing => Verdict::Open,
            TrapClass::Abi => Verdict::Failed { points: 3, blame: Blame::Border },
            // It was stopped for its refusals.
            TrapClass::Bug if was_refused_too_often(&report.end) => sound,
            TrapClass::TooLarge => Verdict::Failed { points: 1, blame: Blame::Target },
            // How much there was to work on follows from the device.
            TrapClass::Cpu | TrapClass::Resource if account.answered() > FAT_BYTES => {
                Verdict::Failed { points: 1, blame: Blame::Target }
            }
            _ => Verdict::Failed { points: 1, blame: Blame::Component },
        };
        let effect = Effect::None;
        (Err(CallError::Trap { kind, component: name, version, class, reference, effect }), verdict)
    }
}

/// The error of a call that was cut.
fn out_of_service(component: &Component) -> CallError {
    let manifest = &component.facts.manifest;
    let message = format!("{} {} was taken out of service at once", manifest.kind.as_str(), manifest.id);
    CallError::Fault(Fault::new(FaultKind::Denied, message).with_code(OUT_OF_SERVICE))
}

/// A fault that the component answered. It does not have the code of a call that was cut: such calls are made again as often
/// as it takes.
fn answered(mut fault: Fault) -> Fault {
    fault.code = fault.code.filter(|code| code != OUT_OF_SERVICE);
    fault
}

/// Says how many refusals of a call the log does not have.
fn count_refusals(component: &Component, org: OrgId, account: &Account) {
    let refused = account.ledger().refused();
    if refused > REFUSALS_LOGGED {
        tracing::warn!(
            component = component.facts.manifest.id,
            organization.id = %org,
            refused,
            "a call of a component was refused something {refused} times; the first {REFUSALS_LOGGED} are logged"
        );
    }
}

fn was_refused_too_often<R>(end: &End<R>) -> bool {
    matches!(end, End::Error(error) if error.is::<RefusedTooOften>())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_component_answers_that_it_was_cut() {
        let fault = |code: &str| answered(Fault::new(FaultKind::Denied, "no").with_code(code)).code;
        assert_eq!(fault(OUT_OF_SERVICE), None);
        assert_eq!(fault("scope").as_deref(), Some("scope"));
    }
}
