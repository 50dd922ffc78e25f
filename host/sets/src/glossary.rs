//! How the API document speaks of sets.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const SETS: Glossary = Glossary {
    groups: &[],
    nouns: &[("/gateway-vpn/changes/sets", "change_set", "change_sets")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};
