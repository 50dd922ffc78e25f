//! The models of the household: names, ports and radios.

use serde_json::{Value, json};

/// What a model has.
pub(crate) struct Hardware {
    /// The vendor's short code.
    pub(crate) model: &'static str,
    pub(crate) kind: &'static str,
    /// The name that the official interface tells.
    pub(crate) name: &'static str,
    /// Ports: how many, of which medium and speed, and whether they give power.
    ports: &'static [(usize, &'static str, i64, bool)],
    radios: &'static [&'static str],
    /// Outlets that are switched one by one.
    outlets: usize,
}

const MODELS: [Hardware; 9] = [
    Hardware {
        model: "UDMPRO",
        kind: "udm",
        name: "UDM Pro",
        ports: &[(8, "GE", 1000, false), (1, "GE", 1000, false), (2, "SFP+", 10000, false)],
        radios: &[],
        outlets: 0,
    },
    Hardware {
        model: "US24PRO",
        kind: "usw",
        name: "USW Pro 24 PoE",
        ports: &[(24, "GE", 1000, true), (2, "SFP+", 10000, false)],
        radios: &[],
        outlets: 0,
    },
    Hardware {
        model: "USL16LP",
        kind: "usw",
        name: "USW Lite 16 PoE",
        ports: &[(8, "GE", 1000, true), (8, "GE", 1000, false)],
        radios: &[],
        outlets: 0,
    },
    Hardware {
        model: "USL8LP",
        kind: "usw",
        name: "USW Lite 8 PoE",
        ports: &[(4, "GE", 1000, true), (4, "GE", 1000, false)],
        radios: &[],
        outlets: 0,
    },
    Hardware {
        model: "USF5P",
        kind: "usw",
        name: "USW Flex",
        ports: &[(1, "GE", 1000, false), (4, "GE", 1000, true)],
        radios: &[],
        outlets: 0,
    },
    Hardware {
        model: "U7PRO",
        kind: "uap",
        name: "U7 Pro",
        ports: &[(1, "GE", 2500, false)],
        radios: &["ng", "na", "6e"],
        outlets: 0,
    },
    Hardware {
        model: "UAP6MP",
        kind: "uap",
        name: "U6 Pro",
        ports: &[(1, "GE", 1000, false)],
        radios: &["ng", "na"],
        outlets: 0,
    },
    Hardware {
        model: "U7MSH",
        kind: "uap",
        name: "AC Mesh",
        ports: &[(1, "GE", 1000, false)],
        radios: &["ng", "na"],
        outlets: 0,
    },
    Hardware {
        model: "USPPDUP",
        kind: "usw",
        name: "USP PDU Pro",
        ports: &[(1, "GE", 100, false)],
        radios: &[],
        outlets: 4,
    },
];

impl Hardware {
    pub(crate) fn all() -> &'static [Self] {
        &MODELS
    }

    pub(crate) fn of(model: &str) -> &'static Self {
        MODELS.iter().find(|own| own.model == model).unwrap_or(&MODELS[0])
    }

    /// The ports as a device keeps them.
    pub(crate) fn ports(&self) -> Value {
        let sizes = self.ports.iter().flat_map(|port| std::iter::repeat_n(port, port.0));
        let rows = sizes.enumerate().map(|(place, (_, media, max, has_power))| {
            let number = place + 1;
            let name = if *media == "GE" { format!("Port {number}") } else { format!("SFP+ {number}") };
            json!({ "idx": number, "name": name, "media": media, "max": max, "poe": has_power })
        });
        Value::Array(rows.collect())
    }

    /// The outlets as a device keeps them.
    pub(crate) fn outlets(&self) -> Value {
        let rows =
            (1..=self.outlets).map(|index| json!({ "index": index, "name": format!("Outlet {index}") }));
        Value::Array(rows.collect())
    }

    /// The radios as a device keeps them.
    pub(crate) fn radios(&self) -> Value {
        let rows = self
            .radios
            .iter()
            .enumerate()
            .map(|(place, radio)| json!({ "name": format!("wifi{place}"), "radio": radio }));
        Value::Array(rows.collect())
    }

    /// The table of radios that a new device has.
    pub(crate) fn radio_table(&self) -> Value {
        let rows = self.radios.iter().enumerate().map(|(place, radio)| {
            let (channel, width) = match *radio {
                "ng" => (6, 20),
                "na" => (36, 80),
                _ => (37, 160),
            };
            json!({
                "name": format!("wifi{place}"), "radio": radio, "channel": channel, "ht": width,
                "tx_power_mode": "auto",
                "tx_power": "auto", "min_rssi_enabled": false, "antenna_gain": 3, "antenna_id": -1,
                "hard_noise_floor_enabled": false,
                "sens_level_enabled": false, "vwire_enabled": false, "loadbalance_enabled": false,
            })
        });
        Value::Array(rows.collect())
    }
}
