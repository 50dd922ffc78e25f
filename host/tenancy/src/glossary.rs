//! How the API document speaks of tenants.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const TENANCY: Glossary = Glossary {
    groups: &[
        (
            "organizations",
            "Organizations",
            "Tenants: their settings, quotas, dashboards, and who may see which site.",
        ),
        ("roles", "Roles", "Named lists of permissions, for the scopes of API keys."),
        (
            "sites",
            "Sites",
            "Places of an organization, which divide its devices and the access of its users.",
        ),
        ("users", "Users", "People, their roles, and their identities at identity providers."),
    ],
    nouns: &[
        ("/organizations", "organization", "organizations"),
        ("/organizations/{organization_id}/site-access", "site_access", "site_access"),
        ("/roles", "role", "roles"),
        ("/sites", "site", "sites"),
        ("/users", "user", "users"),
    ],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};

pub(crate) const SETUP: Glossary = Glossary {
    groups: &[(
        "setup",
        "Setup",
        "The first organization and its administrator. Inert after it was done once.",
    )],
    ..Glossary::EMPTY
};
