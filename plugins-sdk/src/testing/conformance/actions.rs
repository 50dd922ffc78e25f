//! Features that do something.

use serde_json::Value;

use super::World;
use super::case::{Case, Step};
use super::exception::Rule;
use crate::testing::{Practice, Reviewed};
use crate::{Operation, Stage};

impl<W: World> Case<'_, W> {
    /// Plans an action, does it, finds its effect, and takes it back where there is a way.
    pub(super) fn action(&self, device: &W::Device, payload: &Value) -> Step<()> {
        let made = self.reviewed(device, Operation::Create, payload)?;
        let action = &self.feature["binding"]["action"];
        if action["effect"].is_object() {
            self.seen(device, payload, &made)?;
        } else {
            self.unseen(device, &made)?;
        }
        self.inverse(device, &made)?;
        if action["back"].is_object() {
            self.require(Rule::WayBack, made.has(Stage::Restore), || {
                "the way back is not planned".to_owned()
            })?;
            self.send(device, &made, Stage::Restore)?;
            return self.stands(device, &made, (Rule::Before, "before"), "taken back");
        }
        self.require(Rule::WayBack, made.is_said_to_be_final() && !made.has(Stage::Restore), || {
            "nothing says that it cannot be taken back".to_owned()
        })
    }

    /// An action whose effect can be read.
    fn seen(&self, device: &W::Device, payload: &Value, made: &Reviewed) -> Step<()> {
        self.stands(device, made, (Rule::Before, "before"), "planned")?;
        self.send(device, made, Stage::Apply)?;
        self.stands(device, made, (Rule::After, "after"), "done")?;
        let inverse = &self.feature["binding"]["action"]["inverse"];
        self.require(Rule::WayBack, inverse.is_string() == made.plan.inverse.is_some(), || {
            format!("the description names the inverse {inverse}, and the plan has {:?}", made.plan.inverse)
        })?;
        // The object may have gone, or have another name.
        let Ok(again) = self.planned(device, Operation::Create, payload) else {
            let is_gone = made.plan.steps.iter().any(|step| step.after.is_none())
                || self.feature["binding"]["action"]["effect"]["key"].is_object();
            return self.require(Rule::Again, is_gone, || "it cannot be planned again".to_owned());
        };
        let calls = again.plan.native.len();
        self.require(Rule::Again, calls == 0, || format!("a second time has {calls} calls"))
    }

    /// An action that only its answer tells of.
    fn unseen(&self, device: &W::Device, made: &Reviewed) -> Step<()> {
        let before = device.traces();
        self.send(device, made, Stage::Apply)?;
        self.stands(device, made, (Rule::After, "unseen"), "done")?;
        let is_traced = before.is_none() || before != device.traces();
        self.require(Rule::Trace, is_traced, || "it left nothing on the device".to_owned())
    }
}
