//! How the API document speaks of plugins.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const PLUGINS: Glossary = Glossary {
    groups: &[(
        "plugins",
        "Plugins",
        "Extensions of third parties: what is installed, what a person agreed to, and where they are switched on.",
    )],
    nouns: &[("/plugins", "plugin", "plugins")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};
