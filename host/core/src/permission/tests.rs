use super::*;

crate::permissions! { ALL {
    DEVICE_READ = "device:read", Guest, "See devices";
    DEVICE_WRITE = "device:write", Operator, "Change devices";
    CONTROLLER_READ = "controller:read", Viewer, "See controllers";
    FIREWALL_WRITE = "firewall:write", Operator, "Change firewalls";
    FIREWALL_MANAGE_RULES = "firewall.manage_rules", Operator, "Manage firewall rules";
    CAMERAS_VIEW = "cameras.view", Viewer, "Watch cameras";
    USER_READ = "user:read", OrgAdmin, "See users";
} }

fn all() -> Permissions {
    Permissions::new(ALL.iter().copied())
}

fn parse(text: &str) -> Result<KeyScope, UnknownScope> {
    KeyScope::parse(text, &all())
}

#[test]
fn a_higher_role_holds_everything_a_lower_one_does() {
    assert!(Role::Guest.holds(DEVICE_READ) && !Role::Guest.holds(CONTROLLER_READ));
    let mut roles = Role::ALL.to_vec();
    roles.sort_by_key(|role| role.level());
    for pair in roles.windows(2) {
        for permission in ALL {
            assert!(
                !pair[0].holds(*permission) || pair[1].holds(*permission),
                "{} holds {permission} but {} does not",
                pair[0],
                pair[1]
            );
        }
    }
    assert_eq!(all().held_by(Role::SuperAdmin), ["*"]);
    assert_eq!(all().held_by(Role::Viewer), ["cameras.view", "controller:read", "device:read"]);
}

#[test]
fn a_wildcard_covers_what_is_below_its_word() {
    #[track_caller]
    fn check(scope: &str, permission: Permission, expected: bool) {
        let scope = parse(scope).unwrap();
        assert_eq!(scope.covers(permission), expected, "{scope:?} {permission}");
        assert_eq!(scope.permissions().contains(&permission), expected, "{scope:?} {permission}");
    }
    check("device:read", DEVICE_READ, true);
    check("device:read", DEVICE_WRITE, false);
    check("device:*", DEVICE_WRITE, true);
    check("device:*", CONTROLLER_READ, false);
    check("cameras.*", CAMERAS_VIEW, true);
    check("firewall.*", FIREWALL_MANAGE_RULES, true);
    check("firewall.*", FIREWALL_WRITE, false);
    check("firewall:*", FIREWALL_MANAGE_RULES, false);
    check("*", DEVICE_READ, false);
    assert_eq!(KeyScope::of(DEVICE_READ), parse("device:read").unwrap());
}

#[test]
fn what_names_no_permission_is_no_scope() {
    for text in
        ["", "*:*", ":*", "devices:*", "device", "device:", "device:reads", "dev*", "**", "device:*:read"]
    {
        assert_eq!(parse(text), Err(UnknownScope(text.to_owned())), "{text}");
    }
}

#[test]
fn a_scope_is_held_by_a_role_that_holds_all_of_it() {
    let held = |scope: &str, role: Role| parse(scope).unwrap().is_held_by(role);
    assert!(held("device:*", Role::Operator) && !held("device:*", Role::Viewer));
    assert!(held("device:read", Role::Guest) && !held("user:read", Role::SiteAdmin));
    assert!(held("*", Role::SuperAdmin) && !held("*", Role::OrgAdmin));
}
