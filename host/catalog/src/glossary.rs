//! How the API document speaks of the catalogue.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const MARKETPLACE: Glossary = Glossary {
    groups: &[(
        "marketplace",
        "Marketplace",
        "A signed catalogue of plugins and adapters: what it offers, how it stands, and installing from it.",
    )],
    nouns: &[
        ("/marketplace/plugins", "marketplace_plugin", "marketplace_plugins"),
        ("/marketplace/plugins/{plugin}/ratings", "plugin_rating", "plugin_ratings"),
    ],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};
