//! A practice device on the skeleton that simulated controllers share (`tests/labs/lab`).

use heddle_lab::{Controller, Fault, FaultKind, Lab};
use serde::Deserialize as _;
use serde_json::Value;

use super::Practice;

pub(super) struct OnSkeleton<C: Controller> {
    pub(super) device: Lab<C>,
    pub(super) tell: fn(&mut C, &str),
    pub(super) credential: Value,
    pub(super) settings: Value,
    /// Places of the state that an administrator can change.
    pub(super) places: &'static [&'static str],
    /// Names of what moves by itself there.
    pub(super) moving: &'static [&'static str],
}

/// The same without what moves by itself.
fn without(value: &Value, moving: &[&str]) -> Value {
    match value {
        Value::Object(fields) => {
            let still = fields.iter().filter(|(name, _)| !moving.contains(&name.as_str()));
            still.map(|(name, value)| (name.clone(), without(value, moving))).collect()
        }
        Value::Array(items) => items.iter().map(|item| without(item, moving)).collect(),
        other => other.clone(),
    }
}

impl<C: Controller> Practice for OnSkeleton<C> {
    fn url(&self) -> String {
        self.device.url()
    }
    fn credential(&self) -> Value {
        self.credential.clone()
    }
    fn settings(&self) -> Value {
        self.settings.clone()
    }
    fn configuration(&self) -> Value {
        let state = self.device.state();
        let at = |place: &&str| without(state.pointer(place).expect("the state has this place"), self.moving);
        self.places.iter().map(at).collect()
    }
    fn cut(&self) {
        self.device.fault(Fault::from(FaultKind::Cut));
    }
    fn mend(&self) {
        self.device.clear_faults();
    }
    fn edit(&self, order: &Value) -> Value {
        self.device.edit(order).expect("a practice device takes the edits that its tests know")
    }
    fn refuse(&self, fault: &Value) {
        self.device.fault(Fault::deserialize(fault).expect("a fault in the form of the control port"));
        self.device.close_connections();
    }
    fn tell(&self, version: &str) {
        (self.tell)(self.device.lock().parts().0, version);
    }
    fn executed(&self) -> Vec<String> {
        let record = self.device.record().into_iter().filter(|exchange| exchange.is_executed);
        let name = |one: heddle_lab::Exchange| match one.query.as_str() {
            "" => one.name(),
            query => format!("{}?{query}", one.name()),
        };
        record.map(name).collect()
    }
    fn forget(&self) {
        self.device.forget_record();
    }
}
