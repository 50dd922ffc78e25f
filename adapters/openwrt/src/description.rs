//! What the adapter manages. The package has it as `description.json`, beside the manifest; a test compares the two.

use serde_json::{Value, json};

use crate::features::{SECTIONS, order, schema};
use crate::inventory::objects::{KINDS, Kind};
use crate::power;

/// The content of `description.json`, made from the tables that plan and read.
#[must_use]
pub fn description() -> Value {
    let area = |id: &str, title: &str| json!({ "id": id, "title": title });
    let mut features: Vec<_> = SECTIONS.iter().map(|feature| schema::section_feature(feature)).collect();
    features.extend(order::ORDERS.iter().map(schema::order_feature));
    features.extend(power::features());
    json!({
        "areas": [area("base", "System and network"), area("firewall", "Firewall"), area("dhcp", "DHCP")],
        "kinds": KINDS.iter().map(Kind::describe).collect::<Vec<_>>(),
        "features": features,
    })
}
