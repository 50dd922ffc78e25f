//! How the API document speaks of the own account.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const SIGN_IN: Glossary = Glossary {
    groups: &[
        (
            "api-keys",
            "API keys",
            "Keys for scripts that run for months. Their scopes are a ceiling below the user's role.",
        ),
        ("auth", "Authentication", "Sign-in, sessions, passwords, second factors and single sign-on."),
    ],
    nouns: &[("/api-keys", "api_key", "api_keys"), ("/auth/sessions", "session", "sessions")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};
