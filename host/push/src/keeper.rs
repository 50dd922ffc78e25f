//! All channels of one controller: they are kept open, what they tell is written, and so is how they stand.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use chrono::TimeDelta;
use futures::future::join_all;
use heddle_core::event::NewEvent;
use heddle_core::push::PushState;
use heddle_core::{ControllerId, ProcessId, Timestamp};
use heddle_inventory::sync::Bell;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_marketplace::push::{Channel, Transport};
use heddle_runtime::{Adapter, CHANNELS_PER_CONTROLLER_MAX, Told, Whose};
use heddle_store::controllers::ControllerTarget;
use heddle_store::push::wanted::{self, Want};
use heddle_store::push::{self, Push, PushSite};
use heddle_store::{Tx, events};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::board::Board;
use crate::channel;
use crate::declarations::CONTROLLER_PUSH_CHANGED;
use crate::gather::{Gather, Heard};
use crate::hook::{Requests, silence};
use crate::measures::Measures;
use crate::plan::Plan;

/// Time between a change of a channel and the writing of it: a channel that is opened again at once changes nothing.
const SETTLE: Duration = Duration::from_millis(200);
/// Time after which something that the database did not take is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What the channels of one controller share.
pub(crate) struct Context {
    pub(crate) app: SharedApp,
    pub(crate) adapter: Adapter,
    pub(crate) target: ControllerTarget,
    /// The vendor's sites.
    pub(crate) sites: Vec<PushSite>,
    pub(crate) board: Arc<Board>,
    /// How long its channels wait before they are opened first.
    pub(crate) pause: Duration,
    plan: Plan,
    term: Term,
    /// Whose places were taken when a channel was to be opened, and what it says of that.
    lacks_place: OnceLock<(Whose, String)>,
    gather: Mutex<Gather>,
    told: Notify,
}

/// The running channels of a controller. They are closed when this is dropped.
pub(crate) struct Keeper {
    context: Arc<Context>,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Opens the channels, after a pause. `known` is how they stand by the database.
    pub(crate) fn start(
        app: &SharedApp,
        (adapter, target): (Adapter, ControllerTarget),
        (plan, sites): (Plan, Vec<PushSite>),
        (term, pause): (Term, Duration),
        (known, requests): (Push, &Requests),
    ) -> Self {
        let of = if plan.is_of_sites { "sites" } else { "channels" };
        let channels = plan.connections.len() + plan.hooks.len();
        let board = Arc::new(Board::new(channels, of, app.clock.now()));
        Measures::of(app).holds(target.id, &target.vendor, &board);
        let context = Arc::new(Context {
            app: app.clone(),
            adapter,
            target,
            sites,
            board,
            pause,
            plan,
            term,
            lacks_place: OnceLock::new(),
            gather: Mutex::default(),
            told: Notify::new(),
        });
        context.hooks(requests, true);
        let kept = context.clone();
        let task = app.tasks.spawn("push.controller", async move { kept.run(known).await });
        Self { context, task }
    }

    /// Looks how the hooks stand by the requests that came, whichever process took them.
    pub(crate) fn look(&self, requests: &Requests) {
        self.context.hooks(requests, false);
    }

    /// Whether it has ended by itself, which a panic only makes it.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Whose places of this process were taken when one of its channels was to be opened, and what that says. Another process may
    /// have places.
    pub(crate) fn lacks_place(&self) -> Option<&(Whose, String)> {
        self.context.lacks_place.get()
    }

    /// Closes the channels, and waits until nothing of them runs.
    pub(crate) async fn close(mut self) {
        self.task.abort();
        // That it was aborted is what its end says.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
        Measures::of(&self.context.app).gives_up(self.context.target.id, &self.context.board);
    }
}

impl Context {
    pub(crate) fn measures(&self) -> &Measures {
        Measures::of(&self.app)
    }

    /// Notes that this process has no place for a channel.
    pub(crate) fn finds_no_place(&self, whose: Whose, reason: String) {
        // Which of two channels said it first is of no weight.
        let _ = self.lacks_place.set((whose, reason));
    }

    /// A number that differs between channels, and between attempts of one.
    pub(crate) fn spread(&self, at: usize) -> u64 {
        let (high, low) = self.target.id.0.as_u64_pair();
        let now = self.app.clock.now().timestamp_subsec_micros();
        (high ^ low).wrapping_add(u64::from(now)).wrapping_add(at as u64)
    }

    /// Takes what a message means.
    pub(crate) fn told(&self, heard: Heard<'_>, told: &Told) {
        self.gather().told(heard, told, self.app.clock.now());
        self.told.notify_one();
    }

    /// Takes that messages of a channel may have been missed: what it could have told is read at this time.
    pub(crate) fn gap(&self, heard: Heard<'_>, channel: &Channel, due_at: Timestamp) {
        self.gather().gap(heard, channel.reads(), due_at, self.app.clock.now());
        self.told.notify_one();
    }

    /// Notes how each hook stands. What came before one is live was perhaps missed, and so was what came while no process
    /// ran: after a start that is read within the interval, so that not all controllers are read at once.
    fn hooks(&self, requests: &Requests, is_start: bool) {
        let now = self.app.clock.now();
        for (number, name) in self.plan.hooks.iter().enumerate() {
            let channel = self.adapter.manifest().push.get(name);
            let Some((channel, Some(Transport::Hook(hook)))) = channel.map(|one| (one, one.transport()))
            else {
                continue;
            };
            let at = self.plan.connections.len() + number;
            if !self.board.hook(at, silence(requests, name, hook.quiet_s, now), now) {
                continue;
            }
            let wait = if is_start { self.spread_over_interval(at) } else { TimeDelta::zero() };
            let settle = TimeDelta::milliseconds(channel.settle_ms().into());
            self.gap(Heard { channel: at, settle, site_ref: "" }, channel, now + wait);
        }
    }

