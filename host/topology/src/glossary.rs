//! How the API document speaks of topologies.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const TOPOLOGY: Glossary = Glossary {
    groups: &[(
        "network",
        "Network",
        "Networks over all controllers of a site: how devices are connected, and what lies behind what.",
    )],
    nouns: &[("/network/topology", "topology", "topologies")],
    ..Glossary::EMPTY
};
