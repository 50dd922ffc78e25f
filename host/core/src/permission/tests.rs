use super::*;
use crate::change::Danger;

#[test]
fn a_higher_role_holds_everything_a_lower_one_does() {
    let mut roles = Role::ALL.to_vec();
    roles.sort_by_key(|role| role.level());
    for pair in roles.windows(2) {
        for permission in Permission::ALL {
            assert!(
                !pair[0].holds(*permission) || pair[1].holds(*permission),
                "{} holds {permission} but {} does not",
                pair[0],
                pair[1]
            );
        }
    }
}

#[track_caller]
fn needs(feature: &str, expected: Permission) {
    assert_eq!(for_feature(feature, Danger::Normal), expected, "{feature}");
}

#[test]
fn what_destroys_something_at_a_switch_or_router_needs_more() {
    for danger in [Danger::Destructive, Danger::Catastrophic] {
        for vendor in ["omada", "mikrotik", "openwrt", "unifi"] {
            let feature = format!("{vendor}.firewall.rule");
            assert_eq!(for_feature(&feature, danger), Permission::ControllerWrite, "{feature}");
        }
        assert_eq!(for_feature("acme.vlan", danger), Permission::NetworkWrite);
        assert_eq!(for_feature("vpn.tunnel", danger), Permission::VpnWrite);
        assert_eq!(for_feature("proxmox.vm.snapshot", danger), Permission::HypervisorWrite);
    }
}

#[test]
fn a_feature_resolves_to_the_permission_of_its_prefix() {
    needs("vpn.tunnel", Permission::VpnWrite);
    needs("firewall.rule", Permission::FirewallWrite);
    needs("opnsense.nat.rule", Permission::FirewallWrite);
    needs("opnsense.vpn.wireguard", Permission::FirewallWrite);
    needs("pfsense.system.reboot", Permission::FirewallWrite);
    needs("proxmox.vm.snapshot", Permission::HypervisorWrite);
    needs("proxmox.firewall.rule", Permission::HypervisorWrite);
    needs("omada.vlan", Permission::NetworkWrite);
    needs("mikrotik.vpn.wireguard", Permission::NetworkWrite);
    needs("openwrt.firewall.rule", Permission::NetworkWrite);
    needs("unifi.wlan", Permission::NetworkWrite);
    needs("system.time", Permission::ControllerWrite);
    needs("monitoring.target", Permission::ControllerWrite);
    needs("acme.vlan", Permission::NetworkWrite);
    needs("vpnx.tunnel", Permission::NetworkWrite);
}

#[test]
fn viewer_carries_the_specified_permissions() {
    for word in ["device:read", "alert:read", "controller:read", "vpn:read", "analytics:read", "audit:read"] {
        assert!(Role::Viewer.holds(word.parse().unwrap()), "{word}");
    }
}

#[test]
fn undeclared_prefixes_are_denied_to_everyone() {
    for pattern in ["network.*", "cameras.*", "voip.x", "firewall.rule", "agent.*", "automation.*"] {
        assert_eq!(for_subscription(pattern), SubscriptionAccess::Denied, "{pattern}");
    }
    assert_eq!(for_subscription("system.*"), SubscriptionAccess::SuperAdmin);
}

#[test]
fn a_wildcard_covers_what_is_below_its_word() {
    #[track_caller]
    fn check(scope: &str, permission: Permission, expected: bool) {
        assert_eq!(Scope::parse(scope).unwrap().covers(permission), expected, "{scope} {permission}");
    }
    check("device:read", Permission::DeviceRead, true);
    check("device:read", Permission::DeviceWrite, false);
    check("device:*", Permission::DeviceWrite, true);
    check("device:*", Permission::ControllerRead, false);
    check("cameras.*", Permission::CamerasView, true);
    check("firewall.*", Permission::FirewallManageRules, true);
    check("firewall.*", Permission::FirewallWrite, false);
    check("firewall:*", Permission::FirewallManageRules, false);
    check("*", Permission::DeviceRead, false);
}

#[test]
fn what_names_no_permission_is_no_scope() {
    for text in
        ["", "*:*", ":*", "devices:*", "device", "device:", "device:reads", "dev*", "**", "device:*:read"]
    {
        assert_eq!(Scope::parse(text), Err(UnknownScope(text.to_owned())), "{text}");
    }
}

#[test]
fn a_scope_is_held_by_who_holds_all_of_it() {
    let held = |scope: &str, role: Role| Scope::parse(scope).unwrap().is_held_by(role);
    assert!(held("device:*", Role::Operator) && !held("device:*", Role::Viewer));
    assert!(held("device:read", Role::Guest) && !held("user:read", Role::SiteAdmin));
    assert!(held("*", Role::SuperAdmin) && !held("*", Role::OrgAdmin));
}

#[test]
fn administrators_read_all_events_but_those_of_the_service() {
    for (pattern, needed) in [
        ("device.offline", ReadingAccess::Permission(Permission::DeviceRead)),
        ("user.*", ReadingAccess::Permission(Permission::UserRead)),
        ("ingest.external", ReadingAccess::Role(Role::OrgAdmin)),
        ("automation.*", ReadingAccess::Role(Role::OrgAdmin)),
        ("*", ReadingAccess::Role(Role::OrgAdmin)),
        ("system.started", ReadingAccess::Role(Role::SuperAdmin)),
        ("admin.*", ReadingAccess::Role(Role::SuperAdmin)),
    ] {
        assert_eq!(for_reading(pattern), needed, "{pattern}");
    }
}
