//! Calls of a cassette, made again.

use serde_json::Value;

use super::format::{Call, Cassette, LIMIT, Planned};
use super::gives;
use super::replay::Replay;
use crate::testing::Package;
use crate::{Adapter, Change, ChangePlan, Fault, Listing, Operation, Outcome, Sent, Stage, fault};

/// A cassette with the package that it is played with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Player<'c> {
    pub(super) cassette: &'c Cassette,
    pub(super) package: &'c Package,
}

fn stage(word: &str) -> Result<Stage, Fault> {
    Ok(match word {
        "apply" => Stage::Apply,
        "confirm" => Stage::Confirm,
        "undo" => Stage::Undo,
        "restore" => Stage::Restore,
        other => return Err(fault::invalid(format!("there is no stage '{other}'"))),
    })
}

fn change(planned: &Planned) -> Result<Change, Fault> {
    let operation = match planned.operation.as_str() {
        "create" => Operation::Create,
        "update" => Operation::Update,
        "delete" => Operation::Delete,
        other => return Err(fault::invalid(format!("there is no operation '{other}'"))),
    };
    let (feature, site) = (planned.feature.clone(), planned.site.clone());
    Ok(Change { feature, operation, site, payload: planned.payload.to_string() })
}

impl<'c> Player<'c> {
    /// The host of a call, with the answers that were recorded.
    pub(super) fn host(&self, at: usize) -> Replay<'c> {
        Replay::of(self.cassette, self.package, &self.cassette.calls[at])
    }

    /// Makes a call at this host, and says what it gives. A judgement that it failed is a fault.
    pub(super) fn play<A: Adapter>(&self, at: usize, host: &Replay<'_>) -> Result<Value, Fault> {
        Ok(match &self.cassette.calls[at].call {
            Call::Check => gives::profile(&A::check(host)?),
            Call::ListSites => gives::sites(&A::list_sites(host, None)?),
            Call::ListDevices { site, cursor } => {
                gives::devices(&A::list_devices(host, site.as_deref(), cursor.as_deref())?)
            }
            Call::ListObjects { kind, site, cursor } => {
                let (site, cursor) = (site.as_deref(), cursor.as_deref());
                gives::objects(&A::list_objects(host, &Listing { site, cursor, ..Listing::of(kind, LIMIT) })?)
            }
            Call::GetObject { kind, site, key } => {
                gives::object(&A::get_object(host, kind, site.as_deref(), key)?)
            }
            Call::ListModel { kind, site, cursor } => {
                gives::model(&A::list_model(host, kind, site.as_deref(), cursor.as_deref())?)
            }
            Call::Plan { .. } => gives::plan(&A::plan(host, &self.changes(at)?)?),
            Call::Ready { plan, stage: word } => {
                let token = self.plan::<A>(*plan)?.token;
                gives::ready(&A::ready(host, stage(word)?, &self.changes(*plan)?, &token, 0)?)
            }
            Call::Judge { .. } | Call::Poll { .. } => gives::outcome(self.outcome::<A>(at, host)?)?,
            Call::Compare { plan } => {
                let token = self.plan::<A>(*plan)?.token;
                gives::standing(&A::compare(host, &self.changes(*plan)?, &token)?.standing)
            }
        })
    }

    fn outcome<A: Adapter>(&self, at: usize, host: &Replay<'_>) -> Result<Outcome, Fault> {
        match &self.cassette.calls[at].call {
            Call::Judge { plan, stage: word, index } => {
                let token = self.plan::<A>(*plan)?.token;
                let answer = host.judged().ok_or_else(|| fault::invalid("a judgement without an answer"))?;
                let call = Sent { stage: stage(word)?, index: *index };
                A::judge(host, call, Ok(answer), &self.changes(*plan)?, &token)
            }
            Call::Poll { of } => match self.outcome::<A>(*of, &self.host(*of))? {
                Outcome::Pending(task) => A::poll(host, &task.token),
                _ => Err(fault::invalid(format!("call {of} gave no task"))),
            },
            _ => Err(fault::invalid(format!("call {at} has no outcome"))),
        }
    }

    /// The plan of a call, made of what was recorded.
    fn plan<A: Adapter>(&self, at: usize) -> Result<ChangePlan, Fault> {
        A::plan(&self.host(at), &self.changes(at)?)
    }

    fn changes(&self, at: usize) -> Result<Vec<Change>, Fault> {
        match &self.cassette.calls[at].call {
            Call::Plan { changes } => changes.iter().map(change).collect(),
            _ => Err(fault::invalid(format!("call {at} is no plan"))),
        }
    }
}
