//! How the API document speaks of signing in elsewhere and apps.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const SINGLE_SIGN_ON: Glossary = Glossary {
    nouns: &[
        ("/auth/sso/providers", "identity_provider", "identity_providers"),
        ("/users/{user_id}/identities", "user_identity", "user_identities"),
    ],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
    ..Glossary::EMPTY
};

pub(crate) const APPS: Glossary = Glossary {
    groups: &[(
        "oauth2",
        "Apps",
        "Apps that users let act for them: registration, consent and tokens (RFC 6749).",
    )],
    nouns: &[("/oauth2/apps", "app", "apps"), ("/oauth2/grants", "app_grant", "app_grants")],
    ..Glossary::EMPTY
};
