//! One feature under test: its parts of the description, and the steps that all checks share.

use heddle_marketplace::Schema;
use serde_json::Value;

use super::exception::{Exception, Rule};
use super::{Checked, World};
use crate::testing::{Practice, Reviewed};
use crate::{Change, ChangePlan, Danger, Fault, FaultExt, FileBody, Operation, Stage};

/// The schema of an operation of a feature; none where the feature does not have it.
#[must_use]
pub fn schema<'f>(feature: &'f Value, word: &str) -> Option<&'f Value> {
    operation(feature, word).map(|one| &one["payload-schema"])
}

fn operation<'f>(feature: &'f Value, word: &str) -> Option<&'f Value> {
    feature["operations"].as_array()?.iter().find(|one| one["operation"] == word)
}

pub(super) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    }
}

/// A feature in its world.
pub(super) struct Case<'w, W: World> {
    pub(super) world: &'w W,
    pub(super) feature: &'w Value,
    exceptions: &'w [Exception],
}

/// What stops a check.
pub(super) enum Stop {
    /// The feature does not keep a rule.
    Wrong(String),
    /// An exception lifts the rule.
    Lifted,
}

/// A step of a check.
pub(super) type Step<T> = Result<T, Stop>;

impl From<String> for Stop {
    fn from(problem: String) -> Self {
        Self::Wrong(problem)
    }
}

impl<'w, W: World> Case<'w, W> {
    pub(super) fn new(world: &'w W, feature: &'w Value, exceptions: &'w [Exception]) -> Self {
        Self { world, feature, exceptions }
    }

    /// Checks the whole feature.
    pub(super) fn check(&self) -> Checked<()> {
        let device = self.world.device(self.feature);
        let sample = self.world.sample(&device, self.feature)?;
        let checked = if self.is_action() {
            self.action(&device, &sample.create)
        } else {
            self.objects(&device, &sample)
        };
        match checked {
            Ok(()) | Err(Stop::Lifted) => Ok(()),
            Err(Stop::Wrong(problem)) => Err(problem),
        }
    }

    fn is_action(&self) -> bool {
        self.feature["binding"]["action"].is_object()
    }

    pub(super) fn has(&self, word: &str) -> bool {
        schema(self.feature, word).is_some()
    }

