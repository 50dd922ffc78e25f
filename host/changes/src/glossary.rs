//! How the API document speaks of changes.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const CHANGES: Glossary = Glossary {
    groups: &[(
        "gateway-vpn",
        "Changes",
        "Staged changes of all vendors: review the plan, apply, confirm, revert or discard it.",
    )],
    nouns: &[("/gateway-vpn/changes", "change", "changes")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};
