//! Reviewed calls of a plan: their holes are filled, then they go through the same checks as the requests of a component.

use std::collections::BTreeMap;

use heddle_core::change::{Hole, HoleSource, HoleValues, NativeCall};
use heddle_core::fault::{Fault, FaultKind};
use serde_json::Value;

use super::request::{Auth, Request, Response, denied};
use super::witness::Exchange;
use super::{Facts, Outbound, Purpose, body, headers, holes, path, phase, session, substitute};
use crate::api::Filling;

impl Outbound {
    /// Sends one reviewed call of a plan through the same checks; `follows` says whether calls of its stage left
    /// before.
    pub(crate) async fn write(
        &self,
        call: &NativeCall,
        filling: &Filling,
        follows: bool,
    ) -> Result<Response, Fault> {
        let steps = async {
            let values = self.hole_values(call, filling, follows).await?;
            let (mut request, auth) = Request::of(&holes::fill(call, &values, filling)?)?;
            request.attach(&filling.files)?;
            let shown = match self.egress.witness.get() {
                Some(_) => Some(Exchange::of_call(&holes::fill(call, &values, &holes::Unchanged)?)),
                None => None,
            };
            self.take_request()?;
            let answer = self.steps(request, &auth, Purpose::Write { filling, follows }).await;
            self.show(shown, &answer);
            answer
        };
        self.counted(steps).await
    }

    /// The values of the holes that a reviewed call has.
    async fn hole_values(
        &self,
        call: &NativeCall,
        filling: &Filling,
        follows: bool,
    ) -> Result<HoleValues, Fault> {
        let (mut values, mut read) = (HoleValues::new(), BTreeMap::new());
        for name in holes::of_call(call) {
            let Some(hole) = filling.holes.iter().find(|hole| hole.name == name) else { continue };
            let value = match &hole.source {
                HoleSource::Fresh { path, pointer } => {
                    if !read.contains_key(path) {
                        read.insert(path.clone(), self.fresh(hole, path, call, follows).await?);
                    }
                    holes::pick(hole, pointer, &read[path]).map_err(|why| holes::unfilled(hole, &why))?
                }
                HoleSource::Answer { .. } | HoleSource::Found => match filling.values.get(&name) {
                    Some(value) => value.clone(),
                    None => return Err(holes::unfilled(hole, "it was not found")),
                },
            };
            values.insert(name, value);
        }
        Ok(values)
    }

    /// What the device has at a path now, read in the session that the call is sent in.
    async fn fresh(&self, hole: &Hole, path: &str, call: &NativeCall, follows: bool) -> Result<Value, Fault> {
        let auth = call.session.clone().map_or(Auth::None, Auth::Session);
        let request = Request::get(path);
        let shown = self.egress.witness.get().map(|_| Exchange::of(&request));
        self.take_request()?;
        let answer = self.steps(request, &auth, Purpose::FreshRead { follows }).await;
        self.show(shown, &answer);
        let answer = answer?;
        if !(200..300).contains(&answer.status) {
            let mut fault = holes::unfilled(hole, &format!("the device answered status {}", answer.status));
            if matches!(answer.status, 429 | 502..=504) {
                fault.kind = FaultKind::NotReady;
            }
            fault.upstream_status = Some(answer.status);
            return Err(fault);
        }
        holes::readable(&answer.body).map_err(|why| holes::unfilled(hole, &why))
    }

    /// Refuses a planned call that could not be sent, or that a component could send without a review.
    pub(crate) fn check_planned(facts: &Facts, call: &NativeCall) -> Result<(), Fault> {
        substitute::check_places(call)?;
        let call = &holes::with_samples(call)?;
        let (request, auth) = Request::of(call)?;
        path::check(&request.path)?;
        headers::check(&request.headers, &facts.manifest, &auth)?;
        body::check(&request, facts.bounds.request_bytes)?;
        if let Auth::Session(name) = &auth {
            session::declared(&facts.manifest, name)?;
        }
        match phase::read_rule(&facts.manifest.reads, &request) {
            None => Ok(()),
            Some(rule) => Err(denied(
                "plan-is-read",
                format!(
                    "{} {} fits reads[{rule}]: it could be sent without a review",
                    call.method, call.path
                ),
            )),
        }
    }
}
