//! Permissions that changes need, and events of changes.

use heddle_core::Permission;
use heddle_core::change::Danger;
use heddle_inventory::controllers::declarations::CONTROLLER_WRITE;

/// Most characters of the notes on a change.
pub const NOTES_CHARS_MAX: usize = 2000;

heddle_core::permissions! { pub PERMISSIONS {
    NETWORK_WRITE = "network:write", Operator, "Stage and apply changes of networks";
    FIREWALL_WRITE = "firewall:write", Operator, "Stage and apply changes of firewalls";
    VPN_WRITE = "vpn:write", Operator, "Stage and apply changes of VPN tunnels";
    HYPERVISOR_WRITE = "hypervisor:write", SiteAdmin, "Stage and apply changes of virtual machines";
} }

heddle_core::events! { pub EVENTS {
    CHANGE_STAGED = "controller.change.staged", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid", "plan_hash": "string?" };
    CHANGE_APPLIED = "controller.change.applied", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    CHANGE_FAILED = "controller.change.failed", "change", High,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?", "state": "string", "message": "string" };
    CHANGE_DISCARDED = "controller.change.discarded", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    CHANGE_REVERTED = "controller.change.reverted", "change", High,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?", "message": "string" };
    CHANGE_EXPIRED = "controller.change.expired", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
} }

/// Permissions for staging and applying, by the first segment of a vendor's feature: for a normal change, and for one
/// that destroys something. The segment is a word of the field or the vendor's id; the interface fixes this table.
const NEEDED: &[(&str, Permission, Permission)] = &[
    ("vpn", VPN_WRITE, VPN_WRITE),
    ("firewall", FIREWALL_WRITE, FIREWALL_WRITE),
    ("opnsense", FIREWALL_WRITE, FIREWALL_WRITE),
    ("pfsense", FIREWALL_WRITE, FIREWALL_WRITE),
    ("proxmox", HYPERVISOR_WRITE, HYPERVISOR_WRITE),
    ("system", CONTROLLER_WRITE, CONTROLLER_WRITE),
    ("monitoring", CONTROLLER_WRITE, CONTROLLER_WRITE),
    ("omada", NETWORK_WRITE, CONTROLLER_WRITE),
    ("mikrotik", NETWORK_WRITE, CONTROLLER_WRITE),
    ("openwrt", NETWORK_WRITE, CONTROLLER_WRITE),
    ("unifi", NETWORK_WRITE, CONTROLLER_WRITE),
];

/// Returns the permission that staging and applying a feature needs.
pub fn for_feature(feature: &str, danger: Danger) -> Permission {
    let first = feature.split('.').next().unwrap_or_default();
    match NEEDED.iter().find(|(segment, ..)| *segment == first) {
        Some((_, normal, _)) if danger == Danger::Normal => *normal,
        Some((.., destroying)) => *destroying,
        None => NETWORK_WRITE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn needs(feature: &str, expected: Permission) {
        assert_eq!(for_feature(feature, Danger::Normal), expected, "{feature}");
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
