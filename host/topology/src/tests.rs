//! Sites that are written by hand, and hundreds that are generated.

mod generated;
mod order;
mod small;
mod told;
mod world;

use heddle_core::{Clock, ControllerId};
use serde_json::Value;

use crate::facts::{ControllerFact, DeviceFact, Fact, Facts, Object};

/// Collects what controllers tell.
struct Teller {
    clock: Clock,
    facts: Facts,
}

impl Teller {
    fn new() -> Self {
        Self { clock: Clock::default(), facts: Facts::default() }
    }

    fn controller(&mut self, name: &str, host: &str) -> ControllerId {
        let id = self.clock.new_id();
        self.facts.controllers.push(ControllerFact {
            id,
            name: name.to_owned(),
            host: host.to_owned(),
            port: 443,
        });
        id
    }

    fn device(&mut self, controller: ControllerId, identity: &str, name: &str, addresses: &[&str]) {
        self.facts.devices.push(DeviceFact {
            controller,
            id: None,
            identity: identity.to_owned(),
            name: name.to_owned(),
            mac: None,
            addresses: addresses.iter().map(|one| (*one).to_owned()).collect(),
        });
    }

    #[track_caller]
    fn tell(
        &mut self,
        controller: ControllerId,
        device: Option<&str>,
        (kind, key): (&str, &str),
        fields: Value,
    ) {
        let text = fields.to_string();
        let fact = Fact::parse(kind, &text).unwrap_or_else(|| panic!("{kind} has other fields: {text}"));
        let label = ["name", "hostname"].iter().find_map(|name| fields.get(name)?.as_str());
        self.facts.objects.push(Object {
            id: self.clock.new_id(),
            controller,
            site_ref: String::new(),
            key: key.to_owned(),
            label: label.unwrap_or(key).to_owned(),
            device_key: device.map(str::to_owned),
            native: None,
            fact,
        });
    }
}
