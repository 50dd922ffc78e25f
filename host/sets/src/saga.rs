//! A set over several controllers with its parts, as one transaction sees them.

use heddle_changes::parts::{self, Starter};
use heddle_core::ChangeId;
use heddle_core::Timestamp;
use heddle_core::change::Danger;
use heddle_core::saga::SagaStep;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::sagas::{self, PartRow, SagaRow};
use heddle_store::{ChangeRow, Scope, Tx, changes};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::decide::{self, Next, Standing, Window};

/// A set over several controllers.
pub(crate) struct Saga {
    pub(crate) row: SagaRow,
    /// In the order in which they are applied.
    pub(crate) parts: Vec<Part>,
}

/// All changes of a set at one controller.
pub(crate) struct Part {
    pub(crate) of: PartRow,
    /// The change, or the set of one controller.
    pub(crate) row: ChangeRow,
}

impl Part {
    pub(crate) fn standing(&self, now: Timestamp) -> Standing {
        Standing::of(&self.row, self.of.phase, now)
    }

    fn seen(&self, now: Timestamp) -> decide::Part {
        decide::Part {
            standing: self.standing(now),
            phase: self.of.phase,
            can_be_taken_back: parts::can_be_taken_back(&self.row),
            is_compensable: parts::is_compensable(&self.row),
            has_timer: self.has_timer(),
        }
    }

    /// Whether the device takes it back by itself at the end of the window, which then cannot be moved.
    pub(crate) fn has_timer(&self) -> bool {
        self.row.plan.as_ref().is_some_and(|plan| plan.holds)
    }
}

/// Returns a set with its parts.
pub(crate) async fn load(tx: &mut Tx, row: SagaRow) -> Result<Saga, Error> {
    let of_set = sagas::parts(tx, row.id).await?;
    let ids: Vec<ChangeId> = of_set.iter().map(|part| part.change_id).collect();
    let mut rows = changes::find_many(tx, &Scope::everything(), &ids).await?;
    let mut parts = Vec::with_capacity(of_set.len());
    for of in of_set {
        let at = rows.iter().position(|row| row.id == of.change_id);
        let row = rows.swap_remove(at.ok_or_else(|| Error::internal("a part of a set has its row"))?);
        parts.push(Part { of, row });
    }
    Ok(Saga { row, parts })
}

/// Returns a set, if the caller may see every change of it.
pub(crate) async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<Option<Saga>, Error> {
    let mut tx = app.db.read().await?;
    let Some(row) = sagas::find(&mut tx, &caller.scope(), id).await? else { return Ok(None) };
    let saga = load(&mut tx, row).await?;
    let is_seen = saga.parts.iter().all(|part| caller.may_access_site(part.row.site_id));
    Ok(is_seen.then_some(saga))
}

/// Returns a set as it is, for the service's own steps.
pub(crate) async fn get(app: &App, id: ChangeId) -> Result<Saga, Error> {
    let mut tx = app.db.read().await?;
    let row = sagas::find(&mut tx, &Scope::everything(), id).await?.ok_or(Error::NotFound("change set"))?;
    load(&mut tx, row).await
}

/// Returns a set, locked until the transaction ends.
pub(crate) async fn lock(tx: &mut Tx, id: ChangeId) -> Result<Saga, Error> {
    let row = sagas::lock(tx, id).await?.ok_or(Error::NotFound("change set"))?;
    load(tx, row).await
}

impl Saga {
    pub(crate) fn seen(&self, now: Timestamp) -> Vec<decide::Part> {
        self.parts.iter().map(|part| part.seen(now)).collect()
    }

    /// What comes next.
    pub(crate) fn next(&self, now: Timestamp) -> Next {
        let window = match self.row.confirm_deadline {
            None => Window::None,
            Some(deadline) if now >= deadline => Window::Over,
            Some(_) => Window::Open,
        };
        decide::next(self.row.step, window, &self.seen(now))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.row.step == SagaStep::Idle
    }

    /// The danger of its most dangerous part.
    pub(crate) fn danger(&self) -> Danger {
        self.parts.iter().map(|part| part.row.danger).max().unwrap_or(Danger::Normal)
    }

    /// Hash of the plans of all parts and of their order; `None` where one has no plan.
    pub(crate) fn plan_hash(&self) -> Option<String> {
        let plans: Option<Vec<_>> = self
            .parts
            .iter()
            .map(|part| {
                let plan = part.row.plan.as_ref()?;
                Some(json!([part.of.controller_id, part.row.site_ref, plan.hash]))
            })
            .collect();
        plans.map(|plans| hex::encode(Sha256::digest(json!(plans).to_string())))
    }

    /// The user for whom its parts are moved.
    pub(crate) fn starter(&self) -> Starter {
        match self.row.attempts.last() {
            Some(attempt) => Starter { user: attempt.started_by, via: attempt.via.clone() },
            None => Starter { user: self.row.created_by, via: None },
        }
    }

    /// Names a part for people: which one of how many.
    pub(crate) fn name_of(&self, at: usize, names: &Names) -> String {
        let part = &self.parts[at];
        format!("controller '{}' (part {} of {})", names.of(part), at + 1, self.parts.len())
    }
}

/// The names of the controllers of a set.
pub(crate) struct Names(Vec<heddle_store::ControllerTarget>);

impl Names {
    pub(crate) async fn load(tx: &mut Tx, saga: &Saga) -> Result<Self, Error> {
        let ids: Vec<_> = saga.parts.iter().map(|part| part.of.controller_id).collect();
        Ok(Self(heddle_store::controllers::find_targets(tx, &Scope::everything(), &ids).await?))
    }

    pub(crate) fn of(&self, part: &Part) -> String {
        let target = self.0.iter().find(|target| target.id == part.of.controller_id);
        target.map_or_else(|| part.of.controller_id.to_string(), |target| target.name.clone())
    }
}