    /// A time within the interval of the controller that differs between channels.
    fn spread_over_interval(&self, at: usize) -> TimeDelta {
        let secs = u64::try_from(self.target.sync_interval_secs).unwrap_or_default().max(1);
        let millis = self.spread(at) % (secs * 1_000);
        TimeDelta::milliseconds(i64::try_from(millis).unwrap_or_default())
    }

    fn gather(&self) -> MutexGuard<'_, Gather> {
        self.gather.lock().expect("no holder of this lock panics")
    }

    /// Runs until the service stops or others may take the controller over.
    async fn run(&self, known: Push) {
        let connections = self.plan.connections.iter().enumerate();
        let channels = connections.map(|(at, connection)| channel::keep(self, at, connection));
        tokio::select! {
            () = self.app.tasks.stopping().cancelled_owned() => {}
            () = self.term.over().cancelled() => {}
            // Each of them is there for as long as it is polled.
            () = async { join_all(channels).await; std::future::pending::<()>().await } => {}
            () = self.write_what_is_told() => {}
            () = self.write_how_it_stands(known) => {}
        }
    }

    /// Writes what channels told, a moment after the first message.
    async fn write_what_is_told(&self) {
        loop {
            let write_at = self.gather().write_at();
            let Some(write_at) = write_at else {
                self.told.notified().await;
                continue;
            };
            let left = until(write_at, self.app.clock.now());
            if !left.is_zero() {
                // Another message may have to be written earlier.
                let _ = tokio::time::timeout(left, self.told.notified()).await;
                continue;
            }
            let wants = self.gather().take(self.app.clock.now());
            if let Err(error) = self.write(&wants).await {
                self.gather().give_back(wants, self.app.clock.now());
                tracing::warn!(
                    controller.id = %self.target.id, error = %error,
                    "what controller {} tells is not written; tried again", self.target.id
                );
            }
        }
    }

    async fn write(&self, wants: &[Want]) -> Result<(), Error> {
        let mut tx = self.app.db.write().await?;
        wanted::want(&mut tx, self.target.id, wants).await?;
        tx.commit().await?;
        Bell::of(&self.app).ring();
        Ok(())
    }

    /// Writes how the channels stand whenever that is another than the database says.
    async fn write_how_it_stands(&self, mut known: Push) {
        loop {
            let (push, next) = self.stands();
            if push != known {
                match tell(&self.app, self.target.id, self.term.id, &push).await {
                    Ok(()) => known = push,
                    Err(error) => {
                        tracing::warn!(
                            controller.id = %self.target.id, error = %error,
                            "how channels of controller {} stand is not written; tried again", self.target.id
                        );
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                }
            }
            let changed = async {
                self.board.changed().await;
                tokio::time::sleep(SETTLE).await;
            };
            match next {
                Some(next) => {
                    let left = until(next, self.app.clock.now()).max(SETTLE);
                    let _ = tokio::time::timeout(left, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// How the channels stand, and when that may be otherwise by itself.
    fn stands(&self) -> (Push, Option<Timestamp>) {
        let now = self.app.clock.now();
        let polling =
            |reason: String| Push { state: Some(PushState::Polling), since: Some(now), reason: Some(reason) };
        if self.plan.connections.is_empty() && self.plan.hooks.is_empty() {
            return (polling("no site of the controller is read".to_owned()), None);
        }
        let (push, next) = self.board.together(now);
        if self.plan.left_out > 0 && push.state == Some(PushState::Live) {
            let left_out = self.plan.left_out;
            let reason = format!(
                "{left_out} more channels than the {CHANNELS_PER_CONTROLLER_MAX} that a controller may have"
            );
            return (Push { since: push.since, ..polling(reason) }, next);
        }
        (push, next)
    }
}

/// Writes how the channels of a controller stand, with the event that tells of it.
pub(crate) async fn tell(
    app: &SharedApp,
    controller: ControllerId,
    owner: ProcessId,
    push: &Push,
) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    tell_in(&mut tx, app, (controller, owner), push).await?;
    Ok(tx.commit().await?)
}

/// Does so in a transaction.
pub(crate) async fn tell_in(
    tx: &mut Tx,
    app: &SharedApp,
    (controller, owner): (ControllerId, ProcessId),
    push: &Push,
) -> Result<(), Error> {
    if let Some(told) = push::set_state(tx, controller, owner, push).await? {
        let payload = json!({
            "controller_id": controller,
            "site_id": told.site_id,
            "push_state": push.state,
            "since": push.since,
            "reason": push.reason,
        });
        let event = NewEvent {
            site_id: Some(told.site_id),
            controller_id: Some(controller),
            ..NewEvent::of(CONTROLLER_PUSH_CHANGED, told.org_id, payload)
        };
        events::append(tx, &event, &app.clock).await?;
    }
    Ok(())
}

/// Time from now until then; none when it has passed.
fn until(then: Timestamp, now: Timestamp) -> Duration {
    (then - now).to_std().unwrap_or_default()
}
