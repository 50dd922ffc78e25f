//! How the API document speaks of drift and of documents.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const DRIFT: Glossary = Glossary {
    groups: &[(
        "drift",
        "Drift",
        "Objects that are not as they are wanted: what was applied last, what was observed, and who changed it as far as \
         the evidence tells.",
    )],
    nouns: &[("/drift", "drift", "drift")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};

pub(crate) const INTENT: Glossary = Glossary { ..Glossary::EMPTY };
