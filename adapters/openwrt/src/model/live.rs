//! What the router reports of itself, read at once.

use heddle_sdk::{Completeness, Fault, Host, json as sdk_json};
use serde_json::Value;

use crate::inventory::{Survey, devices, plain};

/// One reading of everything that lives.
pub(super) struct Live(Survey);

impl Live {
    pub(super) fn read(host: &dyn Host) -> Result<Self, Fault> {
        let reads = [
            plain("system", "board"),
            plain("system", "info"),
            plain("network.interface", "dump"),
            plain("network.device", "status"),
            plain("network.wireless", "status"),
        ];
        Survey::take(host, &reads).map(Self)
    }

    pub(super) fn board(&self) -> &Value {
        self.0.answer(0)
    }

    pub(super) fn info(&self) -> &Value {
        self.0.answer(1)
    }

    /// Interfaces of layer 3.
    pub(super) fn interfaces(&self) -> &[Value] {
        sdk_json::items(self.0.answer(2), "/interface")
    }

    /// Devices by name.
    pub(super) fn devices(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.answer(3).as_object().into_iter().flatten().map(|(name, device)| (name.as_str(), device))
    }

    /// Radios by name.
    pub(super) fn radios(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.answer(4).as_object().into_iter().flatten().map(|(name, radio)| (name.as_str(), radio))
    }

    /// The identity of the router among its devices.
    pub(super) fn identity(&self) -> String {
        devices::identity(self.board(), self.0.answer(3), self.0.answer(2))
    }

    /// The interface that is on a device.
    pub(super) fn interface_on(&self, device: &str) -> Option<&Value> {
        let is = |interface: &&Value| {
            ["/l3_device", "/device"].iter().any(|place| sdk_json::text(interface, place) == Some(device))
        };
        self.interfaces().iter().find(is)
    }

    pub(super) fn complete(&self) -> Completeness {
        if self.0.denied.is_empty() { Completeness::Complete } else { Completeness::RightsLimited }
    }
}
