//! Roles, strictly ordered.

stored_words! {
    /// What a user is in their organization. `super_admin` spans organizations.
    pub enum Role {
        SuperAdmin = "super_admin",
        OrgAdmin = "org_admin",
        SiteAdmin = "site_admin",
        Operator = "operator",
        Viewer = "viewer",
        Guest = "guest",
    }
}

impl Role {
    /// The role's level; a higher one includes the lower ones.
    pub const fn level(self) -> u8 {
        match self {
            Role::SuperAdmin => 100,
            Role::OrgAdmin => 60,
            Role::SiteAdmin => 40,
            Role::Operator => 20,
            Role::Viewer => 10,
            Role::Guest => 5,
        }
    }

    pub const fn is_at_least(self, other: Role) -> bool {
        self.level() >= other.level()
    }

    /// Reads a role as clients write it: `admin` is another spelling of `org_admin`.
    pub fn parse_assigned(text: &str) -> Result<Self, crate::UnknownWord> {
        if text == "admin" { Ok(Role::OrgAdmin) } else { text.parse() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_is_another_spelling_and_an_unknown_role_names_the_accepted() {
        assert_eq!(Role::parse_assigned("admin"), Ok(Role::OrgAdmin));
        assert_eq!(Role::parse_assigned("guest"), Ok(Role::Guest));
        for text in ["", "Admin", "root"] {
            let error = Role::parse_assigned(text).unwrap_err().to_string();
            assert!(error.contains("site_admin"), "{error}");
        }
    }
}
