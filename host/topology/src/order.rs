//! How far controllers are from the service.

use std::collections::HashMap;

use heddle_core::ControllerId;

use crate::reach::{self, Without};
use crate::site::Site;
use crate::way;

/// Hops from where the service comes from to what is nearest of each controller of a site: its address, or a device that it
/// manages. Those to which no path is known are absent.
///
/// Devices count in every VLAN: packets may pass a switch in one VLAN before they come to its address in another one.
pub(crate) fn distances(site: &Site) -> HashMap<ControllerId, u32> {
    let reached = reach::reach(site, &way::origin(site).nodes, &Without::nothing(site));
    let addresses = site.controllers.iter().filter_map(|one| Some((one.id, way::controller(site, one.id)?)));
    let mut places: Vec<(ControllerId, usize)> =
        addresses.flat_map(|(id, target)| target.nodes.into_iter().map(move |node| (id, node))).collect();
    places.extend((0..site.nodes.len()).filter_map(|node| {
        let device = site.device_of(node)?;
        Some((site.devices[device].controller?, node))
    }));
    let mut nearest: HashMap<ControllerId, u32> = HashMap::new();
    for (id, node) in places {
        if let Some(hops) = reached.hops[node] {
            let known = nearest.entry(id).or_insert(hops);
            *known = hops.min(*known);
        }
    }
    nearest
}
