//! What stands in the controller when it starts: sites with devices, clients and the settings of a small
//! company.

mod clients;
mod devices;
mod settings;

use serde_json::json;

use crate::call::Release;
use crate::controller::Omada;
use crate::store::GLOBAL;

/// Sizes and pace of a controller.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Sites; the first two are "Main" and "Branch".
    pub sites: usize,
    /// Clients of each site.
    pub clients: usize,
    /// Software of the controller.
    pub release: Release,
    /// How long a step of a device takes: an adoption has four, an upgrade four, a restart of the controller
    /// four.
    pub step_ms: u64,
}

impl Default for Seed {
    fn default() -> Self {
        Self { sites: 2, clients: 40, release: Release::default(), step_ms: 2000 }
    }
}

/// Plants every site.
pub(crate) fn plant(controller: &mut Omada) {
    let Seed { sites, clients, .. } = controller.seed;
    controller.store.add_scope(GLOBAL);
    settings::plant_global(controller);
    for number in 0..sites {
        let id = controller.store.new_id();
        let name = match number {
            0 => "Main".to_owned(),
            1 => "Branch".to_owned(),
            _ => format!("Site {}", number + 1),
        };
        let site = json!({
            "siteId": id, "id": id, "name": name, "type": 0, "region": "Germany", "timeZone": "Europe/Berlin",
            "scenario": "Office", "tagIds": [], "ntpEnable": false, "supportES": true, "supportL2": true,
        });
        controller.store.rows_mut(GLOBAL, "system.site").push(site);
        furnish(controller, &id);
        settings::plant(controller, &id, number);
        devices::plant(controller, &id, number);
        clients::plant(controller, &id, number, clients);
        settings::plant_logs(controller, &id);
    }
}

/// Gives a new site what the vendor gives it: the default network, WLAN group, port profiles and groups.
pub(crate) fn furnish(controller: &mut Omada, site: &str) {
    controller.store.add_scope(site);
    settings::furnish(controller, site);
}
