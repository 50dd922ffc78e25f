//! What a rule acts for: a request, a policy, or a step of a run.

use heddle_core::{ChangeId, id_of_digest};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::extract::Origin;
use heddle_store::changes::RunStep;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::outcome::Actor;
use super::plan::Request;

/// What a rule acts for.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'a> {
    /// A request, which the rule answers.
    Request(&'a Origin),
    /// A policy: there is no request, and the caller has the rights of the user that set it.
    Policy,
    /// A step of a run, as its author. The same step stages the same change once.
    Run(&'a RunStep),
}

impl<'a> Cause<'a> {
    /// The id that calls to controllers carry.
    pub fn request_id(self) -> String {
        match self {
            Cause::Request(origin) => origin.request_id.clone(),
            Cause::Policy => "policy".to_owned(),
            Cause::Run(step) => format!("run-{}", step.run_id),
        }
    }

    /// Where the request came from; none where there is none.
    pub fn origin(self) -> Option<&'a Origin> {
        match self {
            Cause::Request(origin) => Some(origin),
            Cause::Policy | Cause::Run(_) => None,
        }
    }

    pub(super) fn actor(self, caller: &Caller) -> Actor {
        self.origin().map_or_else(|| Actor::author(caller), |origin| Actor::caller(caller, origin))
    }

    pub(super) fn step(self) -> Option<RunStep> {
        match self {
            Cause::Run(step) => Some(step.clone()),
            Cause::Request(_) | Cause::Policy => None,
        }
    }
}

/// A step that stages several changes, with a key of its own for one of them.
pub fn step_of(step: &RunStep, request: &Request) -> RunStep {
    let asked = json!([
        request.controller_id,
        request.site_ref,
        request.feature,
        request.operation,
        heddle_store::audit::canonical(&request.payload),
    ]);
    let own: ChangeId = id_of_digest(Sha256::digest(asked.to_string()).into());
    RunStep { key: format!("{}:{own}", step.key), ..step.clone() }
}
