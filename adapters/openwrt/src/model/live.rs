//! What the router reports of itself, read at once.

use heddle_sdk::{Completeness, Fault, Host, json as sdk_json};
use serde_json::Value;

use crate::inventory::{Survey, devices, plain};

/// Places of the reads.
const BOARD: usize = 0;
pub(super) const INFO: usize = 1;
pub(super) const INTERFACES: usize = 2;
pub(super) const DEVICES: usize = 3;
pub(super) const WIRELESS: usize = 4;

/// One reading of everything that lives.
pub(super) struct Live {
    survey: Survey,
    /// The reads that the objects are made of.
    needed: Vec<usize>,
}

impl Live {
    /// Fails where one of the reads fails that the objects are made of: what a failed call would have told is not gone.
    /// Interfaces and devices are always among them, because the router's identity is made of both.
    pub(super) fn read(host: &dyn Host, needed: &[usize]) -> Result<Self, Fault> {
        let reads = [
            plain("system", "board"),
            plain("system", "info"),
            plain("network.interface", "dump"),
            plain("network.device", "status"),
            plain("network.wireless", "status"),
        ];
        let survey = Survey::take(host, &reads)?;
        let needed: Vec<usize> = needed.iter().chain(&devices::IDENTIFYING).copied().collect();
        match needed.iter().find_map(|index| survey.failure(*index)) {
            Some(fault) => Err(fault),
            None => Ok(Self { survey, needed }),
        }
    }

    pub(super) fn board(&self) -> &Value {
        self.survey.answer(BOARD)
    }

    pub(super) fn info(&self) -> &Value {
        self.survey.answer(INFO)
    }

    /// Interfaces of layer 3.
    pub(super) fn interfaces(&self) -> &[Value] {
        sdk_json::items(self.survey.answer(INTERFACES), "/interface")
    }

    /// Devices by name.
    pub(super) fn devices(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.survey
            .answer(DEVICES)
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, device)| (name.as_str(), device))
    }

    /// Radios by name.
    pub(super) fn radios(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.survey
            .answer(WIRELESS)
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, radio)| (name.as_str(), radio))
    }

    /// The identity of the router among its devices.
    pub(super) fn identity(&self) -> String {
        devices::identity(self.board(), self.survey.answer(DEVICES), self.survey.answer(INTERFACES))
    }

    /// The interface that is on a device.
    pub(super) fn interface_on(&self, device: &str) -> Option<&Value> {
        let is = |interface: &&Value| {
            ["/l3_device", "/device"].iter().any(|place| sdk_json::text(interface, place) == Some(device))
        };
        self.interfaces().iter().find(is)
    }

    pub(super) fn complete(&self) -> Completeness {
        let is_denied = self.needed.iter().any(|index| self.survey.is_denied(*index));
        if is_denied { Completeness::RightsLimited } else { Completeness::Complete }
    }
}