    /// What the description says of the fields of the feature's kind.
    pub(super) fn fields(&self) -> &'w Value {
        &self.world.package().kind(self.feature["kind"].as_str().unwrap_or_default())["fields"]
    }

    /// Whether a payload has a field of which the description says so.
    pub(super) fn has_field(&self, payload: &Value, says: &str) -> bool {
        let fields = self.fields();
        payload.as_object().is_some_and(|all| all.keys().any(|name| fields[name.as_str()][says] == true))
    }

    /// Fails where a rule is not kept, unless an exception lifts it.
    pub(super) fn require(&self, rule: Rule, is_kept: bool, problem: impl FnOnce() -> String) -> Step<()> {
        if is_kept {
            Ok(())
        } else if self.exceptions.iter().any(|exception| exception.lifts(rule, self.feature)) {
            Err(Stop::Lifted)
        } else {
            Err(Stop::Wrong(format!("{rule:?}: {}", problem())))
        }
    }

    /// A plan that a server takes. It wrote nothing, because its host refuses writes of an adapter.
    pub(super) fn planned(
        &self,
        device: &W::Device,
        operation: Operation,
        payload: &Value,
    ) -> Checked<Reviewed> {
        fits(self.feature, word(operation), payload)?;
        if !device.host().holds_rules() {
            return Err("the host of the device holds no rules of a package".to_owned());
        }
        let change = Change {
            feature: self.feature["id"].as_str().unwrap_or_default().to_owned(),
            operation,
            site: None,
            payload: payload.to_string(),
        };
        let made = Reviewed::of(device, vec![change])
            .map_err(|fault| format!("{} of {payload} is not planned: {}", word(operation), told(&fault)))?;
        self.as_described(operation, &made.plan)?;
        Ok(made)
    }

    /// A plan that has something to do, at a device that stands as it saw it.
    pub(super) fn reviewed(
        &self,
        device: &W::Device,
        operation: Operation,
        payload: &Value,
    ) -> Step<Reviewed> {
        let made = self.planned(device, operation, payload)?;
        if made.plan.native.is_empty() {
            return Err(Stop::Wrong(format!("{} of {payload} has nothing to do", word(operation))));
        }
        Ok(made)
    }

    /// A plan is at least as dangerous as the description says.
    fn as_described(&self, operation: Operation, plan: &ChangePlan) -> Checked<()> {
        let described = self::operation(self.feature, word(operation));
        let least = match described.and_then(|one| one["danger"].as_str()) {
            Some("catastrophic") => Danger::Catastrophic,
            Some("destructive") => Danger::Destructive,
            _ => Danger::Normal,
        };
        let is_told = plan.native.is_empty() || rank(plan.danger) >= rank(least);
        if is_told {
            Ok(())
        } else {
            Err(format!("its plan is {:?}, and described as {least:?}", plan.danger))
        }
    }

    pub(super) fn send(&self, device: &W::Device, made: &Reviewed, stage: Stage) -> Step<()> {
        let Err(fault) = made.run(device, stage) else { return Ok(()) };
        self.require(Rule::Ends, false, || {
            let calls = made.plan.native.iter().filter(|call| call.stage == stage);
            let calls = calls.map(|call| format!("{:?} {} {:?}", call.method, call.path, call.body));
            format!("{stage:?}: {} of {}", told(&fault), calls.collect::<Vec<_>>().join(" | "))
        })
    }

    pub(super) fn stands(
        &self,
        device: &W::Device,
        made: &Reviewed,
        (rule, wanted): (Rule, &str),
        when: &str,
    ) -> Step<()> {
        let found = made.standing(device);
        self.require(rule, found == wanted, || format!("{when}: it stands '{found}' instead of '{wanted}'"))
    }

    /// The plan of the changes that take a plan back, where the plan has such changes.
    pub(super) fn inverse(&self, device: &W::Device, made: &Reviewed) -> Step<Option<Reviewed>> {
        let Some(changes) = &made.plan.inverse else { return Ok(None) };
        match Reviewed::of(device, changes.clone()) {
            Ok(inverse) => Ok(Some(inverse)),
            Err(fault) => {
                let problem = || format!("the inverse {changes:?} is not planned: {}", told(&fault));
                self.require(Rule::Inverse, false, problem).map(|()| None)
            }
        }
    }
}

fn rank(danger: Danger) -> u8 {
    match danger {
        Danger::Normal => 0,
        Danger::Destructive => 1,
        Danger::Catastrophic => 2,
    }
}

fn told(fault: &Fault) -> String {
    let info = fault.info();
    let fields: Vec<String> =
        info.fields.iter().map(|field| format!("{} {}", field.pointer, field.message)).collect();
    format!("{} {}", info.message, fields.join(", "))
}

/// The payload as people send it: with ids in the places of files.
fn as_sent(schema: &Value, payload: &Value) -> Value {
    let mut sent = payload.clone();
    for (name, field) in sent.as_object_mut().into_iter().flatten() {
        let is_file = schema["properties"][name]["x-file"] == true;
        if is_file && FileBody::of(field, "").is_some() {
            *field = Value::from("00000000-0000-7000-8000-000000000000");
        }
    }
    sent
}

/// A schema that a server accepts, and a payload that fits it.
fn fits(feature: &Value, word: &str, payload: &Value) -> Checked<()> {
    let schema = schema(feature, word).ok_or_else(|| format!("no {word} is described"))?;
    let compiled = Schema::parse(schema).map_err(|error| format!("the schema of {word}: {error}"))?;
    let payload = &as_sent(schema, payload);
    let problems: Vec<String> =
        compiled.validator().iter_errors(payload).map(|error| error.to_string()).collect();
    if problems.is_empty() { Ok(()) } else { Err(format!("{payload} does not fit: {}", problems.join("; "))) }
}
