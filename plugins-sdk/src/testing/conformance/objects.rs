//! Features that write objects and settings.

use serde_json::Value;

use super::case::{Case, Step, word};
use super::difference::{difference, holds};
use super::exception::Rule;
use super::{Sample, World};
use crate::testing::{Practice, Reviewed};
use crate::{Adapter as _, FaultExt, Listing, Operation, Stage};

/// Objects of a list that are looked at.
const LISTED_MAX: u32 = 1000;

impl<W: World> Case<'_, W> {
    pub(super) fn objects(&self, device: &W::Device, sample: &Sample) -> Step<()> {
        if self.has("create") {
            let (mut made, is_back) = self.there_and_back(device, Operation::Create, &sample.create)?;
            if is_back {
                made = self.apply(device, Operation::Create, &sample.create)?;
            }
            self.read_back(device, &made)?;
        }
        if self.has("update") {
            self.update(device, sample)?;
        }
        if self.has("delete") {
            self.there_and_back(device, Operation::Delete, &sample.delete)?;
        }
        Ok(())
    }

    fn update(&self, device: &W::Device, sample: &Sample) -> Step<()> {
        let Some(update) = &sample.update else {
            return self.require(Rule::Sampled, false, || "there is no sample of an update".to_owned());
        };
        self.there_and_back(device, Operation::Update, update)?;
        self.moved(device, update, sample.other.as_ref())?;
        self.inverted(device, update)
    }

    /// Applies an update and takes it back by a change of its own.
    fn inverted(&self, device: &W::Device, update: &Value) -> Step<()> {
        let before = device.state();
        let made = self.reviewed(device, Operation::Update, update)?;
        self.send(device, &made, Stage::Apply)?;
        let Some(inverse) = self.inverse(device, &made)? else {
            let is_right = self.may_lose(Operation::Update);
            return self.require(Rule::Inverse, is_right, || "an update has no inverse".to_owned());
        };
        self.send(device, &inverse, Stage::Apply)?;
        let now = device.state();
        self.require(Rule::Inverse, now == before, || {
            format!("the inverse applied: {}", difference(&before, &now).join("; "))
        })
    }

    /// Applies, finds it as asked, and finds that a second plan has nothing to do.
    fn apply(&self, device: &W::Device, operation: Operation, payload: &Value) -> Step<Reviewed> {
        let made = self.reviewed(device, operation, payload)?;
        self.stands(device, &made, (Rule::Before, "before"), "planned")?;
        self.send(device, &made, Stage::Apply)?;
        let found = made.standing(device);
        let may_differ = found.starts_with("adjusted") && self.has_field(payload, "rewritten");
        self.require(Rule::After, found == "after" || may_differ, || {
            format!("{} of {payload} applied: it stands '{found}'", word(operation))
        })?;
        let inactive = device.inactive();
        self.require(Rule::After, inactive.is_empty(), || {
            format!("{} is stored and not in effect: {}", word(operation), inactive.join(", "))
        })?;
        // What no answer shows is written each time.
        if !self.has_field(payload, "unread") {
            let again = self.planned(device, operation, payload)?.plan;
            let is_idle = again.native.is_empty() && again.warnings == ["the device is already as asked"];
            self.require(Rule::Again, is_idle, || {
                format!(
                    "a second {} has {} calls and says {:?}",
                    word(operation),
                    again.native.len(),
                    again.warnings
                )
            })?;
        }
        Ok(made)
    }

    /// Applies and takes back: the device then keeps what it kept before. The plan, and whether there was a way back.
    fn there_and_back(
        &self,
        device: &W::Device,
        operation: Operation,
        payload: &Value,
    ) -> Step<(Reviewed, bool)> {
        let before = device.state();
        let made = self.apply(device, operation, payload)?;
        self.inverse(device, &made)?;
        if !made.has(Stage::Restore) {
            // Said before, and only where nothing can write back what is lost.
            let is_right = made.is_said_to_be_final() && self.may_lose(operation);
            self.require(Rule::WayBack, is_right, || format!("{} has no way back", word(operation)))?;
            return Ok((made, false));
        }
        self.send(device, &made, Stage::Restore)?;
        self.stands(device, &made, (Rule::Before, "before"), &format!("{} restored", word(operation)))?;
        let now = device.state();
        self.require(Rule::Restored, now == before, || {
            format!("{} restored: {}", word(operation), difference(&before, &now).join("; "))
        })?;
        Ok((made, true))
    }

    /// Whether the description tells that an operation may lose something.
    fn may_lose(&self, operation: Operation) -> bool {
        let binding = &self.feature["binding"];
        let is_lost = match operation {
            Operation::Create => !self.has("delete"),
            Operation::Update => false,
            // An object that is made again under another id is another one to what names it.
            Operation::Delete => {
                let id = &binding["create"]["id"];
                let keeps_id = id == "chosen" || id["field"].is_string();
                binding["delete"]["final"] == true || !self.has("create") || !keeps_id
            }
        };
        let fields = self.fields().as_object();
        is_lost || fields.is_some_and(|fields| fields.values().any(|field| field["unread"] == true))
    }

    /// Another person writes between plan and apply.
    fn moved(&self, device: &W::Device, update: &Value, other: Option<&Value>) -> Step<()> {
        let Some(other) = other else { return Ok(()) };
        let reviewed = self.reviewed(device, Operation::Update, update)?;
        let theirs = self.reviewed(device, Operation::Update, other)?;
        self.send(device, &theirs, Stage::Apply)?;
        let before = device.state();
        let refused = reviewed.run(device, Stage::Apply).err();
        let code = refused.and_then(|fault| fault.info().code.clone());
        let is_right = code.as_deref() == Some("state-moved") && device.state() == before;
        self.require(Rule::Moved, is_right, || format!("a moved state is not told: {code:?}"))?;
        if theirs.has(Stage::Restore) {
            self.send(device, &theirs, Stage::Restore)?;
        }
        Ok(())
    }

    /// The object is listed, and read by its key as the plan showed it.
    fn read_back(&self, device: &W::Device, made: &Reviewed) -> Step<()> {
        let (kind, key) = made
            .plan
            .touches
            .first()
            .and_then(|touched| touched.split_once('/'))
            .ok_or_else(|| "the plan touches nothing by name".to_owned())?;
        let told = |fault: crate::Fault| format!("{kind} '{key}' is not read: {}", fault.info().message);
        let host = device.host();
        let page = <W::Device as Practice>::Adapter::list_objects(&host, &Listing::of(kind, LISTED_MAX))
            .map_err(told)?;
        let keys: Vec<&str> = page.items.iter().map(|item| item.reference.key.as_str()).collect();
        self.require(Rule::ReadBack, keys.contains(&key), || format!("'{key}' is not listed: {keys:?}"))?;
        let found = <W::Device as Practice>::Adapter::get_object(&host, kind, None, key).map_err(told)?;
        let (body, fields): (Value, _) =
            (serde_json::from_str(&found.body).unwrap_or_default(), self.fields());
        let wanted = made.plan.steps.first().and_then(|step| step.after.as_deref()).unwrap_or("{}");
        let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
        let is_shown = |name: &str, value: &Value| fields[name]["unread"] != true && value != "(secret)";
        let differing: Vec<String> = wanted
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, value)| is_shown(name, value) && !holds(&body[name.as_str()], value))
            .map(|(name, value)| format!("{name}: {} instead of {value}", body[name.as_str()]))
            .collect();
        self.require(Rule::ReadBack, differing.is_empty(), || differing.join(", "))
    }
}
