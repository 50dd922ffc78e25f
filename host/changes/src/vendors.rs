//! The tables with names of vendors that the interface fixes, read from `assets/vendors.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use heddle_core::Permission;
use heddle_core::change::Danger;
use heddle_inventory::controllers::declarations::CONTROLLER_WRITE;
use serde::Deserialize;

use super::declarations::{NETWORK_WRITE, PERMISSIONS};

/// The file as it is.
#[derive(Deserialize)]
pub(super) struct Tables {
    /// The five vendors that `by-gateway` accepts, installed or not.
    pub(super) gateways: Vec<String>,
    /// Areas of the family whose paths name a site.
    site_areas: Vec<String>,
    /// Vendors whose areas stand below `/<vendor>/`, too.
    rest: Vec<String>,
    /// Permissions for staging and applying, by the first segment of a feature: for a normal change, and for one that
    /// destroys something. The segment is a word of the field or the vendor's id.
    permissions: BTreeMap<String, [String; 2]>,
}

pub(super) static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../assets/vendors.json"))
        .expect("the tables are JSON, which a test reads")
});

static NEEDED: LazyLock<BTreeMap<&str, [Permission; 2]>> = LazyLock::new(|| {
    let named = |name: &String| {
        let mut known = PERMISSIONS.iter().chain([&CONTROLLER_WRITE]);
        *known.find(|permission| permission.as_str() == name).expect("the tables name declared permissions")
    };
    TABLES
        .permissions
        .iter()
        .map(|(segment, names)| (segment.as_str(), names.each_ref().map(named)))
        .collect()
});

/// Whether an area of any vendor is served at paths that name a site.
pub(super) fn is_of_sites(area: &str) -> bool {
    TABLES.site_areas.iter().any(|known| known == area)
}

/// Whether the areas of a vendor have a second family of paths, in the style of REST.
pub(super) fn has_rest_family(vendor: &str) -> bool {
    TABLES.rest.iter().any(|known| known == vendor)
}

/// Returns the permission that staging and applying a feature needs.
pub fn for_feature(feature: &str, danger: Danger) -> Permission {
    let first = feature.split('.').next().unwrap_or_default();
    match NEEDED.get(first) {
        Some([normal, _]) if danger == Danger::Normal => *normal,
        Some([_, destroying]) => *destroying,
        None => NETWORK_WRITE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::declarations::{FIREWALL_WRITE, HYPERVISOR_WRITE, VPN_WRITE};
    use super::*;

    #[track_caller]
    fn needs(feature: &str, expected: Permission) {
        assert_eq!(for_feature(feature, Danger::Normal), expected, "{feature}");
    }

    #[test]
    fn the_interface_has_five_vendors_of_gateways() {
        assert_eq!(TABLES.gateways, ["omada", "opnsense", "pfsense", "mikrotik", "openwrt"]);
    }

    #[test]
    fn what_destroys_something_at_a_switch_or_router_needs_more() {
        for danger in [Danger::Destructive, Danger::Catastrophic] {
            for vendor in ["omada", "mikrotik", "openwrt", "unifi"] {
                let feature = format!("{vendor}.firewall.rule");
                assert_eq!(for_feature(&feature, danger), CONTROLLER_WRITE, "{feature}");
            }
            assert_eq!(for_feature("acme.vlan", danger), NETWORK_WRITE);
            assert_eq!(for_feature("vpn.tunnel", danger), VPN_WRITE);
            assert_eq!(for_feature("proxmox.vm.snapshot", danger), HYPERVISOR_WRITE);
        }
    }

    #[test]
    fn a_feature_resolves_to_the_permission_of_its_prefix() {
        needs("vpn.tunnel", VPN_WRITE);
        needs("firewall.rule", FIREWALL_WRITE);
        needs("opnsense.nat.rule", FIREWALL_WRITE);
        needs("opnsense.vpn.wireguard", FIREWALL_WRITE);
        needs("pfsense.system.reboot", FIREWALL_WRITE);
        needs("proxmox.vm.snapshot", HYPERVISOR_WRITE);
        needs("proxmox.firewall.rule", HYPERVISOR_WRITE);
        needs("omada.vlan", NETWORK_WRITE);
        needs("mikrotik.vpn.wireguard", NETWORK_WRITE);
        needs("openwrt.firewall.rule", NETWORK_WRITE);
        needs("unifi.wlan", NETWORK_WRITE);
        needs("system.time", CONTROLLER_WRITE);
        needs("monitoring.target", CONTROLLER_WRITE);
        needs("acme.vlan", NETWORK_WRITE);
        needs("vpnx.tunnel", NETWORK_WRITE);
    }
}
